/* Commands whose first word selects a row of a table. */
#ifndef COHORT_SUBCOMMAND_H
#define COHORT_SUBCOMMAND_H

#include "base/base.h"

/* The first member of each row. `takes` lists the options it accepts, as " a b c ". */
struct subcommand {
    const char *name, *help, *takes;
};

struct subcommands {
    const char *command, *noun; /* "import", "format" */
    const char *takes;          /* options that every row accepts */
    const void *rows;
    size_t n, stride;
};

/* The row called `name`; for an unknown name the failure suggests the nearest. */
CHECKED enum status subcommands_find(const struct subcommands *menu, const char *name,
                                     const void **row);

/* Refuses options that a row does not accept, rather than ignoring them. */
CHECKED enum status subcommands_check_flags(const struct subcommands *menu,
                                            const struct subcommand *entry, int argc,
                                            char **argv);

/* Refuses a path where no data set can be written, before any work is done. */
CHECKED enum status subcommands_check_output(const struct subcommands *menu, const char *path);

/* Notes that a data set took the place of an earlier file. */
void subcommands_say_replaced(const char *path);

/* Adds a section with all rows to a page. */
struct manual;
void subcommands_print(const struct subcommands *menu, struct manual *manual);

#endif
