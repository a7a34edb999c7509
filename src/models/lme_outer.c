/* Sums of small outer products in a matrix that lies in pieces on a grid of ranks, and products
 * with it. Every rank's records are shown to all ranks, some hundred thousand cells at a time;
 * each takes the rows and columns that it owns. So the work is shared like the matrix, no rank
 * needs memory for more than its piece, and since the sums are of integers their bits depend on
 * nothing. */
#include "fail.h"
#include "lme_parts.h"
#include "memory.h"
#include <math.h>
#include <string.h>

enum { CHUNK = 1 << 19 }; /* cells shown at a time, about */

/* Records of one rank that are before all ranks, counted from 0. */
struct chunk {
    size_t n, n_cells;
    const uint64_t *first;
    const uint32_t *column;
    const double *value, *scale;
    size_t start; /* rank `owner`: the first of them */
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

/* Collective: shows records start .. of rank `owner`. `first` stays with the owner's offsets
 * taken off. */
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

/* The cells of a record whose row (or column) of the matrix is here: where, and value. */
struct part {
    size_t n;
    uint32_t *cell, *global, *own;
    double *value;
};

static void part_create(struct part *part, size_t n)
{
    part->cell = NEW(uint32_t, 3 * n);
    part->global = part->cell + n;
    part->own = part->global + n;
    part->value = NEW(double, n);
}

static void part_free(struct part *part)
{
    memory_free(part->cell);
    memory_free(part->value);
}

static void part_take(struct part *part, const struct chunk *chunk, size_t r,
                      const uint32_t *own, double scale)
{
    part->n = 0;
    for (uint64_t c = chunk->first[r]; c < chunk->first[r + 1]; c++) {
        const uint32_t here = own[chunk->column[c]];
        if (here == GRID_ELSEWHERE)
            continue;
        part->cell[part->n] = (uint32_t)(c - chunk->first[r]);
        part->global[part->n] = chunk->column[c];
        part->own[part->n] = here;
        part->value[part->n++] = scale * chunk->value[c];
    }
}

/* Adds to the lower triangle. A number below 2^51 becomes an integer by adding 1.5 * 2^52: its
 * low bits are the integer then. `large`: they may be above. */
static void add_record(struct grid_matrix *matrix, const struct part *rows,
                       const struct part *columns, bool large)
{
    const double magic = 0x1.8p52;
    int64_t magic_bits;
    memcpy(&magic_bits, &magic, sizeof magic);
    size_t start = 0;
    for (size_t c = 0; c < columns->n; c++) {
        while (start < rows->n && rows->global[start] < columns->global[c])
            start++;
        int64_t *to = matrix->fixed + columns->own[c] * matrix->n_own_rows;
        const double scale = columns->value[c];
        if (large)
            for (size_t r = start; r < rows->n; r++)
                to[rows->own[r]] += (int64_t)rint(scale * rows->value[r]);
        for (size_t r = start; !large && r < rows->n; r++) {
            const double sum = scale * rows->value[r] + magic;
            int64_t bits;
            memcpy(&bits, &sum, sizeof sum);
            to[rows->own[r]] += bits - magic_bits;
        }
    }
}

static void multiply_record(const struct grid_matrix *matrix, const struct part *rows,
                            const struct part *columns, double *product)
{
    size_t start = 0;
    for (size_t c = 0; c < columns->n; c++) {
        while (start < rows->n && rows->global[start] < columns->global[c])
            start++;
        const double *from = matrix->value + columns->own[c] * matrix->n_own_rows;
        const double value = columns->value[c];
        double sum = 0;
        size_t r = start;
        if (r < rows->n && rows->global[r] == columns->global[c])
            sum += from[rows->own[r++]] * value;
        for (; r < rows->n; r++) {
            const double here = from[rows->own[r]];
            sum += here * rows->value[r];
            product[rows->cell[r]] += here * value;
        }
        product[columns->cell[c]] += sum;
    }
}

static void chunk_add(struct lme_solver *solver, const struct chunk *chunk, double unit,
                      bool large)
{
    struct part rows, columns;
    part_create(&rows, solver->matrix.n);
    part_create(&columns, solver->matrix.n);
    for (size_t r = 0; r < chunk->n && solver->grid.row >= 0; r++) {
        part_take(&rows, chunk, r, solver->matrix.own_row, 1);
        part_take(&columns, chunk, r, solver->matrix.own_column, chunk->scale[r] * unit);
        add_record(&solver->matrix, &rows, &columns, large);
    }
    part_free(&rows);
    part_free(&columns);
}

/* Each rank of the grid rounds its share, so that what the others have does not matter. */
static int64_t *chunk_multiply(const struct lme_solver *solver, const struct chunk *chunk,
                               double unit, int64_t *n_bad)
{
    struct part rows, columns;
    part_create(&rows, solver->matrix.n);
    part_create(&columns, solver->matrix.n);
    int64_t *shares = NEW(int64_t, chunk->n_cells);
    double *product = NEW(double, solver->matrix.n);
    for (size_t r = 0; r < chunk->n && solver->grid.row >= 0; r++) {
        const size_t n = chunk->first[r + 1] - chunk->first[r];
        part_take(&rows, chunk, r, solver->matrix.own_row, 1);
        part_take(&columns, chunk, r, solver->matrix.own_column, 1);
        memset(product, 0, n * sizeof *product);
        multiply_record(&solver->matrix, &rows, &columns, product);
        for (size_t c = 0; c < n; c++)
            shares[chunk->first[r] + c] = lme_fixed_point(product[c], unit, n_bad);
    }
    memory_free(product);
    part_free(&rows);
    part_free(&columns);
    comm_sum_i64(solver->comm, shares, chunk->n_cells);
    return shares;
}

/* How many chunks a rank's records are; known to all. */
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
