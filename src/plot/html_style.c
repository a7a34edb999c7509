/* The style sheet of a page: text, tables and figures, on screens, phones and paper. A table that is
 * wider than its place becomes cards, one for each row. */
#include "plot/html_style.h"
#include "plot/plot.h"
#include "plot/plot_colours.h"
#include "plot/plot_heat.h"

static const char style[] =
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;max-width:68rem;padding:2rem 1.25rem 4rem;background:var(--paper);"
    "color:var(--ink);font:1rem/1.55 system-ui,-apple-system,'Segoe UI',Roboto,'Noto Sans',"
    "sans-serif}\n"
    "h1{font-size:1.9rem;line-height:1.2;margin:0 0 .3rem}\n"
    "h2{font-size:1.3rem;margin:2.6rem 0 .6rem;padding-top:1rem;border-top:1px solid "
    "var(--line)}\n"
    "h3{font-size:1.05rem;margin:1.8rem 0 .4rem}\n"
    "h1,h2,h3,h4,p,li,dd,th,td,summary,figcaption{overflow-wrap:break-word}\n"
    "p,li,dd{max-width:46rem}p{margin:.5rem 0}\n"
    ".under,figcaption,.note{color:var(--soft)}\n"
    ".note,figcaption{font-size:.88rem}\n"
    ".lead{font-size:1.12rem;background:var(--tint);border-left:4px solid var(--good);"
    "padding:.8rem 1.1rem;margin:1.2rem 0;max-width:none}.lead p{max-width:none}\n"
    ".warn{background:var(--amber);border-left-color:var(--warn)}\n"
    ".numbers{display:flex;flex-wrap:wrap;gap:.6rem 2.2rem;margin:1rem 0;padding:0;"
    "list-style:none}\n"
    ".numbers b{display:block;font-size:1.45rem;line-height:1.25;"
    "font-variant-numeric:tabular-nums}\n"
    ".numbers span{color:var(--soft);font-size:.88rem}\n"
    ".wide{overflow-x:auto;margin:.8rem 0}\n"
    "table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}\n"
    "th,td{padding:.28rem .6rem;text-align:right;border-bottom:1px solid var(--line);"
    "unicode-bidi:isolate;vertical-align:top}\n"
    "thead th{color:var(--soft);font-weight:600;vertical-align:bottom}\n"
    "th:first-child{text-align:left;padding-left:0}tbody th{font-weight:500}\n"
    "td{white-space:nowrap}td small{display:block;color:var(--soft);white-space:normal}\n"
    "@media screen and (min-width:70rem){td small{white-space:nowrap}}\n"
    "th:first-child{min-width:9rem;white-space:normal}th.any{overflow-wrap:anywhere}\n"
    "td.names{text-align:left;white-space:normal;overflow-wrap:anywhere;min-width:14rem}"
    "table:has(td.names) thead th:last-child{text-align:left}\n"
    "tr.base{background:var(--tint)}"
    "td.name{white-space:normal;overflow-wrap:anywhere;text-align:left;min-width:9rem}\n"
    ".figures{display:flex;flex-wrap:wrap;gap:1.2rem 2rem;margin:1rem 0}\n"
    ".figures figure{flex:1 1 24rem;max-width:31rem;min-width:0}\n"
    "figure.full,.figures figure.full{flex-basis:100%;max-width:none}\n"
    ".panels{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(21rem,100%),1fr));"
    "gap:.6rem 1rem;margin:.4rem 0}.panels div{break-inside:avoid;min-width:0}"
    "h4{font-size:.95rem;font-weight:600;margin:.3rem 0}\n"
    "figure{margin:0;break-inside:avoid}figure h3{margin:.4rem 0}\n"
    "svg{display:block;width:100%;height:auto}\n"
    "dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.35rem "
    "1.2rem;margin:.6rem "
    "0}dt{font-weight:600}dd{margin:0}\n"
    "@media (max-width:36rem){dl{grid-template-columns:minmax(0,1fr)}dd{margin:0 0 .4rem}"
    "body{padding:1rem 1rem 3rem}h1{font-size:1.5rem}.lead{font-size:1rem}"
    ".figures figure{flex-basis:100%}th,td{padding:.28rem .35rem}"
    "th:first-child{min-width:5rem;overflow-wrap:anywhere}td.names{min-width:7rem}td.name{min-"
    "width:0}"
    "td:last-child{padding-right:0}}\n"
    ".board td{white-space:normal;overflow-wrap:anywhere}\n"
    "thead th.long{min-width:6rem}\n"
    "code{font-size:.9em}pre{font-size:.85rem}"
    "code,pre{font-family:ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace}\n"
    "pre{background:var(--tint);padding:.8rem 1rem;overflow-x:auto;white-space:pre-wrap;"
    "overflow-wrap:anywhere}\n"
    "progress{display:block;width:100%;height:.6rem;margin:.6rem 0;accent-color:var(--good)}\n"
    "details{margin:.6rem 0}summary{cursor:pointer}summary h3{display:inline}\n"
    ".contents{columns:20rem;padding-left:1.2rem}.contents a{color:inherit}\n"
    "@media print{html{font-size:14px}body{max-width:none;padding:0}.wide{overflow:visible}"
    "th,td{padding:.2rem .35rem;font-size:.8rem}small{font-size:.79rem}h2,h3{break-after:avoid}"
    "tr{break-inside:avoid}"
    "details::details-content{content-visibility:visible;block-size:auto}}\n";

/* Rows of tables of this class as cards: the name of the row, then its cells, each below its
 * head, which the variables --h2, --h3, ... of the table hold. */
static void card_rules(FILE *out, const char *name, const char *columns, int n)
{
    fprintf(out,
            ".%s thead{display:none}.%s,.%s tbody{display:block}"
            ".%s tr{display:grid;grid-template-columns:repeat(%s);padding:.5rem 0;"
            "border-bottom:1px solid var(--line)}",
            name, name, name, name, columns);
    fprintf(out,
            ".%s th,.%s td{border:0;padding:.15rem .5rem .15rem 0;text-align:left;min-width:0;"
            "overflow-wrap:anywhere;white-space:normal}"
            ".%s th{grid-column:1/-1;font-weight:600}.%s td:empty{display:none}"
            ".%s td::before{display:block;color:var(--soft);font-size:.79rem}"
            ".%s small{white-space:normal}.%s td.name,.%s td.names{grid-column:1/-1}",
            name, name, name, name, name, name, name, name);
    for (int c = 2; c <= n; c++)
        fprintf(out, ".%s td:nth-child(%d)::before{content:var(--h%d)}", name, c, c);
    fputc('\n', out);
}

void html_style(FILE *out)
{
    fputs("<style>\n", out);
    plot_colours_style(out);
    fprintf(out, "%s%s%s", style, plot_style_sheet, plot_heat_style_sheet);
    card_rules(out, "tall", "auto-fill,minmax(5.6rem,1fr)", MOST_HEADS);
    fputs("@media (max-width:36rem){", out);
    card_rules(out, "cards", "3,1fr", SOME_HEADS);
    fputs("}\n@media screen and (max-width:80rem){", out);
    card_rules(out, "board", "auto-fill,minmax(5.6rem,1fr)", SOME_HEADS);
    fputs("}\n@media screen and "
          "(min-width:80.01rem){.wide:has(.board){width:max-content;min-width:100%;"
          "max-width:calc(100vw - 3rem);position:relative;left:50%;transform:translateX(-50%)}",
          out);
    fputs("}\n</style>\n", out);
}
