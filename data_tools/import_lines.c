/* Some lines per student, as in much of the literature on knowledge tracing:
 *
 *     three-line                     four-line
 *     3         number of attempts   793,85284   index and student, or only the student
 *     7,12,7    items                7,12,7      items
 *     0,1,1     outcomes             4,4,5       skills
 *                                    0,1,1       outcomes
 *
 * Lines may end in a comma. Items are numbers, starting at 1 in all files seen so far; where 0
 * occurs, it is the first. With a Q-matrix the number is the place in it. An attempt at an item
 * with several skills is often several entries in a row with one skill each: --merge-repeats
 * makes one attempt of them. */
#include "base/fail.h"
#include "base/memory.h"
#include "data_tools/csv_cell.h"
#include "data_tools/import.h"
#include "data_tools/q_matrix.h"
#include <string.h>

enum { ITEMS, SKILLS, OUTCOMES, N_LISTS };
enum { PROGRESS = 1 << 8 };

struct lines {
    struct import *import;
    struct text text;
    bool has_skills;        /* four lines */
    char *copies[OUTCOMES]; /* a line is valid only until the next */
    size_t capacity[OUTCOMES];
    char *name; /* of the student; NULL: students have numbers */
    struct span lists[N_LISTS];
    size_t n;      /* attempts */
    uint64_t line; /* of the first */
    const char *expected;
};

static size_t count_pieces(struct span list)
{
    size_t n = 0;
    struct span piece;
    while (span_next(&list, ',', &piece))
        n += span_trim(piece).n > 0 || list.n > 0;
    return n;
}

/* Where the next student begins is unknown after a wrong first line, so this cannot be
 * skipped. */
static enum status read_first(struct lines *lines, struct span line, bool *has_n)
{
    const struct text *text = &lines->text;
    struct span first = span_trim(line);
    int64_t n = 0;
    first.n -= first.start[first.n - 1] == ',';
    memory_free(lines->name);
    lines->name = NULL;
    *has_n = !lines->has_skills;
    if (lines->has_skills) {
        struct span piece = first, student = first;
        while (span_next(&first, ',', &piece))
            student = span_trim(piece);
        if (student.n > 0) {
            lines->name = memory_text("%.*s", (int)size_min(student.n, 1000), student.start);
            return OK;
        }
    } else if (csv_cell_integer(first, &n) && n >= 0) {
        lines->n = (size_t)n;
        return OK;
    }
    return fail(BAD_DATA, "%s:%llu: '%.*s' is not %s; expected %s", text->path,
                (unsigned long long)text->line, (int)size_min(line.n, 80), line.start,
                lines->has_skills ? "a student" : "a number of attempts", lines->expected);
}

/* *got is false at the end of the file; sets *is_bad if the lines do not match. */
static enum status read_student(struct lines *lines, bool *got, bool *is_bad)
{
    struct text *text = &lines->text;
    struct span line = {0};
    bool has_n = false;
    do {
        TRY(text_line(text, &line, got));
    } while (*got && span_trim(line).n == 0);
    if (!*got)
        return OK;
    lines->line = text->line;
    TRY(read_first(lines, line, &has_n));
    size_t n[N_LISTS] = {0};
    for (int l = ITEMS; l < N_LISTS; l++) {
        bool got_list = false;
        if (l == SKILLS && !lines->has_skills)
            continue;
        TRY(text_line(text, &line, &got_list));
        if (!got_list)
            return fail(BAD_DATA, "%s:%llu: the last student is incomplete; expected %s",
                        text->path, (unsigned long long)text->line, lines->expected);
        n[l] = count_pieces(line);
        lines->lists[l] = line;
        if (l == OUTCOMES)
            break;
        if (line.n >= lines->capacity[l]) {
            lines->capacity[l] = 2 * line.n + 64;
            lines->copies[l] = memory_resize(lines->copies[l], lines->capacity[l], 1);
        }
        memcpy(lines->copies[l], line.start, line.n);
        lines->lists[l].start = lines->copies[l];
    }
    if (!has_n)
        lines->n = n[ITEMS];
    *is_bad = n[ITEMS] != lines->n || n[OUTCOMES] != lines->n ||
              (lines->has_skills && n[SKILLS] != lines->n);
    if (!*is_bad)
        return OK;
    const struct span items = lines->lists[ITEMS];
    if (lines->has_skills)
        return import_bad_row(lines->import, text->path, lines->line, items,
                              "found %zu items, %zu skills and %zu outcomes, which should be "
                              "equal",
                              n[ITEMS], n[SKILLS], n[OUTCOMES]);
    return import_bad_row(lines->import, text->path, lines->line, items,
                          "expected %zu items and outcomes, found %zu items and %zu outcomes",
                          lines->n, n[ITEMS], n[OUTCOMES]);
}

/* Checks every piece before the student is added. */
static enum status check_student(const struct lines *lines, bool *is_bad)
{
    struct span items = lines->lists[ITEMS], outcomes = lines->lists[OUTCOMES], item, cell;
    for (size_t t = 0; t < lines->n; t++) {
        enum outcome outcome = UNKNOWN;
        int64_t number = 0;
        span_next(&items, ',', &item);
        span_next(&outcomes, ',', &cell);
        item = span_trim(item);
        cell = span_trim(cell);
        *is_bad =
            lines->has_skills ? item.n == 0 : !csv_cell_integer(item, &number) || number < 0;
        if (*is_bad)
            return import_bad_row(lines->import, lines->text.path, lines->line + 1, item,
                                  "item %zu of the student is %s", t + 1,
                                  lines->has_skills ? "missing" : "not a number");
        *is_bad = !csv_cell_outcome(cell, &outcome);
        if (*is_bad)
            return import_bad_row(lines->import, lines->text.path,
                                  lines->line + (lines->has_skills ? 3 : 2), cell,
                                  "outcome %zu of the student is not 1 or 0", t + 1);
    }
    return OK;
}

static void add_student(const struct lines *lines, uint32_t student, enum split split)
{
    struct import *import = lines->import;
    const char *given = import->flags->skill_separator,
               *separator = given[0] != '\0' ? given : "auto";
    struct span items = lines->lists[ITEMS], skills = lines->lists[SKILLS],
                outcomes = lines->lists[OUTCOMES], item, skill, cell;
    for (size_t t = 0; t < lines->n; t++) {
        enum outcome outcome = UNKNOWN;
        span_next(&items, ',', &item);
        span_next(&outcomes, ',', &cell);
        item = span_trim(item);
        csv_cell_outcome(span_trim(cell), &outcome);
        const uint32_t i = builder_item(import->builder, item.start, item.n);
        if (lines->has_skills) {
            span_next(&skills, ',', &skill);
            import_skills_add(import, lines->text.path, i, span_trim(skill), separator,
                              "-1"); /* a usual code for no skill */
        }
        import_next_row(import); /* the attempts of a file are counted */
        builder_add(import->builder, student, i, mark_make(outcome, split, false, true), 0);
    }
}

static enum status read_file(struct lines *lines, const struct import_file *file,
                             uint64_t *n_students)
{
    struct import *import = lines->import;
    TRY(text_open(&lines->text, file->path));
    import_next_file(import, file->path);
    for (;;) {
        bool got = false, is_bad = false;
        TRY(read_student(lines, &got, &is_bad));
        if (!got)
            break;
        if (!is_bad)
            TRY(check_student(lines, &is_bad));
        ++*n_students;
        import->n_rows += lines->has_skills ? 4 : 3;
        if (!is_bad)
            add_student(lines,
                        lines->name != NULL
                            ? builder_student(import->builder, lines->name, strlen(lines->name))
                            : import_number_student(import, file->split, *n_students),
                        file->split);
        if (*n_students % PROGRESS == 0)
            import_show_progress(import, &lines->text);
    }
    import->n_bytes += lines->text.n_bytes;
    return OK;
}

static enum status read_all(struct import *import, bool has_skills)
{
    TRY(import_begin(import));
    struct lines lines = {
        .import = import,
        .has_skills = has_skills,
        .expected = has_skills ? "four lines per student: a number and the student, the items, "
                                 "their skills, the outcomes"
                               : "three lines per student: the number of attempts, their "
                                 "items, their outcomes",
    };
    uint64_t n_students[N_SPLITS] = {0};
    enum status status = OK;
    for (size_t f = 0; f < import->n_files && status == OK; f++) {
        const struct import_file *file = &import->files[f];
        status = read_file(&lines, file, &n_students[file->split]);
        text_close(&lines.text);
    }
    for (int l = ITEMS; l < OUTCOMES; l++)
        memory_free(lines.copies[l]);
    memory_free(lines.name);
    if (status == OK && import->flags->q_matrix[0] != '\0')
        status = q_matrix_read_named(import->flags->q_matrix, import->builder);
    return status;
}

enum status import_three_line(struct import *import)
{
    return read_all(import, false);
}

enum status import_four_line(struct import *import)
{
    return read_all(import, true);
}
