/* Within '...' a shell reads every character as itself, and nothing ends the quotes but ', which
 * is therefore written as '\'': the quotes end, a ' follows, and they begin again. */
#include "base/shell_quote.h"
#include "base/memory.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static bool is_plain(const char *word)
{
    return word[0] != '\0' && word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST"
                                                "UVWXYZ0123456789_-+=.,:/@")] == '\0';
}

void shell_quote(FILE *out, const char *word)
{
    if (is_plain(word)) {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (; *word != '\0'; word++)
        if (*word == '\'')
            fputs("'\\''", out);
        else
            fputc(*word, out);
    fputc('\'', out);
}

char *shell_quote_text(const char *format, ...)
{
    char *plain = NULL, *quoted = NULL;
    size_t n = 0;
    FILE *out = memory_stream(&plain, &n);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(out, format, arguments);
    va_end(arguments);
    fclose(out);
    out = memory_stream(&quoted, &n);
    shell_quote(out, plain);
    fclose(out);
    char *word = memory_text("%s", quoted);
    free(plain);
    free(quoted);
    return word;
}
