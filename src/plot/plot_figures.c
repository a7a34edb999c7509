/* A picture of a page takes its colours from the page's style sheet by CSS variables. A picture
 * in a file of its own has the rules inside, with the colours of paper in place of the
 * variables, which most programs that read SVG do not know:
 *
 *     page      <svg> ... class="line" ... </svg>      svg .line{stroke:var(--soft)}
 *     file      <svg xmlns=...><style>.line{stroke:#444}</style> ... </svg>
 *
 * rsvg-convert (librsvg), if it is installed, makes the PDF; vector graphics remain vector
 * graphics. */
#include "plot/plot_figures.h"
#include "base/atomic_file.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/memory.h"
#include "plot/plot.h"
#include "plot/plot_colours.h"
#include "plot/plot_heat.h"
#include <ctype.h>
#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static struct {
    bool are_kept;
    size_t n, capacity;
    struct figure {
        char *title, *svg, *csv;
    } * list;
} figures;

void plot_figures_begin(void)
{
    figures.are_kept = true;
}

static char *print(const void *what, void (*part)(FILE *out, const void *what))
{
    char *text = NULL;
    size_t n = 0;
    FILE *out = memory_stream(&text, &n);
    part(out, what);
    fclose(out);
    return text;
}

void plot_figures_keep(const char *title, const void *what,
                       void (*draw)(FILE *out, const void *what),
                       void (*numbers)(FILE *out, const void *what))
{
    if (!figures.are_kept)
        return;
    GROW(figures.list, figures.n, figures.capacity);
    figures.list[figures.n++] =
        (struct figure){memory_text("%s", title), print(what, draw), print(what, numbers)};
}

/* The rules of a style sheet with colours in place of variables, and without the "svg " before
 * selectors. */
static void print_style(FILE *out, const char *sheet)
{
    for (const char *c = sheet; *c != '\0';) {
        if (strncmp(c, "var(--", 6) == 0) {
            const size_t length = strcspn(c + 6, ")");
            fputs(plot_colours_of(c + 6, length), out);
            c += 6 + length + 1;
        } else if (strncmp(c, "svg ", 4) == 0) {
            c += 4;
        } else {
            fputc(*c++, out);
        }
    }
}

/* The element with a namespace, a size and the style sheet; "<svg" begins the text. */
static char *stand_alone(const char *svg, size_t *n_bytes)
{
    char *text = NULL;
    FILE *out = memory_stream(&text, n_bytes);
    const char *box = strstr(svg, "viewBox=\"0 0 "), *end = strchr(svg, '>');
    char *after = NULL;
    const double width = box != NULL ? strtod(box + 13, &after) : PLOT_WIDE,
                 height = after != NULL ? strtod(after, NULL) : PLOT_WIDE;
    fprintf(out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
            "font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\" font-size=\"14\"",
            width, height);
    fwrite(svg + 4, 1, (size_t)(end - svg) - 4, out);
    fputs(">\n<style>\n", out);
    print_style(out, plot_style_sheet);
    print_style(out, plot_heat_style_sheet);
    fputs("</style>\n", out);
    fputs(end + 1, out);
    fclose(out);
    return text;
}

/* "07-auc-by-number-of-earlier-answers": letters and digits of the title. */
static char *file_name(const char *directory, size_t number, const char *title)
{
    enum { MOST = 60 };
    char word[MOST + 1];
    size_t n = 0;
    for (; *title != '\0' && n < MOST; title++) {
        const unsigned char c = (unsigned char)*title;
        if (c < 0x80 && isalnum(c))
            word[n++] = (char)tolower(c);
        else if (n > 0 && word[n - 1] != '-')
            word[n++] = '-';
    }
    while (n > 0 && word[n - 1] == '-')
        n--;
    word[n] = '\0';
    return memory_text("%s/%02zu%s%s", directory, number, n > 0 ? "-" : "", word);
}

static enum status write_text(const char *name, const char *ending, const char *text, size_t n)
{
    char *path = memory_text("%s.%s", name, ending);
    const enum status status = atomic_file_write(path, text, n);
    memory_free(path);
    return status;
}

/* Sets *is_there to false if there is no rsvg-convert. The date in the file is fixed, so that
 * the same picture has the same bytes. */
static enum status write_pdf(const char *name, bool *is_there)
{
    char *svg = memory_text("%s.svg", name), *pdf = memory_text("%s.pdf", name);
    const char *const words[] = {"rsvg-convert", "--format=pdf", "-o", pdf, svg, NULL};
    enum status status = OK;
    pid_t child = 0;
    int code = 0;
    if (setenv("SOURCE_DATE_EPOCH", "0", 0) != 0)
        status = fail(BAD_IO, "%s: cannot set the date of a PDF", pdf);
    const int error =
        status == OK ? posix_spawnp(&child, words[0], NULL, NULL, (char *const *)words, environ)
                     : 0;
    if (error != 0)
        *is_there = false;
    if (status == OK && error == 0) {
        while (waitpid(child, &code, 0) < 0 && errno == EINTR)
            continue;
        /* 127: the program was not found after a fork */
        if (WIFEXITED(code) && WEXITSTATUS(code) == 127)
            *is_there = false;
        else if (!WIFEXITED(code) || WEXITSTATUS(code) != 0)
            status = fail(BAD_IO, "%s: rsvg-convert failed; try it by hand on %s", pdf, svg);
    }
    memory_free(svg);
    memory_free(pdf);
    return status;
}

enum status plot_figures_write(const char *directory, size_t *n, bool *has_pdf)
{
    enum status status = file_make_directory(directory);
    *n = figures.n;
    *has_pdf = true;
    for (size_t f = 0; f < figures.n; f++) {
        struct figure *figure = &figures.list[f];
        char *name = file_name(directory, f + 1, figure->title);
        size_t n_bytes = 0;
        char *text = stand_alone(figure->svg, &n_bytes);
        if (status == OK)
            status = write_text(name, "svg", text, n_bytes);
        if (status == OK)
            status = write_text(name, "csv", figure->csv, strlen(figure->csv));
        if (status == OK && *has_pdf)
            status = write_pdf(name, has_pdf);
        free(text);
        memory_free(name);
        memory_free(figure->title);
        free(figure->svg);
        free(figure->csv);
    }
    memory_free(figures.list);
    memset(&figures, 0, sizeof figures);
    return status;
}
