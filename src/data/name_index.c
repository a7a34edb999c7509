/* Every row of an import names its student and its item, so looking up names is most of the
 * work, and most of its cost is cache misses. Names are stored end to end in one array of bytes
 * (struct names) and found by an open-addressing table that is at most half full:
 *
 *     slot (16 bytes) = key 8 | number 4 | length 4
 *
 * The key of a name of up to 8 bytes, which most are, is the name itself. The key of a longer
 * name is its XXH3 hash, and the bytes are compared. There is no allocation per name. */
#include "data/name_index.h"
#include "base/fail.h"
#include "base/memory.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

struct index_slot {
    uint64_t key;
    uint32_t number; /* plus 1; 0: free */
    uint32_t length;
};

/* For names of up to 8 bytes, key and length determine the name: the key holds all its bytes,
 * some of them twice. */
static uint64_t key_of(const char *name, size_t length)
{
    if (length > 8)
        return XXH3_64bits(name, length);
    const unsigned char *byte = (const unsigned char *)name;
    if (length >= 4) {
        uint32_t front, back;
        memcpy(&front, name, sizeof front);
        memcpy(&back, name + length - sizeof back, sizeof back);
        return (uint64_t)back << 32 | front;
    }
    return length == 0
               ? 0
               : byte[0] | (uint64_t)byte[length / 2] << 8 | (uint64_t)byte[length - 1] << 16;
}

static size_t place_of(const struct name_index *index, uint64_t key, size_t length)
{
    /* Mix both halves of a long product, as in wyhash: decimal digits have little entropy. */
    const unsigned __int128 product =
        (unsigned __int128)(key ^ 0xa0761d6478bd642f) * (length ^ 0xe7037ed1a0b428db);
    return (size_t)((uint64_t)product ^ (uint64_t)(product >> 64)) & (index->n_slots - 1);
}

/* The slot of a name, or the free slot for it. */
static struct index_slot *find_slot(const struct name_index *index, const char *name,
                                    size_t length, uint64_t key)
{
    for (size_t at = place_of(index, key, length);; at = (at + 1) & (index->n_slots - 1)) {
        struct index_slot *slot = &index->slots[at];
        if (slot->number == 0)
            return slot;
        if (slot->key == key && slot->length == length &&
            (length <= 8 ||
             memcmp(names_get(&index->names, slot->number - 1), name, length) == 0))
            return slot;
    }
}

void name_index_prefetch(const struct name_index *index, const char *name, size_t length)
{
    if (index->n_slots > 0)
        __builtin_prefetch(&index->slots[place_of(index, key_of(name, length), length)]);
}

static void grow(struct name_index *index)
{
    struct index_slot *old = index->slots;
    const size_t n_old = index->n_slots;
    index->n_slots = n_old ? 2 * n_old : 64;
    index->slots = NEW(struct index_slot, index->n_slots);
    for (size_t o = 0; o < n_old; o++)
        if (old[o].number != 0)
            *find_slot(index, names_get(&index->names, old[o].number - 1), old[o].length,
                       old[o].key) = old[o];
    memory_free(old);
}

static bool is_ascii(const char *name, size_t length, uint64_t key)
{
    if (length <= 8)
        return (key & 0x8080808080808080) == 0;
    unsigned char all = 0;
    for (size_t i = 0; i < length; i++)
        all |= (unsigned char)name[i];
    return all < 0x80;
}

static bool is_utf8(const char *name, size_t length)
{
    const unsigned char *byte = (const unsigned char *)name, *end = byte + length;
    while (byte < end) {
        const unsigned lead = *byte++;
        const int n_more = lead < 0x80                   ? 0
                           : lead >= 0xc2 && lead < 0xe0 ? 1
                           : lead >= 0xe0 && lead < 0xf0 ? 2
                           : lead >= 0xf0 && lead < 0xf5 ? 3
                                                         : -1;
        if (n_more < 0 || end - byte < n_more)
            return false;
        if (n_more > 1) { /* overlong forms, surrogates, and beyond the last code point */
            const unsigned next = *byte;
            if ((lead == 0xe0 && next < 0xa0) || (lead == 0xed && next > 0x9f) ||
                (lead == 0xf0 && next < 0x90) || (lead == 0xf4 && next > 0x8f))
                return false;
        }
        for (int i = 0; i < n_more; i++)
            if ((*byte++ & 0xc0) != 0x80)
                return false;
    }
    return true;
}

static char *utf8_of_latin1(const char *name, size_t length, size_t *new_length)
{
    char *text = NEW_SCRATCH(char, 2 * length + 1);
    size_t n = 0;
    for (size_t i = 0; i < length; i++) {
        const unsigned byte = (unsigned char)name[i];
        if (byte >= 0x80)
            text[n++] = (char)(0xc0 | byte >> 6);
        text[n++] = (char)(byte < 0x80 ? byte : 0x80 | (byte & 0x3f));
    }
    text[n] = '\0';
    *new_length = n;
    return text;
}

char *name_index_utf8(const char *name, size_t length)
{
    size_t n = 0;
    return is_utf8(name, length) ? memory_text("%.*s", (int)length, name)
                                 : utf8_of_latin1(name, length, &n);
}

static uint32_t add_utf8(struct name_index *index, const char *name, size_t length,
                         uint64_t key)
{
    if (2 * (index->names.n + 1) > index->n_slots)
        grow(index);
    struct index_slot *slot = find_slot(index, name, length, key);
    if (slot->number == 0) {
        ENSURE(index->names.n < INDEX_NONE - 1 && length < UINT32_MAX);
        names_add(&index->names, name, length);
        *slot = (struct index_slot){key, (uint32_t)index->names.n, (uint32_t)length};
    }
    return slot->number - 1;
}

static uint32_t find_utf8(const struct name_index *index, const char *name, size_t length,
                          uint64_t key)
{
    return index->n_slots == 0 ? INDEX_NONE : find_slot(index, name, length, key)->number - 1;
}

/* How a name beyond ASCII was spelled: as Latin-1, as UTF-8, or both. */
enum { LATIN1 = 1, UTF8 = 2 };

static uint32_t note_spelling(struct name_index *index, uint32_t number, uint8_t spelling)
{
    if (number >= index->n_spellings) {
        const size_t n = 2 * (size_t)number + 16;
        index->spellings = memory_resize(index->spellings, n, 1);
        memset(index->spellings + index->n_spellings, 0, n - index->n_spellings);
        index->n_spellings = n;
    }
    uint8_t *known = &index->spellings[number];
    if ((*known & spelling) == 0) {
        index->n_converted += spelling == LATIN1;
        index->n_united += *known != 0;
        *known |= spelling;
    }
    return number;
}

uint32_t name_index_add(struct name_index *index, const char *name, size_t length)
{
    const uint64_t key = key_of(name, length);
    if (is_ascii(name, length, key))
        return add_utf8(index, name, length, key);
    if (is_utf8(name, length))
        return note_spelling(index, add_utf8(index, name, length, key), UTF8);
    size_t n = 0;
    char *text = utf8_of_latin1(name, length, &n);
    const uint32_t number = add_utf8(index, text, n, key_of(text, n));
    memory_free(text);
    return note_spelling(index, number, LATIN1);
}

void name_index_add_all(struct name_index *index, const struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        name_index_add(index, names_get(names, i), strlen(names_get(names, i)));
}

uint32_t name_index_find(const struct name_index *index, const char *name, size_t length)
{
    const uint64_t key = key_of(name, length);
    if (is_ascii(name, length, key) || is_utf8(name, length))
        return find_utf8(index, name, length, key);
    size_t n = 0;
    char *text = utf8_of_latin1(name, length, &n);
    const uint32_t number = find_utf8(index, text, n, key_of(text, n));
    memory_free(text);
    return number;
}

void name_index_free(struct name_index *index)
{
    names_free(&index->names);
    memory_free(index->slots);
    memory_free(index->spellings);
    *index = (struct name_index){0};
}

static size_t n_digits(const char *text)
{
    size_t n = 0;
    while (isdigit((unsigned char)text[n]))
        n++;
    return n;
}

static int compare(const char *a, const char *b)
{
    const char *const whole_a = a, *const whole_b = b;
    while (*a != '\0' && *b != '\0') {
        if (isdigit((unsigned char)*a) && isdigit((unsigned char)*b)) {
            a += strspn(a, "0");
            b += strspn(b, "0");
            const size_t n_a = n_digits(a), n_b = n_digits(b);
            if (n_a != n_b)
                return n_a < n_b ? -1 : 1;
            const int order = memcmp(a, b, n_a);
            if (order != 0)
                return order;
            a += n_a;
            b += n_b;
        } else if (*a != *b) {
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        } else {
            a++;
            b++;
        }
    }
    if (*a != *b)
        return *a == '\0' ? -1 : 1;
    return strcmp(whole_a, whole_b); /* "07" and "7" are two names */
}

struct named {
    const char *name;
    uint32_t number;
};

static int compare_named(const void *a, const void *b)
{
    return compare(((const struct named *)a)->name, ((const struct named *)b)->name);
}

void name_index_sort(const struct names *names, uint32_t *numbers)
{
    struct named *named = NEW(struct named, names->n);
    for (size_t i = 0; i < names->n; i++)
        named[i] = (struct named){names_get(names, numbers[i]), numbers[i]};
    qsort(named, names->n, sizeof *named, compare_named);
    for (size_t i = 0; i < names->n; i++)
        numbers[i] = named[i].number;
    memory_free(named);
}
