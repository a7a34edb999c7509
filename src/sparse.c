/* Chooses the kernels of sparse features for this CPU before main begins, as vec.c does for the
 * others. */
#include "sparse.h"
#include "machine.h"

extern const struct sparse_table sparse_plain;
#ifdef __x86_64__
extern const struct sparse_table sparse_avx2, sparse_avx512;
#else
#define sparse_avx2 sparse_plain
#define sparse_avx512 sparse_plain
#endif

const struct sparse_table *sparse;

__attribute__((constructor)) static void choose(void)
{
    static const struct sparse_table *const all[N_ISAS] = {&sparse_plain, &sparse_avx2,
                                                           &sparse_avx512};
    sparse = all[machine_isa()];
}
