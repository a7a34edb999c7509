/* Other names for students, which only the owner of a key can connect with the real ones. */
#ifndef COHORT_PSEUDONYM_H
#define COHORT_PSEUDONYM_H

#include "base/base.h"

struct pseudonym_key {
    uint8_t bytes[64]; /* padded with zeros, as HMAC wants it */
};

/* A missing key file is refused, or made with a new key, readable by its owner only. */
enum pseudonym_missing { PSEUDONYM_REFUSE, PSEUDONYM_MAKE };

/* Reads the key from a file. Fails if the file cannot be a key: not one line of some length. */
CHECKED enum status pseudonym_key_read(const char *path, enum pseudonym_missing missing,
                                       struct pseudonym_key *key);

/* The pseudonym of a name: 24 hexadecimal digits. Caller frees. */
char *pseudonym_make(const struct pseudonym_key *key, const char *name, size_t length);
/* The same of a name that may not be UTF-8: as data sets store it. Caller frees. */
char *pseudonym_of_cell(const struct pseudonym_key *key, const char *cell, size_t length);

/* SHA-256 (FIPS 180-4) of two pieces, one after the other. */
void pseudonym_sha256(const void *first, size_t n_first, const void *second, size_t n_second,
                      uint8_t digest[32]);

#endif
