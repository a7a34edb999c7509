/* Vectors for Newton's method over ranks.
 *
 * Rows of items, skills and counts are common: every rank computes all of them from sums in
 * fixed point, so all ranks have the same bits. A student's row depends on that student's
 * attempts alone, which one rank holds, and no other rank needs it in training. So a vector is
 * the common rows plus the rows of the rank's own students. The ranks exchange the sums over
 * common rows and, for a scalar product, one number: the students' part, in 128-bit fixed point
 * (steps of 2^-64), whose sum is exact in any order. */
#include "models/ktm/ktm_solve.h"
#include "base/memory.h"
#include "learn/cholesky.h"
#include <math.h>
#include <string.h>

void ktm_space_make(struct ktm_space *space, const struct ktm_design *design,
                    const struct model *model, const struct shard *shard,
                    const struct comm *comm)
{
    const struct fm_point point = ktm_point(model);
    *space = (struct ktm_space){.comm = comm,
                                .n_common = design->n_common,
                                .has_students = design->has_students,
                                .k = point.k,
                                .stride = point.stride};
    space->n_rows = space->n_common + (space->has_students ? shard->n_students : 0);
    space->n_weights = size_padded(space->n_rows);
    space->n = space->n_weights + space->n_rows * space->stride;
}

struct fm_point ktm_space_point(const struct ktm_space *space, real *vector)
{
    return (struct fm_point){vector, vector + space->n_weights, space->k, space->stride};
}

static double dot(const real *a, const real *b, size_t n)
{
    double sums[8] = {0}; /* side by side, to hide the latency of additions */
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t j = 0; j < 8; j++)
            sums[j] += (double)a[i + j] * (double)b[i + j];
    for (; i < n; i++)
        sums[0] += (double)a[i] * (double)b[i];
    return ((sums[0] + sums[4]) + (sums[1] + sums[5])) +
           ((sums[2] + sums[6]) + (sums[3] + sums[7]));
}

double ktm_space_dot(const struct ktm_space *space, const real *a, const real *b)
{
    const size_t n = space->n_common, v = space->n_weights, stride = space->stride;
    const double common = dot(a, b, n) + dot(a + v, b + v, n * stride);
    if (!space->has_students)
        return common;
    __int128 sum = 0;
    int64_t bad = 0;
    for (size_t r = n; r < space->n_rows; r++) {
        const double own =
            (double)a[r] * (double)b[r] + dot(a + v + r * stride, b + v + r * stride, stride);
        if (fabs(own) < 0x1p50)
            sum += (__int128)(own * 0x1p64);
        else
            bad++;
    }
    comm_sum_i128(space->comm, &sum, 1);
    comm_sum_i64(space->comm, &bad, 1);
    return bad > 0 ? NAN : common + ldexp((double)sum, -64);
}

/* Copies n rows between two points that number them differently. */
static void copy_rows(const struct fm_point *to, size_t to_row, const struct fm_point *from,
                      size_t from_row, size_t n)
{
    memcpy(to->w + to_row, from->w + from_row, n * sizeof(real));
    if (to->k > 0)
        memcpy(to->v + to_row * to->stride, from->v + from_row * from->stride,
               n * to->stride * sizeof(real));
}

/* The point of a flat vector in the layout of the parameters. */
static struct fm_point flat_point(const struct model *model, const real *flat)
{
    struct fm_point point = ktm_point(model);
    real *start = (real *)(uintptr_t)flat;
    point.w = start + (point.w - model->params.value);
    point.v = point.k > 0 ? start + (point.v - model->params.value) : NULL;
    return point;
}

void ktm_space_take(const struct ktm_space *space, const struct model *model,
                    size_t first_student, const real *flat, real *vector)
{
    const struct fm_point from = flat_point(model, flat), to = ktm_space_point(space, vector);
    memset(vector, 0, space->n * sizeof *vector);
    copy_rows(&to, 0, &from, 0, space->n_common);
    copy_rows(&to, space->n_common, &from, space->n_common + first_student,
              space->n_rows - space->n_common);
}

void ktm_space_put(const struct ktm_space *space, const struct model *model, const real *vector,
                   real *flat)
{
    const struct fm_point to = flat_point(model, flat),
                          from = ktm_space_point(space, (real *)(uintptr_t)vector);
    const size_t n_own = space->n_rows - space->n_common, n_all = model->n_students;
    memset(flat, 0, model->params.n * sizeof *flat);
    copy_rows(&to, 0, &from, 0, space->n_common);
    if (!space->has_students)
        return;
    size_t n_bytes = 0;
    const real *parts[2] = {from.w + space->n_common, from.v + space->n_common * from.stride};
    real *places[2] = {to.w + space->n_common, NULL};
    if (to.k > 0)
        places[1] = to.v + space->n_common * to.stride;
    for (size_t p = 0; p < (to.k > 0 ? 2 : 1); p++) {
        const size_t size = p == 0 ? 1 : to.stride;
        real *all = comm_gather(space->comm, parts[p], n_own * size * sizeof(real), &n_bytes);
        if (all != NULL)
            memcpy(places[p], all, n_bytes);
        memory_free(all);
        comm_broadcast(space->comm, places[p], n_all * size * sizeof(real), 0);
    }
}

enum { BLOCK_BITS = 16 };

void ktm_block_create(struct ktm_block *block, const struct ktm_design *design)
{
    *block = (struct ktm_block){.n = 1};
    for (size_t j = 0; j < design->n; j++) {
        const struct ktm_feature *f = &design->list[j];
        if (f->what != KTM_STUDENT && f->first_row + f->n_rows <= KTM_MOST_DENSE)
            block->n = f->first_row + f->n_rows;
    }
    block->sums = NEW(int64_t, block->n * (block->n + 1) / 2);
    const size_t order = cholesky_order(block->n);
    block->matrix = NEW(double, order *order);
    block->side = NEW(double, order);
}

void ktm_block_free(struct ktm_block *block)
{
    memory_free(block->sums);
    memory_free(block->matrix);
    memory_free(block->side);
}

void ktm_block_clear(struct ktm_block *block)
{
    memset(block->sums, 0, block->n * (block->n + 1) / 2 * sizeof *block->sums);
}

static inline void add_pair(int64_t *sums, size_t a, size_t b, double value)
{
    const size_t row = size_max(a, b), column = size_min(a, b);
    exact_sum_add(&sums[row * (row + 1) / 2 + column], value * (1 << BLOCK_BITS));
}

void ktm_block_add(struct ktm_block *block, const struct fm_features *attempts,
                   const real *weight)
{
    for (size_t t = 0; t < attempts->n; t++) {
        const double d = (double)weight[t];
        if (isnan(d)) /* from NaN weights: the loss shows it */
            continue;
        const size_t start = attempts->first[t], end = attempts->first[t + 1];
        add_pair(block->sums, 0, 0, d);
        for (size_t e = start; e < end; e++) {
            const size_t row = attempts->row[e];
            if (row >= block->n)
                continue;
            const double dx = d * (double)attempts->x[e];
            add_pair(block->sums, row, 0, dx);
            for (size_t other = start; other <= e; other++)
                if (attempts->row[other] < block->n)
                    add_pair(block->sums, row, attempts->row[other],
                             dx * (double)attempts->x[other]);
        }
    }
}

/* Sets rows from `first` on to those of the identity matrix. */
static void set_unit(struct ktm_block *block, size_t first)
{
    const size_t order = cholesky_order(block->n);
    for (size_t a = first; a < order; a++)
        for (size_t b = 0; b <= a; b++)
            block->matrix[a * order + b] = a == b;
}

void ktm_block_factor(struct ktm_block *block, const struct ktm_space *space,
                      const real *penalty, const real *scale)
{
    const size_t n = block->n, order = cholesky_order(n);
    comm_sum_i64(space->comm, block->sums, n * (n + 1) / 2);
    bool done = false;
    for (double ridge = 1e-7; !done && ridge < 1e9; ridge *= 100) { /* for singular designs */
        for (size_t a = 0; a < n; a++) {
            for (size_t b = 0; b <= a; b++)
                block->matrix[a * order + b] = (double)block->sums[a * (a + 1) / 2 + b] /
                                               (1 << BLOCK_BITS) * (double)scale[a] *
                                               (double)scale[b];
            double *diagonal = &block->matrix[a * order + a];
            *diagonal += (double)penalty[a] * (double)scale[a] * (double)scale[a];
            *diagonal = scale[a] > 0 ? *diagonal + ridge : 1;
        }
        set_unit(block, n);
        done = cholesky_factor(block->matrix, order);
    }
    if (!done)
        set_unit(block, 0);
}

void ktm_block_apply(const struct ktm_block *block, const struct ktm_space *space,
                     const real *r, real *z)
{
    memcpy(z, r, space->n * sizeof *z);
    for (size_t i = 0; i < block->n; i++)
        block->side[i] = (double)r[i];
    for (size_t i = block->n; i < cholesky_order(block->n); i++)
        block->side[i] = 0;
    cholesky_solve(block->matrix, cholesky_order(block->n), block->side);
    for (size_t i = 0; i < block->n; i++)
        z[i] = (real)block->side[i];
}
