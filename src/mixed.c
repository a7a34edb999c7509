/* Chooses the mixed model's kernels for this CPU before main begins, as vec.c does for the
 * others. */
#include "mixed.h"
#include "machine.h"

extern const struct mixed_table mixed_plain;
#ifdef __x86_64__
extern const struct mixed_table mixed_avx2, mixed_avx512;
#else
#define mixed_avx2 mixed_plain
#define mixed_avx512 mixed_plain
#endif

const struct mixed_table *mixed;

__attribute__((constructor)) static void choose(void)
{
    static const struct mixed_table *const all[N_ISAS] = {&mixed_plain, &mixed_avx2,
                                                          &mixed_avx512};
    mixed = all[machine_isa()];
}
