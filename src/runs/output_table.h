/* A table whose rows are spread over the ranks, in the format that the file's name ends in. */
#ifndef COHORT_OUTPUT_TABLE_H
#define COHORT_OUTPUT_TABLE_H

#include "base/base.h"
#include "base/comm.h"
#include "base/names.h"

/* How HDF5 stores a column. Empty cells are stored as -1 (whole numbers) or NaN. */
enum output_number { OUTPUT_U32, OUTPUT_I64, OUTPUT_I8, OUTPUT_F32, OUTPUT_F64 };

/* One cell. A text is shown in place of the whole number that HDF5 stores. */
struct output_cell {
    bool empty;
    const char *text; /* NULL: none; it may point to `space` */
    bool plain;       /* the text is a number, which JSON does not quote */
    int64_t whole;
    double real; /* of OUTPUT_F32 and OUTPUT_F64 */
    char space[96];
};

struct output_column {
    const char *name;
    enum output_number number;
    void (*get)(const void *arg, size_t r, struct output_cell *cell); /* `cell` is zero */
};

/* Names that a column's whole numbers refer to: HDF5 stores them as GROUP/names. */
struct output_names {
    const char *group;
    const struct names *names;
};

/* Attributes of an HDF5 file. */
struct output_attribute {
    const char *name, *text;
};

struct output_table {
    const struct output_column *columns;
    size_t n_columns;
    size_t n_rows; /* of this rank */
    const void *arg;
    const struct output_names *names; /* on rank 0 */
    size_t n_names;
    const struct output_attribute *attributes; /* on rank 0 */
    size_t n_attributes;
};

/* Refuses a path whose ending is unknown; "-" is CSV on standard output. */
CHECKED enum status output_table_check(const char *path);
bool output_table_is_h5(const char *path);
#define OUTPUT_TABLE_ENDINGS ".csv, .csv.gz, .json, .json.gz, .jsonl, .jsonl.gz or .h5"

/* Collective: the bytes do not depend on the number of ranks. */
CHECKED enum status output_table_write(const struct comm *comm, const char *path,
                                       const struct output_table *table);

#endif
