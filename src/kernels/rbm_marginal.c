/* Sums out hidden units; see src/kernels/rbm_marginal.h. With u = e^-|x|, nothing overflows:
 *
 *     sigma(x) = 1 / (1 + u)    if x > 0
 *                u / (1 + u)    otherwise
 *     S(x)     = max(x, 0) + log(1 + u)
 *
 * The factors 1 + u are between 1 and 2, so one logarithm of a product replaces many. */
#include "kernels/rbm_marginal.h"
#include "kernels/simd.h"

enum { FACTORS = 64 }; /* 2^64 is far from the largest float */

static inline rreal shrunk(rreal x)
{
    return simd_exp(simd_select(x > 0, -x, x));
}

static inline rreal positive(rreal x)
{
    return simd_select(x > 0, x, simd_all(0));
}

static real pair(const real *x, const real *w0, const real *w1, size_t width, real *s0,
                 real *s1)
{
    rreal sum[REGISTERS] = {0};
    for (size_t start = 0; start < width; start += FACTORS * WIDTH) {
        const size_t end = size_min(width, start + FACTORS * WIDTH);
        rreal up[REGISTERS], down[REGISTERS];
        UNROLL for (int r = 0; r < REGISTERS; r++) up[r] = down[r] = simd_all(1);
        for (size_t i = start; i < end; i += WIDTH)
            UNROLL for (int r = 0; r < REGISTERS; r++)
            {
                const size_t at = i + (size_t)r * LANES;
                const rreal a = IN(x, at) + IN(w0, at), b = IN(x, at) + IN(w1, at);
                const rreal ua = shrunk(a), ub = shrunk(b), da = 1 + ua, db = 1 + ub;
                sum[r] += positive(b) - positive(a);
                down[r] *= da;
                up[r] *= db;
                AT(s0, at) = simd_select(a > 0, simd_all(1), ua) / da;
                AT(s1, at) = simd_select(b > 0, simd_all(1), ub) / db;
            }
        UNROLL for (int r = 0; r < REGISTERS; r++) sum[r] += simd_log(up[r] / down[r]);
    }
    return simd_total(sum);
}

static real worth(const real *x, size_t width)
{
    rreal sum[REGISTERS] = {0};
    for (size_t start = 0; start < width; start += FACTORS * WIDTH) {
        const size_t end = size_min(width, start + FACTORS * WIDTH);
        rreal product[REGISTERS];
        UNROLL for (int r = 0; r < REGISTERS; r++) product[r] = simd_all(1);
        for (size_t i = start; i < end; i += WIDTH)
            UNROLL for (int r = 0; r < REGISTERS; r++)
            {
                const rreal z = IN(x, i + (size_t)r * LANES);
                sum[r] += positive(z);
                product[r] *= 1 + shrunk(z);
            }
        UNROLL for (int r = 0; r < REGISTERS; r++) sum[r] += simd_log(product[r]);
    }
    return simd_total(sum);
}

static void back(const real *d, const real *r, real *e, real *g, size_t n)
{
    for (size_t i = 0; i < n; i += LANES) {
        const rreal through = IN(d, i) * IN(r, i) * (1 - IN(r, i));
        AT(g, i) = through;
        AT(e, i) += through;
    }
}

static void draw(const real *mean, const real *u, real *h, size_t n)
{
    for (size_t i = 0; i < n; i += LANES)
        AT(h, i) = simd_select(IN(u, i) < IN(mean, i), simd_all(1), simd_all(0));
}

extern const struct rbm_marginal_table KERNEL(rbm_marginal);
const struct rbm_marginal_table KERNEL(rbm_marginal) = {
    .pair = pair,
    .worth = worth,
    .back = back,
    .draw = draw,
};
