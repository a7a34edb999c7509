/* Ranks take turns: one rank prints a piece of its rows into memory and sends it to rank 0,
 * which appends it to the file. The bytes therefore do not depend on the number of ranks, and a
 * table may be larger than the memory of any rank. All ranks agree after every piece, so a full
 * disk stops them together. */
#include "runs/parallel_output.h"
#include "base/atomic_file.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "runs/inference.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 22 };

struct piece {
    char *bytes; /* from open_memstream */
    size_t n;
};

static void print_piece(struct piece *piece, size_t *next, size_t n_rows,
                        void (*row)(FILE *, size_t, const void *), const void *arg)
{
    FILE *out = open_memstream(&piece->bytes, &piece->n);
    if (out == NULL)
        fail_abort(BAD_IO, "out of memory while printing a table");
    while (*next < n_rows && ftell(out) < PIECE)
        row(out, (*next)++, arg);
    if (fclose(out) != 0)
        fail_abort(BAD_IO, "out of memory while printing a table");
}

static enum status add(FILE *file, const char *bytes, size_t n, const char *path)
{
    if (fwrite(bytes, 1, n, file) != n || fflush(file) != 0)
        return fail(BAD_IO,
                    "%s: cannot write: %s; the previous file is intact; free some space and "
                    "run the same command again",
                    path, strerror(errno));
    return OK;
}

/* Text does not replace a checkpoint or a data set: the name was probably a mistake. */
static enum status check_old(const char *path)
{
    static const char *const begins[] = {"cohort checkpoint", "\x89HDF"};
    char bytes[32] = "";
    const size_t n = file_peek(path, bytes, sizeof bytes - 1);
    for (size_t b = 0; b < COUNT(begins); b++)
        if (n > strlen(begins[b]) && memcmp(bytes, begins[b], strlen(begins[b])) == 0)
            return fail(BAD_USER,
                        "%s: this is a checkpoint or another HDF5 file, which the text would "
                        "replace; choose another name, or remove it first",
                        path);
    return OK;
}

static enum status begin(const char *path, const char *head, struct atomic_file *draft,
                         FILE **file)
{
    TRY(check_old(path));
    TRY(atomic_file_begin(draft, path));
    *file = fopen(draft->name, "wb");
    if (*file == NULL)
        return fail(BAD_IO, "%s: cannot write: %s", draft->name, strerror(errno));
    return add(*file, head, strlen(head), path);
}

static enum status finish(enum status status, const char *path, struct atomic_file *draft,
                          FILE *file)
{
    if (file != NULL && fclose(file) != 0 && status == OK)
        status = fail(BAD_IO, "%s: cannot close: %s", path, strerror(errno));
    if (status == OK)
        return atomic_file_commit(draft, path);
    atomic_file_abandon(draft);
    return status;
}

enum status parallel_output_write(const struct comm *comm, const char *path, const char *head,
                                  size_t n_rows, void (*row)(FILE *, size_t, const void *),
                                  const void *arg)
{
    struct atomic_file draft = {.file = -1};
    FILE *file = NULL;
    enum status status =
        comm_agree(comm, comm->rank == 0 ? begin(path, head, &draft, &file) : OK);
    size_t next = 0;
    for (int turn = 0; turn < comm->size && status == OK; turn++)
        for (int64_t more = 1; more && status == OK;) {
            struct piece piece = {0};
            if (comm->rank == turn) {
                print_piece(&piece, &next, n_rows, row, arg);
                more = next < n_rows;
            }
            comm_broadcast(comm, &more, sizeof more, turn);
            size_t n = 0;
            char *bytes = comm_gather(comm, piece.n > 0 ? piece.bytes : "", piece.n, &n);
            status = comm_agree(comm, comm->rank == 0 ? add(file, bytes, n, path) : OK);
            memory_free(bytes);
            free(piece.bytes);
        }
    if (comm->rank == 0)
        status = finish(status, path, &draft, file);
    return comm_agree(comm, status);
}

/* Nor do arrays replace a checkpoint or a data set. */
static enum status check_old_h5(const char *path)
{
    enum path_kind kind = PATH_RUN;
    const enum status status = inference_recognize(path, &kind);
    fail_clear();
    if (status != OK || kind == PATH_RUN)
        return OK;
    return fail(
        BAD_USER,
        "%s: this is a %s, which would be replaced; choose another name, or remove it first",
        path, kind == PATH_DATA_SET ? "data set" : "checkpoint");
}

enum status parallel_output_h5_begin(const char *path, struct atomic_file *draft, hid_t *file)
{
    TRY(check_old_h5(path));
    TRY(atomic_file_begin(draft, path));
    *file = h5_create(draft->name);
    return *file < 0 ? fail(BAD_IO, "%s: cannot write: %s", path, strerror(errno)) : OK;
}

enum status parallel_output_h5_end(enum status status, const char *path,
                                   struct atomic_file *draft, hid_t file)
{
    const bool failed = status != OK;
    if (failed && file >= 0)
        h5_let_go(file);
    else if (!failed)
        status = h5_close(file, path);
    if (status == OK)
        return atomic_file_commit(draft, path);
    atomic_file_abandon(draft);
    return failed && file >= 0 ? fail_context(status, "%s", path) : status;
}

enum status parallel_output_h5_array(const struct comm *comm, hid_t file, const char *name,
                                     hid_t file_type, hid_t type, size_t n_rows,
                                     size_t n_columns, const void *values)
{
    const size_t row_size = H5Tget_size(type) * size_max(1, n_columns);
    size_t n_bytes = 0;
    void *all = comm_gather(comm, values, n_rows * row_size, &n_bytes);
    enum status status = OK;
    if (comm->rank == 0) {
        const uint64_t shape[2] = {n_bytes / row_size, n_columns};
        status = h5_write(file, name, file_type, type, n_columns > 0 ? 2 : 1, shape, all);
    }
    memory_free(all);
    return comm_agree(comm, status);
}
