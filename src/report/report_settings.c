/* The last section: everything needed to reproduce the model bit for bit. For a kind that trains
 * with the BLAS these are also the grid of ranks and the BLAS kernels, which its log records. */
#include "base/memory.h"
#include "base/shell_quote.h"
#include "cohort.h"
#include "plot/html.h"
#include "report/report_internal.h"
#include "runs/run_find.h"
#include <inttypes.h>
#include <string.h>

static void show_digests(FILE *out, const struct report_run *run)
{
    fputs("<dl>\n", out);
    html_say(out, "dt", "checkpoint");
    if (run->kind->made_by != NULL)
        html_say(out, "dd", "%s; digest %s", run->path, run->digest);
    else
        html_say(out, "dd", "%s, after epoch %lld, step %lld%s; digest %s", run->path,
                 (long long)run->progress.epoch, (long long)run->progress.all_steps,
                 run->is_unfinished ? "; training was not finished" : "", run->digest);
    html_say(out, "dt", "trained on");
    html_say(out, "dd", "%s; digest %s", run->training != NULL ? run->training : "a data set",
             run->data_digest);
    if (!run->own_data) {
        html_say(out, "dt", "scored on");
        html_say(out, "dd", "%s; digest %s", run->data.name, run->data.digest);
    }
    fputs("</dl>\n", out);
}

static bool is_recorded(const struct report_history *history)
{
    return history->blas != NULL && history->grid != NULL && !history->has_others;
}

/* How exactly, and under what conditions, a command reproduces a run. */
static char *exactness(const struct report_run *run)
{
    const struct report_history *history = &run->history;
    if (run->kind->fit.grid == NULL)
        return memory_text("bit for bit on any number of ranks");
    if (history->has_others)
        return memory_text(
            "to about 1e-9 or the last bit of a float, because it was trained on different "
            "grids of ranks or with different OpenBLAS kernels");
    if (!is_recorded(history))
        return memory_text(
            "bit for bit on the grid of ranks and with the OpenBLAS kernels that "
            "it was trained with, which its log does not name; elsewhere its "
            "numbers agree to about 1e-9 or the last bit of a float");
    return memory_text(
        "bit for bit on the grid of %s ranks and with the OpenBLAS kernels for %s "
        "that it was trained with; elsewhere its numbers agree to about 1e-9 or the last bit "
        "of a float",
        history->grid, history->blas);
}

/* What comes before `cohort` in the command; with as many ranks, model.grid=auto gives the same
 * grid. */
static char *launch(const struct report_run *run)
{
    const struct report_history *history = &run->history;
    int n_rows = 0, n_columns = 0;
    if (run->kind->fit.grid == NULL || !is_recorded(history) ||
        sscanf(history->grid, "%6dx%6d", &n_rows, &n_columns) != 2)
        return memory_text("%s", "");
    char *words = shell_quote_text("%s", history->blas);
    char *all = memory_text("OPENBLAS_CORETYPE=%s ", words);
    memory_free(words);
    if (n_rows * (int64_t)n_columns > 1)
        memory_append(&all, "mpirun -n %" PRId64 " ", n_rows * (int64_t)n_columns);
    return all;
}

static void show_repeat(FILE *out, const struct report_run *run)
{
    const char *data = run->training != NULL ? run->training : "DATA.h5";
    char *exactly = exactness(run), *before = launch(run);
    if (run->kind->made_by != NULL) {
        fputs("<p>A blend contains its members", out);
        for (size_t m = 0; m < run->members.n; m++) {
            fputs(m == 0 ? ": " : m + 1 == run->members.n ? " and " : ", ", out);
            html_text(out, names_get(&run->members.names, m));
        }
        fputs(
            ". It does not record the directories of their runs; <code>cohort blend</code> of "
            "these runs, in this order, makes it again.</p>\n",
            out);
    } else if (run->is_refit) {
        html_say(
            out, "p",
            "A refit: the model of %s, trained again on its training and validation answers "
            "together. This command reproduces it %s:",
            run->origin != NULL ? run->origin : "another run", exactly);
        char *origin = shell_quote_text("refit=%s", run->origin != NULL ? run->origin : "RUN");
        html_say(out, "pre", "%scohort train %s run=runs/again", before, origin);
        memory_free(origin);
    } else if (strstr(run->config, "\n[update]\n") != NULL) {
        char *base = run_setting(run->path, "train", "update");
        html_say(
            out, "p",
            "An update: the model of another run, trained on with these data. This command "
            "repeats it, with those of the settings below in [train] and [optimizer] that "
            "were changed:");
        char *origin = shell_quote_text("%s", base != NULL ? base : "RUN");
        char *added = shell_quote_text("%s", data);
        html_say(out, "pre", "cohort update %s --data %s run=runs/again", origin, added);
        memory_free(added);
        memory_free(origin);
        memory_free(base);
    } else {
        html_say(
            out, "p",
            "Save the settings below as settings.ini. This command then reproduces the model "
            "%s:",
            exactly);
        char *word = shell_quote_text("data=%s", data);
        html_say(out, "pre", "%scohort train settings.ini %s run=runs/again", before, word);
        memory_free(word);
    }
    memory_free(before);
    memory_free(exactly);
}

static void show_config(FILE *out, const struct report_run *run)
{
    fputs("<pre>", out);
    for (const char *line = run->config; *line != '\0';) {
        const size_t n = strcspn(line, "\n");
        char *copy = memory_text("%.*s", (int)n, line);
        html_text(out, copy);
        fputc('\n', out);
        memory_free(copy);
        line += n + (line[n] == '\n');
    }
    fputs("</pre>\n", out);
}

void report_show_settings(FILE *out, const struct report *report)
{
    html_say(out, "h2",
             report->n > 1 ? "Settings and how to reproduce these models"
                           : "Settings and how to reproduce this model");
    for (size_t r = 0; r < report->n; r++) {
        const struct report_run *run = &report->runs[r];
        /* Folds differ in train.fold alone. */
        const bool is_repeated = report->whole == WHOLE_FOLDS && r + 1 < report->n;
        if (report->n > 1)
            html_fold(out, run->label);
        show_digests(out, run);
        if (!is_repeated) {
            show_repeat(out, run);
            show_config(out, run);
        }
        fputs(report->n > 1 ? "</details>\n" : "", out);
    }
    if (report->n < report->n_all)
        html_say(out, "h3", "Runs that are not drawn");
    for (size_t r = report->n; r < report->n_all; r++)
        show_digests(out, &report->runs[r]);
    html_say(out, "p class=\"note\"",
             "Written by cohort " COHORT_VERSION
             ". This page is a single file and needs no network. "
             "Every number in it is the same on any number of ranks.");
}
