/* The steps of an import in any format:
 *
 *     collect files -> read them into a builder -> finish it -> split -> write -> report
 *
 * Nothing is written before everything is read, and then by rename: a failure never leaves half
 * a data set. */
#include "data_tools/import.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "data_tools/csv.h"
#include "data_tools/csv_cell.h"
#include "data_tools/pseudonym.h"
#include "data_tools/truths.h"
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum status import_begin(struct import *import)
{
    if (import->builder != NULL)
        return OK;
    const enum builder_step step = import->plan.step;
    if ((step == STEP_TIME || step == STEP_SESSION) && !import->plan.has_time)
        return fail(BAD_USER,
                    "--step %s needs times, but %s has none; name the column with --time",
                    step == STEP_TIME ? "time" : "session", import->files[0].path);
    import->builder = builder_create(&import->plan);
    return OK;
}

/* The name of a file without its directory, which is private. */
static struct span base_name(const char *path)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/')
        end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/')
        start--;
    return (struct span){(char *)path + start, end - start};
}

void import_next_file(struct import *import, const char *path)
{
    struct origin *origin = &import->origin;
    const struct span name = base_name(path);
    char number[32]; /* instead of its name, which may be a student's */
    const int n_number = snprintf(number, sizeof number, "%zu", origin->files.n + 1);
    GROW(origin->first, origin->files.n, import->origin_capacity);
    origin->first[origin->files.n] = import->n_source;
    if (import->key != NULL)
        names_add(&origin->files, number, (size_t)n_number);
    else
        names_add(&origin->files, name.start, name.n);
}

void import_next_row(struct import *import)
{
    builder_row(import->builder, import->n_source++);
}

/* The row after the last one ends the table of files. */
static const struct origin *finish_origin(struct import *import, struct builder_result *result)
{
    struct origin *origin = &import->origin;
    GROW(origin->first, origin->files.n, import->origin_capacity);
    origin->first[origin->files.n] = import->n_source;
    origin->row = result->row; /* the result still owns them */
    origin->microsecond = result->microsecond;
    if (result->row == NULL)
        log_say("note: %" PRIu64 " rows are too many to remember: attempts have no row numbers",
                import->n_source);
    return origin;
}

enum status import_bad_row(struct import *import, const char *path, uint64_t line,
                           struct span text, const char *format, ...)
{
    char reason[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, sizeof reason, format, arguments);
    va_end(arguments);
    const int n = (int)size_min(text.n, 120);
    /* With pseudonyms no name may reach a log. */
    char *row = import->key == NULL
                    ? memory_text(": '%.*s'%s", n, text.start, text.n > (size_t)n ? "..." : "")
                    : NULL;
    const enum status status =
        import->flags->skip_bad
            ? OK
            : fail(BAD_DATA, "%s:%llu: %s%s; fix the row or use --skip-bad", path,
                   (unsigned long long)line, reason, row != NULL ? row : "");
    memory_free(row);
    TRY(status);
    if (import->n_bad++ == 0)
        import->first_bad = memory_text("%s:%llu: %s", path, (unsigned long long)line, reason);
    return OK;
}

void import_target(struct import *import, struct span student, double target)
{
    const size_t n_known = import->targeted.names.n;
    char *other = import->key ? pseudonym_of_cell(import->key, student.start, student.n) : NULL;
    const uint32_t number = other != NULL
                                ? name_index_add(&import->targeted, other, strlen(other))
                                : name_index_add(&import->targeted, student.start, student.n);
    memory_free(other);
    if (number == n_known)
        GROW(import->target, n_known, import->target_capacity);
    else
        import->n_retargeted += import->target[number] != target;
    import->target[number] = target;
}

uint32_t import_number_student(struct import *import, enum split split, uint64_t n)
{
    char name[64];
    const int length =
        import->has_split
            ? snprintf(name, sizeof name, "%s-%llu", split_names[split], (unsigned long long)n)
            : snprintf(name, sizeof name, "%llu", (unsigned long long)n);
    return builder_student(import->builder, name, (size_t)length);
}

void import_show_progress(const struct import *import, const struct text *text)
{
    log_live("%s: %.1f million rows, %.0f MB", text->path, (double)import->n_rows / 1e6,
             (double)(import->n_bytes + text->n_bytes) / 1e6);
}

static enum status choose_delimiter(struct import *import)
{
    static const struct {
        const char *word;
        char delimiter;
    } words[] = {{"auto", 0},    {"tab", '\t'},      {"\\t", '\t'},
                 {"comma", ','}, {"semicolon", ';'}, {"space", ' '}};
    const char *text = import->flags->delimiter;
    for (size_t w = 0; w < COUNT(words); w++)
        if (strcmp(words[w].word, text) == 0) {
            import->delimiter = words[w].delimiter;
            return OK;
        }
    import->delimiter = text[0];
    if (strlen(text) != 1 || strchr("\"\n\r", text[0]) != NULL)
        return fail(BAD_USER,
                    "--delimiter %s: expected one character, or auto, tab, comma, semicolon or "
                    "space",
                    text);
    return OK;
}

static void add_file(struct import *import, const char *path, enum split split)
{
    if (path[0] != '\0')
        import->files[import->n_files++] = (struct import_file){path, split};
}

/* One file under two names is one file: links, and paths with other directories. */
static bool is_same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return strcmp(a, b) == 0 ||
           (stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && S_ISREG(of_a.st_mode) &&
            of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino);
}

/* A file that is given twice; its attempts are then read twice. */
static void warn_of_doubles(const struct import *import)
{
    enum { MOST = 1000 }; /* files that are compared, each with all others */
    static const char *const parts[N_SPLITS] = {"training", "validation", "test"};
    const size_t n = size_min(import->n_files, MOST);
    for (size_t f = 1; f < n; f++)
        for (size_t e = 0; e < f; e++) {
            const struct import_file *one = &import->files[e], *other = &import->files[f];
            if (!is_same_file(one->path, other->path))
                continue;
            if (one->split == other->split)
                log_warn("%s is given twice: each of its attempts counts twice", other->path);
            else
                log_warn(
                    "%s is both for %s and for %s: a model is then judged by attempts that "
                    "it has seen",
                    other->path, parts[one->split], parts[other->split]);
            break;
        }
}

static enum status choose_split(struct import *import, struct split_plan *plan)
{
    const struct import_flags *flags = import->flags;
    const struct import_preset *preset = import->format->preset;
    *plan = (struct split_plan){.way = SPLIT_GIVEN, .seed = (uint64_t)flags->seed};
    if (flags->split[0] != '\0' && (flags->valid[0] || flags->split_column[0]))
        return fail(BAD_USAGE,
                    "import: --split %s contradicts --valid or --split-column, which already "
                    "choose the attempts for validation; remove one of these options",
                    flags->split);
    import->split = "as given";
    if (import->has_split && flags->split[0] == '\0')
        return OK;
    import->split_is_default = flags->split[0] == '\0';
    import->split = !import->split_is_default         ? flags->split
                    : preset != NULL && preset->split ? preset->split
                                                      : "by-student=80/10/10";
    return import->has_split ? split_parse_train(import->split, plan)
                             : split_parse(import->split, plan);
}

/* Reads titles of items or skills from a file with two columns, name and title. */
static enum status read_titles(struct import *import, const char *path,
                               bool (*title)(struct builder *, const char *, size_t,
                                             const char *, size_t))
{
    struct csv csv;
    uint64_t n_used = 0;
    bool got = true;
    enum status status = csv_open(&csv, path, 0, false);
    while (status == OK) {
        status = csv_next(&csv, &got);
        if (status != OK || !got)
            break;
        if (csv.n_cells < 2) {
            status = import_bad_row(import, path, csv.line, csv.record,
                                    "expected a name, a comma or a tab, and a title");
            continue;
        }
        const struct span from = span_trim(csv.cells[0]), to = span_trim(csv.cells[1]);
        if (to.n > 0)
            n_used += title(import->builder, from.start, from.n, to.start, to.n);
    }
    csv_close(&csv);
    if (status == OK && n_used == 0)
        status = fail(BAD_USER,
                      "%s: none of these names occurs in the data; expected two columns: a "
                      "name as in the data, and the name to show instead",
                      path);
    return status;
}

/* Reads targets from a file with two columns, student and number. A first line whose second
 * cell is not a number is a header. */
static enum status read_targets(struct import *import, const char *path)
{
    struct csv csv;
    bool got = true;
    enum status status = csv_open(&csv, path, 0, false);
    for (uint64_t n = 0; status == OK; n++) {
        status = csv_next(&csv, &got);
        if (status != OK || !got)
            break;
        double target = 0;
        const struct span student =
            csv.n_cells == 2 ? span_trim(csv.cells[0]) : (struct span){0};
        if (csv.n_cells == 2 && csv_cell_is_missing(csv.cells[1]))
            continue;
        if (student.n > 0 && csv_cell_number(span_trim(csv.cells[1]), &target))
            import_target(import, student, target);
        else if (csv.n_cells != 2 || n > 0)
            status = import_bad_row(import, path, csv.line, csv.record,
                                    "expected a student, a comma or a tab, and a number");
    }
    csv_close(&csv);
    return status;
}

static enum status read_all(struct import *import)
{
    const struct import_flags *flags = import->flags;
    TRY(import->format->read(import));
    if (flags->item_names[0] != '\0')
        TRY(read_titles(import, flags->item_names, builder_title_item));
    if (flags->skill_names[0] != '\0')
        TRY(read_titles(import, flags->skill_names, builder_title_skill));
    if (flags->targets[0] != '\0')
        TRY(read_targets(import, flags->targets));
    return OK;
}

/* Puts the targets into the final order of students. */
static enum status finish_targets(const struct import *import, struct dataset_content *content)
{
    const struct import_flags *flags = import->flags;
    const bool asked = flags->target[0] != '\0' || flags->targets[0] != '\0';
    if (!asked)
        return OK;
    double *target = content->head.target = NEW(double, content->head.n_students);
    size_t n = 0;
    for (size_t s = 0; s < content->head.n_students; s++) {
        const char *name = names_get(&content->students, s);
        const uint32_t number = name_index_find(&import->targeted, name, strlen(name));
        target[s] = number == INDEX_NONE ? NAN : import->target[number];
        n += number != INDEX_NONE;
    }
    if (n == 0)
        return fail(BAD_USER, "%s: no student of the data has a target in it",
                    flags->targets[0] != '\0' ? flags->targets : flags->target);
    log_say("targets: %zu of %zu students", n, content->head.n_students);
    return OK;
}

/* Lists the files by name, unless students have pseudonyms: EdNet's files are called after
 * students. */
static char *describe(const struct import *import)
{
    char *text = memory_text("%s:", import->format->entry.name);
    for (size_t f = 0; f < import->n_files && import->key == NULL; f++) {
        const struct span name = base_name(import->files[f].path);
        memory_append(&text, "%s %.*s", f > 0 ? "," : "", (int)name.n, name.start);
        if (f == 9 && import->n_files > 10)
            break;
    }
    memory_append(
        &text, "%s; split %s%s%s", import->n_files > 10 ? ", ..." : "", import->split,
        import->has_split && import->flags->split[0] != '\0' ? " of the training files" : "",
        import->flags->shuffle_outcomes ? "; outcomes shuffled" : "");
    return text;
}

/* Numbers levels in the order of their names, not of first appearance. */
static enum status finish_covariates(struct import *import, struct builder_result *result)
{
    const size_t n = import->plan.n_covariates;
    double *values = (double *)result->content.covariate;
    for (size_t k = 0; k < n; k++) {
        const struct import_covariate *covariate = &import->covariates[k];
        const struct names *names = &covariate->levels.names;
        if (covariate->is_factor && names->n == 0)
            return fail(BAD_DATA,
                        "%s: all cells of the factor %s are empty; remove it from --factors",
                        import->files[0].path, covariate->name);
        uint32_t *order = NEW(uint32_t, names->n), *place = NEW(uint32_t, names->n);
        for (uint32_t l = 0; l < names->n; l++)
            order[l] = l;
        name_index_sort(names, order);
        struct names sorted = {0};
        for (uint32_t l = 0; l < names->n; l++) {
            const char *name = names_get(names, order[l]);
            names_add(&sorted, name, strlen(name));
            place[order[l]] = l;
        }
        for (uint64_t t = 0; covariate->is_factor && t < result->content.head.n_attempts; t++)
            if (!isnan(values[t * n + k]))
                values[t * n + k] = place[(size_t)values[t * n + k]];
        result->n_converted += covariate->levels.n_converted;
        result->n_united += covariate->levels.n_united;
        covariates_add(&result->content.head.covariates, covariate->name, &sorted);
        names_free(&sorted);
        memory_free(order);
        memory_free(place);
    }
    return OK;
}

static enum status finish(struct import *import, struct split_plan *plan)
{
    const struct import_flags *flags = import->flags;
    struct builder_result result = {0};
    builder_finish(import->builder, &result);
    struct dataset *head = &result.content.head;
    enum status status = OK;
    if (head->n_attempts == 0)
        status = fail(BAD_DATA, "%s: no attempts in this file%s%s", import->files[0].path,
                      import->first_bad ? "; the first skipped row: " : "",
                      import->first_bad ? import->first_bad : "");
    const bool preset_withholds =
        plan->way == SPLIT_GIVEN && import->format->preset && import->format->preset->withheld;
    head->withheld = flags->withheld || split_withholds(plan) || preset_withholds;
    head->source = describe(import);
    if (status == OK)
        status = finish_covariates(import, &result);
    if (status == OK)
        status = finish_targets(import, &result.content);
    if (status == OK && flags->shuffle_outcomes)
        builder_shuffle_outcomes(&result, (uint64_t)flags->seed);
    plan->student_number = result.student_number;
    if (status == OK)
        status = split_apply(plan, &result.content, result.mark);
    struct truths truths = {0};
    if (status == OK)
        status = truths_read(&truths, flags->truth, &result, import->n_rows);
    result.content.truths = truths.list;
    result.content.n_truths = truths.n;
    result.content.origin = finish_origin(import, &result);
    if (status == OK)
        status = dataset_write(&result.content, flags->output);
    if (status == OK)
        import_report(import, &result, plan);
    memory_free(head->source);
    result.content.truths = NULL;
    result.content.n_truths = 0;
    result.content.origin = NULL;
    import->origin.row = import->origin.microsecond = NULL;
    truths_free(&truths);
    builder_result_free(&result);
    return status;
}

static char *rename_student(void *arg, const char *name, size_t length)
{
    return pseudonym_make(arg, name, length);
}

enum status import_run(const struct import_format *format, const struct import_flags *flags,
                       const char *const *paths, size_t n_paths)
{
    struct import import = {
        .format = format,
        .flags = flags,
        .files = NEW(struct import_file, n_paths + N_SPLITS),
        .has_split = flags->valid[0] || flags->test[0] || flags->split_column[0],
        .plan = {.seed = (uint64_t)flags->seed,
                 .has_rows = true,
                 .step = (enum builder_step)flags->step,
                 .pause = flags->session_gap},
    };
    const struct import_preset *preset = format->preset;
    import.plan.merge = flags->merge_repeats  ? MERGE_ALL
                        : flags->keep_repeats ? MERGE_NONE
                        : preset != NULL      ? preset->merge
                                              : MERGE_NONE;
    import.plan.count_repeats = preset != NULL && preset->merge == MERGE_SKILLS;
    for (size_t p = 0; p < n_paths; p++)
        add_file(&import, paths[p], TRAIN);
    add_file(&import, flags->train, TRAIN);
    add_file(&import, flags->valid, VALID);
    add_file(&import, flags->test, TEST);
    struct split_plan split;
    enum status status = choose_split(&import, &split);
    if (status == OK && import.n_files == 0)
        status = fail(BAD_USAGE, "import: no input file; name FILES, or --train FILE and "
                                 "optionally --valid FILE and --test FILE");
    if (status == OK && flags->merge_repeats && flags->keep_repeats)
        status =
            fail(BAD_USAGE, "import: --merge-repeats contradicts --keep-repeats; remove one "
                            "of them");
    if (status == OK)
        warn_of_doubles(&import);
    struct pseudonym_key key;
    if (status == OK)
        status = choose_delimiter(&import);
    if (status == OK && flags->pseudonyms[0] != '\0') {
        status = pseudonym_key_read(flags->pseudonyms, PSEUDONYM_MAKE, &key);
        import.key = &key;
        import.plan.rename = rename_student;
        import.plan.rename_arg = &key;
    }
    const double start = log_clock();
    if (status == OK)
        status = read_all(&import);
    import.n_seconds = log_clock() - start;
    if (status == OK)
        log_live("sorting and writing %.1f million rows", (double)import.n_rows / 1e6);
    if (status == OK)
        status = finish(&import, &split);
    builder_destroy(import.builder);
    memory_free(import.files);
    memory_free(import.first_bad);
    memory_free(import.time_column);
    name_index_free(&import.targeted);
    for (size_t k = 0; k < IMPORT_MOST_COVARIATES; k++) {
        memory_free(import.covariates[k].name);
        name_index_free(&import.covariates[k].levels);
    }
    memory_free(import.target);
    origin_free(&import.origin);
    return status;
}
