/* tests: run functions that end the program, in a child process. */
#ifndef COHORT_FORKED_H
#define COHORT_FORKED_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* The exit code of a child that calls `deed` (0 if it returns, -1 if a signal ended it);
 * `words` receives its stderr. Do not use after MPI has started: the child could not use
 * MPI. */
static inline int forked_end(void (*deed)(void), char *words, size_t size)
{
    int ends[2];
    fflush(NULL);
    if (pipe(ends) != 0)
        abort();
    const pid_t child = fork();
    if (child < 0)
        abort();
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        deed();
        _exit(0);
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t got; n + 1 < size && (got = read(ends[0], words + n, size - n - 1)) > 0;)
        n += (size_t)got;
    words[n] = '\0';
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

#endif
