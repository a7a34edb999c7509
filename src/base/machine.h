/* The CPU, the BLAS and vector kernels that suit it, and the available memory. */
#ifndef COHORT_MACHINE_H
#define COHORT_MACHINE_H

#include "base/base.h"

/* Before MPI_Init: makes OpenBLAS single-threaded. If OpenBLAS chose kernels that are too old
 * for the CPU, sets OPENBLAS_CORETYPE and restarts the program. */
void machine_settle(char **argv);

/* Before the first use of BLAS or LAPACK: they hang if memory for their buffer is missing. */
void machine_prepare_blas(void);

enum isa { ISA_PLAIN, ISA_AVX2, ISA_AVX512, N_ISAS };
extern const char *const machine_isa_names[N_ISAS];

/* The widest instruction set of this CPU, or what COHORT_ISA=plain|avx2|avx512 asks for. */
enum isa machine_isa(void);
bool machine_has(enum isa isa);
const char *machine_blas_kernel(void);

/* The number in the first line that matches `format` in a small file of the kernel; infinity if
 * there is none ("max"). */
double machine_number(const char *path, const char *format);

/* Free memory in bytes, or this job's limit, whichever is less; infinity: unknown. */
double machine_memory(void);

#endif
