/* Links in the directory of `cohort auto`: names for runs that have long ones. */
#ifndef COHORT_AUTO_LINKS_H
#define COHORT_AUTO_LINKS_H

#include "base/base.h"

/* Rank 0: `name` leads to `run`; both are in `directory`, and `up` leads there from the place of
 * `name`: "" or "../". */
CHECKED enum status auto_links_make(const char *directory, const char *run, const char *up,
                                    const char *name);

/* Rank 0: removes a link of this name, so that nothing is written to where it leads. */
CHECKED enum status auto_links_remove(const char *name);

#endif
