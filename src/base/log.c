/* Messages go to stderr, from one rank only, so that stdout carries nothing but results.
 *
 * Names of students, items and files are untrusted. An escape sequence in a name must not reach
 * the terminal, where it could hide lines, rename the window or worse. So all output to stdout
 * and stderr passes through here, and control characters become text: \u001b for an escape, \t for
 * a tab. Only on stdout, where tables of CSV go, a tab stays. JSON is already escaped. Files keep
 * every byte.
 *
 * Progress is one line about what is being done. On a terminal the next line overwrites it;
 * elsewhere (a log) a plain line appears once nothing was printed for half a minute. A thread
 * looks at the clock, since a single step of a large model may take longer than that. It does
 * nothing else, and sees no signals. */
#define _GNU_SOURCE /* fopencookie */
#include "base/log.h"
#include "base/terminal.h"
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static bool muted;

#define REFRESH 0.1 /* seconds: a terminal shows no more lines than that */
#define STALE 5     /* after which a terminal shows for how long nothing has changed */
#define SILENCE 30  /* without a line in a log, at most */

/* What is being done, for the thread too. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    size_t columns;                /* of the terminal; 0: there is none */
    size_t shown;                  /* width of the unfinished line on it */
    char text[512];                /* "": nothing */
    double changed, drawn, spoken; /* points in time: of the text, of the line, of any line */
    bool has_thread;
} live;

/* Position of a stream within a UTF-8 character. */
struct place {
    int n_left;      /* bytes still to come */
    bool is_held;    /* its first byte is 0xc2: may be a control character */
    bool keeps_tabs; /* the stream is stdout */
};

enum { MOST_SHOWN = 8 }; /* bytes that one byte becomes, with a byte held before it */

/* Returns the number of bytes written to `out`. */
static size_t show(char *out, struct place *place, unsigned char byte)
{
    const bool follows = place->n_left > 0 && byte >> 6 == 2, was_held = place->is_held;
    size_t n = 0;
    place->is_held = false;
    if (was_held && follows && byte < 0xa0) {
        place->n_left = 0;
        return (size_t)snprintf(out, MOST_SHOWN, "\\u%04x", byte);
    }
    if (was_held)
        out[n++] = '\xc2';
    place->n_left = follows        ? place->n_left - 1
                    : byte >= 0xf0 ? 3
                    : byte >= 0xe0 ? 2
                    : byte >= 0xc2 ? 1
                                   : 0;
    place->is_held = !follows && byte == 0xc2;
    if (byte == '\t' && !place->keeps_tabs)
        n += (size_t)snprintf(out + n, MOST_SHOWN - n, "\\t");
    else if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f)
        n += (size_t)snprintf(out + n, MOST_SHOWN - n, "\\u%04x", byte);
    else if (!follows && byte >= 0x80 && byte < 0xa0)
        n += (size_t)snprintf(out + n, MOST_SHOWN - n, "\\x%02x", byte);
    else if (!place->is_held)
        out[n++] = (char)byte;
    return n;
}

/* Writes what is shown of some bytes, without memory of its own. */
static bool write_all(int descriptor, struct place *place, const char *bytes, size_t n)
{
    char part[4096];
    for (size_t i = 0, n_part = 0; i < n; i++) {
        n_part += show(part + n_part, place, (unsigned char)bytes[i]);
        if (i + 1 < n && n_part + MOST_SHOWN <= sizeof part)
            continue;
        for (size_t done = 0; done < n_part;) {
            const ssize_t got = write(descriptor, part + done, n_part - done);
            if (got <= 0)
                return false;
            done += (size_t)got;
        }
        n_part = 0;
    }
    return true;
}

char *log_shown(const char *text)
{
    struct place place = {0};
    char *shown = malloc(MOST_SHOWN * strlen(text) + 1), *end = shown;
    for (; shown != NULL && *text != '\0'; text++)
        end += show(end, &place, (unsigned char)*text);
    if (shown != NULL)
        *end = '\0';
    return shown;
}

void log_shown_free(char *text)
{
    free(text);
}

/* With the lock held. */
static void wipe_live_line(void)
{
    if (live.shown > 0)
        fprintf(stderr, "\r%*s\r", (int)live.shown, "");
    live.shown = 0;
}

static ssize_t write_shown(void *arg, const char *bytes, size_t n)
{
    const struct timespec moment = {.tv_nsec = 20000000};
    pthread_mutex_lock(&lock);
    const bool was_live = live.shown > 0;
    wipe_live_line();
    fflush(stderr);
    pthread_mutex_unlock(&lock);
    if (was_live && !isatty(STDERR_FILENO)) /* mpirun passes stdout on separately */
        nanosleep(&moment, NULL);
    return write_all(STDOUT_FILENO, arg, bytes, n) ? (ssize_t)n : 0;
}

void log_start(void)
{
    static struct place place = {.keeps_tabs = true};
    live.columns = terminal_columns();
    live.spoken = log_clock();
    FILE *guarded = fopencookie(&place, "w", (cookie_io_functions_t){.write = write_shown});
    if (guarded == NULL)
        return;
    if (isatty(STDOUT_FILENO))
        setvbuf(guarded, NULL, _IOLBF, 0);
    fflush(stdout);
    stdout = guarded;
}

void log_print(const char *format, va_list arguments)
{
    struct place place = {0};
    char line[4096], *longer = NULL;
    va_list again;
    va_copy(again, arguments);
    int n = vsnprintf(line, sizeof line, format, arguments);
    if (n >= (int)sizeof line && (n = vasprintf(&longer, format, again)) < 0) {
        longer = NULL;
        n = sizeof line - 1;
    }
    va_end(again);
    fflush(stderr);
    if (n > 0)
        write_all(STDERR_FILENO, &place, longer != NULL ? longer : line, (size_t)n);
    free(longer);
}

void log_mute(bool mute)
{
    muted = mute;
}

bool log_muted(void)
{
    return muted;
}

static void say(const char *prefix, const char *format, va_list arguments)
{
    if (muted)
        return;
    pthread_mutex_lock(&lock);
    wipe_live_line();
    live.text[0] = '\0';
    live.spoken = log_clock();
    fputs(prefix, stderr);
    log_print(format, arguments);
    fputc('\n', stderr);
    fflush(stderr);
    pthread_mutex_unlock(&lock);
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

/* With the lock held: the line of progress, cut to the width of a terminal. `since`: seconds for
 * which it has been the same, if that is worth a word. */
static void draw(double now, double since)
{
    char line[sizeof live.text + 64];
    int n = snprintf(line, sizeof line, "%s", live.text);
    if (since > 0) {
        char time[64];
        terminal_duration(since, time, sizeof time);
        n += snprintf(line + n, sizeof line - (size_t)n, " (for %s)", time);
    }
    wipe_live_line();
    if (live.columns > 0) {
        size_t end = size_min((size_t)n, live.columns - 1);
        while (end > 0 && end < (size_t)n && ((unsigned char)line[end] & 0xc0) == 0x80)
            end--;
        line[end] = '\0';
        live.shown = end;
    }
    fprintf(stderr, live.columns > 0 ? "%s" : "%s\n", line);
    fflush(stderr);
    live.drawn = now;
    live.spoken = now;
}

static void *watch(void *arg)
{
    const struct timespec second = {.tv_sec = 1};
    (void)arg;
    for (;;) {
        nanosleep(&second, NULL);
        pthread_mutex_lock(&lock);
        const double now = log_clock();
        const bool due =
            live.columns > 0 ? now - live.changed >= STALE : now - live.spoken >= SILENCE;
        if (live.text[0] != '\0' && due)
            draw(now, now - live.changed >= STALE ? now - live.changed : 0);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

/* The thread ends with the process. It blocks all signals, so that they wake the main thread. */
static void start_thread(void)
{
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    live.has_thread = true;
    if (pthread_create(&thread, NULL, watch, NULL) == 0)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void log_live(const char *format, ...)
{
    if (muted)
        return;
    char *line = NULL, *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    const int n = vasprintf(&line, format, arguments);
    va_end(arguments);
    if (n >= 0) {
        text = log_shown(line);
        free(line);
    }
    if (text == NULL)
        return;
    pthread_mutex_lock(&lock);
    const double now = log_clock();
    snprintf(live.text, sizeof live.text, "%s", text);
    live.changed = now;
    if (live.columns > 0 ? now - live.drawn >= REFRESH || live.shown == 0
                         : now - live.spoken >= SILENCE)
        draw(now, 0);
    if (!live.has_thread)
        start_thread();
    pthread_mutex_unlock(&lock);
    free(text);
}

void log_finish(void)
{
    pthread_mutex_lock(&lock);
    wipe_live_line();
    live.text[0] = '\0';
    fflush(stderr);
    pthread_mutex_unlock(&lock);
}

double log_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
