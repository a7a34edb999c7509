/* Kernels of a logistic regression with few coefficients, eight rows at a time: lane i of a sum
 * adds rows i, i + 8, ..., and the lanes are added in pairs at the end, for any width of
 * registers. BESIDE columns are summed side by side, so that additions do not wait for each
 * other. */
#include "kernels/logistic_sums.h"
#include "kernels/simd.h"

enum { EIGHT = 8, PART = REGISTER_BYTES / sizeof(double), PARTS = EIGHT / PART, BESIDE = 4 };
typedef double part __attribute__((vector_size(REGISTER_BYTES), may_alias));
typedef int64_t part_bits __attribute__((vector_size(REGISTER_BYTES), may_alias));

#define PART_AT(array, i) (*(part *)((array) + (i)))
#define PART_IN(array, i) (*(const part *)((array) + (i)))

static inline double total(const part sum[PARTS])
{
    double x[EIGHT];
    memcpy(x, sum, sizeof x);
    return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}

#if defined(ISA_avx512)
static inline part part_exp(part x)
{
    return (part)Sleef_cinz_expd8_u10avx512fnofma((__m512d)x);
}
#elif defined(ISA_avx2)
static inline part part_exp(part x)
{
    return (part)Sleef_cinz_expd4_u10avx((__m256d)x);
}
#else
static inline part part_exp(part x)
{
    for (size_t i = 0; i < PART; i++)
        x[i] = Sleef_cinz_expd1_u10purec(x[i]);
    return x;
}
#endif

static void look(const struct logistic_rows *rows, const double *offset, const double *outcome,
                 const double *b, double *r, double *d)
{
    const part zero = {0}, one = zero + 1;
    for (size_t i = 0; i < rows->n; i += PART) {
        part eta = PART_IN(offset, i) + b[0];
        for (size_t c = 0; c < rows->k; c++)
            eta += b[1 + c] * PART_IN(rows->x + c * rows->stride, i);
        const part_bits above = eta > zero;
        const part away = (part)((above & (part_bits)-eta) | (~above & (part_bits)eta));
        const part e = part_exp(away), more = one / (one + e), less = e * more;
        const part p = (part)((above & (part_bits)more) | (~above & (part_bits)less));
        PART_AT(r, i) = p - PART_IN(outcome, i);
        PART_AT(d, i) = less * more;
    }
}

/* out[j] = sum over the rows of w times column j, for 1 + c <= j < 1 + c + n. */
static inline __attribute__((always_inline)) void
columns(const struct logistic_rows *rows, const double *w, size_t c, size_t n, double *out)
{
    const double *x = rows->x + c * rows->stride;
    part sum[BESIDE][PARTS] = {{{0}}};
    for (size_t i = 0; i < rows->n; i += EIGHT)
        UNROLL for (size_t r = 0; r < PARTS; r++)
        {
            const part here = PART_IN(w, i + r * PART);
            UNROLL for (size_t j = 0; j < n; j++) sum[j][r] +=
                here * PART_IN(x + j * rows->stride, i + r * PART);
        }
    for (size_t j = 0; j < n; j++)
        out[1 + c + j] = total(sum[j]);
}

/* The same for the column of ones and the next k columns. */
static void moments(const struct logistic_rows *rows, const double *w, size_t k, double *out)
{
    part sum[PARTS] = {{0}};
    for (size_t i = 0; i < rows->n; i += EIGHT)
        UNROLL for (size_t r = 0; r < PARTS; r++) sum[r] += PART_IN(w, i + r * PART);
    out[0] = total(sum);
    size_t c = 0;
    for (; c + BESIDE <= k; c += BESIDE)
        columns(rows, w, c, BESIDE, out);
    for (; c < k; c++)
        columns(rows, w, c, 1, out);
}

static void sums(const struct logistic_rows *rows, const double *r, const double *d,
                 double *scratch, double *slope, double *curve)
{
    const size_t k = rows->k;
    moments(rows, r, k, slope);
    moments(rows, d, 0, curve);
    for (size_t a = 1; a <= k; a++) {
        const double *x = rows->x + (a - 1) * rows->stride;
        for (size_t i = 0; i < rows->n; i += PART)
            PART_AT(scratch, i) = PART_IN(d, i) * PART_IN(x, i);
        moments(rows, scratch, a, curve + a * (1 + k));
    }
}

extern const struct logistic_sums_table KERNEL(logistic_sums);
const struct logistic_sums_table KERNEL(logistic_sums) = {
    .look = look,
    .sums = sums,
};
