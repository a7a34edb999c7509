/* The measurements of `cohort doctor`, each a tenth of a second or less: a product of matrices
 * (BLAS), a[i] = b[i] + 3 c[i] over arrays larger than caches (memory), a sum over all ranks
 * (network), files written as checkpoints are and read as data sets are (disk). */
#define _GNU_SOURCE
#include "base/atomic_file.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/h5.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/memory.h"
#include "commands/doctor_internal.h"
#include <cblas.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { ORDER = 384, TRIAD = 1 << 22, SUM = 1 << 17, N_SUMS = 10, FILE_SIZE = 16 << 20 };
static const double enough = 0.08; /* seconds */

static void measure_product(struct doctor_rank *rank)
{
    machine_prepare_blas();
    const size_t n = (size_t)ORDER * ORDER;
    float *a = NEW_SCRATCH(float, n), *b = NEW_SCRATCH(float, n), *c = NEW(float, n);
    for (size_t i = 0; i < n; i++)
        a[i] = b[i] = 1;
    double start = 0, seconds = 0;
    int n_products = -1; /* the first one warms up */
    do {
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, ORDER, ORDER, ORDER, 1, a, ORDER,
                    b, ORDER, 0, c, ORDER);
        if (++n_products == 0)
            start = log_clock();
        seconds = log_clock() - start;
    } while (n_products == 0 || seconds < enough);
    rank->gflops = 2.0 * ORDER * ORDER * ORDER * n_products / seconds / 1e9;
    rank->matmul_is_right = true;
    for (size_t i = 0; i < n; i++)
        rank->matmul_is_right &= c[i] == ORDER;
    memory_free(a);
    memory_free(b);
    memory_free(c);
}

static void measure_triad(struct doctor_rank *rank)
{
    double *a = NEW(double, TRIAD), *b = NEW(double, TRIAD), *c = NEW(double, TRIAD);
    double start = 0, seconds = 0;
    int n_passes = -1;
    do {
        b[0] = n_passes;
        for (size_t i = 0; i < TRIAD; i++)
            a[i] = b[i] + 3 * c[i];
        __asm__ volatile("" ::"r"(a) : "memory"); /* every pass counts */
        if (++n_passes == 0)
            start = log_clock();
        seconds = log_clock() - start;
    } while (n_passes == 0 || seconds < enough);
    rank->bandwidth = 3.0 * sizeof(double) * TRIAD * n_passes / seconds / 1e9;
    memory_free(a);
    memory_free(b);
    memory_free(c);
}

static double cpu_quota(void)
{
    double quota = INFINITY, period = 1;
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "r");
    if (file == NULL)
        return INFINITY;
    const bool limited = fscanf(file, "%lf %lf", &quota, &period) == 2;
    fclose(file);
    return limited ? quota / period : INFINITY;
}

void doctor_measure(const struct comm *comm, struct doctor_rank *rank)
{
    memset(rank, 0, sizeof *rank);
    gethostname(rank->host, sizeof rank->host - 1);
    snprintf(rank->kernel, sizeof rank->kernel, "%s", machine_blas_kernel());
    rank->n_threads = openblas_get_num_threads();
    sched_getaffinity(0, sizeof rank->cpus, &rank->cpus);
    rank->cpu_quota = cpu_quota();
    rank->memory = machine_memory();
    comm_barrier(comm);
    measure_product(rank);
    comm_barrier(comm);
    measure_triad(rank);
}

bool doctor_sum(const struct comm *comm, double *seconds)
{
    int64_t *values = NEW(int64_t, SUM);
    bool right = true;
    double start = 0;
    for (int pass = -1; pass < N_SUMS; pass++) {
        if (pass == 0)
            start = log_clock();
        for (size_t i = 0; i < SUM; i++)
            values[i] = comm->rank + 1;
        comm_sum_i64(comm, values, SUM);
    }
    *seconds = (log_clock() - start) / N_SUMS;
    for (size_t i = 0; i < SUM; i++)
        right &= values[i] == (int64_t)comm->size * (comm->size + 1) / 2;
    memory_free(values);
    return right;
}

static bool can_lock(const char *path)
{
    int file = -1;
    const bool locked = file_lock_take(path, 0, &file) == OK && file >= 0;
    fail_clear();
    if (file >= 0)
        close(file);
    return locked;
}

static enum status measure_files(const char *directory, const char *path,
                                 struct doctor_disk *disk)
{
    struct statvfs space;
    if (!file_is_directory(directory))
        return fail(BAD_USER, "doctor: --disk %s: expected a directory", directory);
    if (statvfs(directory, &space) == 0) {
        disk->free_bytes = (double)space.f_bavail * (double)space.f_frsize;
        disk->total_bytes = (double)space.f_blocks * (double)space.f_frsize;
    }
    char *bytes = NEW(char, FILE_SIZE);
    for (size_t i = 0; i < FILE_SIZE; i++)
        bytes[i] = (char)(i * 2654435761u >> 13); /* so that no disk can compress it away */
    const double start = log_clock();
    enum status status = atomic_file_write(path, bytes, 64);
    disk->small_file = log_clock() - start;
    disk->locks = status == OK && can_lock(path);
    if (status == OK)
        status = atomic_file_write(path, bytes, FILE_SIZE);
    disk->write_rate = FILE_SIZE / (log_clock() - start - disk->small_file);
    memory_free(bytes);
    return status;
}

/* A small file with a number for each rank. */
static enum status write_probe(const char *path, size_t n_ranks)
{
    int64_t *values = NEW(int64_t, n_ranks);
    for (size_t r = 0; r < n_ranks; r++)
        values[r] = (int64_t)r;
    hid_t file = h5_create(path);
    const uint64_t n = n_ranks;
    enum status status =
        file < 0 ? fail(BAD_IO, "%s: cannot be written", path)
                 : h5_write(file, "numbers", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, &n, values);
    if (file >= 0) {
        const enum status closed = h5_close(file, path);
        status = status == OK ? closed : status;
    }
    memory_free(values);
    return status;
}

/* Collective: every rank reads its own number. */
static enum status read_probe(const struct comm *comm, const char *path)
{
    TRY(comm_agree(comm, access(path, R_OK) == 0
                             ? OK
                             : fail(BAD_IO,
                                    "doctor: rank %d cannot see %s, which rank 0 wrote: %s; "
                                    "all ranks must share the directory",
                                    comm->rank, path, strerror(errno))));
    hid_t file = h5_open(path, comm->mpi, comm->size);
    enum status status = comm_agree(
        comm, file >= 0 ? OK
                        : fail(BAD_IO,
                               "doctor: the ranks cannot open %s together: MPI-IO does "
                               "not work there",
                               path));
    int64_t number = -1;
    if (status == OK) {
        status = h5_read_range(file, "numbers", H5T_NATIVE_INT64, (uint64_t)comm->rank, 1,
                               &number, comm);
        if (status == OK && number != comm->rank)
            status = fail(BAD_IO, "doctor: MPI-IO reads wrong numbers back from %s", path);
    }
    if (file >= 0)
        h5_let_go(file);
    return comm_agree(comm, status);
}

enum status doctor_disk(const struct comm *comm, const char *directory,
                        struct doctor_disk *disk)
{
    *disk = (struct doctor_disk){0};
    long number = (long)getpid();
    comm_broadcast(comm, &number, sizeof number, 0);
    char *path = memory_text("%s/.cohort-doctor-%ld", directory, number);
    char *probe = memory_text("%s.h5", path);
    enum status status = OK;
    if (comm->rank == 0) {
        status = measure_files(directory, path, disk);
        if (status == OK)
            status = write_probe(probe, (size_t)comm->size);
    }
    status = comm_agree(comm, status);
    if (status == OK) {
        status = read_probe(comm, probe);
        disk->parallel_reads = status == OK;
    }
    if (comm->rank == 0) {
        unlink(path);
        unlink(probe);
    }
    memory_free(path);
    memory_free(probe);
    return status;
}
