/* Describes checkpoints and runs. For a run, the newest intact checkpoint is described; the
 * others are listed, damaged ones with the reason. */
#include "base/cell_text.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "commands/inspect_internal.h"
#include "runs/inference.h"
#include "runs/run.h"
#include "runs/run_find.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOG_RECORDS = 5 };

static json_t *tensor_json(const struct params *params, const struct tensor *tensor)
{
    const size_t n = params_size(params, tensor);
    real *values = NEW_SCRATCH(real, n);
    params_take(params, tensor, params->value, values);
    double sum = 0, squares = 0, least = INFINITY, most = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        sum += (double)values[i];
        least = fmin(least, (double)values[i]);
        most = fmax(most, (double)values[i]);
    }
    const double mean = sum / (double)n;
    for (size_t i = 0; i < n; i++)
        squares += ((double)values[i] - mean) * ((double)values[i] - mean);
    memory_free(values);
    json_t *object = json_object(), *shape = json_array();
    for (int d = 0; d < tensor->rank; d++)
        json_array_append_new(shape, json_integer((json_int_t)tensor->shape[d]));
    json_object_set_new(object, "name", json_string(tensor->name));
    json_object_set_new(object, "shape", shape);
    json_object_set_new(object, "mean", command_json_number(mean));
    json_object_set_new(object, "sd", command_json_number(sqrt(squares / (double)n)));
    json_object_set_new(object, "min", command_json_number(least));
    json_object_set_new(object, "max", command_json_number(most));
    return object;
}

/* {"row": "item", "columns": [...], "rows": [[name, number, ...], ...]} */
static json_t *table_json(const struct table *table, const struct names *names)
{
    json_t *object = json_object(), *columns = json_array(), *rows = json_array();
    for (size_t c = 0; c < table->n_columns; c++)
        json_array_append_new(columns, json_string(names_get(&table->columns, c)));
    for (size_t r = 0; r < table->n_rows; r++) {
        char buffer[32];
        json_t *row = json_array();
        json_array_append_new(row, command_json_text(table_row_name(table, names, r, buffer)));
        for (size_t c = 0; c < table->n_columns; c++)
            json_array_append_new(row, command_json_number(table_row(table, r)[c]));
        json_array_append_new(rows, row);
    }
    json_object_set_new(object, "row", json_string(table->row));
    json_object_set_new(object, "columns", columns);
    json_object_set_new(object, "rows", rows);
    return object;
}

json_t *inspect_tables(const struct inference *inference)
{
    const struct model_kind *kind = inference->model->kind;
    json_t *object = json_object();
    for (size_t k = 0; k < kind->view.n_tables; k++) {
        struct table table;
        kind->view.table(inference->model, k, &table);
        if (table.n_rows > 0)
            json_object_set_new(object, table.name,
                                table_json(&table, inference_row_names(inference, &table)));
        table_free(&table);
    }
    return object;
}

/* The text as config_text writes it: [section] and `key = value` lines. */
static json_t *config_json(const char *text)
{
    json_t *object = json_object(), *section = NULL;
    for (const char *line = text; *line != '\0'; line += strspn(line, "\n")) {
        const size_t n = strcspn(line, "\n");
        const char *equals = memchr(line, '=', n);
        if (line[0] == '[') {
            char *name = memory_text("%.*s", (int)strcspn(line + 1, "]\n"), line + 1);
            section = json_object();
            json_object_set_new(object, name, section);
            memory_free(name);
        } else if (equals != NULL && section != NULL) {
            const char *value = equals + 1 + strspn(equals + 1, " ");
            char *key = memory_text("%.*s", (int)strcspn(line, " ="), line);
            char *copy = memory_text("%.*s", (int)(line + n - value), value);
            json_object_set_new(section, key, command_json_text(copy));
            memory_free(key);
            memory_free(copy);
        }
        line += n;
    }
    return object;
}

static void describe(const struct inference *inference, json_t *object)
{
    const struct checkpoint *checkpoint = &inference->checkpoint;
    const struct progress *progress = &checkpoint->progress;
    const struct params *params = &inference->model->params;
    json_object_set_new(object, "model", json_string(checkpoint->model));
    json_object_set_new(object, "epoch", json_integer(progress->epoch));
    json_object_set_new(object, "step", json_integer(progress->all_steps));
    json_object_set_new(object, "step_of_epoch", json_integer(progress->step));
    json_object_set_new(object, "finished", json_boolean(progress->finished != 0));
    json_object_set_new(object, "best_epoch", json_integer(progress->best_epoch));
    json_object_set_new(object, "best",
                        progress->best_epoch > 0 ? command_json_number(progress->best)
                                                 : json_null());
    json_object_set_new(object, "parameters", json_integer((json_int_t)params_count(params)));
    json_object_set_new(object, "items", json_integer((json_int_t)checkpoint->items.n));
    json_object_set_new(object, "digest", json_string(checkpoint->digest));
    json_object_set_new(object, "data_digest", json_string(checkpoint->data_digest));
    json_t *tensors = json_array();
    for (size_t t = 0; t < params->n_tensors; t++)
        json_array_append_new(tensors, tensor_json(params, &params->tensors[t]));
    json_object_set_new(object, "tensors", tensors);
    if (inference->model->kind->view.n_tables > 0)
        json_object_set_new(object, "tables", inspect_tables(inference));
    json_object_set_new(object, "config", config_json(checkpoint->config));
}

enum status inspect_checkpoint(const char *path, json_t *object)
{
    const struct comm self = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};
    struct inference inference;
    enum status status = inference_open_model(&inference, path, &self);
    if (status == OK)
        describe(&inference, object);
    inference_close(&inference);
    return status;
}

/* Adds one of the run's files to the list; the newest intact one is described in `object`. */
static void add_checkpoint(const char *directory, const char *name, json_t *object,
                           json_t *list)
{
    static const char *const keys[] = {"epoch", "step", "digest"};
    char *path = memory_text("%s/%s", directory, name);
    if (file_exists(path)) {
        json_t *whole = json_object(), *entry = json_object();
        json_object_set_new(entry, "file", json_string(name));
        if (inspect_checkpoint(path, whole) == OK) {
            for (size_t k = 0; k < COUNT(keys); k++)
                json_object_set(entry, keys[k], json_object_get(whole, keys[k]));
            if (json_object_get(object, "model") == NULL)
                json_object_update(object, whole);
        } else {
            json_object_set_new(entry, "damaged", command_json_text(fail_sentence()));
            fail_clear();
        }
        json_array_append_new(list, entry);
        json_decref(whole);
    }
    memory_free(path);
}

/* The last records of log.jsonl. */
static json_t *log_json(const char *directory)
{
    char *path = memory_text("%s/log.jsonl", directory), *text = NULL;
    size_t n = 0;
    json_t *array = json_array();
    if (file_exists(path) && file_read(path, &text, &n) == OK) {
        const char *line = text + n;
        for (int records = 0; line > text; line--)
            if (line[-1] == '\n' && line < text + n && ++records == LOG_RECORDS)
                break;
        while (*line != '\0') {
            const size_t length = strcspn(line, "\n");
            json_t *record = json_loadb(line, length, 0, NULL);
            if (record != NULL)
                json_array_append_new(array, record);
            line += length + (line[length] == '\n');
        }
    }
    fail_clear();
    memory_free(text);
    memory_free(path);
    return array;
}

static void add_result(const char *directory, json_t *object)
{
    char *path = memory_text("%s/result.json", directory);
    json_t *result = run_json(path);
    if (result != NULL)
        json_object_set_new(object, "result", result);
    memory_free(path);
}

/* The runs that an update goes back to, with their data, as far as they are still there. */
static json_t *lineage_json(const char *path)
{
    enum { MOST = 100 };
    json_t *list = json_array();
    char *run = run_setting(path, "train", "update");
    while (run != NULL && json_array_size(list) < MOST) {
        json_t *entry = json_object();
        char *data = run_setting(run, "data", "file");
        json_object_set_new(entry, "run", command_json_text(run));
        json_object_set_new(entry, "data", data ? command_json_text(data) : json_null());
        json_array_append_new(list, entry);
        memory_free(data);
        char *before = run_setting(run, "train", "update");
        memory_free(run);
        run = before;
    }
    memory_free(run);
    return list;
}

/* A single run: a fold has no folds, whatever links its directory contains. */
static enum status inspect_single(const char *path, json_t *object)
{
    static const char *const names[] = {"last.h5", "previous.h5", "best.h5"};
    json_t *checkpoints = json_array();
    for (size_t n = 0; n < COUNT(names); n++)
        add_checkpoint(path, names[n], object, checkpoints);
    json_object_set_new(object, "checkpoints", checkpoints);
    if (json_array_size(checkpoints) > 0 && json_object_get(object, "model") == NULL)
        return fail(BAD_DATA, "%s: none of its checkpoints can be read: %s", path,
                    inspect_text(json_array_get(checkpoints, 0), "damaged"));
    const bool finished = json_is_true(json_object_get(object, "finished"));
    json_object_set_new(object, "state",
                        json_string(run_is_running(path) ? "running"
                                    : finished           ? "finished"
                                                         : "unfinished"));
    char *data = run_setting(path, "data", "file");
    json_object_set_new(object, "data", data ? command_json_text(data) : json_null());
    memory_free(data);
    json_t *lineage = lineage_json(path);
    if (json_array_size(lineage) > 0)
        json_object_set(object, "lineage", lineage);
    json_decref(lineage);
    json_object_set_new(object, "log", log_json(path));
    add_result(path, object);
    return OK;
}

static void inspect_folds(const char *path, json_t *object)
{
    json_t *folds = json_array();
    json_object_set_new(object, "kind", json_string("cross-validation"));
    for (int f = 1;; f++) {
        char *directory = memory_text("%s/fold-%d", path, f);
        const bool there = file_exists(directory);
        if (there) {
            json_t *fold = json_object();
            json_object_set_new(fold, "path", command_json_text(directory));
            if (inspect_single(directory, fold) != OK) {
                json_object_set_new(fold, "damaged", command_json_text(fail_sentence()));
                fail_clear();
            }
            json_array_append_new(folds, fold);
        }
        memory_free(directory);
        if (!there)
            break;
    }
    json_object_set_new(object, "folds", folds);
    add_result(path, object);
}

enum status inspect_run(const char *path, json_t *object)
{
    char *fold = memory_text("%s/fold-1", path);
    const bool has_folds = file_exists(fold);
    memory_free(fold);
    if (has_folds) {
        inspect_folds(path, object);
        return OK;
    }
    return inspect_single(path, object);
}

static void say_tensors(const json_t *object)
{
    const json_t *tensor = NULL;
    size_t t = 0;
    size_t longest = strlen("tensor");
    json_array_foreach(json_object_get(object, "tensors"), t, tensor) longest =
        size_max(longest, strlen(inspect_text(tensor, "name")));
    const int width = (int)size_max(longest, 16);
    printf("\n%-*s  %-18s  %10s  %10s  %10s  %10s\n", width, "tensor", "shape", "mean", "sd",
           "least", "most");
    json_array_foreach(json_object_get(object, "tensors"), t, tensor)
    {
        char shape[64] = "";
        const json_t *size = NULL;
        size_t d = 0;
        json_array_foreach(json_object_get(tensor, "shape"), d, size)
            snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%lld",
                     d > 0 ? " x " : "", (long long)json_integer_value(size));
        printf("%-*s  %-18s  %10.4g  %10.4g  %10.4g  %10.4g\n", width,
               inspect_text(tensor, "name"), shape, inspect_number(tensor, "mean"),
               inspect_number(tensor, "sd"), inspect_number(tensor, "min"),
               inspect_number(tensor, "max"));
    }
}

/* Four digits, but all before the decimal point: counts, and deviances, whose differences
 * matter. */
static void say_cell(const json_t *cell, int width)
{
    const double value = json_number_value(cell);
    const bool long_one = fabs(value) >= 1000 && fabs(value) < 1e9;
    if (!json_is_number(cell))
        printf("  %*s", width, "");
    else if (long_one)
        printf("  %*.*f", width, value == floor(value) ? 0 : 1, value);
    else
        printf("  %*.4g", width, value);
}

/* How wide column c of a table is: as wide as its name at least. */
static int cell_width(const json_t *table, size_t c)
{
    const json_t *name = json_array_get(json_object_get(table, "columns"), c);
    return (int)size_max(12, cell_text_width(json_string_value(name)));
}

/* The first rows; export has them all. */
static void say_tables(const json_t *object)
{
    enum { MOST_ROWS = 20, WIDEST = 40 };
    json_t *tables = json_object_get(object, "tables"), *table = NULL;
    const char *name = NULL;
    json_object_foreach(tables, name, table)
    {
        const json_t *rows = json_object_get(table, "rows"), *cell = NULL, *row = NULL;
        size_t width = cell_text_width(inspect_text(table, "row")), c = 0, r = 0;
        json_array_foreach(rows, r, row) if (r < MOST_ROWS) width =
            size_max(width, cell_text_width(json_string_value(json_array_get(row, 0))));
        width = size_min(width, WIDEST);
        printf("\n%s\n", name);
        cell_text_left(inspect_text(table, "row"), width, width);
        json_array_foreach(json_object_get(table, "columns"), c, cell)
        {
            printf("  ");
            cell_text_right(json_string_value(cell), (size_t)cell_width(table, c));
        }
        putchar('\n');
        json_array_foreach(rows, r, row)
        {
            if (r == MOST_ROWS)
                break;
            cell_text_left(json_string_value(json_array_get(row, 0)), width, width);
            for (c = 1; c < json_array_size(row); c++)
                say_cell(json_array_get(row, c), cell_width(table, c - 1));
            putchar('\n');
        }
        if (json_array_size(rows) > MOST_ROWS)
            printf("... %zu more rows: `cohort export` writes all\n",
                   json_array_size(rows) - MOST_ROWS);
    }
}

static void say_config(const json_t *object)
{
    json_t *sections = json_object_get(object, "config"), *section = NULL, *value = NULL;
    const char *name = NULL, *key = NULL;
    json_object_foreach(sections, name, section)
    {
        printf("\n[%s]\n", name);
        json_object_foreach(section, key, value)
            printf("%s = %s\n", key, json_string_value(value));
    }
}

static void say_checkpoint(const json_t *object)
{
    if (json_object_get(object, "model") == NULL) {
        printf("  no checkpoint yet\n");
        return;
    }
    const long long n_parameters = inspect_integer(object, "parameters");
    const long long n_items = inspect_integer(object, "items");
    printf("  model               %s, %lld parameter%s, %lld item%s\n",
           inspect_text(object, "model"), n_parameters, inspect_plural(n_parameters), n_items,
           inspect_plural(n_items));
    const long long epoch = inspect_integer(object, "epoch");
    const long long step = inspect_integer(object, "step");
    printf("  trained             %lld epoch%s, %lld step%s%s\n", epoch, inspect_plural(epoch),
           step, inspect_plural(step),
           json_is_true(json_object_get(object, "finished")) ? ", finished" : "");
    if (inspect_integer(object, "best_epoch") > 0)
        printf("  best epoch          %lld, validation %s %.6g\n",
               inspect_integer(object, "best_epoch"),
               inspect_text(json_object_get(json_object_get(object, "config"), "train"),
                            "monitor"),
               inspect_number(object, "best"));
    printf("  digest              %s\n", inspect_text(object, "digest"));
    printf("  digest of the data  %s\n", inspect_text(object, "data_digest"));
}

static void say_checkpoints(const json_t *object)
{
    const json_t *entry = NULL;
    size_t c = 0;
    json_array_foreach(json_object_get(object, "checkpoints"), c,
                       entry) if (json_object_get(entry, "damaged") != NULL)
        printf("  %-18s  damaged: %s\n", inspect_text(entry, "file"),
               inspect_text(entry, "damaged"));
    else printf("  %-18s  epoch %lld, step %lld\n", inspect_text(entry, "file"),
                inspect_integer(entry, "epoch"), inspect_integer(entry, "step"));
}

static void say_lineage(const json_t *object)
{
    const json_t *entry = NULL;
    size_t e = 0;
    json_array_foreach(json_object_get(object, "lineage"), e, entry)
    {
        const char *data = json_string_value(json_object_get(entry, "data"));
        printf("  %-18s  %s, trained on %s\n", "update of", inspect_text(entry, "run"),
               data != NULL ? data : "data that are not known any more");
    }
}

static void say_log(const json_t *object)
{
    const json_t *record = NULL;
    size_t r = 0;
    if (json_array_size(json_object_get(object, "log")) > 0)
        printf("\nEnd of the log:\n");
    json_array_foreach(json_object_get(object, "log"), r, record)
    {
        printf("  epoch %lld: loss %.5f", inspect_integer(record, "epoch"),
               inspect_number(record, "loss"));
        const json_t *valid = json_object_get(record, "valid");
        if (valid != NULL)
            printf(", valid cbd %.5f, log-loss %.5f, auc %.4f", inspect_number(valid, "cbd"),
                   inspect_number(valid, "log_loss"), inspect_number(valid, "auc"));
        putchar('\n');
    }
}

static void say_result(const json_t *object)
{
    const json_t *test = json_object_get(json_object_get(object, "result"), "test");
    if (json_is_number(json_object_get(test, "auc")))
        printf("  test                n %lld, cbd %.5f, log-loss %.5f, auc %.4f\n",
               inspect_integer(test, "n"), inspect_number(test, "cbd"),
               inspect_number(test, "log_loss"), inspect_number(test, "auc"));
}

static void say_folds(const json_t *object)
{
    const json_t *fold = NULL;
    size_t f = 0;
    printf("%s: a cross-validation\n\n", inspect_text(object, "path"));
    json_array_foreach(json_object_get(object, "folds"), f, fold)
    {
        const long long epoch = inspect_integer(fold, "epoch");
        printf("  %s: %s, %lld epoch%s\n", inspect_text(fold, "path"),
               inspect_text(fold, "state"), epoch, inspect_plural(epoch));
        say_result(fold);
    }
}

void inspect_run_say(const json_t *object)
{
    const bool is_run = strcmp(inspect_text(object, "kind"), "run") == 0;
    if (json_object_get(object, "folds") != NULL) {
        say_folds(object);
        return;
    }
    printf("%s: a %s\n\n", inspect_text(object, "path"), inspect_text(object, "kind"));
    if (is_run) {
        printf("  state               %s\n", inspect_text(object, "state"));
        printf("  data                %s\n", inspect_text(object, "data"));
        say_lineage(object);
        say_checkpoints(object);
    }
    say_checkpoint(object);
    say_result(object);
    if (json_object_get(object, "truth") != NULL)
        inspect_truth_say(object);
    if (json_object_get(object, "model") != NULL) {
        say_tables(object);
        say_tensors(object);
        say_config(object);
    }
    say_log(object);
}
