/* Talk goes to stderr and only one rank talks, so that stdout carries results and nothing else.
 */
#include "log.h"
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static bool muted;
static int live_columns; /* width of the unfinished line on the terminal */

void log_mute(bool mute)
{
    muted = mute;
}

bool log_muted(void)
{
    return muted;
}

bool log_is_live(void)
{
    return !muted && isatty(STDERR_FILENO);
}

static void wipe_live_line(void)
{
    if (live_columns > 0)
        fprintf(stderr, "\r%*s\r", live_columns, "");
    live_columns = 0;
}

static void say(const char *prefix, const char *format, va_list arguments)
{
    if (muted)
        return;
    wipe_live_line();
    fputs(prefix, stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    fflush(stderr);
}

void log_say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say("", format, arguments);
    va_end(arguments);
}

void log_warn(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say("warning: ", format, arguments);
    va_end(arguments);
}

void log_live(const char *format, ...)
{
    if (!log_is_live())
        return;
    wipe_live_line();
    va_list arguments;
    va_start(arguments, format);
    live_columns = vfprintf(stderr, format, arguments);
    va_end(arguments);
    fflush(stderr);
}

double log_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
