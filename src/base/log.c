/* Messages go to stderr, from one rank only, so that stdout carries nothing but results.
 *
 * Names of students, items and files are untrusted. An escape sequence in a name must not reach
 * the terminal, where it could hide lines, rename the window or worse. So all output to stdout
 * and stderr passes through here, and control characters become text: \u001b for an escape.
 * JSON is already escaped. Files keep every byte. */
#define _GNU_SOURCE /* fopencookie */
#include "base/log.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool muted;
static int live_columns; /* width of the unfinished line on the terminal */

/* Position of a stream within a UTF-8 character. */
struct place {
    int n_left;   /* bytes still to come */
    bool is_held; /* its first byte is 0xc2: may be a control character */
};

static void show(FILE *out, struct place *place, unsigned char byte)
{
    const bool follows = place->n_left > 0 && byte >> 6 == 2, was_held = place->is_held;
    place->is_held = false;
    if (was_held && follows && byte < 0xa0) {
        fprintf(out, "\\u%04x", byte);
        place->n_left = 0;
        return;
    }
    if (was_held)
        fputc(0xc2, out);
    place->n_left = follows        ? place->n_left - 1
                    : byte >= 0xf0 ? 3
                    : byte >= 0xe0 ? 2
                    : byte >= 0xc2 ? 1
                                   : 0;
    place->is_held = !follows && byte == 0xc2;
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f)
        fprintf(out, "\\u%04x", byte);
    else if (!follows && byte >= 0x80 && byte < 0xa0)
        fprintf(out, "\\x%02x", byte);
    else if (!place->is_held)
        fputc(byte, out);
}

static char *shown(struct place *place, const char *bytes, size_t n, size_t *n_shown)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, n_shown);
    for (size_t i = 0; out != NULL && i < n; i++)
        show(out, place, (unsigned char)bytes[i]);
    return out != NULL && fclose(out) == 0 ? text : NULL;
}

char *log_shown(const char *text)
{
    struct place place = {0};
    size_t n = 0;
    return shown(&place, text, strlen(text), &n);
}

void log_shown_free(char *text)
{
    free(text);
}

static ssize_t write_shown(void *arg, const char *bytes, size_t n)
{
    size_t n_shown = 0;
    char *text = shown(arg, bytes, n, &n_shown);
    size_t done = 0;
    for (ssize_t got = 1; text != NULL && got > 0 && done < n_shown; done += (size_t)got)
        if ((got = write(STDOUT_FILENO, text + done, n_shown - done)) < 0)
            break;
    const bool written = text != NULL && done == n_shown;
    free(text);
    return written ? (ssize_t)n : 0;
}

void log_start(void)
{
    static struct place place;
    FILE *guarded = fopencookie(&place, "w", (cookie_io_functions_t){.write = write_shown});
    if (guarded == NULL)
        return;
    if (isatty(STDOUT_FILENO))
        setvbuf(guarded, NULL, _IOLBF, 0);
    fflush(stdout);
    stdout = guarded;
}

int log_print(const char *format, va_list arguments)
{
    struct place place = {0};
    char *line = NULL;
    const int n = vasprintf(&line, format, arguments);
    size_t n_shown = 0;
    char *text = n >= 0 ? shown(&place, line, (size_t)n, &n_shown) : NULL;
    if (text != NULL)
        fwrite(text, 1, n_shown, stderr);
    if (n >= 0)
        free(line);
    free(text);
    return (int)n_shown;
}

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
    log_print(format, arguments);
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
    live_columns = log_print(format, arguments);
    va_end(arguments);
    fflush(stderr);
}

double log_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
