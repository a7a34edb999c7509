/* Texts in JSON. */
#ifndef COHORT_JSON_QUOTE_H
#define COHORT_JSON_QUOTE_H

#include "base/base.h"
#include <stdio.h>

/* Writes a text with its quotes. Bytes that are not UTF-8 become question marks. */
void json_quote(FILE *out, const char *text);

#endif
