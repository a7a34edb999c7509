/* A page of documentation, written once: for a terminal, or as roff for man. */
#ifndef COHORT_MANUAL_H
#define COHORT_MANUAL_H

#include "base/base.h"
#include <stdio.h>

enum manual_block {
    MANUAL_NOTHING,
    MANUAL_HEADING,
    MANUAL_SUBHEADING,
    MANUAL_PARAGRAPH,
    MANUAL_LINES,
    MANUAL_ITEM
};

struct manual {
    FILE *out;
    bool roff;
    size_t width;           /* columns of a line */
    size_t indent, column;  /* of the line being written; column 0: not begun */
    size_t list;            /* where a list has its meanings, on a terminal */
    bool code;              /* between backquotes */
    enum manual_block last; /* what was written before */
};

/* As wide as the terminal that `out` is, at most 100 columns; 80 where it is none. */
struct manual manual_for_terminal(FILE *out);
struct manual manual_as_roff(FILE *out);

/* The beginning of a page: its name, its section (1, 5, 7) and what it is about in a line. */
void manual_title(struct manual *manual, const char *name, int section, const char *summary);
void manual_heading(struct manual *manual, const char *text);
void manual_subheading(struct manual *manual, const char *text);

/* In texts, `code` stands in backquotes. A paragraph is filled, whatever its line breaks. */
void manual_paragraph(struct manual *manual, const char *format, ...) PRINTF(2, 3);

/* A command line: the words in `command` are typed as they are, the rest stands for others. */
void manual_synopsis(struct manual *manual, const char *command, const char *rest);

/* An entry of a list: a name, what it means, and (NULL or "": nothing) a line of facts. */
void manual_item(struct manual *manual, const char *name, const char *meaning,
                 const char *facts);

/* Lines as they are, and not one of those in a string: code. */
void manual_lines(struct manual *manual, const char *text);

/* Paragraphs with an empty line between them; those that begin with blanks are code. */
void manual_prose(struct manual *manual, const char *text);

#endif
