/* What `cohort doctor` measures. Nothing but doctor*.c includes this. */
#ifndef COHORT_DOCTOR_INTERNAL_H
#define COHORT_DOCTOR_INTERNAL_H

#ifndef _GNU_SOURCE
#error "cpu_set_t needs _GNU_SOURCE"
#endif
#include "base/base.h"
#include "base/comm.h"
#include <sched.h>

/* What one rank measures on its machine. */
struct doctor_rank {
    char host[128], kernel[32];
    cpu_set_t cpus;   /* it may run on */
    int n_threads;    /* of OpenBLAS */
    double cpu_quota; /* CPUs that a container's limit leaves, infinity: none */
    double gflops;    /* sgemm */
    double bandwidth; /* triad, GB per second */
    double memory;    /* bytes available, within the job's limit */
    bool matmul_is_right;
};

/* Collective: all ranks measure at the same time, as they would work. */
void doctor_measure(const struct comm *comm, struct doctor_rank *rank);

/* Collective: seconds of one exact sum of 1 MB over all ranks; false if the sum is wrong. */
bool doctor_sum(const struct comm *comm, double *seconds);

/* A directory as a place for runs and data sets. */
struct doctor_disk {
    double free_bytes, total_bytes;
    double write_rate;   /* bytes per second, synced to disk */
    double small_file;   /* seconds to write and rename a small one */
    bool locks;          /* a lock can be taken */
    bool parallel_reads; /* all ranks read one HDF5 file together */
};

/* Collective; leaves no files behind. BAD_USER if it is not a directory, BAD_IO if files cannot
 * be written there or not all ranks can read them. */
CHECKED enum status doctor_disk(const struct comm *comm, const char *directory,
                                struct doctor_disk *disk);

#endif
