/* Vector types and functions shared by the kernels, compiled once per instruction set.
 *
 *     rreal     one register of LANES real numbers
 *     rint32    one register of INT_LANES integers
 *     rword     one register of WORD_LANES 32-bit words in 64-bit lanes
 *
 * A row of WIDTH numbers is a few registers side by side. Only a few functions are written for
 * each instruction set: the exponential and logarithm (SLEEF's `cinz` functions, which have the
 * same bits at every width), the product of two words, and the sum of WIDTH numbers, always
 * added in this order: 8 apart, 4 apart, 2 apart, 1 apart. */
#ifndef COHORT_SIMD_H
#define COHORT_SIMD_H

#include "base/base.h"
#include <sleef.h>
#include <string.h>

#define SIMD_JOIN(name, isa) name##_##isa
#define SIMD_NAME(name, isa) SIMD_JOIN(name, isa)
#define KERNEL(name) SIMD_NAME(name, ISA)

#if defined(ISA_avx512)
enum { REGISTER_BYTES = 64 };
#elif defined(ISA_avx2)
enum { REGISTER_BYTES = 32 };
#else
enum { REGISTER_BYTES = 16 };
#endif
enum {
    LANES = REGISTER_BYTES / sizeof(real),
    REGISTERS = WIDTH / LANES,
    INT_LANES = REGISTER_BYTES / 4,
    INT_REGISTERS = WIDTH / INT_LANES,
    WORD_LANES = REGISTER_BYTES / 8,
    WORD_REGISTERS = WIDTH / WORD_LANES,
};
typedef real rreal __attribute__((vector_size(REGISTER_BYTES), may_alias));
typedef int32_t rint32 __attribute__((vector_size(REGISTER_BYTES), may_alias));
typedef uint64_t rword __attribute__((vector_size(REGISTER_BYTES), may_alias));
#ifdef COHORT_REAL_DOUBLE
typedef int64_t rmask __attribute__((vector_size(REGISTER_BYTES), may_alias));
#else
typedef rint32 rmask;
#endif

/* The register that begins at number i of an array, to write and to read. */
#define AT(array, i) (*(rreal *)((array) + (i)))
#define IN(array, i) (*(const rreal *)((array) + (i)))

#define UNROLL _Pragma("GCC unroll 16")

/* `yes` in lanes where the mask is set, `no` in the others. */
static inline rreal simd_select(rmask mask, rreal yes, rreal no)
{
    return (rreal)((mask & (rmask)yes) | (~mask & (rmask)no));
}

static inline rreal simd_all(real x)
{
    return x - (rreal){0}; /* exact for -0 too, and so free; x + 0 would be computed */
}

#ifndef ISA_plain
#include <immintrin.h>
#endif

#if defined(ISA_avx512)
static inline rword simd_product(rword a, rword b)
{
    return (rword)_mm512_mul_epu32((__m512i)a, (__m512i)b);
}
#elif defined(ISA_avx2)
static inline rword simd_product(rword a, rword b)
{
    return (rword)_mm256_mul_epu32((__m256i)a, (__m256i)b);
}
#else
static inline rword simd_product(rword a, rword b)
{
    return (a & 0xffffffffu) * (b & 0xffffffffu);
}
#endif

#if defined(ISA_avx512) && !defined(COHORT_REAL_DOUBLE)
static inline rreal simd_exp(rreal x)
{
    return (rreal)Sleef_cinz_expf16_u10avx512fnofma((__m512)x);
}
static inline rreal simd_log(rreal x)
{
    return (rreal)Sleef_cinz_logf16_u10avx512fnofma((__m512)x);
}
#elif defined(ISA_avx2) && !defined(COHORT_REAL_DOUBLE)
static inline rreal simd_exp(rreal x)
{
    return (rreal)Sleef_cinz_expf8_u10avx((__m256)x);
}
static inline rreal simd_log(rreal x)
{
    return (rreal)Sleef_cinz_logf8_u10avx((__m256)x);
}
#else
#ifdef COHORT_REAL_DOUBLE
#define SIMD_EXP Sleef_cinz_expd1_u10purec
#define SIMD_LOG Sleef_cinz_logd1_u10purec
#else
#define SIMD_EXP Sleef_cinz_expf1_u10purec
#define SIMD_LOG Sleef_cinz_logf1_u10purec
#endif
static inline rreal simd_exp(rreal x)
{
    for (size_t i = 0; i < LANES; i++)
        x[i] = SIMD_EXP(x[i]);
    return x;
}
static inline rreal simd_log(rreal x)
{
    for (size_t i = 0; i < LANES; i++)
        x[i] = SIMD_LOG(x[i]);
    return x;
}
#endif

#if !defined(ISA_plain) && !defined(COHORT_REAL_DOUBLE)
static inline real simd_total(const rreal sum[REGISTERS])
{
#ifdef ISA_avx512
    const __m256 a = _mm256_add_ps(_mm512_castps512_ps256((__m512)sum[0]),
                                   _mm512_extractf32x8_ps((__m512)sum[0], 1));
#else
    const __m256 a = (__m256)(sum[0] + sum[1]);
#endif
    const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}
#else
static inline real simd_total(const rreal sum[REGISTERS])
{
    real x[WIDTH], a[8], b[4];
    memcpy(x, sum, sizeof x);
    for (int i = 0; i < 8; i++)
        a[i] = x[i] + x[i + 8];
    for (int i = 0; i < 4; i++)
        b[i] = a[i] + a[i + 4];
    return (b[0] + b[2]) + (b[1] + b[3]);
}
#endif

#endif
