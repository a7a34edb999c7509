/* Kernels of the mixed model, eight numbers at a time: lane i of a sum adds numbers i, i + 8,
 * ..., and the lanes are added in pairs at the end, for any width of registers.
 *
 *     sum_j log(1 + e_j) = log product_j (1 + e_j)
 *
 * With e_j = exp(-|x_j|), factors are at most 2, so a lane can hold FLUSH of them. */
#include "kernels/lme_kernels.h"
#include "kernels/simd.h"

enum { EIGHT = 8, FLUSH = 1000 };
typedef double eight __attribute__((vector_size(EIGHT * sizeof(double)), may_alias));
typedef int64_t eight_bits __attribute__((vector_size(EIGHT * sizeof(double)), may_alias));

/* The same as full registers: the compiler generates better code for loops of loads and
 * stores. */
enum { PART = REGISTER_BYTES / sizeof(double), PARTS = EIGHT / PART };
typedef double part __attribute__((vector_size(REGISTER_BYTES), may_alias));
typedef int64_t part_bits __attribute__((vector_size(REGISTER_BYTES), may_alias));

#if defined(ISA_avx512)
static inline eight eight_exp(eight x)
{
    return (eight)Sleef_cinz_expd8_u10avx512fnofma((__m512d)x);
}
#elif defined(ISA_avx2)
static inline eight eight_exp(eight x)
{
    union {
        eight all;
        __m256d half[2];
    } both = {.all = x};
    both.half[0] = Sleef_cinz_expd4_u10avx(both.half[0]);
    both.half[1] = Sleef_cinz_expd4_u10avx(both.half[1]);
    return both.all;
}
#else
static inline eight eight_exp(eight x)
{
    for (size_t i = 0; i < EIGHT; i++)
        x[i] = Sleef_cinz_expd1_u10purec(x[i]);
    return x;
}
#endif

static inline eight eight_select(eight_bits mask, eight yes, eight no)
{
    return (eight)((mask & (eight_bits)yes) | (~mask & (eight_bits)no));
}

static inline double eight_total(eight x)
{
    return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7]));
}

/* The next n <= 8 numbers and outcomes; missing ones are 0. */
static inline void eight_load(const double *eta, const uint8_t *outcome, size_t n, eight *x,
                              eight *y)
{
    double numbers[EIGHT] = {0}, outcomes[EIGHT] = {0};
    if (n >= EIGHT) {
        memcpy(x, eta, sizeof *x);
        UNROLL for (size_t i = 0; i < EIGHT; i++) outcomes[i] = outcome[i];
    } else {
        for (size_t i = 0; i < n; i++) {
            numbers[i] = eta[i];
            outcomes[i] = outcome[i];
        }
        memcpy(x, numbers, sizeof *x);
    }
    memcpy(y, outcomes, sizeof *y);
}

/* residual = p - y, weight = p (1 - p), all = 1 + exp(-|x|). */
static inline void look(eight x, eight y, eight *residual, eight *weight, eight *all)
{
    const eight zero = {0}, one = zero + 1;
    const eight away = eight_select(x > zero, -x, x);
    const eight e = eight_exp(away), less = e / (one + e);
    *all = one + e;
    *weight = less / *all;
    *residual = eight_select(x > zero, one - less, less) - y;
}

static inline eight keep(eight x, size_t n)
{
    static const eight count = {0, 1, 2, 3, 4, 5, 6, 7};
    const eight zero = {0};
    return n >= EIGHT ? x : eight_select(count < zero + (double)n, x, zero);
}

static double logistic(double *eta, const uint8_t *outcome, double *weight, size_t n)
{
    const eight zero = {0}, one = zero + 1;
    eight loss = zero, product = one;
    double logs = 0;
    for (size_t a = 0; a < n; a += EIGHT) {
        const size_t m = n - a < EIGHT ? n - a : EIGHT;
        eight x, y, residual, w, all;
        eight_load(eta + a, outcome + a, m, &x, &y);
        look(x, y, &residual, &w, &all);
        const eight against = eight_select(y > zero, -x, x);
        loss += eight_select(against > zero, against, zero);
        product *= one + keep(all - one, m);
        memcpy(eta + a, &residual, m * sizeof *eta);
        memcpy(weight + a, &w, m * sizeof *weight);
        if (a / EIGHT % FLUSH == FLUSH - 1 || a + EIGHT >= n) {
            /* few factors: the product of all eight lanes fits a double, at most 2^800 */
            if (n <= EIGHT * 100)
                logs += Sleef_cinz_logd1_u10purec(
                    ((product[0] * product[4]) * (product[2] * product[6])) *
                    ((product[1] * product[5]) * (product[3] * product[7])));
            else
                for (size_t i = 0; i < EIGHT; i++)
                    logs += Sleef_cinz_logd1_u10purec(product[i]);
            product = one;
        }
    }
    return eight_total(loss) + logs;
}

static void slope(const double *eta, const uint8_t *outcome, size_t n, double shift,
                  double sums[2])
{
    eight residuals = {0}, weights = {0};
    for (size_t a = 0; a < n; a += EIGHT) {
        const size_t m = n - a < EIGHT ? n - a : EIGHT;
        eight x, y, residual, w, all;
        eight_load(eta + a, outcome + a, m, &x, &y);
        look(x + shift, y, &residual, &w, &all);
        residuals += keep(residual, m);
        weights += keep(w, m);
    }
    sums[0] = eight_total(residuals);
    sums[1] = eight_total(weights);
}

/* Adding 1.5 * 2^52 to a number below 2^51 rounds it; the low bits are then the integer. */
static void add(int64_t *to, const uint32_t *at, const double *value, size_t n, double scale)
{
    const part magic = (part){0} + 0x1.8p52;
    size_t i = 0;
    for (; i + EIGHT <= n; i += EIGHT) {
        const bool neighbours = at[i + EIGHT - 1] - at[i] == EIGHT - 1;
        UNROLL for (size_t r = 0; r < PARTS; r++)
        {
            const size_t k = i + r * PART;
            part v;
            memcpy(&v, value + k, sizeof v);
            const part_bits whole = (part_bits)(scale * v + magic) - (part_bits)magic;
            if (neighbours) {
                part_bits old;
                memcpy(&old, to + at[k], sizeof old);
                old += whole;
                memcpy(to + at[k], &old, sizeof old);
            } else
                UNROLL for (size_t l = 0; l < PART; l++) to[at[k + l]] += whole[l];
        }
    }
    for (; i < n; i++) {
        const double sum = scale * value[i] + 0x1.8p52;
        uint64_t bits; /* unsigned: numbers that are too large wrap around, as in the lanes */
        memcpy(&bits, &sum, sizeof bits);
        to[at[i]] = (int64_t)((uint64_t)to[at[i]] + bits - 0x4338000000000000);
    }
}

static double multiply(const double *from, const uint32_t *at, const double *value, size_t n,
                       double scale, double *product)
{
    part sum[PARTS] = {{0}};
    double rest = 0;
    size_t i = 0;
    for (; i + EIGHT <= n; i += EIGHT) {
        const bool neighbours = at[i + EIGHT - 1] - at[i] == EIGHT - 1;
        UNROLL for (size_t r = 0; r < PARTS; r++)
        {
            const size_t k = i + r * PART;
            part here, v, p;
            if (neighbours)
                memcpy(&here, from + at[k], sizeof here);
            else
                UNROLL for (size_t l = 0; l < PART; l++) here[l] = from[at[k + l]];
            memcpy(&v, value + k, sizeof v);
            memcpy(&p, product + k, sizeof p);
            sum[r] += here * v;
            p += scale * here;
            memcpy(product + k, &p, sizeof p);
        }
    }
    for (; i < n; i++) {
        rest += from[at[i]] * value[i];
        product[i] += scale * from[at[i]];
    }
    eight all;
    memcpy(&all, sum, sizeof all);
    return eight_total(all) + rest;
}

extern const struct lme_kernels_table KERNEL(lme_kernels);
const struct lme_kernels_table KERNEL(lme_kernels) = {
    .logistic = logistic,
    .slope = slope,
    .add = add,
    .multiply = multiply,
};
