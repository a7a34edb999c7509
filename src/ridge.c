/* Chooses the kernels of small regressions for this CPU before main begins, as vec.c does for
 * the others. */
#include "ridge.h"
#include "machine.h"

extern const struct ridge_table ridge_plain;
#ifdef __x86_64__
extern const struct ridge_table ridge_avx2, ridge_avx512;
#else
#define ridge_avx2 ridge_plain
#define ridge_avx512 ridge_plain
#endif

const struct ridge_table *ridge;

__attribute__((constructor)) static void choose(void)
{
    static const struct ridge_table *const all[N_ISAS] = {&ridge_plain, &ridge_avx2,
                                                          &ridge_avx512};
    ridge = all[machine_isa()];
}
