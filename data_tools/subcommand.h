/* Commands whose first argument selects a row of a table. */
#ifndef COHORT_SUBCOMMAND_H
#define COHORT_SUBCOMMAND_H

#include "base/base.h"
#include <stdio.h>

/* The first member of each row. `takes` lists its options, as " a b c ". */
struct subcommand {
    const char *name, *help, *takes;
};

struct subcommands {
    const char *command, *noun; /* "import", "format" */
    const char *takes;          /* options of every row */
    const void *rows;
    size_t n, stride;
};

/* Finds the row called `name`; fails and suggests the nearest one if unknown. */
CHECKED enum status subcommands_find(const struct subcommands *menu, const char *name,
                                     const void **row);

/* Rejects options that the row does not use, instead of ignoring them. */
CHECKED enum status subcommands_check_flags(const struct subcommands *menu,
                                            const struct subcommand *entry, int argc,
                                            char **argv);

/* Checks that a data set can be written there, before any work is done. */
CHECKED enum status subcommands_check_output(const struct subcommands *menu, const char *path);

void subcommands_print(const struct subcommands *menu, FILE *out, bool markdown);

#endif
