/* What ranks on several machines send each other in a step (src/learn/exact_sum.c), without the
 * step: a reduce-scatter of whole numbers and an allgather of parameters. Built with smpicc and
 * run by smpirun, which simulates ranks and network; its own mpi.h keeps it apart from the
 * rest.
 *
 *     sums WIDE N...    WIDE: bytes of a whole number; N: parameters
 *
 * prints a line for each N: ranks, N, WIDE, seconds of the sum, seconds of the sharing. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const int wide = atoi(argv[1]);
    int *counts = malloc(2 * sizeof(int) * (size_t)size), *starts = counts + size;
    for (int a = 2; a < argc; a++) {
        const long n = atol(argv[a]);
        for (int r = 0; r < size; r++) {
            starts[r] = (int)(n * r / size);
            counts[r] = (int)(n * (r + 1) / size) - starts[r];
        }
        /* one memory for all ranks: only its size matters */
        char *tally = SMPI_SHARED_MALLOC((size_t)(n * wide));
        char *received = SMPI_SHARED_MALLOC((size_t)(n * wide));
        float *values = SMPI_SHARED_MALLOC((size_t)n * sizeof *values);
        double times[3];
        MPI_Barrier(MPI_COMM_WORLD);
        times[0] = MPI_Wtime();
        MPI_Reduce_scatter(tally, received, counts, wide == 8 ? MPI_INT64_T : MPI_INT32_T,
                           MPI_SUM, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        times[1] = MPI_Wtime();
        MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_FLOAT, values, counts, starts, MPI_FLOAT,
                       MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        times[2] = MPI_Wtime();
        MPI_Barrier(MPI_COMM_WORLD);
        const double barrier = MPI_Wtime() - times[2];
        if (rank == 0)
            printf("%d %ld %d %.9f %.9f\n", size, n, wide, times[1] - times[0] - barrier,
                   times[2] - times[1] - barrier);
        SMPI_SHARED_FREE(tally);
        SMPI_SHARED_FREE(received);
        SMPI_SHARED_FREE(values);
    }
    free(counts);
    MPI_Finalize();
    return 0;
}
