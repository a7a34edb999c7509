/* EdNet KT1: one file per student, u123.csv, with one answer per row, but without its outcome.
 * The correct answers are in questions.csv: question_id, ..., correct_answer, part, tags. A
 * directory holds hundreds of thousands of student files, which are read in the order of their
 * names. */
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "data/name_index.h"
#include "data_tools/csv.h"
#include "data_tools/csv_cell.h"
#include "data_tools/import.h"
#include <dirent.h>
#include <errno.h>
#include <string.h>

enum { PROGRESS = 1 << 12 };

struct ednet {
    struct import *import;
    struct csv csv;
    struct name_index questions;
    struct names answers, tags, parts; /* of each question */
};

/* Finds a required column. */
static enum status find(const struct csv *csv, const char *name, size_t *column)
{
    *column = csv_column(csv, name);
    return *column == SIZE_MAX ? csv_no_column(csv, name, "questions") : OK;
}

static enum status read_questions(struct ednet *ednet, const char *path)
{
    struct csv *csv = &ednet->csv;
    size_t id = 0, answer = 0;
    TRY(csv_open(csv, path, 0, false));
    TRY(csv_read_header(csv));
    TRY(find(csv, "question_id", &id));
    TRY(find(csv, "correct_answer", &answer));
    const size_t tags = csv_column(csv, "tags"), part = csv_column(csv, "part");
    for (bool got = true;;) {
        TRY(csv_next(csv, &got));
        if (!got)
            break;
        if (csv->n_cells != csv->n_columns) {
            TRY(import_bad_row(ednet->import, path, csv->line, csv->record,
                               "%zu cells, but the header has %zu", csv->n_cells,
                               csv->n_columns));
            continue;
        }
        const struct span name = span_trim(csv->cells[id]);
        const size_t n_known = ednet->questions.names.n;
        if (name_index_add(&ednet->questions, name.start, name.n) < n_known)
            return fail(BAD_DATA,
                        "%s:%llu: question %.*s is listed twice; remove one of the rows", path,
                        (unsigned long long)csv->line, (int)size_min(name.n, 40), name.start);
        static char nothing[1];
        const struct span none = {nothing, 0};
        const struct span cells[] = {csv->cells[answer],
                                     tags == SIZE_MAX ? none : csv->cells[tags],
                                     part == SIZE_MAX ? none : csv->cells[part]};
        struct names *const names[] = {&ednet->answers, &ednet->tags, &ednet->parts};
        for (size_t c = 0; c < COUNT(cells); c++) {
            const struct span cell = span_trim(cells[c]);
            names_add(names[c], cell.start, cell.n);
        }
    }
    csv_close(csv);
    return OK;
}

/* The builder's number of a question. Reads its skills and group at its first use. */
static uint32_t add_item(struct ednet *ednet, uint32_t question)
{
    struct builder *builder = ednet->import->builder;
    const char *name = names_get(&ednet->questions.names, question);
    const size_t n_known = builder_items(builder)->n;
    const uint32_t item = builder_item(builder, name, strlen(name));
    if (item < n_known)
        return item;
    const char *part = names_get(&ednet->parts, question);
    if (part[0] != '\0')
        builder_item_group(builder, item, builder_group(builder, part, strlen(part)));
    const char *tags = names_get(&ednet->tags, question);
    const struct span cell = {(char *)tags, strlen(tags)};
    import_skills_add(ednet->import, ednet->csv.text.path, item, cell, ";",
                      "-1"); /* EdNet's code for no tag */
    return item;
}

static enum status read_row(struct ednet *ednet, uint32_t student, enum split split,
                            const size_t columns[3])
{
    struct import *import = ednet->import;
    const struct csv *csv = &ednet->csv;
    const char *path = csv->text.path;
    if (csv->n_cells != csv->n_columns)
        return import_bad_row(import, path, csv->line, csv->record,
                              "%zu cells, but the header has %zu", csv->n_cells,
                              csv->n_columns);
    const struct span when = span_trim(csv->cells[columns[0]]);
    const struct span name = span_trim(csv->cells[columns[1]]);
    const struct span answer = span_trim(csv->cells[columns[2]]);
    int64_t milliseconds = 0;
    if (!csv_cell_time(when, 1000, &milliseconds))
        return import_bad_row(import, path, csv->line, csv->record,
                              "timestamp '%.*s' is not a number of milliseconds",
                              (int)size_min(when.n, 40), when.start);
    const uint32_t question = name_index_find(&ednet->questions, name.start, name.n);
    if (question == INDEX_NONE)
        return import_bad_row(import, path, csv->line, csv->record,
                              "question '%.*s' is not in questions.csv",
                              (int)size_min(name.n, 40), name.start);
    const enum outcome outcome = csv_cell_is_missing(answer) ? UNKNOWN
                                 : span_is(answer, names_get(&ednet->answers, question))
                                     ? CORRECT
                                     : INCORRECT;
    builder_add(import->builder, student, add_item(ednet, question),
                mark_make(outcome, split, false, true), milliseconds);
    return OK;
}

/* The student is named after the file, up to its first dot. */
static enum status read_student(struct ednet *ednet, const char *path, enum split split)
{
    struct import *import = ednet->import;
    struct csv *csv = &ednet->csv;
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    TRY(csv_open(csv, path, 0, false));
    TRY(csv_read_header(csv));
    const uint32_t s = builder_student(import->builder, name, strcspn(name, "."));
    size_t columns[3];
    TRY(find(csv, "timestamp", &columns[0]));
    TRY(find(csv, "question_id", &columns[1]));
    TRY(find(csv, "user_answer", &columns[2]));
    import_next_file(import, path);
    for (bool got = true;;) {
        TRY(csv_next(csv, &got));
        if (!got)
            break;
        import_next_row(import);
        TRY(read_row(ednet, s, split, columns));
        import->n_rows++;
    }
    import->n_bytes += csv->text.n_bytes;
    csv_close(csv);
    return OK;
}

static bool is_student_file(const char *name)
{
    const size_t n = strlen(name);
    return name[0] == 'u' && ((n > 4 && strcmp(name + n - 4, ".csv") == 0) ||
                              (n > 7 && strcmp(name + n - 7, ".csv.gz") == 0));
}

static enum status list_folder(const char *path, struct names *files)
{
    DIR *folder = opendir(path);
    if (folder == NULL)
        return fail(BAD_IO, "cannot list the directory %s: %s", path, strerror(errno));
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
        if (is_student_file(entry->d_name))
            names_add(files, entry->d_name, strlen(entry->d_name));
    closedir(folder);
    if (files->n == 0)
        return fail(BAD_USER, "%s: no student files u1.csv, u2.csv, ... in this directory",
                    path);
    return OK;
}

static enum status read_folder(struct ednet *ednet, const char *path, enum split split)
{
    struct names files = {0};
    enum status status = list_folder(path, &files);
    uint32_t *order = NEW(uint32_t, files.n);
    for (size_t f = 0; f < files.n; f++)
        order[f] = (uint32_t)f;
    name_index_sort(&files, order);
    for (size_t f = 0; f < files.n && status == OK; f++) {
        char *file = memory_text("%s/%s", path, names_get(&files, order[f]));
        status = file_is_plain(file)
                     ? read_student(ednet, file, split)
                     : fail(BAD_USER,
                            "%s: this is a directory, a pipe or a device; expected the plain "
                            "file of a student",
                            file);
        if (f % PROGRESS == 0 && status == OK)
            import_show_progress(ednet->import, &(struct text){.path = file});
        memory_free(file);
    }
    memory_free(order);
    names_free(&files);
    return status;
}

/* Finds questions.csv: as named, or in one of the usual places. Caller frees. */
static char *find_questions(const struct import *import)
{
    static const char *const places[] = {"questions.csv", "questions.csv.gz",
                                         "../questions.csv", "../contents/questions.csv",
                                         "../EdNet-Contents/contents/questions.csv"};
    if (import->flags->questions[0] != '\0')
        return memory_text("%s", import->flags->questions);
    const char *path = import->files[0].path;
    const char *slash = strrchr(path, '/');
    char *folder = file_is_directory(path) ? memory_text("%s", path)
                   : slash != NULL         ? memory_text("%.*s", (int)(slash - path), path)
                                           : memory_text(".");
    char *found = NULL;
    for (size_t p = 0; p < COUNT(places) && found == NULL; p++) {
        found = memory_text("%s/%s", folder, places[p]);
        if (!file_exists(found)) {
            memory_free(found);
            found = NULL;
        }
    }
    memory_free(folder);
    return found;
}

static enum status read_all(struct ednet *ednet)
{
    struct import *import = ednet->import;
    char *questions = find_questions(import);
    if (questions == NULL)
        return fail(BAD_USER,
                    "%s: no questions.csv in this directory, its parent or ../contents; name "
                    "the file with --questions",
                    import->files[0].path);
    enum status status = read_questions(ednet, questions);
    memory_free(questions);
    for (size_t f = 0; f < import->n_files && status == OK; f++) {
        const struct import_file *file = &import->files[f];
        status = file_is_directory(file->path) ? read_folder(ednet, file->path, file->split)
                                               : read_student(ednet, file->path, file->split);
    }
    return status;
}

enum status import_ednet(struct import *import)
{
    import->plan.has_time = true;
    import->plan.time_divisor = 1000;
    import->plan.time_rest = 1000;
    import->origin.time_format = (struct time_format){.text = "ms"};
    TRY(import_begin(import));
    struct ednet ednet = {.import = import};
    enum status status = read_all(&ednet);
    csv_close(&ednet.csv);
    name_index_free(&ednet.questions);
    names_free(&ednet.answers);
    names_free(&ednet.tags);
    names_free(&ednet.parts);
    return status;
}
