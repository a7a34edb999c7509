/* Compares what a model has learned with the true parameters of its data.
 *
 * A truth /truth/NAME of r rows and c columns is compared with the first table of the model, or
 * the hidden activations of students, that has r rows and columns NAME (c = 1) or NAME_1 ..
 * NAME_c. So any kind takes part whose tables use the names of the simulator. Kinds that have
 * difficulties and abilities in parts, as sums of effects or weights, take part as a Rasch model
 *
 *     logit P = theta - b
 *
 * with a line that tells which parts of the model these are, and notes where the truth has more
 * than a Rasch model. Cells that are exactly 0 in both are not estimates (the item does not need
 * the skill) and are skipped. Where an estimate has a standard error (error_NAME, or sigma of
 * abilities), `within` is the share of truths within 1.96 standard errors, ideally 0.95. */
#include "base/fail.h"
#include "base/h5.h"
#include "base/memory.h"
#include "base/shell_quote.h"
#include "commands/commands.h"
#include "commands/inspect_internal.h"
#include "data/split.h"
#include "data/truth.h"
#include "runs/inference.h"
#include <math.h>
#include <string.h>

/* Words for the same thing. */
enum thing { DISCRIMINATION, DIFFICULTY, ABILITY };
static const char *const synonyms[][2] = {[DISCRIMINATION] = {"a", "discrimination"},
                                          [DIFFICULTY] = {"b", "difficulty"},
                                          [ABILITY] = {"theta", "ability"}};

struct comparison {
    const struct inference *inference;
    struct table *tables;
    size_t n_tables;
    struct rasch rasch; /* the last two tables are made from it, if it has b and theta */
    hid_t file;
    json_t *array, *notes;
};

/* The columns PREFIX NAME, or PREFIX NAME_1 .. NAME_n. */
static bool find_columns(const struct table *table, const char *prefix, const char *name,
                         size_t n, size_t *columns)
{
    for (size_t c = 0; c < n; c++) {
        char numbered[128], plain[128];
        snprintf(numbered, sizeof numbered, "%s%s_%zu", prefix, name, c + 1);
        snprintf(plain, sizeof plain, "%s%s", prefix, name);
        columns[c] = table_column(table, numbered);
        if (columns[c] == SIZE_MAX && n == 1)
            columns[c] = table_column(table, plain);
        if (columns[c] == SIZE_MAX)
            return false;
    }
    return true;
}

static bool find_synonyms(const struct table *table, const char *name, size_t n,
                          size_t *columns)
{
    if (find_columns(table, "", name, n, columns))
        return true;
    for (size_t s = 0; s < COUNT(synonyms); s++)
        for (int way = 0; way < 2; way++)
            if (strcmp(synonyms[s][way], name) == 0 &&
                find_columns(table, "", synonyms[s][1 - way], n, columns))
                return true;
    return false;
}

static bool is_called(const char *name, enum thing thing)
{
    return strcmp(name, synonyms[thing][0]) == 0 || strcmp(name, synonyms[thing][1]) == 0;
}

static bool find_errors(const struct table *table, const char *name, size_t n, size_t *columns)
{
    return find_columns(table, "error_", name, n, columns) ||
           (strcmp(table->row, "student") == 0 && find_columns(table, "", "sigma", n, columns));
}

/* Sums over pairs of truth x and estimate y. */
struct sums {
    int64_t n, n_within, n_errors;
    double x, y, xx, yy, xy, squares;
};

static void add_pair(struct sums *sums, double x, double y, double error)
{
    if ((x == 0 && y == 0) || isnan(x) || isnan(y))
        return;
    sums->n++;
    sums->x += x;
    sums->y += y;
    sums->xx += x * x;
    sums->yy += y * y;
    sums->xy += x * y;
    sums->squares += (y - x) * (y - x);
    if (isfinite(error) && error > 0) {
        sums->n_errors++;
        sums->n_within += fabs(y - x) <= 1.96 * error;
    }
}

static json_t *sums_json(const struct sums *sums, const char *name, const char *of,
                         const char *estimate)
{
    const double n = (double)sums->n;
    const double xy = sums->xy - sums->x * sums->y / n, xx = sums->xx - sums->x * sums->x / n,
                 yy = sums->yy - sums->y * sums->y / n;
    json_t *object = json_object();
    json_object_set_new(object, "name", command_json_text(name));
    json_object_set_new(object, "of", json_string(of));
    if (estimate[0] != '\0')
        json_object_set_new(object, "estimate", json_string(estimate));
    json_object_set_new(object, "n", json_integer(sums->n));
    json_object_set_new(object, "correlation", command_json_number(xy / sqrt(xx * yy)));
    json_object_set_new(object, "rmse", command_json_number(sqrt(sums->squares / n)));
    json_object_set_new(object, "bias", command_json_number((sums->y - sums->x) / n));
    json_object_set_new(
        object, "within",
        command_json_number(sums->n_errors > 0 ? (double)sums->n_within / (double)sums->n_errors
                                               : NAN));
    return object;
}

/* The split of a student's first attempt. */
static enum split split_of(const struct shard *shard, size_t s)
{
    return shard->first[s] < shard->first[s + 1] ? mark_split(shard->mark[shard->first[s]])
                                                 : TRAIN;
}

static void compare(const struct comparison *comparison, const struct table *table,
                    const char *name, const double *truth, size_t n_columns,
                    const size_t *columns, const size_t *errors)
{
    const struct shard *shard = &comparison->inference->shard;
    const bool of_students = strcmp(table->row, "student") == 0;
    const bool apart = of_students && !comparison->inference->dataset.withheld;
    const char *estimate = comparison->rasch.b == NULL ? ""
                           : of_students               ? comparison->rasch.theta_is
                                                       : comparison->rasch.b_is;
    for (int part = 0; part < (apart ? N_SPLITS : 1); part++) {
        struct sums sums = {0};
        for (size_t r = 0; r < table->n_rows; r++)
            for (size_t c = 0;
                 c < n_columns && (!apart || split_of(shard, r) == (enum split)part); c++) {
                const double *row = table_row(table, r);
                add_pair(&sums, truth[r * n_columns + c], row[columns[c]],
                         errors ? row[errors[c]] : NAN);
            }
        static const char *const of[] = {"training students", "validation students",
                                         "test students"};
        if (sums.n > 0)
            json_array_append_new(
                comparison->array,
                sums_json(&sums, name, apart ? of[part] : table->row, estimate));
    }
}

/* Where the truth has more than Rasch's model. */
static void note_more(const struct comparison *comparison, const char *name,
                      const double *truth, size_t n_rows, size_t n_columns)
{
    const char *kind = comparison->inference->model->kind->name;
    size_t n_other = 0;
    char *note = NULL;
    for (size_t c = 0; c < n_rows * n_columns; c++)
        n_other += truth[c] != 0 && truth[c] != 1;
    if (is_called(name, ABILITY) && n_columns > 1)
        note =
            memory_text("%s is not compared: the truth has %zu abilities per student, this %s "
                        "has one, which b belongs to",
                        name, n_columns, kind);
    else if (is_called(name, DISCRIMINATION) && n_other > 0)
        note = memory_text("%s is not compared: its values differ between items in the truth, "
                           "but not in this %s, which distorts the other comparisons",
                           name, kind);
    if (note != NULL)
        json_array_append_new(comparison->notes, command_json_text(note));
    memory_free(note);
}

static enum status compare_truth(const char *name, void *arg)
{
    struct comparison *comparison = arg;
    char *path = memory_text("/truth/%s", name);
    int rank = 0;
    uint64_t shape[4] = {0};
    enum status status = h5_shape(comparison->file, path, &rank, shape);
    const size_t n_columns = rank == 2 ? shape[1] : 1;
    if (status == OK && (rank == 1 || rank == 2) && n_columns > 0) {
        double *truth = NEW(double, shape[0] * n_columns);
        size_t *columns = NEW(size_t, n_columns), *errors = NEW(size_t, n_columns);
        status =
            h5_read(comparison->file, path, H5T_NATIVE_DOUBLE, shape[0] * n_columns, truth);
        if (status == OK && comparison->rasch.b != NULL)
            note_more(comparison, name, truth, shape[0], n_columns);
        for (size_t t = 0; status == OK && t < comparison->n_tables; t++) {
            const struct table *table = &comparison->tables[t];
            if (table->n_rows != shape[0] || !find_synonyms(table, name, n_columns, columns))
                continue;
            const bool has_errors = find_errors(table, name, n_columns, errors);
            compare(comparison, table, name, truth, n_columns, columns,
                    has_errors ? errors : NULL);
            break;
        }
        memory_free(truth);
        memory_free(columns);
        memory_free(errors);
    }
    memory_free(path);
    return status;
}

/* Hidden activations as a table of students. */
static void students_table(const struct inference *inference, struct table *table)
{
    const struct model_kind *kind = inference->model->kind;
    const size_t m = kind->view.n_hidden(inference->model), n = inference->shard.n_students;
    table_create(table, "students", "student", 0, "");
    for (size_t j = 0; j < m; j++) {
        char name[32];
        kind->view.hidden_name(inference->model, j, name);
        names_add(&table->columns, name, strlen(name));
    }
    memory_free(table->values);
    table->n_rows = n;
    table->n_columns = m;
    table->values = NEW(double, n *m);
    real *row = NEW(real, m);
    for (size_t s = 0; s < n; s++) {
        kind->view.hidden(inference->model, inference->work, s, row);
        for (size_t j = 0; j < m; j++)
            table_row(table, s)[j] = (double)row[j];
    }
    memory_free(row);
}

static void list_table(struct table *table, const char *name, const char *row, size_t n,
                       enum thing thing, const double *values)
{
    table_create(table, name, row, n, synonyms[thing][0]);
    memcpy(table->values, values, n * sizeof *values);
}

static void make_tables(struct comparison *comparison)
{
    const struct inference *inference = comparison->inference;
    const struct model_kind *kind = inference->model->kind;
    struct rasch *rasch = &comparison->rasch;
    comparison->tables = NEW(struct table, kind->view.n_tables + 3);
    struct table *next = comparison->tables;
    for (size_t t = 0; t < kind->view.n_tables; t++)
        kind->view.table(inference->model, t, next++);
    if (kind->view.hidden != NULL && kind->view.hidden_name != NULL)
        students_table(inference, next++);
    if (kind->view.rasch != NULL)
        kind->view.rasch(inference->model, inference->work, rasch);
    if (rasch->b != NULL) {
        list_table(next++, "items", "item", inference->model->n_items, DIFFICULTY, rasch->b);
        list_table(next++, "students", "student", inference->shard.n_students, ABILITY,
                   rasch->theta);
    }
    comparison->n_tables = (size_t)(next - comparison->tables);
}

/* The sentence where nothing could be compared. */
static enum status nothing_compared(const struct comparison *comparison)
{
    const struct inference *inference = comparison->inference;
    if (comparison->rasch.why_not != NULL)
        return fail(BAD_USER,
                    "%s: this %s has no difficulties and abilities to compare with the truth: "
                    "%s",
                    inference->checkpoint.path, inference->model->kind->name,
                    comparison->rasch.why_not);
    char *data = shell_quote_text("%s", inference->dataset.path);
    const enum status status =
        fail(BAD_USER,
             "%s: %s models estimate none of the true parameters in %s (`cohort inspect %s` "
             "lists them)",
             inference->checkpoint.path, inference->model->kind->name, inference->dataset.path,
             data);
    memory_free(data);
    return status;
}

/* The truth of the open file, once it is known to be what was written. */
static enum status compare_file(struct comparison *comparison)
{
    const char *path = comparison->inference->dataset.path;
    bool known = true;
    enum status status = truth_check(comparison->file, &known);
    if (status != OK)
        return fail_context(status, "%s", path);
    if (!h5_exists(comparison->file, "/truth"))
        return fail(BAD_USER,
                    "%s: no truth to compare with; `cohort simulate` and `cohort import matrix "
                    "--truth` store one",
                    path);
    if (!known)
        json_array_append_new(
            comparison->notes,
            json_string("the truth has no digest in this data set of an earlier version, so "
                        "changes of it are not noticed"));
    return h5_each(comparison->file, "/truth", compare_truth, comparison);
}

static enum status compare_all(const struct inference *inference, json_t *object)
{
    struct comparison comparison = {
        .inference = inference, .array = json_array(), .notes = json_array()};
    json_object_set_new(object, "truth", comparison.array);
    json_object_set_new(object, "truth_notes", comparison.notes);
    if (!inference->own_data)
        return fail(BAD_USER,
                    "%s: the true parameters in this data set do not match the items of the "
                    "model; --truth needs the data set that the model was trained on",
                    inference->dataset.path);
    make_tables(&comparison);
    comparison.file = h5_open(inference->dataset.path, MPI_COMM_SELF, 1);
    enum status status = comparison.file < 0
                             ? fail(BAD_DATA,
                                    "%s: HDF5 cannot open the file a second time; was it "
                                    "removed or replaced? Run the same command again",
                                    inference->dataset.path)
                             : compare_file(&comparison);
    if (comparison.file >= 0)
        h5_let_go(comparison.file);
    if (status == OK && json_array_size(comparison.array) == 0)
        status = nothing_compared(&comparison);
    for (size_t t = 0; t < comparison.n_tables; t++)
        table_free(&comparison.tables[t]);
    memory_free(comparison.tables);
    memory_free(comparison.rasch.b);
    memory_free(comparison.rasch.theta);
    memory_free(comparison.rasch.error);
    return status;
}

/* Whether the tables of the model have standard errors already. */
static bool has_errors(const struct inference *inference)
{
    json_t *tables = inspect_tables(inference), *table = NULL, *column = NULL;
    const char *name = NULL;
    bool found = false;
    size_t c = 0;
    json_object_foreach(tables, name, table)
        json_array_foreach(json_object_get(table, "columns"), c, column) found |=
        strstr(json_string_value(column), "error") != NULL;
    json_decref(tables);
    return found;
}

enum status inspect_with_data(const char *path, const struct inspect_flags *flags,
                              json_t *object)
{
    const struct comm self = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};
    struct inference inference;
    enum status status = inference_open(&inference, path, "", &self);
    const struct model_kind *kind = status == OK ? inference.model->kind : NULL;
    if (status == OK && flags->errors && kind->view.examine == NULL && !has_errors(&inference))
        status = fail(BAD_USER, "%s: %s models have no standard errors; omit --errors",
                      inference.checkpoint.path, kind->name);
    if (status == OK && kind->view.examine != NULL)
        status = kind->view.examine(inference.model, &inference.shard, &self);
    if (status == OK)
        json_object_set_new(object, "tables", inspect_tables(&inference));
    if (status == OK && flags->truth)
        status = compare_all(&inference, object);
    inference_close(&inference);
    return status;
}

static void say_number(const json_t *entry, const char *key)
{
    const double value = inspect_number(entry, key);
    if (isnan(value))
        printf("  %11s", "");
    else
        printf("  %11.4f", value);
}

void inspect_truth_say(const json_t *object)
{
    static const char *const keys[] = {"correlation", "rmse", "bias", "within"};
    const json_t *entry = NULL;
    size_t i = 0;
    printf("\n%-16s  %-20s  %8s  %11s  %11s  %11s  %11s\n", "against truth", "of", "numbers",
           "correlation", "RMSE", "bias", "within 95 %");
    json_array_foreach(json_object_get(object, "truth"), i, entry)
    {
        printf("%-16s  %-20s  %8lld", inspect_text(entry, "name"), inspect_text(entry, "of"),
               inspect_integer(entry, "n"));
        for (size_t k = 0; k < COUNT(keys); k++)
            say_number(entry, keys[k]);
        putchar('\n');
    }
    const char *last = "";
    json_array_foreach(json_object_get(object, "truth"), i, entry)
    {
        const char *estimate = inspect_text(entry, "estimate");
        if (strcmp(estimate, last) != 0)
            printf("%s of the truth is compared with %s\n", inspect_text(entry, "name"),
                   estimate);
        last = estimate;
    }
    json_array_foreach(json_object_get(object, "truth_notes"), i, entry)
        printf("note: %s\n", json_string_value(entry));
}
