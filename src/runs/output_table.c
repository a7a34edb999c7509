/* One table in the formats people ask for, by the ending of the file's name:
 *
 *     .csv          a line of column names, then one line per row; an empty cell is empty
 *     .json         an array with one object per row; an empty cell is null
 *     .jsonl        one such object per line
 *     .csv.gz ...   the same texts, gzipped
 *     .h5           one array per column, and the names that its numbers refer to
 *     -             CSV on standard output
 *
 * A real number has nine digits in texts, which is enough to read the same float again. */
#include "runs/output_table.h"
#include "base/csv_quote.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/json_quote.h"
#include "base/memory.h"
#include "base/output_stream.h"
#include "runs/parallel_output.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum format { FORMAT_CSV, FORMAT_JSON, FORMAT_JSONL, FORMAT_H5, FORMAT_UNKNOWN };

static enum format format_of(const char *path)
{
    static const struct {
        const char *ending;
        enum format format;
    } endings[] = {
        {".csv", FORMAT_CSV},      {".csv.gz", FORMAT_CSV},  {".json", FORMAT_JSON},
        {".json.gz", FORMAT_JSON}, {".jsonl", FORMAT_JSONL}, {".jsonl.gz", FORMAT_JSONL},
        {".h5", FORMAT_H5},
    };
    if (output_stream_is_standard(path))
        return FORMAT_CSV;
    for (size_t e = 0; e < COUNT(endings); e++)
        if (file_ends_in(path, endings[e].ending))
            return endings[e].format;
    return FORMAT_UNKNOWN;
}

enum status output_table_check(const char *path)
{
    return format_of(path) != FORMAT_UNKNOWN
               ? OK
               : fail(BAD_USER,
                      "-o %s: the ending names no known format; expected " OUTPUT_TABLE_ENDINGS
                      ", or - for standard output",
                      path);
}

bool output_table_is_h5(const char *path)
{
    return format_of(path) == FORMAT_H5;
}

static bool is_real(const struct output_column *column)
{
    return column->number == OUTPUT_F32 || column->number == OUTPUT_F64;
}

static void print_number(FILE *out, const struct output_column *column,
                         const struct output_cell *cell)
{
    if (is_real(column))
        fprintf(out, "%.9g", cell->real);
    else
        fprintf(out, "%" PRId64, cell->whole);
}

static void print_csv(FILE *out, size_t r, const void *arg)
{
    const struct output_table *table = arg;
    for (size_t c = 0; c < table->n_columns; c++) {
        struct output_cell cell = {0};
        table->columns[c].get(table->arg, r, &cell);
        if (c > 0)
            fputc(',', out);
        if (!cell.empty && cell.text != NULL)
            csv_quote(out, cell.text);
        else if (!cell.empty)
            print_number(out, &table->columns[c], &cell);
    }
    fputc('\n', out);
}

static void print_json(FILE *out, size_t r, const void *arg)
{
    const struct output_table *table = arg;
    for (size_t c = 0; c < table->n_columns; c++) {
        struct output_cell cell = {0};
        table->columns[c].get(table->arg, r, &cell);
        fputs(c > 0 ? ", " : "{", out);
        json_quote(out, table->columns[c].name);
        fputs(": ", out);
        if (cell.empty)
            fputs("null", out);
        else if (cell.text != NULL && cell.plain)
            fputs(cell.text, out);
        else if (cell.text != NULL)
            json_quote(out, cell.text);
        else
            print_number(out, &table->columns[c], &cell);
    }
    fputc('}', out);
}

static void print_json_line(FILE *out, size_t r, const void *arg)
{
    print_json(out, r, arg);
    fputc('\n', out);
}

/* The line of column names; caller frees. */
static char *csv_head(const struct output_table *table)
{
    char *head = memory_text("%s", table->columns[0].name);
    for (size_t c = 1; c < table->n_columns; c++) {
        char *longer = memory_text("%s,%s", head, table->columns[c].name);
        memory_free(head);
        head = longer;
    }
    char *line = memory_text("%s\n", head);
    memory_free(head);
    return line;
}

static size_t number_size(enum output_number number)
{
    static const size_t sizes[] = {[OUTPUT_U32] = 4,
                                   [OUTPUT_I64] = 8,
                                   [OUTPUT_I8] = 1,
                                   [OUTPUT_F32] = 4,
                                   [OUTPUT_F64] = 8};
    return sizes[number];
}

static hid_t number_type(enum output_number number)
{
    const hid_t types[] = {[OUTPUT_U32] = H5T_NATIVE_UINT32,
                           [OUTPUT_I64] = H5T_NATIVE_INT64,
                           [OUTPUT_I8] = H5T_NATIVE_INT8,
                           [OUTPUT_F32] = H5T_NATIVE_FLOAT,
                           [OUTPUT_F64] = H5T_NATIVE_DOUBLE};
    return types[number];
}

static hid_t number_stored(enum output_number number)
{
    const hid_t types[] = {[OUTPUT_U32] = H5T_STD_U32LE,
                           [OUTPUT_I64] = H5T_STD_I64LE,
                           [OUTPUT_I8] = H5T_STD_I8LE,
                           [OUTPUT_F32] = H5T_IEEE_F32LE,
                           [OUTPUT_F64] = H5T_IEEE_F64LE};
    return types[number];
}

static void store(enum output_number number, const struct output_cell *cell, void *place)
{
    const int64_t whole = cell->empty ? -1 : cell->whole;
    const double value = cell->empty ? (double)NAN : cell->real;
    switch (number) {
    case OUTPUT_U32:
        *(uint32_t *)place = (uint32_t)whole;
        break;
    case OUTPUT_I64:
        *(int64_t *)place = whole;
        break;
    case OUTPUT_I8:
        *(int8_t *)place = (int8_t)whole;
        break;
    case OUTPUT_F32:
        *(float *)place = (float)value;
        break;
    case OUTPUT_F64:
        *(double *)place = value;
        break;
    }
}

static enum status write_column(const struct comm *comm, hid_t file,
                                const struct output_table *table, size_t c)
{
    const struct output_column *column = &table->columns[c];
    const size_t n = table->n_rows, size = number_size(column->number);
    char *values = NEW_SCRATCH(char, n *size);
    for (size_t r = 0; r < n; r++) {
        struct output_cell cell = {0};
        column->get(table->arg, r, &cell);
        store(column->number, &cell, values + r * size);
    }
    enum status status =
        parallel_output_h5_array(comm, file, column->name, number_stored(column->number),
                                 number_type(column->number), n, 0, values);
    memory_free(values);
    return status;
}

/* What is not one number per row; rank 0. */
static enum status write_head(hid_t file, const struct output_table *table)
{
    for (size_t a = 0; a < table->n_attributes; a++)
        TRY(h5_write_text(file, table->attributes[a].name, table->attributes[a].text));
    for (size_t k = 0; k < table->n_names; k++)
        TRY(names_write_strings(file, table->names[k].group, table->names[k].names));
    return OK;
}

static enum status write_h5(const struct comm *comm, const char *path,
                            const struct output_table *table)
{
    struct atomic_file draft = {.file = -1};
    hid_t file = -1;
    enum status status = comm->rank == 0 ? parallel_output_h5_begin(path, &draft, &file) : OK;
    if (comm->rank == 0 && status == OK)
        status = write_head(file, table);
    status = comm_agree(comm, status);
    for (size_t c = 0; status == OK && c < table->n_columns; c++)
        status = write_column(comm, file, table, c);
    if (comm->rank == 0)
        status = parallel_output_h5_end(status, path, &draft, file);
    return comm_agree(comm, status);
}

enum status output_table_write(const struct comm *comm, const char *path,
                               const struct output_table *table)
{
    static const struct text_frame array = {"[\n", ",\n", "\n]\n"};
    const enum format format = format_of(path);
    if (format == FORMAT_H5)
        return write_h5(comm, path, table);
    if (format == FORMAT_JSON)
        return parallel_output_text(comm, path, &array, table->n_rows, print_json, table);
    if (format == FORMAT_JSONL)
        return parallel_output_write(comm, path, "", table->n_rows, print_json_line, table);
    char *head = csv_head(table);
    enum status status =
        parallel_output_write(comm, path, head, table->n_rows, print_csv, table);
    memory_free(head);
    return status;
}
