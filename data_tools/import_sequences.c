/* Sequences of sets, such as the keys that sound in each frame of a chorale. A sequence becomes
 * a student, a key an item, and a frame a step with one attempt per key, correct if the key
 * sounds. The first attempt of a frame starts the step. */
#include "base/fail.h"
#include "base/memory.h"
#include "data_tools/csv_cell.h"
#include "data_tools/import.h"
#include <stdio.h>
#include <string.h>

enum { PROGRESS = 1 << 8 };

struct sequences {
    struct import *import;
    struct text text;
    size_t n_keys;
    uint32_t *items;
    bool *sounds;
};

static enum status read_frame(struct sequences *sequences, struct span line)
{
    struct text *text = &sequences->text;
    memset(sequences->sounds, 0, sequences->n_keys * sizeof *sequences->sounds);
    struct span piece;
    while (span_next(&line, ' ', &piece)) {
        int64_t key = 0;
        piece = span_trim(piece);
        if (piece.n == 0)
            continue;
        if (!csv_cell_integer(piece, &key) || key < 0 || (size_t)key >= sequences->n_keys)
            return fail(BAD_DATA,
                        "%s:%llu: '%.*s' is not a key; expected 0 to %zu (see --items)",
                        text->path, (unsigned long long)text->line, (int)size_min(piece.n, 40),
                        piece.start, sequences->n_keys - 1);
        sequences->sounds[key] = true;
    }
    return OK;
}

static enum status read_sequence(struct sequences *sequences, int64_t n_frames,
                                 uint32_t student, enum split split)
{
    struct text *text = &sequences->text;
    const uint64_t first_line = text->line;
    for (int64_t t = 0; t < n_frames; t++) {
        struct span line = {0};
        bool got = false;
        TRY(text_line(text, &line, &got));
        if (!got)
            return fail(BAD_DATA,
                        "%s:%llu: the file ends after %lld of the %lld lines of this sequence",
                        text->path, (unsigned long long)first_line, (long long)t,
                        (long long)n_frames);
        TRY(read_frame(sequences, line));
        import_next_row(sequences->import);
        for (size_t i = 0; i < sequences->n_keys; i++)
            builder_add(
                sequences->import->builder, student, sequences->items[i],
                mark_make(sequences->sounds[i] ? CORRECT : INCORRECT, split, false, i == 0), 0);
    }
    sequences->import->n_rows += (uint64_t)n_frames;
    return OK;
}

static enum status read_file(struct sequences *sequences, const struct import_file *file,
                             uint64_t *n_students)
{
    struct import *import = sequences->import;
    struct text *text = &sequences->text;
    TRY(text_open(text, file->path));
    import_next_file(import, file->path);
    for (;;) {
        struct span line = {0};
        bool got = false;
        int64_t n_frames = 0;
        TRY(text_line(text, &line, &got));
        if (!got)
            break;
        line = span_trim(line);
        if (line.n == 0)
            continue;
        if (!csv_cell_integer(line, &n_frames) || n_frames < 0)
            return fail(BAD_DATA,
                        "%s:%llu: '%.*s' is not a length; expected the number of lines of a "
                        "sequence, then that many lines of keys",
                        text->path, (unsigned long long)text->line, (int)size_min(line.n, 80),
                        line.start);
        const uint32_t s = import_number_student(import, file->split, ++*n_students);
        TRY(read_sequence(sequences, n_frames, s, file->split));
        if (*n_students % PROGRESS == 0)
            import_show_progress(import, text);
    }
    import->n_bytes += text->n_bytes;
    return OK;
}

enum status import_sequences(struct import *import)
{
    if (import->flags->n_items == 0)
        return fail(BAD_USAGE,
                    "import sequences needs --items, the number of keys (88 for a piano)");
    import->plan.step = STEP_GIVEN;
    TRY(import_begin(import));
    struct sequences sequences = {.import = import, .n_keys = (size_t)import->flags->n_items};
    sequences.items = NEW(uint32_t, sequences.n_keys);
    sequences.sounds = NEW(bool, sequences.n_keys);
    for (size_t i = 0; i < sequences.n_keys; i++) {
        char name[32];
        const int n = snprintf(name, sizeof name, "%zu", i);
        sequences.items[i] = builder_item(import->builder, name, (size_t)n);
    }
    uint64_t n_students[N_SPLITS] = {0};
    enum status status = OK;
    for (size_t f = 0; f < import->n_files && status == OK; f++) {
        const struct import_file *file = &import->files[f];
        status = read_file(&sequences, file, &n_students[file->split]);
        text_close(&sequences.text);
    }
    memory_free(sequences.items);
    memory_free(sequences.sounds);
    return status;
}
