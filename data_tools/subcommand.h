/* Commands whose first word chooses a row of a table. */
#ifndef COHORT_SUBCOMMAND_H
#define COHORT_SUBCOMMAND_H

#include "base/base.h"
#include <stdio.h>

/* The first member of each row. `takes` lists the flags that make sense for it, as " a b c ".
 */
struct subcommand {
    const char *name, *help, *takes;
};

struct subcommands {
    const char *command, *noun; /* "import", "format" */
    const char *takes;          /* flags that make sense for every row */
    const void *rows;
    size_t n, stride;
};

/* The row called `name`; an unknown one is a failure that names the nearest. */
CHECKED enum status subcommands_find(const struct subcommands *menu, const char *name,
                                     const void **row);

/* Refuses flags that a row has no use for, rather than ignoring them. */
CHECKED enum status subcommands_check_flags(const struct subcommands *menu,
                                            const struct subcommand *entry, int argc,
                                            char **argv);

/* Refuses a place where no data set can be written, before any work is done. */
CHECKED enum status subcommands_check_output(const struct subcommands *menu, const char *path);

void subcommands_print(const struct subcommands *menu, FILE *out, bool markdown);

#endif
