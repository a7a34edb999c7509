/* Sums of small outer products in a matrix distributed over a grid of ranks, and products with
 * it. Every rank's records are sent to all ranks, some hundred thousand cells at a time. Each
 * rank uses the rows and columns that it owns. So the work is distributed like the matrix, no
 * rank needs memory for more than its piece, and since the sums are of integers, their bits do
 * not depend on the order. */
#include "base/fail.h"
#include "base/memory.h"
#include "kernels/lme_kernels.h"
#include "models/lme/lme_internal.h"
#include <math.h>

enum { CHUNK = 1 << 19 }; /* cells sent at a time, about */

/* Records of one rank, sent to all ranks, with offsets from 0. */
struct chunk {
    size_t n, n_cells;
    const uint64_t *first;
    const uint32_t *column;
    const double *value, *scale;
    size_t start; /* index of the first of them on rank `owner` */
    int owner;
    void *memory;
};

static size_t chunk_end(const struct lme_records *records, size_t start)
{
    size_t end = start;
    while (end < records->n && records->first[end + 1] - records->first[start] <= CHUNK)
        end++;
    return end == start && start < records->n ? start + 1 : end;
}

/* Collective: sends the records from `start` on of rank `owner`. `first` is relative to the
 * chunk. */
static void chunk_show(struct chunk *chunk, const struct comm *comm,
                       const struct lme_records *records, int owner, size_t start)
{
    const bool mine = comm->rank == owner;
    size_t counts[3] = {0};
    if (mine) {
        counts[0] = chunk_end(records, start) - start;
        counts[1] = records->first[start + counts[0]] - records->first[start];
        counts[2] = records->value != NULL;
    }
    comm_broadcast(comm, counts, sizeof counts, owner);
    const size_t n = counts[0], n_cells = counts[1];
    char *memory = memory_scratch((n + 1) * 8 + n * 8 + n_cells * 12, 1);
    uint64_t *first = (uint64_t *)memory;
    double *scale = (double *)(first + n + 1), *value = scale + n;
    uint32_t *column = (uint32_t *)(value + n_cells);
    for (size_t r = 0; mine && r <= n; r++)
        first[r] = records->first[start + r] - records->first[start];
    for (size_t r = 0; mine && r < n; r++)
        scale[r] = records->scale != NULL ? records->scale[start + r] : 1;
    for (size_t c = 0; mine && c < n_cells; c++) {
        value[c] = counts[2] ? records->value[records->first[start] + c] : 1;
        column[c] = records->column[records->first[start] + c];
    }
    comm_broadcast(comm, memory, (n + 1) * 8 + n * 8 + n_cells * 12, owner);
    *chunk = (struct chunk){.n = n,
                            .n_cells = n_cells,
                            .first = first,
                            .column = column,
                            .value = value,
                            .scale = scale,
                            .start = start,
                            .owner = owner,
                            .memory = memory};
}

/* A chunk as this rank of the grid needs it. Rows: cells of each record whose matrix row is
 * here. Entries: cells whose column is here, sorted by column, so that one column after the
 * other is filled while it is in the cache. Entry e is combined with the rows start .. end of
 * its record, which are on or below the diagonal. */
struct entry {
    uint32_t start, end, cell;
    double value;
};
struct sorted {
    uint32_t *own, *global; /* of rows */
    double *value;
    uint32_t *first; /* n_own_columns + 1 */
    struct entry *entries;
};

static void sorted_free(struct sorted *sorted)
{
    memory_free(sorted->own);
    memory_free(sorted->value);
    memory_free(sorted->first);
    memory_free(sorted->entries);
}

/* `unit` multiplies the values of entries, in addition to the scales of the records. */
static void sort(struct sorted *sorted, const struct chunk *chunk,
                 const struct scalapack_matrix *matrix, double unit)
{
    const size_t n = chunk->n_cells;
    sorted->own = NEW_SCRATCH(uint32_t, 2 * n);
    sorted->global = sorted->own + n;
    sorted->value = NEW_SCRATCH(double, n);
    sorted->first = NEW(uint32_t, matrix->n_own_columns + 2);
    uint32_t *next = sorted->first + 1; /* becomes `first` as entries are placed */
    size_t n_entries = 0;
    for (size_t c = 0; c < n; c++)
        if (matrix->own_column[chunk->column[c]] != GRID_ELSEWHERE) {
            next[matrix->own_column[chunk->column[c]] + 1]++;
            n_entries++;
        }
    for (size_t c = 0; c < matrix->n_own_columns; c++)
        next[c + 1] += next[c];
    sorted->entries = NEW_SCRATCH(struct entry, n_entries);
    uint32_t n_rows = 0;
    for (size_t r = 0; r < chunk->n; r++) {
        uint32_t start = n_rows;
        for (uint64_t c = chunk->first[r]; c < chunk->first[r + 1]; c++)
            if (matrix->own_row[chunk->column[c]] != GRID_ELSEWHERE) {
                sorted->own[n_rows] = matrix->own_row[chunk->column[c]];
                sorted->global[n_rows] = chunk->column[c];
                sorted->value[n_rows++] = chunk->value[c];
            }
        for (uint64_t c = chunk->first[r]; c < chunk->first[r + 1]; c++) {
            const uint32_t own = matrix->own_column[chunk->column[c]];
            if (own == GRID_ELSEWHERE)
                continue;
            while (start < n_rows && sorted->global[start] < chunk->column[c])
                start++;
            sorted->entries[next[own]++] = (struct entry){
                start, n_rows, (uint32_t)c, chunk->value[c] * (chunk->scale[r] * unit)};
        }
    }
}

static void chunk_add(struct lme_solver *solver, const struct chunk *chunk, double unit,
                      bool large)
{
    struct scalapack_matrix *matrix = &solver->matrix;
    if (solver->grid.row < 0)
        return;
    struct sorted sorted;
    sort(&sorted, chunk, matrix, unit);
    for (size_t c = 0; c < matrix->n_own_columns; c++) {
        int64_t *to = matrix->fixed + c * matrix->n_own_rows;
        for (uint32_t e = sorted.first[c]; e < sorted.first[c + 1]; e++) {
            const struct entry entry = sorted.entries[e];
            if (large)
                for (uint32_t r = entry.start; r < entry.end; r++)
                    to[sorted.own[r]] += (int64_t)rint(entry.value * sorted.value[r]);
            else
                lme_kernels->add(to, sorted.own + entry.start, sorted.value + entry.start,
                                 entry.end - entry.start, entry.value);
        }
    }
    sorted_free(&sorted);
}

/* Each rank of the grid rounds its own part, so the parts of the others do not matter. */
static int64_t *chunk_multiply(const struct lme_solver *solver, const struct chunk *chunk,
                               double unit, int64_t *n_bad)
{
    const struct scalapack_matrix *matrix = &solver->matrix;
    int64_t *shares = NEW(int64_t, chunk->n_cells);
    if (solver->grid.row >= 0) {
        struct sorted sorted;
        sort(&sorted, chunk, matrix, 1);
        double *by_column = NEW(double, chunk->n_cells), *by_row = NEW(double, chunk->n_cells);
        for (size_t c = 0; c < matrix->n_own_columns; c++) {
            const double *from = matrix->value + c * matrix->n_own_rows;
            for (uint32_t e = sorted.first[c]; e < sorted.first[c + 1]; e++) {
                const struct entry entry = sorted.entries[e];
                uint32_t r = entry.start;
                double sum = 0;
                if (r < entry.end && sorted.global[r] == matrix->column_of[c])
                    sum = from[sorted.own[r++]] * entry.value;
                by_column[entry.cell] =
                    sum + lme_kernels->multiply(from, sorted.own + r, sorted.value + r,
                                                entry.end - r, entry.value, by_row + r);
            }
        }
        for (size_t c = 0, r = 0; c < chunk->n_cells; c++) {
            double sum = by_column[c];
            if (matrix->own_row[chunk->column[c]] != GRID_ELSEWHERE)
                sum += by_row[r++];
            shares[c] = lme_fixed_point(sum, unit, n_bad);
        }
        memory_free(by_column);
        memory_free(by_row);
        sorted_free(&sorted);
    }
    comm_sum_i64(solver->comm, shares, chunk->n_cells);
    return shares;
}

/* The number of chunks of a rank's records, known to all. */
static size_t count_chunks(const struct comm *comm, const struct lme_records *records,
                           int owner)
{
    uint64_t n = 0;
    if (comm->rank == owner)
        for (size_t start = 0; start < records->n; n++)
            start = chunk_end(records, start);
    comm_broadcast(comm, &n, sizeof n, owner);
    return n;
}

void lme_outer_add(struct lme_solver *solver, const struct lme_records *records, double unit,
                   bool large)
{
    const struct comm *comm = solver->comm;
    for (int owner = 0; owner < comm->size; owner++) {
        const size_t n_chunks = count_chunks(comm, records, owner);
        size_t start = 0;
        for (size_t k = 0; k < n_chunks; k++) {
            struct chunk chunk;
            chunk_show(&chunk, comm, records, owner, start);
            chunk_add(solver, &chunk, unit, large);
            start += chunk.n;
            memory_free(chunk.memory);
        }
    }
}

void lme_outer_multiply(const struct lme_solver *solver, const struct lme_records *records,
                        double *product, int64_t *n_bad)
{
    const struct comm *comm = solver->comm;
    const double unit = 0x1p40;
    for (int owner = 0; owner < comm->size; owner++) {
        const size_t n_chunks = count_chunks(comm, records, owner);
        size_t start = 0;
        for (size_t k = 0; k < n_chunks; k++) {
            struct chunk chunk;
            chunk_show(&chunk, comm, records, owner, start);
            int64_t *shares = chunk_multiply(solver, &chunk, unit, n_bad);
            for (size_t c = 0; comm->rank == owner && c < chunk.n_cells; c++)
                product[records->first[start] + c] = (double)shares[c] / unit;
            memory_free(shares);
            start += chunk.n;
            memory_free(chunk.memory);
        }
    }
}
