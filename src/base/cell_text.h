/* Names in the cells of printed tables: one line, padded by displayed width. */
#ifndef COHORT_CELL_TEXT_H
#define COHORT_CELL_TEXT_H

#include "base/base.h"

/* How many columns of a terminal the text takes, with line breaks and control characters shown as
 * text. */
size_t cell_text_width(const char *text);

/* Prints at most `most` columns of the text (0: all of it), padded with spaces to `width`: on the
 * right or, for cell_text_right, on the left. */
void cell_text_left(const char *text, size_t width, size_t most);
void cell_text_right(const char *text, size_t width);

#endif
