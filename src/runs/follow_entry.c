/* Writes the answer to a line: a record of CSV, or a JSON object with the keys that have a
 * value. */
#include "runs/follow_entry.h"
#include "base/csv_quote.h"
#include "base/json_quote.h"
#include <inttypes.h>

void follow_entry_print(const struct follow_entry *entry, bool json, FILE *out)
{
    if (json) {
        fprintf(out, "{\"line\": %" PRIu64, entry->line);
        const char *const texts[] = {entry->student_text, entry->item_text};
        static const char *const names[] = {"student", "item"};
        for (size_t k = 0; k < COUNT(texts); k++)
            if (texts[k] != NULL) {
                fprintf(out, ", \"%s\": ", names[k]);
                json_quote(out, texts[k]);
            }
        if (entry->asked)
            fprintf(out, ", \"probability\": %.9g", (double)(float)entry->p);
        if (entry->note != NULL)
            fprintf(out, ", \"note\": \"%s\"", entry->note);
        if (entry->error[0] != '\0') {
            fputs(", \"error\": ", out);
            json_quote(out, entry->error);
        }
        fputs("}\n", out);
        return;
    }
    fprintf(out, "%" PRIu64 ",", entry->line);
    csv_quote(out, entry->student_text != NULL ? entry->student_text : "");
    fputc(',', out);
    csv_quote(out, entry->item_text != NULL ? entry->item_text : "");
    fputc(',', out);
    if (entry->asked)
        fprintf(out, "%.9g", (double)(float)entry->p);
    fprintf(out, ",%s,", entry->note != NULL ? entry->note : "");
    csv_quote(out, entry->error);
    fputc('\n', out);
}
