/* A plain hash of a name can be undone by hashing a class list. A keyed one cannot:
 *
 *     pseudonym = the first 96 bits of HMAC-SHA-256(key, name)
 *     HMAC(key, name) = H(key ^ 5c..., H(key ^ 36..., name))          RFC 2104
 *
 * The same key gives the same pseudonym every night. Two of a million students share one with
 * probability 6e-18. The digest of data sets (XXH3) is no cryptographic hash, and no library
 * that cohort links has one, so SHA-256 is here: FIPS 180-4, tested with its own vectors.
 *
 * The key is the only line of a file, without blanks at its ends; a missing file is made with 32
 * random bytes in hexadecimal. A log or a data set is no key: its first rows may be public. */
#include "data_tools/pseudonym.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/name_index.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 64, DIGEST = 32, LEAST_KEY = 16, MOST_FILE = 1024, N_DIGITS = 24 };

#define NEW_KEY "name a file that does not exist to get a new key"

struct sha256 {
    uint32_t state[8];
    uint8_t block[BLOCK];
    uint64_t n; /* bytes so far */
};

static uint32_t rotate(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void absorb(uint32_t state[8], const uint8_t block[BLOCK])
{
    static const uint32_t k[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
        0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
        0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
        0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
        0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
        0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
        0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
        0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
        0xc67178f2};
    uint32_t w[64], v[8];
    for (int t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
               (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    for (int t = 16; t < 64; t++) {
        const uint32_t a = w[t - 15], b = w[t - 2];
        w[t] = w[t - 16] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + w[t - 7] +
               (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    memcpy(v, state, sizeof v);
    for (int t = 0; t < 64; t++) {
        const uint32_t sum1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25);
        const uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        const uint32_t one = v[7] + sum1 + choice + k[t] + w[t];
        const uint32_t sum0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22);
        const uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        memmove(v + 1, v, 7 * sizeof *v);
        v[4] += one;
        v[0] = one + sum0 + majority;
    }
    for (int i = 0; i < 8; i++)
        state[i] += v[i];
}

static void add(struct sha256 *sha, const void *bytes, size_t n)
{
    const uint8_t *byte = bytes;
    for (size_t i = 0; i < n; i++) {
        sha->block[sha->n++ % BLOCK] = byte[i];
        if (sha->n % BLOCK == 0)
            absorb(sha->state, sha->block);
    }
}

void pseudonym_sha256(const void *first, size_t n_first, const void *second, size_t n_second,
                      uint8_t digest[32])
{
    struct sha256 sha = {.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                   0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
    add(&sha, first, n_first);
    add(&sha, second, n_second);
    const uint64_t n_bits = 8 * sha.n;
    add(&sha, "\x80", 1);
    while (sha.n % BLOCK != BLOCK - sizeof n_bits)
        add(&sha, "", 1);
    for (int i = 7; i >= 0; i--)
        add(&sha, &(uint8_t){(uint8_t)(n_bits >> 8 * i)}, 1);
    for (int i = 0; i < DIGEST; i++)
        digest[i] = (uint8_t)(sha.state[i / 4] >> (24 - 8 * (i % 4)));
}

char *pseudonym_make(const struct pseudonym_key *key, const char *name, size_t length)
{
    uint8_t inner[BLOCK], outer[BLOCK], digest[DIGEST];
    for (int i = 0; i < BLOCK; i++) {
        inner[i] = key->bytes[i] ^ 0x36;
        outer[i] = key->bytes[i] ^ 0x5c;
    }
    pseudonym_sha256(inner, sizeof inner, name, length, digest);
    pseudonym_sha256(outer, sizeof outer, digest, sizeof digest, digest);
    char *text = NEW(char, N_DIGITS + 1);
    for (int i = 0; i < N_DIGITS; i++)
        text[i] = "0123456789abcdef"[digest[i / 2] >> (i % 2 == 0 ? 4 : 0) & 15];
    return text;
}

char *pseudonym_of_cell(const struct pseudonym_key *key, const char *cell, size_t length)
{
    struct name_index one = {0};
    name_index_add(&one, cell, length);
    const char *name = names_get(&one.names, 0);
    char *pseudonym = pseudonym_make(key, name, strlen(name));
    name_index_free(&one);
    return pseudonym;
}

static enum status make_key(const char *path)
{
    uint8_t random[DIGEST];
    char text[2 * DIGEST + 1];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return fail(BAD_IO, "cannot make a key: the system has no random numbers: %s",
                    strerror(errno));
    for (int i = 0; i < 2 * DIGEST; i++)
        text[i] = "0123456789abcdef"[random[i / 2] >> (i % 2 == 0 ? 4 : 0) & 15];
    text[2 * DIGEST] = '\n';
    const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
    bool written =
        file >= 0 && write(file, text, sizeof text) == (ssize_t)sizeof text && fsync(file) == 0;
    const int reason = errno;
    if (file >= 0)
        written &= close(file) == 0;
    if (file >= 0 && !written)
        unlink(path);
    if (!written)
        return fail(BAD_IO, "cannot write the key %s: %s", path, strerror(reason));
    log_say("%s: a new key for pseudonyms; keep it secret, and use it again for the same names",
            path);
    return OK;
}

/* Fails unless the file can hold a key: a plain file, and a small one. */
static enum status check_file(const char *path)
{
    struct stat found;
    if (stat(path, &found) != 0)
        return OK; /* reading it says why */
    if (!S_ISREG(found.st_mode))
        return fail(BAD_USER, "--pseudonyms %s: expected a plain file with a key", path);
    if (found.st_size > MOST_FILE)
        return fail(BAD_USER,
                    "--pseudonyms %s: this file has %lld bytes, and a key is one line of at "
                    "most %d; " NEW_KEY,
                    path, (long long)found.st_size, MOST_FILE);
    return OK;
}

static void warn_of_readers(const char *path)
{
    struct stat found;
    if (stat(path, &found) == 0 && (found.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        log_warn("%s: other users may read this key; protect it with chmod 600", path);
}

/* A key is one line of text, without blanks at its ends. */
static enum status check_key(const char *path, const char *key, size_t n)
{
    if (n < LEAST_KEY)
        return fail(BAD_USER,
                    "--pseudonyms %s: the key has only %zu characters, so it can be guessed; "
                    "use at least %d, or " NEW_KEY,
                    path, n, LEAST_KEY);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)key[i] < ' ' || key[i] == 0x7f)
            return fail(
                BAD_USER,
                "--pseudonyms %s: this file is not a key, which is one line of text; " NEW_KEY,
                path);
    return OK;
}

enum status pseudonym_key_read(const char *path, enum pseudonym_missing missing,
                               struct pseudonym_key *key)
{
    char *text = NULL;
    size_t n = 0;
    *key = (struct pseudonym_key){0};
    if (!file_exists(path) && missing == PSEUDONYM_REFUSE)
        return fail(
            BAD_USER,
            "--pseudonyms %s: no such file; name the key file that `cohort import` used "
            "for the data",
            path);
    if (!file_exists(path))
        TRY(make_key(path));
    else
        TRY(check_file(path));
    TRY(file_read(path, &text, &n));
    const char *start = text, *end = text + n;
    while (start < end && memchr(" \t\r\n", *start, 4) != NULL)
        start++;
    while (end > start && memchr(" \t\r\n", end[-1], 4) != NULL)
        end--;
    const size_t length = (size_t)(end - start);
    const enum status status = check_key(path, start, length);
    if (length <= sizeof key->bytes)
        memcpy(key->bytes, start, length);
    else
        pseudonym_sha256(start, length, "", 0, key->bytes); /* as HMAC does */
    memory_free(text);
    if (status == OK)
        warn_of_readers(path);
    return status;
}
