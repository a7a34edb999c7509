/* Kernels of a factorization machine; see src/kernels/fm_kernels.h for the equations. A row of
 * factors fills a few registers; registers without any of the k factors are zero and
 * skipped. */
#include "kernels/fm_kernels.h"
#include "kernels/simd.h"

/* Columns c .. c + WIDTH - 1 of all attempts, in `n` registers. */
static inline __attribute__((always_inline)) void
score_columns(const struct fm_features *attempts, const struct fm_point *at, size_t c, int n,
              real *sum, real *score)
{
    for (size_t t = 0; t < attempts->n; t++) {
        rreal s[REGISTERS] = {0}, squares[REGISTERS] = {0};
        for (size_t e = attempts->first[t]; e < attempts->first[t + 1]; e++) {
            const real *v = at->v + attempts->row[e] * at->stride + c;
            const real x = attempts->x[e];
            UNROLL for (int r = 0; r < n; r++)
            {
                const rreal xv = x * IN(v, r * LANES);
                s[r] += xv;
                squares[r] += xv * xv;
            }
        }
        UNROLL for (int r = 0; r < n; r++)
        {
            AT(sum + t * at->stride + c, r * LANES) = s[r];
            squares[r] = s[r] * s[r] - squares[r];
        }
        score[t] += simd_total(squares) / 2;
    }
}

static inline __attribute__((always_inline)) void
slope_columns(const struct fm_features *attempts, const struct fm_point *at, const real *sum,
              const struct fm_point *along, size_t c, int n, real *slope)
{
    for (size_t t = 0; t < attempts->n; t++) {
        const real *s = sum + t * at->stride + c;
        rreal total[REGISTERS] = {0};
        for (size_t e = attempts->first[t]; e < attempts->first[t + 1]; e++) {
            const size_t row = attempts->row[e] * at->stride + c;
            const real x = attempts->x[e];
            UNROLL for (int r = 0; r < n; r++)
            {
                const size_t i = row + (size_t)r * LANES;
                total[r] += x * IN(along->v, i) * (IN(s, r * LANES) - x * IN(at->v, i));
            }
        }
        slope[t] += simd_total(total);
    }
}

static inline __attribute__((always_inline)) void
spread_columns(const struct fm_features *attempts, const struct fm_point *at, const real *sum,
               const real *scale, const struct fm_point *to, size_t c, int n, bool squared)
{
    for (size_t t = 0; t < attempts->n; t++) {
        const real *s = sum + t * at->stride + c;
        for (size_t e = attempts->first[t]; e < attempts->first[t + 1]; e++) {
            const size_t row = attempts->row[e] * at->stride + c;
            const real x = attempts->x[e];
            UNROLL for (int r = 0; r < n; r++)
            {
                const size_t i = row + (size_t)r * LANES;
                const rreal slope = x * (IN(s, r * LANES) - x * IN(at->v, i));
                AT(to->v, i) += scale[t] * slope * (squared ? slope : simd_all(1));
            }
        }
    }
}

/* The number of registers that contain factors, of columns c .. c + WIDTH - 1. */
static int registers(size_t k, size_t c)
{
    return (int)size_min((k - c + LANES - 1) / LANES, REGISTERS);
}

static void score(const struct fm_features *attempts, const struct fm_point *at, real *sum,
                  real *score)
{
    for (size_t t = 0; t < attempts->n; t++) {
        real total = at->w[0];
        for (size_t e = attempts->first[t]; e < attempts->first[t + 1]; e++)
            total += attempts->x[e] * at->w[attempts->row[e]];
        score[t] = total;
    }
    for (size_t c = 0; c < at->k; c += WIDTH)
        if (registers(at->k, c) == 1)
            score_columns(attempts, at, c, 1, sum, score);
        else
            score_columns(attempts, at, c, REGISTERS, sum, score);
}

static void slope(const struct fm_features *attempts, const struct fm_point *at,
                  const real *sum, const struct fm_point *along, real *slope)
{
    for (size_t t = 0; t < attempts->n; t++) {
        real total = along->w[0];
        for (size_t e = attempts->first[t]; e < attempts->first[t + 1]; e++)
            total += attempts->x[e] * along->w[attempts->row[e]];
        slope[t] = total;
    }
    for (size_t c = 0; c < at->k; c += WIDTH)
        if (registers(at->k, c) == 1)
            slope_columns(attempts, at, sum, along, c, 1, slope);
        else
            slope_columns(attempts, at, sum, along, c, REGISTERS, slope);
}

static void spread(const struct fm_features *attempts, const struct fm_point *at,
                   const real *sum, const real *r, const struct fm_point *to)
{
    for (size_t t = 0; t < attempts->n; t++) {
        to->w[0] += r[t];
        for (size_t e = attempts->first[t]; e < attempts->first[t + 1]; e++)
            to->w[attempts->row[e]] += r[t] * attempts->x[e];
    }
    for (size_t c = 0; c < at->k; c += WIDTH)
        if (registers(at->k, c) == 1)
            spread_columns(attempts, at, sum, r, to, c, 1, false);
        else
            spread_columns(attempts, at, sum, r, to, c, REGISTERS, false);
}

static void curve(const struct fm_features *attempts, const struct fm_point *at,
                  const real *sum, const real *d, const struct fm_point *to)
{
    for (size_t t = 0; t < attempts->n; t++) {
        to->w[0] += d[t];
        for (size_t e = attempts->first[t]; e < attempts->first[t + 1]; e++)
            to->w[attempts->row[e]] += d[t] * attempts->x[e] * attempts->x[e];
    }
    for (size_t c = 0; c < at->k; c += WIDTH)
        if (registers(at->k, c) == 1)
            spread_columns(attempts, at, sum, d, to, c, 1, true);
        else
            spread_columns(attempts, at, sum, d, to, c, REGISTERS, true);
}

extern const struct fm_kernels_table KERNEL(fm_kernels);
const struct fm_kernels_table KERNEL(fm_kernels) = {
    .score = score,
    .slope = slope,
    .spread = spread,
    .curve = curve,
};
