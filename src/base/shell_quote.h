/* Words of commands that people paste into a shell. */
#ifndef COHORT_SHELL_QUOTE_H
#define COHORT_SHELL_QUOTE_H

#include "base/base.h"
#include <stdio.h>

/* Prints a word, in quotes where a POSIX shell would read it as something else. */
void shell_quote(FILE *out, const char *word);

/* The same as a text, from a format for the whole word. Caller frees. */
char *shell_quote_text(const char *format, ...) PRINTF(1, 2);

#endif
