/* Messages on stderr, from one rank only. */
#ifndef COHORT_LOG_H
#define COHORT_LOG_H

#include "base/base.h"
#include <stdarg.h>

/* From now on stdout shows control characters as text, like all functions below. Once per
 * process. */
void log_start(void);

/* Prints to stderr without a newline; up to 4 KB without allocating memory. */
void log_print(const char *format, va_list arguments);

/* Only one rank prints: log_mute(true) on every rank but the first. */
void log_mute(bool mute);
bool log_muted(void);

/* A line on stderr. Results go to stdout by printf, and only if !log_muted(). */
void log_say(const char *format, ...) PRINTF(1, 2);

/* A line that begins with "warning: ". */
void log_warn(const char *format, ...) PRINTF(1, 2);

/* What is being done. A terminal shows it as a line that the next one overwrites; elsewhere it is
 * printed if nothing was for half a minute, and so is how long it takes. Cheap enough to call
 * often, as in every step. log_say ends it, and so does log_finish at the end of a process. */
void log_live(const char *format, ...) PRINTF(1, 2);
void log_finish(void);

/* Seconds since some fixed moment. */
double log_clock(void);

/* A copy of the text with control characters shown as text; NULL: out of memory. */
char *log_shown(const char *text);
void log_shown_free(char *text);

#endif
