/* Chooses the kernels of chains for this CPU before main begins, as vec.c does for the others.
 */
#include "chains.h"
#include "machine.h"

extern const struct chains_table chains_plain;
#ifdef __x86_64__
extern const struct chains_table chains_avx2, chains_avx512;
#else
#define chains_avx2 chains_plain
#define chains_avx512 chains_plain
#endif

const struct chains_table *chains;

__attribute__((constructor)) static void choose(void)
{
    static const struct chains_table *const all[N_ISAS] = {&chains_plain, &chains_avx2,
                                                           &chains_avx512};
    chains = all[machine_isa()];
}
