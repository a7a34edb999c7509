/* Talk on stderr, from one rank only. */
#ifndef COHORT_LOG_H
#define COHORT_LOG_H

#include "base/base.h"
#include <stdarg.h>

/* From now on, stdout shows control characters as text, as all lines below do; once per
 * process.
 */
void log_start(void);

/* To stderr, without an end of line; how many bytes that were. */
int log_print(const char *format, va_list arguments);

/* Which rank speaks: log_mute(true) on every rank but the first. */
void log_mute(bool mute);
bool log_muted(void);

/* A line of talk on stderr. Results go to stdout by printf, and only where !log_muted(). */
void log_say(const char *format, ...) PRINTF(1, 2);

/* A line that begins with "warning: ". */
void log_warn(const char *format, ...) PRINTF(1, 2);

/* A line that is overwritten by the next one on a terminal and left out elsewhere; log_say ends
 * it. */
void log_live(const char *format, ...) PRINTF(1, 2);
bool log_is_live(void);

/* Seconds since some fixed moment. */
double log_clock(void);

/* A text as it is shown, control characters as text; NULL: out of memory. */
char *log_shown(const char *text);
void log_shown_free(char *text);

#endif
