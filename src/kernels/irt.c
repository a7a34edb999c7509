/* The decoder of an item response model, over the answers of one student with ability theta;
 * see src/kernels/irt.h for the equations. A register holds LANES answers. */
#include "kernels/irt.h"
#include "kernels/simd.h"

#if defined(ISA_avx512) && !defined(COHORT_REAL_DOUBLE)
#define COSINE(x) (rreal) Sleef_cinz_cospif16_u05avx512fnofma((__m512)(x))
#define SINE(x) (rreal) Sleef_cinz_sinpif16_u05avx512fnofma((__m512)(x))
#define ROOT(x) (rreal) _mm512_sqrt_ps((__m512)(x))
#elif defined(ISA_avx2) && !defined(COHORT_REAL_DOUBLE)
#define COSINE(x) (rreal) Sleef_cinz_cospif8_u05avx((__m256)(x))
#define SINE(x) (rreal) Sleef_cinz_sinpif8_u05avx((__m256)(x))
#define ROOT(x) (rreal) _mm256_sqrt_ps((__m256)(x))
#else
#ifdef COHORT_REAL_DOUBLE
#define ONE_COSINE Sleef_cinz_cospid1_u05purec
#define ONE_SINE Sleef_cinz_sinpid1_u05purec
#define ONE_ROOT __builtin_sqrt
#else
#define ONE_COSINE Sleef_cinz_cospif1_u05purec
#define ONE_SINE Sleef_cinz_sinpif1_u05purec
#define ONE_ROOT __builtin_sqrtf
#endif
#define EACH(name, function)                                                                   \
    static inline rreal name(rreal x)                                                          \
    {                                                                                          \
        for (size_t i = 0; i < LANES; i++)                                                     \
            x[i] = function(x[i]);                                                             \
        return x;                                                                              \
    }
EACH(COSINE, ONE_COSINE)
EACH(SINE, ONE_SINE)
EACH(ROOT, ONE_ROOT)
#endif

static void normal(real *u, size_t n)
{
    for (size_t i = 0; i < n / 2; i += LANES) { /* Box-Muller; 1 - u is never 0 */
        const rreal radius = ROOT(-2 * simd_log(1 - IN(u, i)));
        const rreal turn = IN(u, i + n / 2) + IN(u, i + n / 2);
        AT(u, i) = radius * COSINE(turn);
        AT(u, i + n / 2) = radius * SINE(turn);
    }
}

/* sum_j log(1 + e^-|x_j|) is the logarithm of a product. Its factors are at most 2, so a float
 * can hold 127 of them: one logarithm is enough for MOST_FACTORS. */
enum { MOST_FACTORS = 64 };

static real respond(size_t n_dims, const real *theta, const real *a, const real *b,
                    const real *y, size_t n, real *e)
{
    rreal sum[REGISTERS] = {0}, product[REGISTERS];
    UNROLL for (int r = 0; r < REGISTERS; r++) product[r] = simd_all(1);
    size_t n_factors = 0;
    for (size_t j = 0; j < n; j += WIDTH) {
        UNROLL for (int r = 0; r < REGISTERS; r++)
        {
            const size_t at = j + (size_t)r * LANES;
            rreal x = -IN(b, at);
            for (size_t k = 0; k < n_dims; k++)
                x += theta[k] * IN(a, k * n + at);
            const rmask positive = x > 0;
            const rreal t = simd_exp(simd_select(positive, -x, x)), up = 1 / (1 + t);
            AT(e, at) = IN(y, at) - simd_select(positive, up, t * up);
            sum[r] += IN(y, at) * x - simd_select(positive, x, simd_all(0));
            product[r] *= 1 + t;
        }
        if (++n_factors == MOST_FACTORS || j + WIDTH == n) {
            UNROLL for (int r = 0; r < REGISTERS; r++)
            {
                sum[r] -= simd_log(product[r]);
                product[r] = simd_all(1);
            }
            n_factors = 0;
        }
    }
    return simd_total(sum);
}

static void slope(size_t n_dims, const real *a, const real *e, size_t n, real *slope_of)
{
    for (size_t k = 0; k < n_dims; k++) {
        rreal sum[REGISTERS] = {0};
        for (size_t j = 0; j < n; j += WIDTH)
            UNROLL for (int r = 0; r < REGISTERS; r++) sum[r] +=
                IN(a, k * n + j + (size_t)r * LANES) * IN(e, j + (size_t)r * LANES);
        slope_of[k] = simd_total(sum);
    }
}

static void credit(size_t n_dims, const real *theta, real scale, const real *e, size_t n,
                   real *da, real *db)
{
    for (size_t j = 0; j < n; j += LANES) {
        const rreal share = scale * IN(e, j);
        for (size_t k = 0; k < n_dims; k++)
            AT(da, k * n + j) += theta[k] * share;
        AT(db, j) -= share;
    }
}

extern const struct irt_table KERNEL(irt);
const struct irt_table KERNEL(irt) = {
    .normal = normal,
    .respond = respond,
    .slope = slope,
    .credit = credit,
};
