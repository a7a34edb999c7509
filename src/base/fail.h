/* What went wrong, said once and in a sentence. */
#ifndef COHORT_FAIL_H
#define COHORT_FAIL_H

#include "base/base.h"

/* Records a sentence (what was found, where, what was expected, what to do) and returns
 * `status`, so that `return fail(BAD_USER, "...")` reads as it should. Nothing is printed:
 * comm_agree and main print the first sentence recorded, once. */
enum status fail(enum status status, const char *format, ...) PRINTF(2, 3);

/* Adds "context: " before the recorded sentence and returns the status unchanged. */
enum status fail_context(enum status status, const char *format, ...) PRINTF(2, 3);

/* The recorded sentence, "" if there is none. */
const char *fail_sentence(void);
void fail_clear(void);

/* Prints one line and ends every rank: for the machine's failures (memory, MPI) and for our
 * bugs. */
_Noreturn void fail_abort(enum status status, const char *format, ...) PRINTF(2, 3);

/* States what must be true unless cohort itself is wrong; checked in every build. */
#define ENSURE(condition)                                                                      \
    do {                                                                                       \
        if (!(condition))                                                                      \
            fail_abort(OUR_BUG, "%s:%d: this should always hold: %s", __FILE__, __LINE__,      \
                       #condition);                                                            \
    } while (0)

#endif
