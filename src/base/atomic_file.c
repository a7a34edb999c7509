/* Replaces a file atomically:
 *
 *     write PATH.tmp  ->  fsync it  ->  rename it to PATH  ->  fsync the directory
 *
 * A crash at any point leaves the old file or the new one, intact. Overwriting in place is how
 * checkpoints are lost.
 *
 * The temporary name is fixed, so the next job reuses what a killed job leaves behind. The file
 * is locked while it is written: two jobs that replace the same file at once (array tasks that
 * start a sweep together) would otherwise rename each other's half-written files. */
#include "base/atomic_file.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TURN_SECONDS = 30 }; /* wait this long for another job that writes the same file */

void atomic_file_start(void)
{
    signal(SIGXFSZ, SIG_IGN);
}

char *atomic_file_temporary(const char *path)
{
    return memory_text("%s.tmp", path);
}

static void release(struct atomic_file *draft)
{
    if (draft->file >= 0)
        close(draft->file);
    memory_free(draft->name);
    *draft = (struct atomic_file){.file = -1};
}

/* A leftover that cannot be opened may belong to another user, or be a link. */
static int open_draft(const char *name)
{
    const int flags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int file = open(name, flags, 0666), reason = errno;
    if (file < 0 && unlink(name) == 0)
        return open(name, flags, 0666);
    errno = reason;
    return file;
}

/* Whether the open file still has this name, and was not renamed while we waited. Unlinks a
 * pipe, or a file with further hard links. */
static bool is_ours(int file, const char *name)
{
    struct stat opened, named;
    if (fstat(file, &opened) != 0 || lstat(name, &named) != 0 ||
        opened.st_dev != named.st_dev || opened.st_ino != named.st_ino)
        return false;
    if (S_ISREG(opened.st_mode) && opened.st_nlink <= 1)
        return true;
    unlink(name);
    return false;
}

void atomic_file_abandon(struct atomic_file *draft)
{
    if (draft->name != NULL)
        unlink(draft->name);
    release(draft);
}

enum status atomic_file_begin(struct atomic_file *draft, const char *path)
{
    enum { MOST_TRIES = 100 };
    *draft = (struct atomic_file){.name = atomic_file_temporary(path), .file = -1};
    enum status status = OK;
    bool ours = false;
    for (int n = 0; status == OK && !ours; n++) {
        if (draft->file >= 0)
            close(draft->file);
        draft->file = open_draft(draft->name);
        if (draft->file < 0)
            status = fail(BAD_IO, "cannot write %s: %s", draft->name, strerror(errno));
        else if (file_lock_wait(draft->file, TURN_SECONDS) == EAGAIN) /* never without locks */
            status = fail(BAD_IO,
                          "%s: another job has been writing this file for %d seconds; wait "
                          "for it, or choose another file name",
                          path, TURN_SECONDS);
        else
            ours = is_ours(draft->file, draft->name) || n == MOST_TRIES;
    }
    if (status == OK && ftruncate(draft->file, 0) != 0) {
        status = fail(BAD_IO, "cannot truncate %s: %s", draft->name, strerror(errno));
        atomic_file_abandon(draft);
    } else if (status != OK) {
        release(draft);
    }
    return status;
}

static enum status sync_parent(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *directory = slash == NULL   ? memory_text(".")
                      : slash == path ? memory_text("/")
                                      : memory_text("%.*s", (int)(slash - path), path);
    enum status status = OK;
    const int file = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* Some file systems cannot fsync a directory; nothing more can be done there. */
    if (file < 0 || (fsync(file) != 0 && errno != EINVAL))
        status = fail(BAD_IO, "cannot sync the directory %s to disk: %s", directory,
                      strerror(errno));
    if (file >= 0)
        close(file);
    memory_free(directory);
    return status;
}

/* A rename would replace a device, a pipe or the link /dev/stdout itself with a plain file. */
static enum status check_place(const char *path)
{
    static const char process[] = "/proc/";
    char target[sizeof process] = "";
    struct stat info;
    const bool is_stream =
        readlink(path, target, sizeof target - 1) > 0 && strcmp(target, process) == 0;
    if (!is_stream &&
        (stat(path, &info) != 0 || S_ISREG(info.st_mode) || S_ISDIR(info.st_mode)))
        return OK;
    return fail(BAD_USER,
                "%s: this is a device or a pipe, and cohort replaces only plain files; choose "
                "another file name",
                path);
}

/* Gives the file at `path` the second name `kept`, so that both names exist at every moment.
 * Without hard links, `path` is missing until the new file is renamed to it. */
static enum status keep_old(const char *path, const char *kept)
{
    char *name = atomic_file_temporary(kept);
    unlink(name);
    const bool linked = link(path, name) == 0;
    const bool done = rename(linked ? name : path, kept) == 0;
    const int reason = errno;
    unlink(name); /* rename keeps both names of one file */
    memory_free(name);
    return done ? OK : fail(BAD_IO, "cannot keep %s as %s: %s", path, kept, strerror(reason));
}

static enum status commit(struct atomic_file *draft, const char *path, const char *kept)
{
    enum status status = check_place(path);
    if (status == OK && fsync(draft->file) != 0)
        status = fail(BAD_IO,
                      "cannot write %s to disk: %s; free some space and run the same command "
                      "again",
                      path, strerror(errno));
    if (status == OK && kept != NULL && file_exists(path))
        status = keep_old(path, kept);
    if (status == OK && rename(draft->name, path) != 0)
        status = fail(BAD_IO, "cannot rename %s to %s: %s", draft->name, path, strerror(errno));
    if (status != OK) {
        atomic_file_abandon(draft);
        return status;
    }
    release(draft);
    return sync_parent(path);
}

enum status atomic_file_commit(struct atomic_file *draft, const char *path)
{
    return commit(draft, path, NULL);
}

static enum status write_all(int file, const char *bytes, size_t n_bytes, const char *path)
{
    for (size_t done = 0; done < n_bytes;) {
        ssize_t n = write(file, bytes + done, n_bytes - done);
        if (n < 0 && errno == EINTR)
            continue;
        const int reason = errno;
        if (n <= 0)
            return fail(BAD_IO,
                        "%s: writing stopped after %zu of %zu bytes: %s; %s%s and run the same "
                        "command again",
                        path, done, n_bytes, n < 0 ? strerror(reason) : "no bytes were written",
                        file_exists(path) ? "the previous file is intact; " : "",
                        n < 0 && reason == EFBIG ? "raise the limit on file sizes (ulimit -f)"
                                                 : "free some space");
        done += (size_t)n;
    }
    return OK;
}

enum status atomic_file_write_keeping(const char *path, const char *kept, const void *bytes,
                                      size_t n_bytes)
{
    struct atomic_file draft;
    TRY(atomic_file_begin(&draft, path));
    enum status status = write_all(draft.file, bytes, n_bytes, path);
    if (status != OK) {
        atomic_file_abandon(&draft);
        return status;
    }
    return commit(&draft, path, kept);
}

enum status atomic_file_write(const char *path, const void *bytes, size_t n_bytes)
{
    return atomic_file_write_keeping(path, NULL, bytes, n_bytes);
}
