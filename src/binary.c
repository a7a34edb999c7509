/* Chooses the hidden units' kernels for this CPU before main begins, as vec.c does for the
 * others. */
#include "binary.h"
#include "machine.h"

extern const struct binary_table binary_plain;
#ifdef __x86_64__
extern const struct binary_table binary_avx2, binary_avx512;
#else
#define binary_avx2 binary_plain
#define binary_avx512 binary_plain
#endif

const struct binary_table *binary;

__attribute__((constructor)) static void choose(void)
{
    static const struct binary_table *const all[N_ISAS] = {&binary_plain, &binary_avx2,
                                                           &binary_avx512};
    binary = all[machine_isa()];
}
