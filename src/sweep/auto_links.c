/* Links are relative, so that the directory can be moved, and made by rename, so that a name leads
 * to one run or to the other at any moment. */
#include "sweep/auto_links.h"
#include "base/fail.h"
#include "base/memory.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum status auto_links_make(const char *directory, const char *run, const char *up,
                            const char *name)
{
    char *to = memory_text("%s%s", up, run + strlen(directory) + 1);
    char *draft = memory_text("%s/models/.new", directory);
    unlink(draft);
    enum status status = OK;
    if (symlink(to, draft) != 0 || rename(draft, name) != 0)
        status = fail(BAD_IO, "%s: cannot make this link: %s", name, strerror(errno));
    memory_free(draft);
    memory_free(to);
    return status;
}

enum status auto_links_remove(const char *name)
{
    struct stat info;
    if (lstat(name, &info) == 0 && S_ISLNK(info.st_mode) && unlink(name) != 0)
        return fail(BAD_IO, "%s: cannot remove this link: %s", name, strerror(errno));
    return OK;
}
