/* The kernel's locks on whole files. They belong to the open file, so they go with the process
 * that holds them however it ends: a kill leaves nothing to clear up. */
#define _GNU_SOURCE /* locks that belong to the open file */
#include "lock.h"
#include "fail.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TRIES_A_SECOND = 50 };

int lock_wait(int file, int32_t seconds)
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

enum status lock_take(const char *path, int32_t seconds, int *file)
{
    *file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (*file < 0)
        return fail(BAD_IO, "%s: cannot be opened: %s", path, strerror(errno));
    const int reason = lock_wait(*file, seconds);
    if (reason == 0)
        return OK;
    close(*file);
    *file = -1;
    if (reason == EAGAIN)
        return OK;
    return fail(BAD_IO, "%s: cannot be locked: %s; choose a run= on another disk", path,
                strerror(reason));
}

bool lock_is_held(const char *path)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const bool held =
        file >= 0 && fcntl(file, F_OFD_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
    if (file >= 0)
        close(file);
    return held;
}
