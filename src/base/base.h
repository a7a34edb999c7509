/* Types and macros that every file uses. */
#ifndef COHORT_BASE_H
#define COHORT_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The number type of all models. `make REAL=double` builds a second program for gradient
 * checks. */
#ifdef COHORT_REAL_DOUBLE
typedef double real;
#define REAL_NAME "double"
#else
typedef float real;
#define REAL_NAME "float"
#endif

/* Rows of tensors are padded to WIDTH numbers: one AVX-512 register of floats, two AVX2
 * ones. */
enum { WIDTH = 16 };

/* How a function ends; also the exit code of the program. */
enum status {
    OK = 0,
    BAD_USER = 1,  /* the user's mistake: a setting, a value, a path */
    BAD_USAGE = 2, /* an invalid command line */
    BAD_DATA = 3,  /* a damaged or unreadable file */
    DIVERGED = 4,  /* training diverged: infinite or NaN */
    OUR_BUG = 70,  /* a bug in cohort */
    BAD_IO = 74,   /* disk full, permission, short write */
    STOPPED = 85,  /* saved after a signal; the same command continues the run */
};

#define CHECKED __attribute__((warn_unused_result))
#define PRINTF(text, first) __attribute__((format(printf, text, first)))

/* Passes a failure on to the caller. */
#define TRY(call)                                                                              \
    do {                                                                                       \
        enum status try_status = (call);                                                       \
        if (try_status != OK)                                                                  \
            return try_status;                                                                 \
    } while (0)

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static inline size_t size_min(size_t a, size_t b)
{
    return a < b ? a : b;
}
static inline size_t size_max(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* The smallest multiple of WIDTH that holds n numbers. */
static inline size_t size_padded(size_t n)
{
    return (n + WIDTH - 1) / WIDTH * WIDTH;
}

/* The first of n elements that worker w of n_workers owns, when they are split evenly in
 * order. */
static inline size_t size_cut(size_t n, size_t w, size_t n_workers)
{
    return (size_t)((unsigned __int128)n * w / n_workers);
}

#endif
