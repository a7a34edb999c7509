/* A page for people: one HTML file that needs nothing else. */
#ifndef COHORT_HTML_H
#define COHORT_HTML_H

#include "base/base.h"
#include <stdio.h>

/* The page's head with its style; it fetches nothing and runs nothing. Then its end. */
void html_begin(FILE *out, const char *title);
void html_end(FILE *out);

/* Text that may hold anything: what means something in HTML is escaped, and what is no UTF-8 or
 * no character becomes a mark of replacement. html_cut: at most so many columns, the rest
 * becomes an ellipsis. */
void html_text(FILE *out, const char *text);
void html_cut(FILE *out, const char *text, size_t most);
size_t html_columns(const char *text); /* that a text takes up, about */

/* <element>text</element>, the text escaped; `element` may have attributes. */
void html_say(FILE *out, const char *element, const char *format, ...) PRINTF(3, 4);

/* A table: the heads of all columns, of which the first is for names; then rows, each with its
 * name and its cells. html_number leaves the cell of a NaN empty. */
void html_table_begin(FILE *out, const char *const *heads, size_t n);
void html_row(FILE *out, const char *name);
void html_number(FILE *out, int digits, double value);
void html_count(FILE *out, int64_t n);
void html_row_end(FILE *out);
void html_table_end(FILE *out);

/* A figure: html_figure, a plot, html_caption; the caption says how to read it. Figures between
 * html_figures and html_figures_end stand side by side where there is room. */
void html_figures(FILE *out);
void html_figure(FILE *out, const char *title);
void html_caption(FILE *out, const char *format, ...) PRINTF(2, 3);
void html_figures_end(FILE *out);

/* A whole number with its digits in groups of three; a number in four digits, or in all that
 * are before its point and one. */
struct html_word {
    char text[48];
};
struct html_word html_whole(int64_t n);
struct html_word html_short(double value);

#endif
