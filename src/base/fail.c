/* A failure is returned as a status; the message that explains it is kept here until it is
 * printed. The first message wins: later failures are usually its consequences.
 *
 * fail_abort often runs because no memory is left. So it allocates nothing itself, and MPI, which
 * must tell the launcher to end the other ranks, gets some memory that was put aside. It does not
 * call the handlers of exit: HDF5's crashes without memory, and would hide the exit code. */
#include "base/fail.h"
#include "base/log.h"
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RESERVE = 4 << 20 };

static char sentence[2048];
static void *reserve;
static int last_status;

void fail_start(void)
{
    reserve = malloc(RESERVE); /* only addresses, until it is used */
}

enum status fail(enum status status, const char *format, ...)
{
    if (sentence[0] == '\0') {
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(sentence, sizeof sentence, format, arguments);
        va_end(arguments);
    }
    return status;
}

enum status fail_context(enum status status, const char *format, ...)
{
    char old[sizeof sentence];
    memcpy(old, sentence, sizeof old);
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (n >= 0 && (size_t)n < sizeof sentence)
        snprintf(sentence + n, sizeof sentence - (size_t)n, ": %s", old);
    return status;
}

const char *fail_sentence(void)
{
    return sentence;
}

void fail_clear(void)
{
    sentence[0] = '\0';
}

static void PRINTF(1, 2) print(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_print(format, arguments);
    va_end(arguments);
}

_Noreturn static void leave(void)
{
    _exit(last_status);
}

void fail_abort(enum status status, const char *format, ...)
{
    last_status = (int)status;
    char line[sizeof sentence];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    print("cohort: %s\n", line); /* at once, since other ranks may print too */
    free(reserve);
    reserve = NULL;
    fflush(stdout);
    int started = 0, finished = 0;
    MPI_Initialized(&started);
    MPI_Finalized(&finished);
    if (started && !finished) {
        atexit(leave); /* the last one is called first, should MPI call exit */
        MPI_Abort(MPI_COMM_WORLD, (int)status);
    }
    leave();
}
