/* Error messages: recorded where the error happens, printed once. */
#ifndef COHORT_FAIL_H
#define COHORT_FAIL_H

#include "base/base.h"

/* Records a message (what is wrong, where, what was expected, what to do) and returns `status`,
 * for `return fail(BAD_USER, "...")`. Prints nothing: comm_agree shares the first recorded
 * message, and main prints it once. */
enum status fail(enum status status, const char *format, ...) PRINTF(2, 3);

/* Puts "context: " before the recorded message and returns the status unchanged. */
enum status fail_context(enum status status, const char *format, ...) PRINTF(2, 3);

/* The recorded message, "" if there is none. */
const char *fail_sentence(void);
void fail_clear(void);

/* At the start of the program: puts memory aside for fail_abort. */
void fail_start(void);

/* Prints one line and ends every rank: for failures of the machine (memory, MPI) and for
 * bugs. */
_Noreturn void fail_abort(enum status status, const char *format, ...) PRINTF(2, 3);

/* States what must be true unless cohort has a bug; checked in every build. */
#define ENSURE(condition)                                                                      \
    do {                                                                                       \
        if (!(condition))                                                                      \
            fail_abort(OUR_BUG, "%s:%d: bug in cohort: this should always hold: %s", __FILE__, \
                       __LINE__, #condition);                                                  \
    } while (0)

#endif
