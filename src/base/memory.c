/* Every array is 64-byte aligned, for vector loads and to share no cache line. A 64-byte header
 * with the size precedes it, so that resizing keeps the alignment. */
#include "base/memory.h"
#include "base/fail.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20 };

struct header {
    size_t n_bytes;
    char padding[ALIGNMENT - sizeof(size_t)];
};

static struct header *header_of(void *array)
{
    return (struct header *)array - 1;
}

static void *allocate(size_t n, size_t size)
{
    size_t n_bytes = 0;
    if (__builtin_mul_overflow(n, size, &n_bytes) || n_bytes > SIZE_MAX / 2)
        fail_abort(BAD_IO, "out of memory: %zu elements of %zu bytes were requested", n, size);
    /* Tables of weights are read at random: huge pages avoid most TLB misses. */
    const size_t alignment = n_bytes >= HUGE_PAGE / 4 ? HUGE_PAGE : ALIGNMENT;
    const size_t total =
        (sizeof(struct header) + n_bytes + alignment - 1) / alignment * alignment;
    struct header *header = aligned_alloc(alignment, total);
    if (header == NULL)
        fail_abort(BAD_IO,
                   "out of memory: %.1f MB more were requested; use more nodes, or fewer "
                   "ranks per node",
                   (double)n_bytes / 1e6);
    if (alignment == HUGE_PAGE)
        madvise(header, total, MADV_HUGEPAGE); /* may fail without harm */
    header->n_bytes = n_bytes;
    return header + 1;
}

void *memory_zeroed(size_t n, size_t size)
{
    void *array = allocate(n, size);
    memset(array, 0, n * size);
    return array;
}

void *memory_scratch(size_t n, size_t size)
{
    void *array = allocate(n, size);
#ifndef NDEBUG
    memset(array, 0xff, n * size); /* a NaN in float and double, -1 in integers */
#endif
    return array;
}

void *memory_resize(void *array, size_t n, size_t size)
{
    void *fresh = allocate(n, size);
    if (array != NULL) {
        memcpy(fresh, array, size_min(n * size, header_of(array)->n_bytes));
        memory_free(array);
    }
    return fresh;
}

static char *print_text(const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int n = vsnprintf(NULL, 0, format, arguments);
    ENSURE(n >= 0);
    char *text = memory_scratch((size_t)n + 1, 1);
    vsnprintf(text, (size_t)n + 1, format, again);
    va_end(again);
    return text;
}

char *memory_text(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = print_text(format, arguments);
    va_end(arguments);
    return text;
}

void memory_append(char **text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *more = print_text(format, arguments);
    va_end(arguments);
    const size_t n = strlen(*text), n_more = strlen(more) + 1;
    *text = memory_resize(*text, n + n_more, 1);
    memcpy(*text + n, more, n_more);
    memory_free(more);
}

FILE *memory_stream(char **text, size_t *n)
{
    FILE *out = open_memstream(text, n);
    if (out == NULL)
        fail_abort(BAD_IO, "out of memory for a text");
    return out;
}

void memory_free(void *array)
{
    if (array != NULL)
        free(header_of(array));
}

size_t memory_peak(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss * 1024;
}
