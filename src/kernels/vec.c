/* Element-wise kernels over arrays; see src/kernels/vec.h for the equations. */
#include "kernels/vec.h"
#include "kernels/simd.h"
#include <math.h>

#ifdef COHORT_REAL_DOUBLE
#define ROOT sqrt
#define NEAREST rint
#define GCC_ROUND __builtin_irint
#else
#define ROOT sqrtf
#define NEAREST rintf
#define GCC_ROUND __builtin_irintf
#endif
/* To the nearest integer, ties to even. GCC vectorizes only its own built-in function. */
#ifdef __clang__
#define ROUND(x) ((int32_t)NEAREST(x))
#else
#define ROUND(x) GCC_ROUND(x)
#endif

static void vector_exp(real *x, size_t n)
{
    for (rreal *v = (rreal *)x, *end = (rreal *)(x + n); v < end; v++)
        *v = simd_exp(*v);
}

static void sigmoid(real *x, size_t n)
{
    for (rreal *v = (rreal *)x, *end = (rreal *)(x + n); v < end; v++)
        *v = 1 / (1 + simd_exp(-*v));
}

static void softplus(real *x, size_t n)
{
    /* log(1 + e^x) = max(x, 0) + log(1 + e^-|x|): no overflow, no cancellation */
    for (rreal *v = (rreal *)x, *end = (rreal *)(x + n); v < end; v++) {
        const rmask positive = *v > 0;
        *v = simd_select(positive, *v, simd_all(0)) +
             simd_log(1 + simd_exp(simd_select(positive, -*v, *v)));
    }
}

/* WIDTH Philox4x32-10 blocks side by side. Each 32-bit word has a 64-bit lane, so that products
 * stay in their lanes; the next product ignores what is left in the upper halves. */
static void philox(const struct rng *rng, uint32_t first, uint64_t words[4][WIDTH])
{
    rword a[WORD_REGISTERS], b[WORD_REGISTERS], c[WORD_REGISTERS], d[WORD_REGISTERS];
    const rword none = {0};
    for (int r = 0; r < WORD_REGISTERS; r++) {
        for (int i = 0; i < WORD_LANES; i++)
            a[r][i] = first + (uint32_t)(r * WORD_LANES + i);
        b[r] = none + rng->when;
        c[r] = none + rng->who;
        d[r] = none + ((uint32_t)rng->purpose << 24 | rng->part);
    }
    uint32_t key0 = (uint32_t)rng->seed, key1 = (uint32_t)(rng->seed >> 32);
    for (int round = 0; round < 10; round++) {
        UNROLL for (int r = 0; r < WORD_REGISTERS; r++)
        {
            const rword p = simd_product(a[r], none + 0xD2511F53u);
            const rword q = simd_product(c[r], none + 0xCD9E8D57u);
            a[r] = (q >> 32) ^ b[r] ^ (none + key0);
            b[r] = q;
            c[r] = (p >> 32) ^ d[r] ^ (none + key1);
            d[r] = p;
        }
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    memcpy(words[0], a, sizeof a);
    memcpy(words[1], b, sizeof b);
    memcpy(words[2], c, sizeof c);
    memcpy(words[3], d, sizeof d);
}

static void uniform(const struct rng *rng, real *out, size_t n)
{
    for (size_t g = 0; g < n; g += 4 * WIDTH) {
        uint64_t words[4][WIDTH] __attribute__((aligned(64)));
        philox(rng, (uint32_t)(g / 4), words);
        for (int w = 0; w < 4; w++)
            for (int i = 0; i < WIDTH; i++)
                out[g + (size_t)(w * WIDTH + i)] =
                    (real)(int32_t)((uint32_t)words[w][i] >> 8) * (real)0x1p-24;
    }
}

static void binomial(const real *logit, const real *u, int copies, uint8_t *count, size_t n)
{
    /* If p > 1/2, failures are counted instead, from the other end of u's grid. So the
     * probability of no success, (1 - p)^copies, is at least 2^-copies and never underflows. */
    const real last = 1 - (real)0x1p-24;
    for (size_t i = 0; i < n; i += LANES) {
        /* Below -30 no success is ever drawn; above, the odds cannot underflow. */
        rreal t = *(const rreal *)(logit + i);
        const rmask likely = t > 0;
        t = simd_select(likely, -t, t);
        t = simd_select(t > -30, t, simd_all(-30));
        const rreal odds = simd_exp(t), fail = 1 / (1 + odds), given = *(const rreal *)(u + i);
        const rreal draw = simd_select(likely, last - given, given);
        rreal chance = fail;
        for (int c = 1; c < copies; c++)
            chance *= fail;
        rreal below = chance;
        rmask k = {0};
        for (int c = 0; c < copies; c++) { /* chance = P(c), below = P(at most c) */
            k -= draw >= below;
            chance *= odds * ((real)(copies - c) / (real)(c + 1));
            below += chance;
        }
        k = (likely & (copies - k)) | (~likely & k);
        for (size_t j = 0; j < LANES; j++)
            count[i + j] = (uint8_t)k[j];
    }
}

static void quantize(const real *x, real limit, int bits, int32_t *q, size_t n)
{
    const real unit = (real)(1 << bits);
    for (size_t i = 0; i < n; i += LANES) {
        rreal value = *(const rreal *)(x + i);
        value = simd_select(value == value, value, simd_all(0));
        value = simd_select(value > -limit, value, simd_all(-limit));
        value = simd_select(value < limit, value, simd_all(limit)) * unit;
        for (size_t j = 0; j < LANES; j++)
            q[i + j] = ROUND(value[j]);
    }
}

/* Statistics as real numbers: an integer times `unit`, rounded once. */
static inline rreal statistic(const void *statistics, bool wide, size_t i, double unit)
{
    rreal g;
    for (size_t j = 0; j < LANES; j++)
        g[j] = wide ? (real)((double)((const int64_t *)statistics)[i + j] * unit)
                    : (real)((const int32_t *)statistics)[i + j] * (real)unit;
    return g;
}

static inline rreal larger_size(rreal most, rreal w)
{
    const rreal size = simd_select(w < 0, -w, w);
    /* A NaN is selected, since NaN <= x is false, and then kept. */
    return simd_select((size <= most) | (most != most), most, size);
}

static double largest(rreal most)
{
    double result = 0;
    for (size_t j = 0; j < LANES; j++) {
        if (!(most[j] <= (real)1e30))
            return INFINITY;
        result = most[j] > result ? most[j] : result;
    }
    return result;
}

static inline __attribute__((always_inline)) double
momentum_as(real *w, real *v, const void *statistics, bool wide, double unit, const real *rate,
            const real *decay, real momentum, size_t stride, size_t n)
{
    rreal most = {0};
    for (size_t row = 0; row < n; row += stride)
        for (size_t c = 0; c < stride; c += LANES) {
            rreal *const weight = (rreal *)(w + row + c), *const speed = (rreal *)(v + row + c);
            *speed = momentum * *speed + statistic(statistics, wide, row + c, unit);
            *weight = *weight + *(const rreal *)(rate + c) * *speed -
                      *(const rreal *)(decay + c) * *weight;
            most = larger_size(most, *weight);
        }
    return largest(most);
}

static double momentum_step(real *w, real *v, const void *statistics, bool wide, double unit,
                            const real *rate, const real *decay, real momentum, size_t stride,
                            size_t n)
{
    return wide ? momentum_as(w, v, statistics, true, unit, rate, decay, momentum, stride, n)
                : momentum_as(w, v, statistics, false, unit, rate, decay, momentum, stride, n);
}

static double adam_step(real *w, real *m, real *v, const void *statistics, bool wide,
                        double unit, const real *rate, const real *decay, const real beta[2],
                        real epsilon, size_t stride, size_t n)
{
    rreal most = {0};
    const real b1 = beta[0], b2 = beta[1];
    for (size_t row = 0; row < n; row += stride)
        for (size_t c = 0; c < stride; c += LANES) {
            const size_t i = row + c;
            rreal *const weight = (rreal *)(w + i), *const mean = (rreal *)(m + i),
                         *const square = (rreal *)(v + i);
            const rreal g = statistic(statistics, wide, i, unit);
            *mean = b1 * *mean + (1 - b1) * g;
            *square = b2 * *square + (1 - b2) * g * g;
            rreal root;
            for (size_t j = 0; j < LANES; j++)
                root[j] = ROOT((*square)[j]);
            *weight = *weight + *(const rreal *)(rate + c) * *mean / (root + epsilon) -
                      *(const rreal *)(decay + c) * *weight;
            most = larger_size(most, *weight);
        }
    return largest(most);
}

extern const struct vec_table KERNEL(vec);
const struct vec_table KERNEL(vec) = {
    .exp = vector_exp,
    .sigmoid = sigmoid,
    .softplus = softplus,
    .uniform = uniform,
    .binomial = binomial,
    .quantize = quantize,
    .momentum = momentum_step,
    .adam = adam_step,
};
