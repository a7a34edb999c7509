/* Kernels that access the weight table of an RBM; see struct rbm_rows_table.
 *
 * A student with n answers reads 2n rows of weights and writes 2n rows of statistics, at random
 * places in tables that do not fit the second-level cache. Everything else (dot products,
 * samples, sigmoids) happens in registers and the first-level cache and is cheap in comparison.
 * The addresses are known in advance and the loads are independent, so the CPU overlaps them by
 * itself; prefetching the next student's rows was no faster. Rows of WIDTH numbers get loops of
 * their own by constant propagation. */
#include "kernels/rbm_rows.h"
#include "kernels/simd.h"

#define ALWAYS static inline __attribute__((always_inline))

/* Adds `groups` * WIDTH columns of the selected rows, with the sums in registers. Rows are
 * added one by one, so that a sum does not depend on how many rows a call adds. */
ALWAYS void gather_columns(size_t stride, int per_item, const real *table, const uint32_t *unit,
                           size_t n, int copies, real *x, int groups)
{
    rreal sum[4 * REGISTERS] = {0};
    UNROLL for (int r = 0; r < groups * REGISTERS; r++) sum[r] = ((const rreal *)x)[r];
    for (size_t a = 0; a < n; a++) {
        if (per_item == 1 && !(unit[a] & 1))
            continue;
        const rreal *row =
            (const rreal *)(table + (per_item == 2 ? unit[a] : unit[a] >> 1) * stride);
        UNROLL for (int r = 0; r < groups * REGISTERS; r++) sum[r] += (real)copies * row[r];
    }
    UNROLL for (int r = 0; r < groups * REGISTERS; r++)((rreal *)x)[r] = sum[r];
}

ALWAYS void gather_as(size_t stride, int per_item, const real *table, const uint32_t *unit,
                      size_t n, int copies, real *x)
{
    size_t c = 0;
    for (; c + 4 * WIDTH <= stride; c += 4 * WIDTH)
        gather_columns(stride, per_item, table + c, unit, n, copies, x + c, 4);
    for (; c < stride; c += WIDTH)
        gather_columns(stride, per_item, table + c, unit, n, copies, x + c, 1);
}

static void gather(const struct row_shape *shape, const real *table, const uint32_t *unit,
                   size_t n, real *x)
{
    if (shape->per_item == 1)
        gather_as(shape->stride, 1, table, unit, n, shape->copies, x);
    else if (shape->stride == WIDTH)
        gather_as(WIDTH, 2, table, unit, n, shape->copies, x);
    else
        gather_as(shape->stride, 2, table, unit, n, shape->copies, x);
}

ALWAYS void dot_as(size_t stride, int per_item, const real *table, const uint32_t *unit,
                   size_t n, const real *g, real *logit)
{
    for (size_t a = 0; a < n; a++) {
        const real *row = table + (size_t)(unit[a] >> 1) * (size_t)per_item * stride;
        rreal sum[REGISTERS] = {0};
        for (size_t c = 0; c < stride; c += WIDTH)
            UNROLL for (int r = 0; r < REGISTERS; r++)
            {
                const size_t at = c + (size_t)r * LANES;
                rreal w = *(const rreal *)(row + at);
                if (per_item == 2)
                    w = *(const rreal *)(row + stride + at) - w;
                sum[r] += *(const rreal *)(g + at) * w;
            }
        logit[a] = simd_total(sum);
    }
    for (size_t a = n; a % WIDTH != 0; a++)
        logit[a] = 0;
}

static void dot(const struct row_shape *shape, const real *table, const uint32_t *unit,
                size_t n, const real *g, real *logit)
{
    if (shape->per_item == 1)
        dot_as(shape->stride, 1, table, unit, n, g, logit);
    else if (shape->stride == WIDTH)
        dot_as(WIDTH, 2, table, unit, n, g, logit);
    else
        dot_as(shape->stride, 2, table, unit, n, g, logit);
}

ALWAYS void mix_columns(size_t stride, int per_item, const real *table, const uint32_t *unit,
                        const uint8_t *count, size_t n, int copies, real *x, int groups)
{
    rreal sum[4 * REGISTERS] = {0};
    for (size_t a = 0; a < n; a++) {
        const real *row = table + (size_t)(unit[a] >> 1) * (size_t)per_item * stride;
        const real right = (real)count[a], wrong = (real)(copies - count[a]);
        UNROLL for (int r = 0; r < groups * REGISTERS; r++)
        {
            const size_t at = (size_t)r * LANES;
            if (per_item == 2)
                sum[r] += wrong * *(const rreal *)(row + at) +
                          right * *(const rreal *)(row + stride + at);
            else
                sum[r] += right * *(const rreal *)(row + at);
        }
    }
    UNROLL for (int r = 0; r < groups * REGISTERS; r++)((rreal *)x)[r] += sum[r];
}

ALWAYS void mix_as(size_t stride, int per_item, const real *table, const uint32_t *unit,
                   const uint8_t *count, size_t n, int copies, real *x)
{
    size_t c = 0;
    for (; c + 4 * WIDTH <= stride; c += 4 * WIDTH)
        mix_columns(stride, per_item, table + c, unit, count, n, copies, x + c, 4);
    for (; c < stride; c += WIDTH)
        mix_columns(stride, per_item, table + c, unit, count, n, copies, x + c, 1);
}

static void mix(const struct row_shape *shape, const real *table, const uint32_t *unit,
                const uint8_t *count, size_t n, real *x)
{
    if (shape->per_item == 1)
        mix_as(shape->stride, 1, table, unit, count, n, shape->copies, x);
    else if (shape->stride == WIDTH)
        mix_as(WIDTH, 2, table, unit, count, n, shape->copies, x);
    else
        mix_as(shape->stride, 2, table, unit, count, n, shape->copies, x);
}

ALWAYS void add_register(void *tally, bool wide, size_t at, rint32 value)
{
    if (wide)
        UNROLL for (int j = 0; j < INT_LANES; j++)((int64_t *)tally)[at + (size_t)j] +=
            value[j];
    else
        *(rint32 *)((int32_t *)tally + at) += value;
}

ALWAYS void tally_as(size_t stride, int per_item, void *tally, bool wide, const uint32_t *unit,
                     const uint8_t *count, size_t n, int copies, const int32_t *data,
                     const int32_t *multiples)
{
    for (size_t a = 0; a < n; a++) {
        const size_t row = (size_t)(unit[a] >> 1) * (size_t)per_item * stride;
        const rint32 correct = (rint32){0} - (int32_t)(unit[a] & 1);
        const int32_t *right = multiples + (size_t)count[a] * stride;
        const int32_t *wrong = multiples + (size_t)(copies - count[a]) * stride;
        for (size_t c = 0; c < stride; c += WIDTH)
            UNROLL for (int r = 0; r < INT_REGISTERS; r++)
            {
                const size_t at = c + (size_t)r * INT_LANES;
                const rint32 d = *(const rint32 *)(data + at);
                const rint32 to_right = (d & correct) - *(const rint32 *)(right + at);
                if (per_item == 2)
                    add_register(tally, wide, row + at,
                                 (d & ~correct) - *(const rint32 *)(wrong + at));
                add_register(tally, wide, row + (size_t)(per_item - 1) * stride + at, to_right);
            }
    }
}

static void tally(const struct row_shape *shape, void *tally, bool wide, const uint32_t *unit,
                  const uint8_t *count, size_t n, const int32_t *data, const int32_t *model,
                  int32_t *scratch)
{
    const size_t stride = shape->stride;
    int32_t *all_data = scratch,
            *multiples = scratch + stride; /* 0, 1, ... copies times model */
    for (size_t c = 0; c < stride; c++) {
        all_data[c] = shape->copies * data[c];
        for (int m = 0; m <= shape->copies; m++)
            multiples[(size_t)m * stride + c] = m * model[c];
    }
    if (shape->per_item == 1)
        tally_as(stride, 1, tally, wide, unit, count, n, shape->copies, all_data, multiples);
    else if (stride == WIDTH && !wide)
        tally_as(WIDTH, 2, tally, false, unit, count, n, shape->copies, all_data, multiples);
    else
        tally_as(stride, 2, tally, wide, unit, count, n, shape->copies, all_data, multiples);
}

extern const struct rbm_rows_table KERNEL(rbm_rows);
const struct rbm_rows_table KERNEL(rbm_rows) = {
    .gather = gather,
    .dot = dot,
    .mix = mix,
    .tally = tally,
};
