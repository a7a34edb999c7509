/* RFC 4180: a cell with a comma, a quote or a line end is quoted, and quotes inside it are
 * doubled. Some readers drop spaces at the ends of a cell, so these are quoted too. A cell that
 * begins with =, +, - or @ is written unchanged: a spreadsheet may read it as a formula, but
 * changing it would change somebody's name. */
#include "base/csv_quote.h"
#include <string.h>

void csv_quote(FILE *out, const char *text)
{
    const bool plain = text[strcspn(text, ",\"\r\n")] == '\0' && text[0] != ' ' &&
                       (text[0] == '\0' || text[strlen(text) - 1] != ' ');
    if (plain) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '"')
            fputc('"', out);
        fputc(*c, out);
    }
    fputc('"', out);
}
