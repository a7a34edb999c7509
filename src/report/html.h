/* layer 1 (instruments): a page for people: one HTML file that needs nothing else. */
#ifndef COHORT_PAGE_H
#define COHORT_PAGE_H

#include "base/base.h"
#include <stdio.h>

/* The page's head with its style; it fetches nothing and runs nothing. Then its end. */
void page_begin(FILE *out, const char *title);
void page_end(FILE *out);

/* Text that may hold anything: what means something in HTML is escaped, and what is no UTF-8 or
 * no character becomes a mark of replacement. page_cut: at most so many columns, the rest
 * becomes an ellipsis. */
void page_text(FILE *out, const char *text);
void page_cut(FILE *out, const char *text, size_t most);
size_t page_columns(const char *text); /* that a text takes up, about */

/* <element>text</element>, the text escaped; `element` may have attributes. */
void page_say(FILE *out, const char *element, const char *format, ...) PRINTF(3, 4);

/* A table: the heads of all columns, of which the first is for names; then rows, each with its
 * name and its cells. page_number leaves the cell of a NaN empty. */
void page_table_begin(FILE *out, const char *const *heads, size_t n);
void page_row(FILE *out, const char *name);
void page_number(FILE *out, int digits, double value);
void page_count(FILE *out, int64_t n);
void page_row_end(FILE *out);
void page_table_end(FILE *out);

/* A figure: page_figure, a plot, page_caption; the caption says how to read it. Figures between
 * page_figures and page_figures_end stand side by side where there is room. */
void page_figures(FILE *out);
void page_figure(FILE *out, const char *title);
void page_caption(FILE *out, const char *format, ...) PRINTF(2, 3);
void page_figures_end(FILE *out);

/* A whole number with its digits in groups of three; a number in four digits, or in all that
 * are before its point and one. */
struct page_word {
    char text[48];
};
struct page_word page_whole(int64_t n);
struct page_word page_short(double value);

#endif
