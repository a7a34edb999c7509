/* The style sheet of a page. */
#ifndef COHORT_HTML_STYLE_H
#define COHORT_HTML_STYLE_H

#include <stdio.h>

/* Tables with more than FEW_HEADS columns become cards on a phone. Those with more than SEVERAL
 * may be wider than the text of the page, and become cards where the window is narrower than
 * that; those with more than SOME_HEADS become cards everywhere. */
enum { FEW_HEADS = 4, SEVERAL_HEADS = 9, SOME_HEADS = 13, MOST_HEADS = 100 };

/* The element with all rules. */
void html_style(FILE *out);

#endif
