/* Memory allocation that succeeds or ends the program with an error message. */
#ifndef COHORT_MEMORY_H
#define COHORT_MEMORY_H

#include "base/base.h"
#include <stdio.h>

/* n * size bytes, 64-byte aligned, zeroed; never NULL (n = 0 gives a pointer that may be
 * freed). */
void *memory_zeroed(size_t n, size_t size);

/* The same, uninitialized: debug builds fill it with NaN bytes, so that reading before writing
 * shows. */
void *memory_scratch(size_t n, size_t size);

/* Grows or shrinks an array from memory_zeroed, memory_scratch or memory_resize(NULL, ...). */
void *memory_resize(void *array, size_t n, size_t size);

char *memory_text(const char *format, ...) PRINTF(1, 2);
/* Adds to the end of a text of memory_text. */
void memory_append(char **text, const char *format, ...) PRINTF(2, 3);
void memory_free(void *array);

/* A stream whose text is in *text, of *n bytes, once it is closed; the text is freed with `free`. */
FILE *memory_stream(char **text, size_t *n);

#define NEW(type, n) ((type *)memory_zeroed((n), sizeof(type)))
#define NEW_SCRATCH(type, n) ((type *)memory_scratch((n), sizeof(type)))

/* Makes room for one more element at the end of a growing array. */
#define GROW(array, n, capacity)                                                               \
    do {                                                                                       \
        if ((n) == (capacity)) {                                                               \
            (capacity) = (capacity) ? 2 * (capacity) : 16;                                     \
            (array) = memory_resize((array), (capacity), sizeof *(array));                     \
        }                                                                                      \
    } while (0)

/* Peak memory of this process in bytes. */
size_t memory_peak(void);

#endif
