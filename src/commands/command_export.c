/* cohort export: writes what a model has learned for other programs: its tensors, and the
 * hidden activations of students. */
#include "base/atomic_file.h"
#include "base/csv_quote.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/h5.h"
#include "base/log.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "commands/export_internal.h"
#include "runs/inference.h"
#include "runs/parallel_output.h"
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

struct values {
    const char *data, *output, *tensor;
    bool hidden, graph;
    double least;
};

#define AT(field) offsetof(struct values, field)
static const struct flag flags[] = {
    {{"output", OPTION_TEXT, AT(output), "", 0, 0, NULL,
      "write to FILE.h5 (everything), FILE.csv (one table) or a directory of CSV files"},
     'o',
     "FILE"},
    {{"tensor", OPTION_TEXT, AT(tensor), "", 0, 0, NULL, "export only this tensor"}, 0, "NAME"},
    {{"hidden", OPTION_SWITCH, AT(hidden), "no", 0, 0, NULL,
      "also export each student's hidden activations after the last attempt whose outcome is "
      "shown (see cohort-evaluate(1))"},
     0,
     NULL},
    {{"graph", OPTION_SWITCH, AT(graph), "no", 0, 0, NULL,
      "export only the graph that a structured rtrbm has learned: edges as FILE.csv, or a "
      "drawing for Graphviz as FILE.dot"},
     0,
     NULL},
    {{"least", OPTION_NUMBER, AT(least), "0.5", 0, 1, NULL,
      "with --graph: draw only edges whose gate is at least this far open, in FILE.dot"},
     0,
     NULL},
    {{"data", OPTION_TEXT, AT(data), "", 0, 0, NULL,
      "with --hidden: use the students of this data set instead of the one the run was trained "
      "on"},
     0,
     "DATA.h5"},
};

/* Hidden activations of this rank's students. */
struct hidden {
    size_t n_students, m;
    real *values;
    struct names students, columns;
};

static hid_t memory_type(void)
{
    return sizeof(real) == sizeof(float) ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
}

static hid_t stored_type(void)
{
    return sizeof(real) == sizeof(float) ? H5T_IEEE_F32LE : H5T_IEEE_F64LE;
}

static void print_number(FILE *out, double value)
{
    if (isnan(value))
        fputc(',', out);
    else
        fprintf(out, ",%.*g", sizeof(real) == sizeof(float) ? 9 : 17, value);
}

static enum status find_tensor(const struct inference *inference, const char *name,
                               const struct tensor **tensor)
{
    const struct params *params = &inference->model->params;
    char list[512] = "";
    for (size_t t = 0; t < params->n_tensors; t++) {
        *tensor = &params->tensors[t];
        if (strcmp((*tensor)->name, name) == 0)
            return OK;
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", t > 0 ? ", " : "",
                 (*tensor)->name);
    }
    return fail(BAD_USER, "%s: unknown tensor '%s'; expected one of %s",
                inference->checkpoint.path, name, list);
}

/* The name of a tensor outside: probabilities that are stored as logits begin with logit_. */
static char *outer_name(const struct params *params, const struct tensor *tensor)
{
    return memory_text("%s%s", params->is_logit[tensor - params->tensors] ? "logit_" : "",
                       tensor->name);
}

/* The numbers of a tensor; NAN where only `examine` computes them and has not. Returns whether any
 * is known. */
static bool take(const struct params *params, const struct tensor *tensor, real *values)
{
    bool is_known = !params->is_examined[tensor - params->tensors];
    params_take(params, tensor, params->value, values);
    if (is_known)
        return true;
    for (size_t i = 0; i < params_size(params, tensor); i++)
        if (values[i] > 0)
            is_known = true;
        else
            values[i] = (real)NAN;
    return is_known;
}

static bool is_known(const struct params *params, const struct tensor *tensor)
{
    real *values = NEW_SCRATCH(real, params_size(params, tensor));
    const bool known = take(params, tensor, values);
    memory_free(values);
    return known;
}

/* Columns are named after the tensor and their place in its further dimensions, from 1. */
static char *column_words(const struct tensor *tensor, const char *name, size_t n_columns)
{
    char *words = NULL;
    size_t n_bytes = 0;
    FILE *out = memory_stream(&words, &n_bytes);
    for (size_t c = 0; c < n_columns; c++) {
        fprintf(out, " %s", name);
        size_t below = n_columns, rest = c;
        for (int d = 1; d < tensor->rank; d++) {
            below /= tensor->shape[d];
            fprintf(out, "_%zu", rest / below + 1);
            rest %= below;
        }
    }
    fclose(out);
    return words;
}

static void tensor_table(struct table *table, const struct inference *inference,
                         const struct tensor *tensor)
{
    const struct params *params = &inference->model->params;
    const size_t n = params_size(params, tensor);
    const char *of = params->panels[tensor->panel].of;
    char *name = outer_name(params, tensor);
    char *words = column_words(tensor, name, n / size_max(1, tensor->shape[0]));
    table_create(table, tensor->name, of != NULL ? of : "row", tensor->shape[0], words + 1);
    free(words);
    memory_free(name);
    real *values = NEW_SCRATCH(real, n);
    take(params, tensor, values);
    for (size_t i = 0; i < n; i++)
        table->values[i] = (double)values[i];
    memory_free(values);
}

struct printed {
    const struct table *table;
    const struct names *names; /* of the rows, NULL: only the table's own */
};

static void print_row(FILE *out, size_t r, const void *arg)
{
    const struct printed *printed = arg;
    char buffer[32];
    csv_quote(out, table_row_name(printed->table, printed->names, r, buffer));
    for (size_t c = 0; c < printed->table->n_columns; c++)
        print_number(out, table_row(printed->table, r)[c]);
    fputc('\n', out);
}

/* The names of the columns, with commas between them; freed with `free`. */
static char *first_line(const char *row, const struct names *columns)
{
    char *line = NULL;
    size_t n_bytes = 0;
    FILE *out = memory_stream(&line, &n_bytes);
    fputs(row, out);
    for (size_t c = 0; c < columns->n; c++)
        fprintf(out, ",%s", names_get(columns, c));
    fputc('\n', out);
    fclose(out);
    return line;
}

/* A regular expression for lines that begin with the first two columns of another; freed with
 * `free`. */
static char *same_columns(const char *head)
{
    const size_t first = strcspn(head, ",") + 1, n = first + strcspn(head + first, ",\n");
    char *pattern = NULL;
    size_t n_bytes = 0;
    FILE *out = memory_stream(&pattern, &n_bytes);
    fputc('^', out);
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s%c", strchr("^.[$()|*+?{\\", head[i]) != NULL ? "\\" : "", head[i]);
    fputs("[,\n]", out);
    fclose(out);
    return pattern;
}

/* Collective. A file is replaced if its first two columns have the same names. */
static enum status write_csv(const struct inference *inference, const char *path,
                             const char *head, size_t n_rows,
                             void (*row)(FILE *, size_t, const void *), const void *arg)
{
    char *pattern = same_columns(head);
    enum status status =
        comm_agree(inference->comm,
                   inference->comm->rank == 0
                       ? parallel_output_check_old(path, pattern, "an export of this table")
                       : OK);
    free(pattern);
    return status == OK ? parallel_output_write(inference->comm, path, head, n_rows, row, arg)
                        : status;
}

/* Collective: rank 0 has all rows. Frees the table. */
static enum status write_table(const struct inference *inference, struct table *table,
                               const char *path)
{
    char *head = first_line(table->row, &table->columns);
    const struct printed printed = {table, inference_row_names(inference, table)};
    enum status status =
        write_csv(inference, path, head, inference->comm->rank == 0 ? table->n_rows : 0,
                  print_row, &printed);
    free(head);
    table_free(table);
    return status;
}

static enum status write_tensor_csv(const struct inference *inference,
                                    const struct tensor *tensor, const char *path)
{
    struct table table;
    tensor_table(&table, inference, tensor);
    return write_table(inference, &table, path);
}

static enum status hidden_fill(struct hidden *hidden, const struct inference *inference)
{
    const struct model_kind *kind = inference->model->kind;
    if (kind->view.hidden == NULL)
        return fail(BAD_USER, "%s: %s models have no hidden activations; omit --hidden",
                    inference->checkpoint.path, kind->name);
    hidden->n_students = inference->shard.n_students;
    hidden->m = kind->view.n_hidden(inference->model);
    for (size_t j = 0; j < hidden->m; j++) {
        char name[32];
        snprintf(name, sizeof name, "h%zu", j + 1);
        if (kind->view.hidden_name != NULL)
            kind->view.hidden_name(inference->model, j, name);
        names_add(&hidden->columns, name, strlen(name));
    }
    hidden->values = NEW_SCRATCH(real, hidden->n_students * hidden->m);
    for (size_t s = 0; s < hidden->n_students; s++)
        kind->view.hidden(inference->model, inference->work, s, hidden->values + s * hidden->m);
    return comm_agree(inference->comm,
                      inference_students(inference, inference->shard.first_student,
                                         hidden->n_students, &hidden->students));
}

static void hidden_free(struct hidden *hidden)
{
    memory_free(hidden->values);
    names_free(&hidden->students);
    names_free(&hidden->columns);
}

static void print_hidden_row(FILE *out, size_t s, const void *arg)
{
    const struct hidden *hidden = arg;
    csv_quote(out, names_get(&hidden->students, s));
    for (size_t j = 0; j < hidden->m; j++)
        print_number(out, (double)hidden->values[s * hidden->m + j]);
    fputc('\n', out);
}

static enum status write_hidden_csv(const struct inference *inference,
                                    const struct hidden *hidden, const char *path)
{
    char *head = first_line("student", &hidden->columns);
    enum status status =
        write_csv(inference, path, head, hidden->n_students, print_hidden_row, hidden);
    free(head);
    return status;
}

static enum status write_tensor_h5(const struct inference *inference,
                                   const struct tensor *tensor, hid_t file)
{
    const struct params *params = &inference->model->params;
    char *name = outer_name(params, tensor), *path = memory_text("/tensors/%s", name);
    real *values = NEW_SCRATCH(real, params_size(params, tensor));
    take(params, tensor, values);
    enum status status =
        h5_write(file, path, stored_type(), memory_type(), tensor->rank, tensor->shape, values);
    memory_free(values);
    memory_free(path);
    memory_free(name);
    return status;
}

/* Rank 0. `only` NULL: all tensors. */
static enum status write_tensors_h5(const struct inference *inference,
                                    const struct tensor *only, hid_t file)
{
    const struct params *params = &inference->model->params;
    TRY(h5_write_text(file, "format", "cohort tensors"));
    TRY(h5_write_text(file, "model", inference->checkpoint.model));
    TRY(h5_write_text(file, "config", inference->checkpoint.config));
    TRY(h5_write_text(file, "checkpoint_digest", inference->checkpoint.digest));
    TRY(names_write(file, "/items", &inference->checkpoint.items));
    TRY(h5_group(file, "/tensors"));
    for (size_t t = 0; t < params->n_tensors; t++)
        if ((only == NULL || only == &params->tensors[t]) &&
            is_known(params, &params->tensors[t]))
            TRY(write_tensor_h5(inference, &params->tensors[t], file));
    return OK;
}

/* Rank 0: names of all students, the rows of the array /hidden. */
static enum status write_students_h5(const struct inference *inference, hid_t file)
{
    struct names students = {0};
    enum status status =
        inference_students(inference, 0, inference->dataset.n_students, &students);
    if (status == OK)
        status = names_write(file, "/students", &students);
    names_free(&students);
    return status;
}

static enum status write_h5(const struct inference *inference, const struct tensor *only,
                            const struct hidden *hidden, const char *path)
{
    const struct comm *comm = inference->comm;
    struct atomic_file draft = {.file = -1};
    hid_t file = -1;
    enum status status = comm->rank == 0 ? parallel_output_h5_begin(path, &draft, &file) : OK;
    if (comm->rank == 0 && status == OK)
        status = write_tensors_h5(inference, only, file);
    if (comm->rank == 0 && status == OK && hidden != NULL)
        status = write_students_h5(inference, file);
    status = comm_agree(comm, status);
    if (status == OK && hidden != NULL)
        status = parallel_output_h5_array(comm, file, "/hidden", stored_type(), memory_type(),
                                          hidden->n_students, hidden->m, hidden->values);
    if (comm->rank == 0)
        status = parallel_output_h5_end(status, path, &draft, file);
    return comm_agree(comm, status);
}

static enum status write_directory(const struct inference *inference, const struct tensor *only,
                                   const struct hidden *hidden, const char *path)
{
    const struct params *params = &inference->model->params;
    enum status status = comm_agree(
        inference->comm, inference->comm->rank == 0 ? file_make_directory(path) : OK);
    for (size_t t = 0; status == OK && t < params->n_tensors; t++) {
        if ((only != NULL && only != &params->tensors[t]) ||
            !is_known(params, &params->tensors[t]))
            continue;
        char *name = outer_name(params, &params->tensors[t]);
        char *file = memory_text("%s/%s.csv", path, name);
        status = write_tensor_csv(inference, &params->tensors[t], file);
        memory_free(file);
        memory_free(name);
    }
    const struct model_kind *kind = inference->model->kind;
    for (size_t k = 0; status == OK && only == NULL && k < kind->view.n_tables; k++) {
        struct table table;
        kind->view.table(inference->model, k, &table);
        if (table.n_rows == 0) {
            table_free(&table);
            continue;
        }
        char *file = memory_text("%s/table_%s.csv", path, table.name);
        status = write_table(inference, &table, file);
        memory_free(file);
    }
    if (status == OK && hidden != NULL) {
        char *file = memory_text("%s/hidden.csv", path);
        status = write_hidden_csv(inference, hidden, file);
        memory_free(file);
    }
    return status;
}

static enum status write_all(const struct inference *inference, const struct values *values)
{
    const struct tensor *only = NULL;
    if (values->tensor[0] != '\0')
        TRY(find_tensor(inference, values->tensor, &only));
    struct hidden hidden = {0};
    enum status status = values->hidden ? hidden_fill(&hidden, inference) : OK;
    if (status == OK && values->hidden && inference->own_data &&
        inference->model->kind->view.examine != NULL)
        status = inference->model->kind->view.examine(inference->model, &inference->shard,
                                                      inference->comm);
    if (status == OK && only != NULL && !is_known(&inference->model->params, only))
        status =
            fail(BAD_USER,
                 "%s: '%s' is computed from the training data; use --hidden, and -o FILE.h5 "
                 "or a directory",
                 inference->checkpoint.path, only->name);
    const struct hidden *wanted = values->hidden ? &hidden : NULL;
    if (status == OK) {
        if (file_ends_in(values->output, ".h5"))
            status = write_h5(inference, only, wanted, values->output);
        else if (!file_ends_in(values->output, ".csv"))
            status = write_directory(inference, only, wanted, values->output);
        else if (only != NULL)
            status = write_tensor_csv(inference, only, values->output);
        else
            status = write_hidden_csv(inference, wanted, values->output);
    }
    hidden_free(&hidden);
    if (status == OK)
        log_say("wrote %s", values->output);
    return status;
}

static enum status check(const struct values *values)
{
    if (values->output[0] == '\0')
        return fail(BAD_USAGE, "export: no output; name a file or a directory with -o");
    if (values->graph && (values->hidden || values->tensor[0] != '\0'))
        return fail(BAD_USAGE, "export: --graph cannot be combined with --tensor or --hidden");
    if (file_ends_in(values->output, ".csv") && !values->graph &&
        (values->tensor[0] != '\0') == values->hidden)
        return fail(
            BAD_USAGE,
            "export: a CSV file has one table: choose it with --tensor NAME (`cohort inspect` "
            "lists them) or --hidden, or name a directory to export all");
    if (values->data[0] != '\0' && !values->hidden)
        return fail(BAD_USAGE, "export: --data needs --hidden");
    return OK;
}

static enum status run(const struct comm *comm, int argc, char **argv)
{
    struct values values = {0};
    const char **words = NEW(const char *, (size_t)argc);
    int n_words = 0;
    enum status status = command_parse(&command_export, argc, argv, &values, words, &n_words);
    if (status == OK && n_words != 1)
        status = command_usage(&command_export);
    if (status == OK)
        status = check(&values);
    if (status == OK) {
        struct inference inference;
        status = values.hidden ? inference_open(&inference, words[0], values.data, comm)
                               : inference_open_model(&inference, words[0], comm);
        if (status == OK && values.graph)
            status = command_export_graph(&inference, values.output, values.least);
        else if (status == OK)
            status = write_all(&inference, &values);
        inference_close(&inference);
    }
    memory_free(words);
    return status;
}

const struct command command_export = {
    .name = "export",
    .usage =
        "export RUN_OR_CHECKPOINT [--tensor NAME] [--hidden] [--graph] -o FILE.h5|FILE.csv|...",
    .summary = "Write a model's tensors and students' hidden activations for other programs",
    .details =
        "HDF5 files get /tensors/NAME in their shapes, /items/names and, with --hidden, "
        "/hidden (students by hidden units) and /students/names.\n\n"
        "CSV files have one line per item, skill or row and one column per element of it, "
        "named NAME_2_1 and so on after the element's other indices, counted from 1. "
        "Probabilities that a model "
        "stores as logits are named logit_NAME. Hidden activations have the columns "
        "student,h1,h2,... or the model's own names for them (theta_1, sigma_1).\n\n"
        "A directory gets one CSV file per tensor, and table_NAME.csv for each table that "
        "`cohort inspect` shows. With --hidden the data are read, and standard errors that a "
        "model computes from its training data are written too. Where one is missing, the "
        "cell is empty (NaN in HDF5).\n\n"
        "A graph has one line per pair of skills: from,to,gate,strength. The gate is how far "
        "the edge is open, from 0 to 1.\n\n"
        "The output is identical, byte for byte, for any number of ranks.",
    .examples = "Export all tensors and tables as CSV files:\n\n"
                "  cohort export runs/rbm -o tables\n\n"
                "Write the abilities of all students:\n\n"
                "  cohort export runs/vae --hidden -o abilities.csv\n\n"
                "Draw the graph between skills that an rtrbm has learned:\n\n"
                "  cohort export runs/rtrbm --graph -o skills.dot",
    .see_also = "cohort-inspect(1), cohort-files(5)",
    .flags = flags,
    .n_flags = COUNT(flags),
    .run = run,
};
