/* Ranks on one node read shared memory instead of sending each other messages:
 *
 *     rank 0 creates /cohort-PID-N  ->  all ranks map it  ->  rank 0 unlinks it
 *
 * The name exists only during these steps, so a killed job leaves nothing behind. */
#include "base/shared_memory.h"
#include "base/memory.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool on_one_machine(const struct comm *comm)
{
    int64_t split = comm_neighbours(comm) != comm->size;
    comm_max_i64(comm, &split, 1);
    return !split;
}

static void *map(const char *name, int flags, size_t n_bytes)
{
    int file = shm_open(name, flags | O_RDWR, 0600);
    if (file < 0)
        return NULL;
    void *bytes = NULL;
    /* Reserve the memory now: a write without memory behind it would raise SIGBUS. */
    if (!(flags & O_CREAT) || posix_fallocate(file, 0, (off_t)n_bytes) == 0)
        bytes = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return bytes == MAP_FAILED ? NULL : bytes;
}

void shared_memory_create(struct shared_memory *shared, const struct comm *comm, size_t n_bytes)
{
    static int n_made; /* a name for each block of this process */
    *shared = (struct shared_memory){.n_bytes = n_bytes};
    const char *wish = getenv("COHORT_SHARED");
    if (comm->size == 1 || n_bytes == 0 || (wish != NULL && strcmp(wish, "no") == 0) ||
        !on_one_machine(comm))
        return;
    char name[64] = "";
    if (comm->rank == 0) {
        snprintf(name, sizeof name, "/cohort-%ld-%d", (long)getpid(), n_made++);
        shm_unlink(name);
        shared->bytes = map(name, O_CREAT | O_EXCL, n_bytes);
    }
    comm_broadcast(comm, name, sizeof name, 0); /* now it exists */
    if (comm->rank != 0)
        shared->bytes = map(name, 0, n_bytes);
    int64_t failed = shared->bytes == NULL;
    comm_max_i64(comm, &failed, 1); /* now everybody has it */
    if (comm->rank == 0)
        shm_unlink(name);
    if (failed)
        shared_memory_destroy(shared);
}

void shared_memory_destroy(struct shared_memory *shared)
{
    if (shared->bytes != NULL)
        munmap(shared->bytes, shared->n_bytes);
    *shared = (struct shared_memory){0};
}
