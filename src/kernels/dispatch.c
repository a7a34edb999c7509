/* Selects the kernels for this CPU before main starts. Each kernel file is compiled once per
 * instruction set and ends in a table of functions; a pointer of the same name selects one:
 *
 *            / vec_plain
 *     vec -->  vec_avx2
 *            \ vec_avx512
 *
 * The tables differ only in speed, never in bits. */
#include "base/machine.h"
#include "kernels/fm_kernels.h"
#include "kernels/hmm.h"
#include "kernels/irt.h"
#include "kernels/lme_kernels.h"
#include "kernels/logistic_sums.h"
#include "kernels/matmul.h"
#include "kernels/rbm_marginal.h"
#include "kernels/rbm_rows.h"
#include "kernels/rnn_cells.h"
#include "kernels/vec.h"

/* clang-format off */
#define FOR_ALL_TABLES(DO) \
    DO(fm_kernels) DO(hmm) DO(irt) DO(lme_kernels) DO(logistic_sums) \
    DO(matmul) DO(rbm_marginal) DO(rbm_rows) DO(rnn_cells) DO(vec)
/* clang-format on */

#ifdef __x86_64__
#define DECLARE(name)                                                                          \
    extern const struct name##_table name##_plain, name##_avx2, name##_avx512;                 \
    const struct name##_table *name;
#define CHOOSE(name)                                                                           \
    name = (const struct name##_table *[N_ISAS]){&name##_plain, &name##_avx2,                  \
                                                 &name##_avx512}[machine_isa()];
#else
#define DECLARE(name)                                                                          \
    extern const struct name##_table name##_plain;                                             \
    const struct name##_table *name;
#define CHOOSE(name) name = &name##_plain;
#endif

FOR_ALL_TABLES(DECLARE)

__attribute__((constructor)) static void choose(void)
{
    FOR_ALL_TABLES(CHOOSE)
}
