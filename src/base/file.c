/* Plain files and directories. Nothing here blocks: pipes, sockets and devices are rejected
 * before they are read. */
#include "base/file.h"
#include "base/fail.h"
#include "base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Opening a pipe would wait for a writer, and some devices never end. */
static FILE *open_plain(const char *path)
{
    const int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat info;
    if (file < 0)
        return NULL;
    if (fstat(file, &info) != 0 || S_ISREG(info.st_mode) || S_ISDIR(info.st_mode))
        return fdopen(file, "rb");
    close(file);
    errno = ESPIPE;
    return NULL;
}

size_t file_peek(const char *path, void *bytes, size_t n)
{
    FILE *file = open_plain(path);
    const size_t n_read = file != NULL ? fread(bytes, 1, n, file) : 0;
    if (file != NULL)
        fclose(file);
    return n_read;
}

enum status file_read(const char *path, char **bytes, size_t *n_bytes)
{
    *bytes = NULL;
    *n_bytes = 0;
    FILE *file = open_plain(path);
    if (file == NULL && (errno == ESPIPE || errno == ENXIO))
        return fail(BAD_USER, "%s: this is a device, a pipe or a socket; expected a plain file",
                    path);
    if (file == NULL)
        return fail(errno == ENOENT ? BAD_USER : BAD_IO, "cannot open %s: %s", path,
                    strerror(errno));
    size_t capacity = 1 << 16, n = 0;
    char *text = memory_scratch(capacity, 1);
    for (size_t got; (got = fread(text + n, 1, capacity - n - 1, file)) > 0;) {
        n += got;
        if (n + 1 == capacity)
            text = memory_resize(text, capacity *= 2, 1);
    }
    const int reason = ferror(file) ? errno : 0;
    fclose(file);
    if (reason != 0) {
        memory_free(text);
        return fail(reason == EISDIR ? BAD_USER : BAD_IO, "cannot read %s: %s", path,
                    strerror(reason));
    }
    text[n] = '\0';
    *bytes = text;
    *n_bytes = n;
    return OK;
}

enum status file_make_directory(const char *path)
{
    char *part = memory_text("%s", path);
    enum status status = OK;
    for (char *p = part + (part[0] == '/'); status == OK; p++) {
        if (*p != '/' && *p != '\0')
            continue;
        const char end = *p;
        *p = '\0';
        struct stat info;
        const int reason = mkdir(part, 0777) == 0 ? 0 : errno;
        if (reason != 0 && !(stat(part, &info) == 0 && S_ISDIR(info.st_mode)))
            status = reason == EEXIST
                         ? fail(BAD_USER,
                                "cannot create the directory %s: a file of this name exists; "
                                "choose another name, or remove the file",
                                part)
                         : fail(reason == ENOTDIR ? BAD_USER : BAD_IO,
                                "cannot create the directory %s: %s", part, strerror(reason));
        *p = end;
        if (end == '\0')
            break;
    }
    memory_free(part);
    return status;
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

bool file_is_plain(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISREG(info.st_mode);
}

bool file_is_directory(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

bool file_is_same(const char *a, const char *b)
{
    struct stat x, y;
    return strcmp(a, b) == 0 || (stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
                                 x.st_ino == y.st_ino);
}

bool file_is_in(const char *directory, const char *name)
{
    char *path = memory_text("%s/%s", directory, name);
    const bool there = file_exists(path);
    memory_free(path);
    return there;
}

bool file_ends_in(const char *path, const char *ending)
{
    const size_t n = strlen(path), m = strlen(ending);
    return n > m && strcmp(path + n - m, ending) == 0;
}
