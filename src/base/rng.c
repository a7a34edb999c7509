/* Random numbers with names. A counter-based generator (Philox4x32-10: Salmon, Moraes, Dror and
 * Shaw, 2011; code from Random123) maps a name to a number without any state:
 *
 *     key     = seed                                            64 bits
 *     counter = index | when | who | (purpose << 24) + part     4 words of 32 bits
 *
 *     number  = Philox(key, counter)
 *
 * So a number does not depend on which rank draws it, when, or what was drawn before. That is
 * why a run can stop, move to a different number of ranks and continue without changing a
 * bit. */
#include "base/rng.h"
#include "base/fail.h"
#include "base/memory.h"
#include <Random123/philox.h>
#include <math.h>
#include <sleef.h>

void rng_words(const struct rng *rng, uint32_t index, uint32_t words[4])
{
    const philox4x32_ctr_t counter = {
        {index, rng->when, rng->who, (uint32_t)rng->purpose << 24 | rng->part}};
    const philox4x32_key_t key = {{(uint32_t)rng->seed, (uint32_t)(rng->seed >> 32)}};
    const philox4x32_ctr_t result = philox4x32_R(10, counter, key);
    for (int w = 0; w < 4; w++)
        words[w] = result.v[w];
}

uint64_t rng_bits(const struct rng *rng, uint32_t index)
{
    uint32_t words[4];
    rng_words(rng, index, words);
    return (uint64_t)words[1] << 32 | words[0];
}

static double uniform_of(uint64_t bits)
{
    return ((double)(bits >> 12) + 0.5) * 0x1p-52;
}

double rng_uniform(const struct rng *rng, uint32_t index)
{
    return uniform_of(rng_bits(rng, index));
}

double rng_normal(const struct rng *rng, uint32_t index)
{
    /* Box-Muller, of which one of the pair is kept; SLEEF returns the same bits everywhere. */
    uint32_t words[4];
    rng_words(rng, index, words);
    const double u = uniform_of((uint64_t)words[1] << 32 | words[0]);
    const double turn = uniform_of((uint64_t)words[3] << 32 | words[2]);
    return sqrt(-2 * Sleef_cinz_logd1_u10purec(u)) * Sleef_cinz_cospid1_u05purec(2 * turn);
}

uint64_t rng_below(const struct rng *rng, uint32_t index, uint64_t n)
{
    /* The bias of this mapping is below n / 2^64. */
    return (uint64_t)((unsigned __int128)rng_bits(rng, index) * n >> 64);
}

void rng_order(const struct rng *rng, uint32_t *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        values[i] = (uint32_t)i;
    uint32_t words[4];
    for (size_t i = n; i > 1; i--) { /* Fisher-Yates, four swaps per index */
        if (i == n || i % 4 == 3)
            rng_words(rng, (uint32_t)(i / 4), words);
        const size_t j = (uint64_t)words[i % 4] * i >> 32;
        const uint32_t swap = values[i - 1];
        values[i - 1] = values[j];
        values[j] = swap;
    }
}
