/* Other names for students, which only the owner of a key can connect with the real ones. */
#ifndef COHORT_PSEUDONYM_H
#define COHORT_PSEUDONYM_H

#include "base/base.h"

struct pseudonym_key {
    uint8_t bytes[64]; /* padded with zeros, as HMAC wants it */
};

/* Reads the key from a file, or makes one and writes it, readable by its owner only. */
CHECKED enum status pseudonym_key_read(const char *path, struct pseudonym_key *key);

/* The pseudonym of a name: 24 hexadecimal digits. Caller frees. */
char *pseudonym_make(const struct pseudonym_key *key, const char *name, size_t length);

/* SHA-256 (FIPS 180-4) of two pieces, one after the other. */
void pseudonym_sha256(const void *first, size_t n_first, const void *second, size_t n_second,
                      uint8_t digest[32]);

#endif
