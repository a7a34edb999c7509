/* Chooses the recurrent cells' kernels for this CPU before main begins, as vec.c does for the
 * others. */
#include "cells.h"
#include "machine.h"

extern const struct cells_table cells_plain;
#ifdef __x86_64__
extern const struct cells_table cells_avx2, cells_avx512;
#else
#define cells_avx2 cells_plain
#define cells_avx512 cells_plain
#endif

const struct cells_table *cells;

__attribute__((constructor)) static void choose(void)
{
    static const struct cells_table *const all[N_ISAS] = {&cells_plain, &cells_avx2,
                                                          &cells_avx512};
    cells = all[machine_isa()];
}
