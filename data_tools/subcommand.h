/* layer 6 (people): commands whose first word chooses a row of a table. */
#ifndef COHORT_MENU_H
#define COHORT_MENU_H

#include "base/base.h"
#include <stdio.h>

/* The first member of each row. `takes` lists the flags that make sense for it, as " a b c ".
 */
struct menu_entry {
    const char *name, *help, *takes;
};

struct menu {
    const char *command, *noun; /* "import", "format" */
    const char *takes;          /* flags that make sense for every row */
    const void *rows;
    size_t n, stride;
};

/* The row called `name`; an unknown one is a failure that names the nearest. */
CHECKED enum status menu_find(const struct menu *menu, const char *name, const void **row);

/* Refuses flags that a row has no use for, rather than ignoring them. */
CHECKED enum status menu_check_flags(const struct menu *menu, const struct menu_entry *entry,
                                     int argc, char **argv);

/* Refuses a place where no data set can be written, before any work is done. */
CHECKED enum status menu_check_output(const struct menu *menu, const char *path);

void menu_print(const struct menu *menu, FILE *out, bool markdown);

#endif
