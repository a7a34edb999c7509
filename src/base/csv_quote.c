/* RFC 4180: a cell that holds a comma, a quote or a line end stands in quotes, and a quote
 * inside it is doubled. Spaces at its ends would be lost by some readers, so they are quoted
 * too. A cell that begins with =, +, - or @ is written as it is: a spreadsheet may take it for
 * a formula, but any change would be a change of somebody's name. */
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
