/* Which CPU this is, the BLAS and vector kernels that suit it, and how much memory there is. */
#ifndef COHORT_MACHINE_H
#define COHORT_MACHINE_H

#include "base/base.h"

/* Before MPI_Init: makes OpenBLAS single-threaded and, where it chose kernels below what the
 * CPU can do, sets OPENBLAS_CORETYPE and starts the program again. */
void machine_settle(char **argv);

enum isa { ISA_PLAIN, ISA_AVX2, ISA_AVX512, N_ISAS };
extern const char *const machine_isa_names[N_ISAS];

/* The widest instruction set of this CPU, or what COHORT_ISA=plain|avx2|avx512 asks for. */
enum isa machine_isa(void);
bool machine_has(enum isa isa);
const char *machine_blas_kernel(void);

/* The first number in a small file of the kernel's that a line of `format` has; infinity if
 * there is none ("max"). */
double machine_number(const char *path, const char *format);

/* Bytes that are free for programs, or the limit of this job, whichever is less; infinity: not
 * known. */
double machine_memory(void);

#endif
