/* A thin wrapper around MPI. It sums integers only: the bits of MPI's floating-point sums
 * depend on the number of ranks. Messages longer than an int can count are sent in pieces. A
 * single rank never calls MPI, so MPI need not be started without a launcher. */
#include "base/comm.h"
#include "base/fail.h"
#include "base/launcher.h"
#include "base/log.h"
#include "base/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 30, TAG_GATHER = 1, TAG_SCATTER, TAG_EXCHANGE };

static const struct comm alone = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};

/* The launcher of a different MPI starts processes that do not know of each other. The first
 * one reports the error; the others wait for it, as the launcher may kill all when one
 * fails. */
static void refuse(const struct launcher *launcher)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = '\0';
    if (launcher->rank == 0)
        fprintf(
            stderr,
            "cohort: %d processes were started (%s), but MPI sees only one: use the mpirun of "
            "%s (or srun --mpi=pmix or pmi2),\nor set COHORT_MPI=no to run that many "
            "separate commands\n",
            launcher->size, launcher->variable, version);
    else
        sleep(1);
    MPI_Finalize();
    exit(BAD_USER);
}

void comm_start(struct comm *world, int *argc, char ***argv)
{
    const struct launcher launcher = launcher_look();
    *world = alone;
    if (launcher.variable != NULL) {
        MPI_Init(argc, argv);
        world->mpi = MPI_COMM_WORLD;
        MPI_Comm_rank(world->mpi, &world->rank);
        MPI_Comm_size(world->mpi, &world->size);
        if (launcher.size > 1 && world->size == 1)
            refuse(&launcher);
    }
    log_mute(world->rank != 0);
}

void comm_finish(struct comm *world)
{
    if (world->mpi != MPI_COMM_SELF)
        MPI_Finalize();
}

void comm_split(const struct comm *comm, int colour, struct comm *team)
{
    *team = alone;
    if (comm->size == 1)
        return;
    MPI_Comm_split(comm->mpi, colour, comm->rank, &team->mpi);
    MPI_Comm_rank(team->mpi, &team->rank);
    MPI_Comm_size(team->mpi, &team->size);
}

void comm_leave(struct comm *team)
{
    if (team->mpi != MPI_COMM_SELF)
        MPI_Comm_free(&team->mpi);
}

enum status comm_agree(const struct comm *comm, enum status status)
{
    if (comm->size == 1)
        return status;
    int failed = status == OK ? comm->size : comm->rank, lowest = failed;
    MPI_Allreduce(&failed, &lowest, 1, MPI_INT, MPI_MIN, comm->mpi);
    if (lowest == comm->size)
        return OK;
    struct {
        enum status status;
        char sentence[2048];
    } verdict = {.status = status};
    if (comm->rank == lowest)
        strncpy(verdict.sentence, fail_sentence(), sizeof verdict.sentence - 1);
    comm_broadcast(comm, &verdict, sizeof verdict, lowest);
    fail_clear();
    return fail(verdict.status, "%s", verdict.sentence);
}

/* The first line of `text` that differs from `other`. */
static const char *differing(const char *text, const char *other)
{
    const char *line = text;
    for (; *text != '\0' && *text == *other; text++, other++)
        if (*text == '\n')
            line = text + 1;
    return line;
}

enum status comm_agree_on(const struct comm *comm, const char *text, const char *what)
{
    char *copy = comm->rank == 0 ? memory_text("%s", text) : NULL;
    copy = comm_share_text(comm, copy);
    enum status status = OK;
    if (strcmp(text, copy) != 0) {
        const char *own = differing(text, copy), *first = differing(copy, text);
        status = fail(
            BAD_IO,
            "%s: rank %d has '%.*s' but rank 0 has '%.*s': the ranks read different files; put "
            "data, settings and runs on a file system that all nodes share",
            what, comm->rank, (int)strcspn(own, "\n"), own, (int)strcspn(first, "\n"), first);
    }
    memory_free(copy);
    return comm_agree(comm, status);
}

void comm_barrier(const struct comm *comm)
{
    if (comm->size > 1)
        MPI_Barrier(comm->mpi);
}

void comm_broadcast(const struct comm *comm, void *bytes, size_t n_bytes, int root)
{
    for (size_t done = 0; comm->size > 1 && done < n_bytes; done += PIECE)
        MPI_Bcast((char *)bytes + done, (int)size_min(PIECE, n_bytes - done), MPI_BYTE, root,
                  comm->mpi);
}

static void reduce(const struct comm *comm, void *values, size_t n, MPI_Datatype type,
                   size_t size, MPI_Op operation)
{
    const size_t most = PIECE / 8;
    for (size_t done = 0; comm->size > 1 && done < n; done += most)
        MPI_Allreduce(MPI_IN_PLACE, (char *)values + done * size, (int)size_min(most, n - done),
                      type, operation, comm->mpi);
}

char *comm_share_text(const struct comm *comm, char *text)
{
    int64_t n = comm->rank == 0 && text != NULL ? (int64_t)strlen(text) + 1 : 0;
    comm_broadcast(comm, &n, sizeof n, 0);
    if (n == 0)
        return NULL;
    if (comm->rank != 0)
        text = NEW(char, (size_t)n);
    comm_broadcast(comm, text, (size_t)n, 0);
    return text;
}

void comm_sum_i64(const struct comm *comm, int64_t *values, size_t n)
{
    reduce(comm, values, n, MPI_INT64_T, sizeof *values, MPI_SUM);
}

void comm_sum_i128(const struct comm *comm, __int128 *values, size_t n)
{
    enum { BITS = 48, N_LIMBS = 3 }; /* sums of limbs fit 64 bits for 2^15 ranks */
    const __int128 base = (__int128)1 << BITS;
    if (comm->size == 1)
        return;
    int64_t *limbs = NEW_SCRATCH(int64_t, N_LIMBS * n), *limb = limbs;
    for (size_t j = 0; j < n; j++, limb += N_LIMBS) {
        limb[0] = (int64_t)(values[j] & (base - 1));
        limb[1] = (int64_t)(values[j] >> BITS & (base - 1));
        limb[2] = (int64_t)(values[j] >> 2 * BITS);
    }
    comm_sum_i64(comm, limbs, N_LIMBS * n);
    limb = limbs;
    for (size_t j = 0; j < n; j++, limb += N_LIMBS)
        values[j] = ((__int128)limb[2] * base + limb[1]) * base + limb[0];
    memory_free(limbs);
}

void comm_max_i64(const struct comm *comm, int64_t *values, size_t n)
{
    reduce(comm, values, n, MPI_INT64_T, sizeof *values, MPI_MAX);
}

void comm_max_double(const struct comm *comm, double *values, size_t n)
{
    reduce(comm, values, n, MPI_DOUBLE, sizeof *values, MPI_MAX);
}

int comm_neighbours(const struct comm *comm)
{
    if (comm->size == 1)
        return 1;
    MPI_Comm machine;
    int size = 0;
    MPI_Comm_split_type(comm->mpi, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    MPI_Comm_size(machine, &size);
    MPI_Comm_free(&machine);
    return size;
}

static void send(const struct comm *comm, const void *bytes, size_t n_bytes, int to, int tag)
{
    for (size_t done = 0; done < n_bytes; done += PIECE)
        MPI_Send((const char *)bytes + done, (int)size_min(PIECE, n_bytes - done), MPI_BYTE, to,
                 tag, comm->mpi);
}

static void receive(const struct comm *comm, void *bytes, size_t n_bytes, int from, int tag)
{
    for (size_t done = 0; done < n_bytes; done += PIECE)
        MPI_Recv((char *)bytes + done, (int)size_min(PIECE, n_bytes - done), MPI_BYTE, from,
                 tag, comm->mpi, MPI_STATUS_IGNORE);
}

/* Every rank's n_bytes, on rank 0 only. */
static size_t *gather_sizes(const struct comm *comm, size_t n_bytes)
{
    size_t *sizes = comm->rank == 0 ? NEW(size_t, (size_t)comm->size) : NULL;
    uint64_t own = n_bytes;
    if (comm->size == 1)
        sizes[0] = n_bytes;
    else
        MPI_Gather(&own, 1, MPI_UINT64_T, sizes, 1, MPI_UINT64_T, 0, comm->mpi);
    return sizes;
}

void *comm_gather(const struct comm *comm, const void *bytes, size_t n_bytes, size_t *n_all)
{
    size_t *sizes = gather_sizes(comm, n_bytes);
    *n_all = 0;
    if (comm->rank != 0) {
        send(comm, bytes, n_bytes, 0, TAG_GATHER);
        return NULL;
    }
    for (int r = 0; r < comm->size; r++)
        *n_all += sizes[r];
    char *all = memory_scratch(*n_all, 1), *next = all;
    if (n_bytes > 0) /* `bytes` may be NULL otherwise */
        memcpy(next, bytes, n_bytes);
    for (int r = 1; r < comm->size; r++) {
        next += sizes[r - 1];
        receive(comm, next, sizes[r], r, TAG_GATHER);
    }
    memory_free(sizes);
    return all;
}

void comm_scatter(const struct comm *comm, const void *all, void *bytes, size_t n_bytes)
{
    size_t *sizes = gather_sizes(comm, n_bytes);
    if (comm->rank != 0) {
        receive(comm, bytes, n_bytes, 0, TAG_SCATTER);
        return;
    }
    const char *next = all;
    if (n_bytes > 0)
        memmove(bytes, next, n_bytes); /* they may be the same memory */
    for (int r = 1; r < comm->size; r++) {
        next += sizes[r - 1];
        send(comm, next, sizes[r], r, TAG_SCATTER);
    }
    memory_free(sizes);
}

void *comm_exchange(const struct comm *comm, const void *bytes, const size_t *n_to,
                    size_t *n_got)
{
    const int size = comm->size;
    if (size == 1)
        return comm_gather(comm, bytes, n_to[0], n_got);
    size_t *n_from = NEW(size_t, (size_t)size);
    MPI_Alltoall(n_to, sizeof *n_to, MPI_BYTE, n_from, sizeof *n_from, MPI_BYTE, comm->mpi);
    *n_got = 0;
    for (int r = 0; r < size; r++)
        *n_got += n_from[r];
    char *got = memory_scratch(*n_got, 1);
    size_t n_requests = 0;
    for (int r = 0; r < size; r++)
        n_requests += n_from[r] / PIECE + 1;
    MPI_Request *requests = NEW(MPI_Request, n_requests);
    n_requests = 0;
    char *in = got;
    for (int r = 0; r < size; in += n_from[r], r++)
        for (size_t done = 0; done < n_from[r]; done += PIECE)
            MPI_Irecv(in + done, (int)size_min(PIECE, n_from[r] - done), MPI_BYTE, r,
                      TAG_EXCHANGE, comm->mpi, &requests[n_requests++]);
    const char *out = bytes;
    for (int r = 0; r < size; out += n_to[r], r++)
        send(comm, out, n_to[r], r, TAG_EXCHANGE);
    for (size_t r = 0; r < n_requests; r++)
        MPI_Wait(&requests[r], MPI_STATUS_IGNORE);
    memory_free(requests);
    memory_free(n_from);
    return got;
}
