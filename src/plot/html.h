/* HTML pages: one file that needs nothing else. */
#ifndef COHORT_HTML_H
#define COHORT_HTML_H

#include "base/base.h"
#include <stdio.h>

/* The head of the page with its style sheet, and its end. The page loads and runs nothing. */
void html_begin(FILE *out, const char *title);
/* The same for a page that reloads itself after so many seconds. */
void html_begin_live(FILE *out, const char *title, int64_t seconds);
void html_end(FILE *out);

/* Sections printed before: a list of links to their headings (h2), then the sections. */
void html_sections(FILE *out, const char *sections);

/* Begins a part that opens at a click on its title; </details> ends it. Paper shows all. */
void html_fold(FILE *out, const char *title);

/* Any text: HTML's special characters are escaped; invalid UTF-8 and characters that a page may
 * not contain become the replacement character. html_cut prints at most `most` columns, with
 * an ellipsis for what it leaves out in the middle: names often begin alike. html_columns: the
 * approximate width of a text. A percentage stays on one line. */
void html_text(FILE *out, const char *text);
void html_cut(FILE *out, const char *text, size_t most);
size_t html_columns(const char *text);

/* A name inside a sentence: one that is written from right to left does not turn the rest. */
void html_name(FILE *out, const char *name);

/* The bytes of the first line of a text that is broken into lines of at most `most` columns:
 * after a space if there is one, else inside a word. At least one character. */
size_t html_break(const char *text, size_t most);

/* Whether a word is so long that a table has to break it: its cell is of class "any". */
bool html_has_long_word(const char *text);

/* <element>text</element>, the text escaped; `element` may have attributes. */
void html_say(FILE *out, const char *element, const char *format, ...) PRINTF(3, 4);

/* A table: the heads of all columns, the first one for names; then rows, each with its name and
 * its cells. html_number leaves the cell empty for NaN. */
void html_table_begin(FILE *out, const char *const *heads, size_t n);
void html_row(FILE *out, const char *name);
void html_number(FILE *out, int digits, double value);
void html_count(FILE *out, int64_t n);
void html_row_end(FILE *out);
void html_table_end(FILE *out);

/* A figure: html_figure, a plot, html_caption; the caption says how to read the plot. Figures
 * between html_figures and html_figures_end are placed side by side if there is room. */
void html_figures(FILE *out);
void html_figure(FILE *out, const char *title);
void html_caption(FILE *out, const char *format, ...) PRINTF(2, 3);
void html_figures_end(FILE *out);

/* A figure of several plots with the same axes and one caption for all: html_panels, for each
 * plot html_panel with its name, the plot and html_panel_end, then html_panels_end and
 * html_caption. */
void html_panels(FILE *out, const char *title);
void html_panel(FILE *out, const char *name);
void html_panel_end(FILE *out);
void html_panels_end(FILE *out);

/* html_whole: an integer with its digits in groups of three. html_short: four significant
 * digits, or for 1000 and more all digits before the point and one after it. */
struct html_word {
    char text[48];
};
struct html_word html_whole(int64_t n);
struct html_word html_short(double value);
/* Digits after the point, with a true minus; what rounds to zero has none. */
struct html_word html_fixed(int digits, double value);

#endif
