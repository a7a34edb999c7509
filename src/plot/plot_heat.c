/* A heat map:
 *
 *                   f   a   d
 *                   r   n   e     names of columns, upright, or numbers below
 *       student 1  [  ][  ][  ]
 *       student 2  [  ][  ][  ]   cells, with marks in them
 *
 *         mastery  [..........]   legend: 0 % to 100 %
 *
 * A dark cell is a high value. The opacity of one colour is the scale, so dark screens and prints
 * follow by the style sheet. Where values may be negative, those have a second colour. */
#include "plot/plot_heat.h"
#include "base/csv_quote.h"
#include "base/memory.h"
#include "plot/html.h"
#include "plot/plot_figures.h"
#include "plot/plot_internal.h"
#include <math.h>

const char plot_heat_style_sheet[] =
    ".cell{fill:var(--c0);stroke:var(--line);stroke-width:.5}\n"
    ".minus{fill:var(--c1)}"
    ".h0{fill-opacity:.03}.h1{fill-opacity:.12}.h2{fill-opacity:.22}.h3{fill-opacity:.32}"
    ".h4{fill-opacity:.42}.h5{fill-opacity:.53}.h6{fill-opacity:.64}.h7{fill-opacity:.76}"
    ".h8{fill-opacity:.88}.h9{fill-opacity:1}\n"
    ".right{fill:var(--paper);stroke:var(--ink);stroke-width:1}"
    ".open{fill:none;stroke:var(--ink);stroke-dasharray:2 1}"
    ".halo{fill:var(--paper)}.cross{stroke:var(--ink);stroke-width:1.5}\n";

enum {
    ROW = 19,
    GAP = 8,
    CHARACTER = 8,
    MOST_NAME = 17,
    EDGE = 8, /* between names and cells, and on the right */
    N_SHADES = 10,
    SHADE = 18,
    LEGEND = 50,
    MOST_WRITTEN = 8 /* rows and columns of a map with its numbers in the cells */
};

struct frame {
    const struct plot_heat *heat;
    double left, cell, top, bottom, whole;
};

static size_t widest(const char *const *names, size_t n)
{
    size_t columns = 0;
    for (size_t i = 0; i < n; i++)
        columns = size_max(columns, size_min(html_columns(names[i]), MOST_NAME));
    return columns;
}

static void settle(struct frame *f, const struct plot_heat *heat)
{
    const size_t wide = size_max(widest(heat->rows, heat->n_rows), html_columns(heat->scale));
    *f = (struct frame){.heat = heat, .left = (double)(wide * CHARACTER) + 2 * EDGE, .top = 4};
    f->cell = (PLOT_WIDE - EDGE - f->left) / (double)heat->n_columns;
    if (heat->columns != NULL)
        f->top += (double)(widest(heat->columns, heat->n_columns) * CHARACTER) + EDGE;
    f->bottom = f->top + (double)(heat->n_rows * ROW);
    for (size_t r = 0; r < heat->n_rows && heat->gap != NULL; r++)
        f->bottom += heat->gap[r] ? GAP : 0;
    f->whole = f->bottom + (heat->columns != NULL ? 0 : 40) + LEGEND;
}

static double x_of(const struct frame *f, double column)
{
    return f->left + f->cell * column;
}

static enum plot_heat_mark mark_of(const struct plot_heat *heat, size_t r, size_t c)
{
    return heat->mark != NULL ? heat->mark[r * heat->n_columns + c] : HEAT_PLAIN;
}

static void draw_text(FILE *out, double x, double y, const char *anchor, const char *text)
{
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", x, y, anchor);
    html_cut(out, text, MOST_NAME);
    fputs("</text>", out);
}

static void draw_note(FILE *out, const struct plot_heat *heat, size_t r, size_t c)
{
    static const char *const words[] = {"", ", right", ", wrong", ", not known", ", not tried"};
    fputs("<title>", out);
    html_cut(out, heat->rows[r], 60);
    fputs(", ", out);
    if (heat->columns != NULL)
        html_cut(out, heat->columns[c], 60);
    else
        fprintf(out, "%zu", heat->first_number + c);
    const double value = heat->value[r * heat->n_columns + c];
    if (heat->most > 0)
        fprintf(out, ": %+.1f points</title>", 100 * value);
    else
        fprintf(out, ": %.0f %%%s</title>", 100 * value, words[mark_of(heat, r, c)]);
}

static void draw_cell(FILE *out, const struct frame *f, size_t r, size_t c, double y)
{
    const double value = f->heat->value[r * f->heat->n_columns + c];
    const bool thin = mark_of(f->heat, r, c) == HEAT_THIN;
    if (!isfinite(value))
        return;
    const double size = f->heat->most > 0 ? fmin(fabs(value) / f->heat->most, 1) : value;
    const size_t shade = size > 0 ? size_min((size_t)(size * N_SHADES), N_SHADES - 1) : 0;
    fprintf(out,
            "<rect class=\"cell%s h%zu\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%d\">",
            value < 0 ? " minus" : "", shade, x_of(f, (double)c), thin ? y + 6 : y, f->cell,
            thin ? ROW - 13 : ROW - 1);
    draw_note(out, f->heat, r, c);
    fputs("</rect>", out);
    if (f->heat->most > 0 && size_max(f->heat->n_rows, f->heat->n_columns) <= MOST_WRITTEN)
        fprintf(out,
                "<text class=\"ink named\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s"
                "</text>",
                x_of(f, (double)c + 0.5), y + 14, html_short(round(100 * value)).text);
}

static void draw_mark(FILE *out, const struct frame *f, size_t r, size_t c, double y)
{
    const double x = x_of(f, (double)c + 0.5), middle = y + (ROW - 1) / 2.0,
                 radius = fmin(4, 0.45 * f->cell), arm = 0.8 * radius;
    const enum plot_heat_mark mark = mark_of(f->heat, r, c);
    if (mark == HEAT_RIGHT || mark == HEAT_OPEN)
        fprintf(out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>",
                mark == HEAT_OPEN ? "open" : "right", x, middle, radius);
    else if (mark == HEAT_WRONG)
        fprintf(out,
                "<circle class=\"halo\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/><path "
                "class=\"cross\" d=\"M%.1f %.1fl%.1f %.1fm0 %.1fl%.1f %.1f\"/>",
                x, middle, radius, x - arm, middle - arm, 2 * arm, 2 * arm, -2 * arm, -2 * arm,
                2 * arm);
}

static void draw_row(FILE *out, const struct frame *f, size_t r, double y)
{
    draw_text(out, f->left - EDGE, y + 14, "end", f->heat->rows[r]);
    for (size_t c = 0; c < f->heat->n_columns; c++)
        draw_cell(out, f, r, c, y);
    for (size_t c = 0; c < f->heat->n_columns; c++)
        draw_mark(out, f, r, c, y);
    fputc('\n', out);
}

static void draw_names(FILE *out, const struct frame *f)
{
    for (size_t c = 0; c < f->heat->n_columns; c++) {
        fprintf(out, "<text transform=\"translate(%.1f %.1f) rotate(-90)\">",
                x_of(f, (double)c + 0.5) + 5, f->top - 6);
        html_cut(out, f->heat->columns[c], MOST_NAME);
        fputs("</text>", out);
    }
    fputc('\n', out);
}

static void draw_numbers(FILE *out, const struct frame *f)
{
    const size_t n = f->heat->n_columns, first = f->heat->first_number;
    const size_t every = n > 20 ? 10 : n > 8 ? 5 : 1;
    for (size_t c = 0; c < n; c++) {
        char number[24];
        snprintf(number, sizeof number, "%zu", first + c);
        const bool is_near =
            every > 1 && (first + every - 1) / every * every - first <= every / 2;
        if ((first + c) % every == 0 || (c == 0 && !is_near))
            draw_text(out, x_of(f, (double)c + 0.5), f->bottom + 15, "middle", number);
    }
    draw_text(out, x_of(f, (double)n / 2), f->bottom + 34, "middle", f->heat->label);
    fputc('\n', out);
}

static void draw_legend(FILE *out, const struct frame *f)
{
    static const char *const ends[] = {"0 %", "50 %", "100 %"};
    const double y = f->whole - LEGEND + 14;
    for (size_t k = 0; k < N_SHADES; k++)
        fprintf(out,
                "<rect class=\"cell h%zu\" x=\"%.1f\" y=\"%.1f\" width=\"%d\" height=\"12\"/>",
                k, f->left + (double)(k * SHADE), y, SHADE);
    for (size_t k = 0; k < COUNT(ends); k++)
        draw_text(out, f->left + (double)(k * N_SHADES * SHADE) / 2, y + 28,
                  k == 0 ? "start" : "middle", ends[k]);
    draw_text(out, f->left - EDGE, y + 11, "end", f->heat->scale);
}

/* From -most to most, or from 0 if nothing is negative. */
static void draw_signed_legend(FILE *out, const struct frame *f)
{
    const double y = f->whole - LEGEND + 14, half = SHADE / 2.0;
    char end[32];
    bool minus = false;
    for (size_t e = 0; e < f->heat->n_rows * f->heat->n_columns; e++)
        minus |= f->heat->value[e] < 0;
    const double left = minus ? f->left : f->left - N_SHADES * half;
    for (size_t k = minus ? 0 : N_SHADES; k < 2 * N_SHADES; k++)
        fprintf(out,
                "<rect class=\"cell%s h%zu\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
                "height=\"12\"/>",
                k < N_SHADES ? " minus" : "", k < N_SHADES ? N_SHADES - 1 - k : k - N_SHADES,
                left + (double)k * half, y, half);
    snprintf(end, sizeof end, "−%.1f", 100 * f->heat->most);
    if (minus)
        draw_text(out, left, y + 28, "start", end);
    draw_text(out, left + N_SHADES * half, y + 28, "middle", "0");
    snprintf(end, sizeof end, "+%.1f", 100 * f->heat->most);
    draw_text(out, left + 2 * N_SHADES * half, y + 28, "middle", end);
    draw_text(out, f->left - EDGE, y + 11, "end", f->heat->scale);
}

static void draw(FILE *out, const void *what)
{
    const struct plot_heat *heat = what;
    struct frame f;
    settle(&f, heat);
    plot_begin(out, f.whole, heat->title);
    double y = f.top;
    if (heat->columns != NULL)
        draw_names(out, &f);
    for (size_t r = 0; r < heat->n_rows; r++, y += ROW) {
        y += heat->gap != NULL && heat->gap[r] ? GAP : 0;
        draw_row(out, &f, r, y);
    }
    if (heat->columns == NULL)
        draw_numbers(out, &f);
    if (heat->most > 0)
        draw_signed_legend(out, &f);
    else
        draw_legend(out, &f);
    fputs("</svg>\n", out);
}

static void print_numbers(FILE *out, const void *what)
{
    static const char *const words[] = {"", "right", "wrong", "not known", "not tried"};
    const struct plot_heat *heat = what;
    fputs("row,column,value,mark\n", out);
    for (size_t r = 0; r < heat->n_rows; r++)
        for (size_t c = 0; c < heat->n_columns; c++) {
            if (!isfinite(heat->value[r * heat->n_columns + c]))
                continue;
            csv_quote(out, heat->rows[r]);
            fputc(',', out);
            if (heat->columns != NULL)
                csv_quote(out, heat->columns[c]);
            else
                fprintf(out, "%zu", heat->first_number + c);
            fprintf(out, ",%.9g,%s\n", heat->value[r * heat->n_columns + c],
                    words[mark_of(heat, r, c)]);
        }
}

void plot_heat_draw(FILE *out, const struct plot_heat *heat)
{
    draw(out, heat);
    plot_figures_keep(heat->title, heat, draw, print_numbers);
}
