/* Is the user watching? A process asks whether its stderr is a terminal. Under mpirun it is a
 * pipe to mpirun, which passes on what it reads as it comes, so the question is whether mpirun's
 * own stderr is a terminal. Linux tells:
 *
 *     terminal <-- mpirun <-- (proxy <--) cohort        /proc/PARENT/comm, /proc/PARENT/fd/2
 *
 * The parents are followed through the helpers of launchers up to mpirun itself. A shell in
 * between may have redirected anything, so it ends the search. Elsewhere (srun, rank 0 on
 * another node) the answer is no, and progress is printed as plain lines. */
#include "base/terminal.h"
#include "base/launcher.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { USUAL = 80 };

static bool is_among(const char *name, const char *const *names)
{
    while (*names != NULL && strcmp(name, *names) != 0)
        names++;
    return *names != NULL;
}

static size_t columns_of(int file)
{
    struct winsize size = {0};
    if (file < 0 || !isatty(file))
        return 0;
    return ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : USUAL;
}

/* The name and the parent of a process; false if it cannot be read. */
static bool look_up(long process, char name[64], long *parent)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/stat", process);
    FILE *file = fopen(path, "r");
    const bool read = file != NULL && fscanf(file, "%*d (%63[^)]) %*c %ld", name, parent) == 2;
    if (file != NULL)
        fclose(file);
    return read;
}

/* The terminal that the launcher's stderr is. */
static size_t columns_of_launcher(void)
{
    static const char *const launchers[] = {"mpirun",  "mpiexec",       "orterun",
                                            "prterun", "mpiexec.hydra", NULL};
    static const char *const helpers[] = {"orted", "prted", "prte", "hydra_pmi_proxy", NULL};
    enum { FAR = 4 };
    struct stat pipe;
    if (fstat(STDERR_FILENO, &pipe) != 0 || S_ISREG(pipe.st_mode))
        return 0;
    long process = (long)getppid(), parent = 0;
    char name[64];
    for (int step = 0; step < FAR && look_up(process, name, &parent); step++) {
        if (is_among(name, launchers)) {
            char path[64];
            snprintf(path, sizeof path, "/proc/%ld/fd/%d", process, STDERR_FILENO);
            struct stat info;
            if (stat(path, &info) != 0 || !S_ISCHR(info.st_mode))
                return 0;
            const int file = open(path, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
            const size_t columns = columns_of(file);
            if (file >= 0)
                close(file);
            return columns;
        }
        if (!is_among(name, helpers))
            return 0;
        process = parent;
    }
    return 0;
}

size_t terminal_columns(void)
{
    const char *wish = getenv("COHORT_LIVE"), *term = getenv("TERM");
    const size_t own = columns_of(STDERR_FILENO);
    if (wish != NULL && strcmp(wish, "yes") == 0)
        return own > 0 ? own : USUAL;
    if ((wish != NULL && strcmp(wish, "no") == 0) ||
        (term != NULL && strcmp(term, "dumb") == 0))
        return 0;
    return own > 0 || launcher_look().variable == NULL ? own : columns_of_launcher();
}

void terminal_duration(double seconds, char *text, size_t size)
{
    const long minutes = (long)(seconds / 60);
    if (seconds < 100)
        snprintf(text, size, "%.*f s", seconds < 10 ? 1 : 0, seconds);
    else if (minutes < 100)
        snprintf(text, size, "%ld min", minutes);
    else
        snprintf(text, size, "%ld h %ld min", minutes / 60, minutes % 60);
}
