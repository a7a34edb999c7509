/* Names are stored in one array of bytes, each ended by a NUL byte, and an array of offsets. */
#include "base/names.h"
#include "base/fail.h"
#include "base/memory.h"
#include <string.h>

void names_add(struct names *names, const char *name, size_t length)
{
    /* Both arrays double: the offsets when n is a power of two, the bytes likewise. */
    const size_t used = names->n == 0 ? 0 : names->first[names->n];
    if ((names->n & (names->n - 1)) == 0 || names->n == 0)
        names->first = memory_resize(names->first, 2 * names->n + 2, sizeof(uint64_t));
    size_t capacity = 64;
    while (capacity < used)
        capacity *= 2;
    if (names->bytes == NULL || used + length + 1 > capacity) {
        while (capacity < used + length + 1)
            capacity *= 2;
        names->bytes = memory_resize(names->bytes, capacity, 1);
    }
    names->first[names->n] = used;
    memcpy(names->bytes + used, name, length);
    names->bytes[used + length] = '\0';
    names->first[++names->n] = used + length + 1;
}

void names_free(struct names *names)
{
    memory_free(names->bytes);
    memory_free(names->first);
    *names = (struct names){0};
}

void names_copy(struct names *names, const struct names *from)
{
    for (size_t i = 0; i < from->n; i++)
        names_add(names, names_get(from, i), strlen(names_get(from, i)));
}

bool names_equal(const struct names *a, const struct names *b)
{
    return a->n == b->n && names_size(a) == names_size(b) &&
           (a->n == 0 || memcmp(a->bytes, b->bytes, names_size(a)) == 0);
}

enum status names_write(hid_t file, const char *group, const struct names *names)
{
    static const uint64_t nothing[1] = {0};
    char path[64];
    const uint64_t n_bytes = names_size(names), n_first = names->n + 1;
    if (H5Lexists(file, group, H5P_DEFAULT) <= 0)
        TRY(h5_group(file, group));
    snprintf(path, sizeof path, "%s/names", group);
    TRY(h5_write(file, path, H5T_STD_U8LE, H5T_NATIVE_UINT8, 1, &n_bytes, names->bytes));
    snprintf(path, sizeof path, "%s/names_first", group);
    return h5_write(file, path, H5T_STD_U64LE, H5T_NATIVE_UINT64, 1, &n_first,
                    names->n > 0 ? names->first : nothing);
}

enum status names_write_strings(hid_t file, const char *group, const struct names *names)
{
    char path[64];
    if (H5Lexists(file, group, H5P_DEFAULT) <= 0)
        TRY(h5_group(file, group));
    snprintf(path, sizeof path, "%s/names", group);
    const char **texts = NEW(const char *, names->n);
    for (size_t i = 0; i < names->n; i++)
        texts[i] = names_get(names, i);
    enum status status = h5_write_strings(file, path, names->n, texts);
    memory_free(texts);
    return status;
}

bool names_are_sound(const char *bytes, const uint64_t *first, size_t n, uint64_t n_bytes)
{
    for (size_t i = 0; i < n; i++)
        if (first[i + 1] <= first[i] || first[i + 1] - first[0] > n_bytes ||
            bytes[first[i + 1] - first[0] - 1] != '\0')
            return false;
    return first[n] - first[0] == n_bytes;
}

enum status names_read(hid_t file, const char *group, struct names *names)
{
    char bytes_path[64], first_path[64];
    uint64_t n_bytes = 0, n_first = 0;
    snprintf(bytes_path, sizeof bytes_path, "%s/names", group);
    snprintf(first_path, sizeof first_path, "%s/names_first", group);
    TRY(h5_length(file, bytes_path, &n_bytes));
    TRY(h5_length(file, first_path, &n_first));
    if (n_first == 0)
        return fail(BAD_DATA, "the names in %s are damaged", group);
    names->n = n_first - 1;
    names->first = NEW(uint64_t, n_first);
    names->bytes = NEW(char, n_bytes + 1);
    TRY(h5_read(file, first_path, H5T_NATIVE_UINT64, n_first, names->first));
    TRY(h5_read(file, bytes_path, H5T_NATIVE_UINT8, n_bytes, names->bytes));
    return names->first[0] == 0 &&
                   names_are_sound(names->bytes, names->first, names->n, n_bytes)
               ? OK
               : fail(BAD_DATA, "the names in %s are damaged", group);
}
