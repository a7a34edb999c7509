/* A failure is returned as a status; the message that explains it is kept here until it is
 * printed. The first message wins: later failures are usually its consequences. */
#include "base/fail.h"
#include "base/log.h"
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char sentence[2048];

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

void fail_abort(enum status status, const char *format, ...)
{
    fputs("cohort: ", stderr);
    va_list arguments;
    va_start(arguments, format);
    log_print(format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    fflush(stderr);
    int started = 0, finished = 0;
    MPI_Initialized(&started);
    MPI_Finalized(&finished);
    if (started && !finished)
        MPI_Abort(MPI_COMM_WORLD, (int)status);
    exit((int)status);
}
