/* Most names are plain ASCII and are written as they are. All others go through jansson, which
 * escapes them, and which takes only UTF-8. */
#include "base/json_quote.h"
#include "base/memory.h"
#include <jansson.h>

void json_quote(FILE *out, const char *text)
{
    const char *c = text;
    while (*c >= ' ' && *c <= '~' && *c != '"' && *c != '\\')
        c++;
    if (*c == '\0') {
        fputc('"', out);
        fputs(text, out);
        fputc('"', out);
        return;
    }
    json_t *string = json_string(text);
    if (string == NULL) {
        char *plain = memory_text("%s", text);
        for (char *byte = plain; *byte != '\0'; byte++)
            if ((unsigned char)*byte >= 0x80)
                *byte = '?';
        string = json_string(plain);
        memory_free(plain);
    }
    json_dumpf(string, out, JSON_ENCODE_ANY);
    json_decref(string);
}
