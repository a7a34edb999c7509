/* Chooses the kernels of item response models for this CPU before main begins. */
#include "irt.h"
#include "machine.h"

extern const struct irt_table irt_plain;
#ifdef __x86_64__
extern const struct irt_table irt_avx2, irt_avx512;
#else
#define irt_avx2 irt_plain
#define irt_avx512 irt_plain
#endif

const struct irt_table *irt;

__attribute__((constructor)) static void choose(void)
{
    static const struct irt_table *const all[N_ISAS] = {&irt_plain, &irt_avx2, &irt_avx512};
    irt = all[machine_isa()];
}
