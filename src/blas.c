/* Products of matrices by the BLAS that the program is linked with, one thread a rank. */
#include "blas.h"
#include <cblas.h>

#ifdef COHORT_REAL_DOUBLE
#define GEMM cblas_dgemm
#else
#define GEMM cblas_sgemm
#endif

void blas_forward(size_t n, size_t columns, size_t depth, struct matrix a, struct matrix b,
                  real beta, real *c, size_t c_stride)
{
    if (n > 0)
        GEMM(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)n, (int)columns, (int)depth, 1,
             a.values, (int)a.stride, b.values, (int)b.stride, beta, c, (int)c_stride);
}

void blas_back(size_t n, size_t columns, size_t depth, struct matrix a, struct matrix b,
               real beta, real *c, size_t c_stride)
{
    if (n > 0)
        GEMM(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)columns, (int)depth, 1,
             a.values, (int)a.stride, b.values, (int)b.stride, beta, c, (int)c_stride);
}

void blas_outer(size_t n, size_t rows, size_t columns, real alpha, struct matrix a,
                struct matrix b, real beta, real *c, size_t c_stride)
{
    if (n > 0)
        GEMM(CblasRowMajor, CblasTrans, CblasNoTrans, (int)rows, (int)columns, (int)n, alpha,
             a.values, (int)a.stride, b.values, (int)b.stride, beta, c, (int)c_stride);
}
