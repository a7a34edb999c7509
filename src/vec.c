/* Chooses the kernels for this CPU before main begins. The kernels are in src/kernels. */
#include "vec.h"
#include "machine.h"

extern const struct vec_table vec_plain;
extern const struct rows_table rows_plain;
#ifdef __x86_64__
extern const struct vec_table vec_avx2, vec_avx512;
extern const struct rows_table rows_avx2, rows_avx512;
#else
#define vec_avx2 vec_plain
#define vec_avx512 vec_plain
#define rows_avx2 rows_plain
#define rows_avx512 rows_plain
#endif

const struct vec_table *vec;
const struct rows_table *rows;

__attribute__((constructor)) static void choose(void)
{
    static const struct vec_table *const vecs[N_ISAS] = {&vec_plain, &vec_avx2, &vec_avx512};
    static const struct rows_table *const all_rows[N_ISAS] = {&rows_plain, &rows_avx2,
                                                              &rows_avx512};
    vec = vecs[machine_isa()];
    rows = all_rows[machine_isa()];
}
