/* Ranks and the messages between them. */
#ifndef COHORT_COMM_H
#define COHORT_COMM_H

#include "base/base.h"
#include <mpi.h>

struct comm {
    MPI_Comm mpi; /* valid only with more than one rank: MPI may not be running */
    int rank, size;
};

/* Once per process. Starts MPI only if a launcher started the process (launcher.h). Ends the
 * program if the launcher started several processes and MPI sees only one. */
void comm_start(struct comm *world, int *argc, char ***argv);
void comm_finish(struct comm *world);

/* All functions below are collective: every rank of `comm` calls them in the same order. */

/* The team of ranks with the same `colour`, in rank order. Release with comm_leave. */
void comm_split(const struct comm *comm, int colour, struct comm *team);
void comm_leave(struct comm *team);

/* Call this after anything that can fail on one rank, before the next collective. Returns OK if
 * every rank passes OK; otherwise, on every rank, the status and message of the lowest rank
 * that failed. */
CHECKED enum status comm_agree(const struct comm *comm, enum status status);

/* Fails on every rank unless all pass the same text; `what` names it in the error. Ranks that
 * each read a file may see different versions of it on different nodes. */
CHECKED enum status comm_agree_on(const struct comm *comm, const char *text, const char *what);

void comm_barrier(const struct comm *comm);
void comm_broadcast(const struct comm *comm, void *bytes, size_t n_bytes, int root);

/* Copies rank 0's text (or NULL) to every rank; other ranks' argument is ignored. Caller
 * frees. */
char *comm_share_text(const struct comm *comm, char *text);

/* In place, integers only: sums whose bits do not depend on the number of ranks. */
void comm_sum_i64(const struct comm *comm, int64_t *values, size_t n);
void comm_sum_i128(const struct comm *comm, __int128 *values, size_t n);
void comm_max_i64(const struct comm *comm, int64_t *values, size_t n);
void comm_max_double(const struct comm *comm, double *values, size_t n);

/* How many ranks of `comm` run on this rank's node, including this one. */
int comm_neighbours(const struct comm *comm);

/* Returns on rank 0 all ranks' bytes end to end in rank order (caller frees) and their total;
 * NULL elsewhere. Any size. */
void *comm_gather(const struct comm *comm, const void *bytes, size_t n_bytes, size_t *n_all);

/* The inverse: rank 0 sends every rank the next n_bytes of `all`. */
void comm_scatter(const struct comm *comm, const void *all, void *bytes, size_t n_bytes);

/* Sends n_to[q] bytes to every rank q, stored end to end in `bytes`. Returns what arrives end
 * to end (caller frees), its total in n_got. */
void *comm_exchange(const struct comm *comm, const void *bytes, const size_t *n_to,
                    size_t *n_got);

#endif
