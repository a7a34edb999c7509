/* Hidden probabilities of students, students down and hidden units across, as figure 5 of Soyer
 * and Moellenhoff: P(h_j = 1 | all answers of the student that the model may know). A sample of
 * the class, the same on any number of ranks, is measured with the model as it was after each
 * snapshot (runs/snapshots.c) and as it is.
 *
 * Before training, all weights are near zero and all probabilities near one half. A unit that has
 * learned something is near 0 for some students and near 1 for others. A unit that is the same
 * for everybody carries nothing.
 *
 * The parameters of a snapshot are loaded into the open model, which gets a view of its own of
 * the students; afterwards its parameters are read again from its own checkpoint. */
#include "base/fail.h"
#include "base/memory.h"
#include "plot/html.h"
#include "plot/plot_heat.h"
#include "report/report_inside.h"
#include "report/report_mastery.h"
#include "runs/snapshots.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_STUDENTS = 24, MOST_UNITS = 40 };
static const double separates = 0.1; /* standard deviation over students */

/* The students of the sample that are on this rank. */
struct sample {
    uint32_t *own;
    size_t n;
};

/* Collective: one panel, with the view `work` of the model. */
static double *measure(const struct inference *inference, void *work,
                       const struct sample *sample, size_t n_units)
{
    const struct model *model = inference->model;
    real *activation = NEW(real, model->kind->view.n_hidden(model));
    double *own = NEW_SCRATCH(double, sample->n *n_units);
    size_t n_bytes = 0;
    for (size_t i = 0; i < sample->n; i++) {
        model->kind->view.hidden(model, work, sample->own[i], activation);
        for (size_t j = 0; j < n_units; j++)
            own[i * n_units + j] = (double)activation[j];
    }
    double *all =
        comm_gather(inference->comm, own, sample->n * n_units * sizeof *own, &n_bytes);
    memory_free(activation);
    memory_free(own);
    return all;
}

/* Collective: share of right answers of each student, of those that the model may know. */
static double *measure_right(const struct inference *inference, const struct sample *sample)
{
    const struct shard *shard = &inference->shard;
    double *own = NEW_SCRATCH(double, sample->n);
    size_t n_bytes = 0;
    for (size_t i = 0; i < sample->n; i++) {
        int64_t n = 0, right = 0;
        for (uint64_t t = shard->first[sample->own[i]]; t < shard->first[sample->own[i] + 1];
             t++)
            if (mark_is_shown(shard->mark[t])) {
                n++;
                right += mark_outcome(shard->mark[t]) == CORRECT;
            }
        own[i] = n > 0 ? (double)right / (double)n : NAN;
    }
    double *all = comm_gather(inference->comm, own, sample->n * sizeof *own, &n_bytes);
    memory_free(own);
    return all;
}

static enum status check_snapshot(const struct checkpoint *snapshot,
                                  const struct checkpoint *own)
{
    if (strcmp(snapshot->model, own->model) == 0 &&
        strcmp(snapshot->data_digest, own->data_digest) == 0 &&
        names_equal(&snapshot->items, &own->items))
        return OK;
    return fail(BAD_DATA,
                "%s: this is a checkpoint of another run, with another model or other data; "
                "remove it",
                snapshot->path);
}

/* Collective: the panel of a snapshot. */
static enum status measure_snapshot(struct report_hidden *hidden,
                                    const struct inference *inference,
                                    const struct sample *sample, const char *path)
{
    struct model *model = inference->model;
    struct checkpoint snapshot;
    TRY(checkpoint_open(&snapshot, path, inference->comm));
    enum status status = check_snapshot(&snapshot, &inference->checkpoint);
    if (status == OK)
        status = checkpoint_params(&snapshot, inference->comm, model);
    if (status == OK) {
        void *work = model->kind->attach(model, &inference->shard, TO_PREDICT);
        hidden->chance[hidden->n_panels++] = measure(inference, work, sample, hidden->n_units);
        model->kind->detach(work);
    }
    checkpoint_close(&snapshot);
    return status;
}

/* Collective: the epochs to draw, an even selection without the model's own. */
static size_t choose_epochs(const struct inference *inference,
                            int64_t epoch[REPORT_MOST_PANELS])
{
    int64_t *all = NULL, n = 0;
    if (inference->comm->rank == 0) {
        size_t n_all = snapshots_list(inference->checkpoint.path, &all), n_before = 0;
        for (size_t i = 0; i < n_all; i++)
            if (all[i] != inference->checkpoint.progress.epoch)
                all[n_before++] = all[i];
        n = (int64_t)size_min(n_before, REPORT_MOST_PANELS - 1);
        for (size_t i = 0; i < (size_t)n; i++)
            epoch[i] = all[n > 1 ? i * (n_before - 1) / ((size_t)n - 1) : 0];
    }
    comm_broadcast(inference->comm, &n, sizeof n, 0);
    comm_broadcast(inference->comm, epoch, (size_t)n * sizeof *epoch, 0);
    memory_free(all);
    return (size_t)n;
}

/* Collective: the panels of the snapshots. */
static enum status measure_snapshots(struct report_hidden *hidden,
                                     const struct inference *inference,
                                     const struct sample *sample)
{
    const size_t n = choose_epochs(inference, hidden->epoch);
    enum status status = OK;
    for (size_t i = 0; i < n && status == OK; i++) {
        char *path = comm_share_text(
            inference->comm, inference->comm->rank == 0
                                 ? snapshots_path(inference->checkpoint.path, hidden->epoch[i])
                                 : NULL);
        status = measure_snapshot(hidden, inference, sample, path);
        memory_free(path);
    }
    if (status == OK && n > 0)
        status = checkpoint_params(&inference->checkpoint, inference->comm, inference->model);
    return status;
}

/* The panel of the model itself, at its place in time: later epochs may have been worse. */
static void insert(struct report_hidden *hidden, int64_t epoch, double *chance)
{
    size_t place = hidden->n_panels++;
    for (; place > 0 && hidden->epoch[place - 1] > epoch; place--) {
        hidden->epoch[place] = hidden->epoch[place - 1];
        hidden->chance[place] = hidden->chance[place - 1];
    }
    hidden->epoch[place] = epoch;
    hidden->chance[place] = chance;
    hidden->own = place;
}

enum status report_hidden_measure(struct report_hidden *hidden,
                                  const struct inference *inference)
{
    const struct model *model = inference->model;
    const struct model_view *view = &model->kind->view;
    uint64_t *students = NULL;
    if (view->hidden == NULL || view->hidden_is_chance == NULL ||
        !view->hidden_is_chance(model) || model_task(model) != TASK_TRACE)
        return OK;
    hidden->n_students = report_sample_students(&inference->dataset, 1, MOST_STUDENTS,
                                                &students, &hidden->n_all);
    hidden->n_units = view->n_hidden(model);
    struct sample sample = {.own = NEW_SCRATCH(uint32_t, hidden->n_students)};
    sample.n = report_sample_own(&inference->shard, students, hidden->n_students, sample.own);
    enum status status = measure_snapshots(hidden, inference, &sample);
    if (status == OK) {
        hidden->right = measure_right(inference, &sample);
        insert(hidden, inference->checkpoint.progress.epoch,
               measure(inference, inference->work, &sample, hidden->n_units));
    }
    memory_free(students);
    memory_free(sample.own);
    return status;
}

void report_hidden_free(struct report_hidden *hidden)
{
    for (size_t p = 0; p < hidden->n_panels; p++)
        memory_free(hidden->chance[p]);
    memory_free(hidden->right);
    *hidden = (struct report_hidden){0};
}

struct ranked {
    double right;
    size_t i;
};

/* The most right answers first; students without known answers last. */
static int compare(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    const double p = isnan(x->right) ? -1 : x->right, q = isnan(y->right) ? -1 : y->right;
    return p != q ? (p < q ? 1 : -1) : (x->i > y->i) - (x->i < y->i);
}

static size_t count_separating(const struct report_hidden *hidden, size_t panel)
{
    const size_t n = hidden->n_students, m = hidden->n_units;
    const double *chance = hidden->chance[panel];
    size_t n_separating = 0;
    for (size_t j = 0; j < m; j++) {
        double sum = 0, squares = 0;
        for (size_t i = 0; i < n; i++)
            sum += chance[i * m + j];
        for (size_t i = 0; i < n; i++)
            squares +=
                (chance[i * m + j] - sum / (double)n) * (chance[i * m + j] - sum / (double)n);
        n_separating += squares >= separates * separates * (double)n;
    }
    return n_separating;
}

static void draw_panel(FILE *out, const struct report_hidden *hidden, size_t panel,
                       const struct ranked *ranked, const char *const *rows)
{
    const size_t n = hidden->n_students, n_all = hidden->n_units,
                 m = size_min(n_all, MOST_UNITS);
    double *value = NEW_SCRATCH(double, n *m);
    for (size_t i = 0; i < n; i++)
        memcpy(value + i * m, hidden->chance[panel] + ranked[i].i * n_all, m * sizeof *value);
    char *when = hidden->epoch[panel] == 0
                     ? memory_text("%s", "before training")
                     : memory_text("after epoch %lld%s", (long long)hidden->epoch[panel],
                                   panel == hidden->own ? ", this model" : "");
    char *title = memory_text("Hidden units of students, %s", when);
    html_figure(out, title);
    plot_heat_draw(out, &(struct plot_heat){.title = title,
                                            .n_rows = n,
                                            .n_columns = m,
                                            .rows = rows,
                                            .first_number = 1,
                                            .label = "hidden unit",
                                            .scale = "probability",
                                            .value = value});
    html_caption(out, "Units that separate students: %zu of %zu.",
                 count_separating(hidden, panel), n_all);
    memory_free(when);
    memory_free(title);
    memory_free(value);
}

void report_hidden_show(FILE *out, const struct report_hidden *hidden)
{
    const size_t n = hidden->n_students;
    if (n == 0)
        return;
    struct ranked *ranked = NEW(struct ranked, n);
    char **rows = NEW(char *, n);
    for (size_t i = 0; i < n; i++)
        ranked[i] = (struct ranked){hidden->right[i], i};
    qsort(ranked, n, sizeof *ranked, compare);
    for (size_t i = 0; i < n; i++)
        rows[i] = isnan(ranked[i].right) ? memory_text("%s", "no answers")
                                         : memory_text("%.0f %% right", 100 * ranked[i].right);
    html_say(out, "h3", "Hidden units of students");
    html_say(out, "p",
             "Each row is a student%s, with the share of right answers; the most are at the "
             "top. Each column is a hidden unit%s, and its shade is the probability that the "
             "unit is on, given the student's answers. Good: columns that are strong for some "
             "students and faint for others. A unit that is the same for everybody, always 0 "
             "or always 1, carries nothing; a unit separates students here if its standard "
             "deviation is at least %g.%s",
             n < hidden->n_all ? ", an even selection of the class" : "",
             hidden->n_units > MOST_UNITS ? " (the first ones are drawn)" : "", separates,
             hidden->n_panels == 1 ? " Train with “run.snapshots=0 1 3 10” to see how they "
                                     "came to be."
                                   : "");
    html_figures(out);
    for (size_t p = 0; p < hidden->n_panels; p++)
        draw_panel(out, hidden, p, ranked, (const char *const *)rows);
    html_figures_end(out);
    for (size_t i = 0; i < n; i++)
        memory_free(rows[i]);
    memory_free(rows);
    memory_free(ranked);
}
