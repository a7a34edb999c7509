/* The kernel's locks on entire files. They belong to the open file, so they vanish with the
 * process that holds them, however it ends: a killed job leaves nothing to clean up. */
#define _GNU_SOURCE /* locks that belong to the open file */
#include "base/file_lock.h"
#include "base/fail.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { TRIES_A_SECOND = 50 };

int file_lock_wait(int file, int32_t seconds)
{
    const struct timespec moment = {.tv_nsec = 1000000000 / TRIES_A_SECOND};
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    for (int64_t n = 0; fcntl(file, F_OFD_SETLK, &whole) != 0; n++) {
        if (errno != EAGAIN && errno != EACCES && errno != EINTR)
            return errno;
        if (seconds != LOCK_FOREVER && n >= (int64_t)seconds * TRIES_A_SECOND)
            return EAGAIN;
        nanosleep(&moment, NULL);
    }
    return 0;
}

/* The holder of a lock writes into the file, so it must be a lock file only: not a link to
 * another file, and not a pipe, which would block. */
static int open_lock(const char *path, int flags)
{
    const int file = open(path, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    struct stat info;
    if (file < 0 || (fstat(file, &info) == 0 && S_ISREG(info.st_mode) && info.st_nlink == 1))
        return file;
    close(file);
    errno = EMLINK;
    return -1;
}

enum status file_lock_take(const char *path, int32_t seconds, int *file)
{
    *file = open_lock(path, O_RDWR | O_CREAT);
    if (*file < 0 && (errno == ELOOP || errno == EMLINK || errno == ENXIO))
        return fail(BAD_USER,
                    "%s: this lock file is a link, a pipe, or has a second hard link; expected "
                    "a plain file; remove it and run the same command again",
                    path);
    if (*file < 0)
        return fail(BAD_IO, "cannot open %s: %s", path, strerror(errno));
    const int reason = file_lock_wait(*file, seconds);
    if (reason == 0)
        return OK;
    close(*file);
    *file = -1;
    if (reason == EAGAIN)
        return OK;
    return fail(BAD_IO, "cannot lock %s: %s; choose a run= on another file system", path,
                strerror(reason));
}

bool file_lock_is_held(const char *path)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const int file = open_lock(path, O_RDONLY);
    const bool held =
        file >= 0 && fcntl(file, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
    if (file >= 0)
        close(file);
    return held;
}
