/* What each member adds to a model made of others: its own score, and the score of the blend
 * that is left without it. The weights of the others are fitted again on the validation answers,
 * as `cohort blend` fits them (blending_weights.c), so the difference is what the member adds
 * beyond them. A member that others replace adds nothing, however large its weight.
 *
 * A blend of refits was fitted on the predictions of other runs, and data other than its own
 * have no validation answers of that fit; then only the scores of the members are shown. */
#include "base/fail.h"
#include "base/memory.h"
#include "plot/html.h"
#include "plot/plot.h"
#include "report/report_internal.h"
#include "runs/scoring.h"
#include <math.h>
#include <string.h>

static const struct model_live *live_of(const struct inference *inference)
{
    return &inference->model->kind->live;
}

/* Stores the predictions of member m for the known answers in `splits`. */
static enum status predict(struct blend_part *to, const struct inference *inference, size_t m,
                           unsigned splits)
{
    const struct model *model = NULL;
    void *work = NULL;
    struct predictions predictions;
    live_of(inference)->part(inference->model, inference->work, m, &model, &work);
    TRY(comm_agree(inference->comm,
                   scoring_predict(model, work, &inference->shard, splits, &predictions)));
    scoring_keep(&predictions, &inference->shard, false);
    if (to->list == NULL) {
        to->n = predictions.n;
        to->list = NEW_SCRATCH(struct prediction, to->n);
        memcpy(to->list, predictions.list, to->n * sizeof *to->list);
    }
    to->p[m] = NEW_SCRATCH(float, to->n);
    for (size_t i = 0; i < to->n; i++)
        to->p[m][i] = predictions.list[i].probability;
    scoring_free(&predictions);
    return OK;
}

/* The table numbers all members: "2 dkt". Without the number if no other has this kind. */
static const char *short_name(const struct names *names, size_t m)
{
    static const char number[] = "0123456789 ";
    const char *name = names_get(names, m), *kind = name + strspn(name, number);
    for (size_t k = 0; k < names->n; k++) {
        const char *other = names_get(names, k);
        if (k != m && strcmp(other + strspn(other, number), kind) == 0)
            return name;
    }
    return kind;
}

/* The weights of all members, as the table has them. */
static void take_table(struct report_members *members, const struct report_run *run)
{
    for (size_t k = 0; k < run->n_tables; k++) {
        const struct table *table = &run->tables[k];
        const size_t column = table_column(table, "weight");
        if (column == SIZE_MAX || strcmp(table->row, "member") != 0)
            continue;
        members->n = size_min(table->n_rows, BLEND_MOST);
        for (size_t m = 0; m < members->n; m++) {
            const char *name = short_name(&table->row_names, m);
            names_add(&members->names, name, strlen(name));
            members->weight[m] = table_row(table, m)[column];
        }
        return;
    }
}

static void score(struct report_members *members, const struct blend *blend,
                  enum blend_method method, bool fits)
{
    const size_t n = members->n;
    for (size_t m = 0; m < n; m++) {
        const struct blend_weights one = {.n = 1, .members = {m}, .weights = {1}};
        blend_score(blend, &one, 1, false, &members->alone[m]);
        struct blend_weights rest = {.method = method};
        for (size_t k = 0; k < n; k++)
            if (k != m)
                rest.members[rest.n++] = k;
        if (!fits || rest.n == 0)
            continue;
        blend_fit(blend, &rest);
        blend_score(blend, &rest, 1, false, &members->without[m]);
    }
}

enum status report_members_measure(struct report_run *run, const struct inference *inference)
{
    struct report_members *members = &run->members;
    if (live_of(inference)->part == NULL || run->task != TASK_TRACE)
        return OK;
    /* Items that the model does not know are predicted by other items, not by its members. */
    if (inference->stand_ins.n_passes > 0)
        return OK;
    take_table(members, run);
    const char *method = config_get(inference->config, "model", "method");
    const bool is_logistic =
        method != NULL && strcmp(method, blend_methods[BLEND_LOGISTIC]) == 0;
    struct blend blend = {.comm = inference->comm, .n_members = members->n};
    enum status status = OK;
    for (size_t m = 0; m < members->n && status == OK; m++) {
        status = predict(&blend.parts[0], inference, m, 1u << VALID);
        if (status == OK)
            status = predict(&blend.parts[1], inference, m, report_score_splits(run));
    }
    int64_t n_valid = (int64_t)blend.parts[0].n;
    comm_sum_i64(inference->comm, &n_valid, 1);
    if (status == OK)
        score(members, &blend, is_logistic ? BLEND_LOGISTIC : BLEND_CONVEX,
              inference->own_data && !run->is_refit && n_valid > 0);
    blend_destroy(&blend);
    return status;
}

/* Bars for what members add; the axis spans at least a thousandth, so that what does not matter
 * looks small. */
static void draw_gains(FILE *out, const struct report_run *run)
{
    const struct report_members *members = &run->members;
    double gain[BLEND_MOST], place[BLEND_MOST], low = 0, high = 0.001;
    const char *names[BLEND_MOST];
    for (size_t m = 0; m < members->n; m++) {
        gain[m] = members->without[m].log_loss - run->model.all.log_loss;
        place[m] = (double)m;
        names[m] = names_get(&members->names, m);
        low = fmin(low, gain[m]);
        high = fmax(high, gain[m]);
    }
    plot_round(&low, &high);
    const struct plot_series bars = {
        .style = PLOT_ROWS, .n = members->n, .x = gain, .y = place};
    html_figure(out, "What each member adds");
    plot_draw(out, &(struct plot){.title = "What each member adds",
                                  .x = {.label = "rise of the log-loss without the member",
                                        .low = low,
                                        .high = high},
                                  .y = {.names = names, .n_names = members->n},
                                  .series = &bars,
                                  .n_series = 1});
    html_caption(out,
                 "How much the log-loss of the %s rises if the member is removed and the "
                 "weights of the others are fitted again. A bar near 0 is a member that the "
                 "others replace, even if its weight is large; below 0, the blend would be "
                 "better without it.",
                 report_split_words(run, 2));
}

void report_members_show(FILE *out, const struct report_run *run)
{
    const struct report_members *members = &run->members;
    static const char *const heads[] = {
        "member",         "weight", "log-loss alone", "AUC alone", "log-loss without it",
        "rise without it"};
    if (members->n == 0)
        return;
    const bool fits = members->without[0].n > 0;
    html_say(out, "h3", "Members: what each adds");
    if (fits) {
        html_figures(out);
        draw_gains(out, run);
        html_figures_end(out);
    }
    html_table_begin(out, heads, fits ? COUNT(heads) : 4);
    for (size_t m = 0; m <= members->n; m++) {
        const bool all = m == members->n;
        html_row(out, all ? "blend" : names_get(&members->names, m));
        html_number(out, 4, all ? NAN : members->weight[m]);
        html_number(out, 5, all ? run->model.all.log_loss : members->alone[m].log_loss);
        html_number(out, 4, all ? run->model.all.auc : members->alone[m].auc);
        if (fits) {
            html_number(out, 5, all ? NAN : members->without[m].log_loss);
            html_number(out, 5,
                        all ? NAN : members->without[m].log_loss - run->model.all.log_loss);
        }
        html_row_end(out);
    }
    html_table_end(out);
    html_say(out, "p class=\"note\"", "Scores of the %s.%s", report_split_words(run, 2),
             fits
                 ? ""
                 : " What a member adds is not shown: it needs the validation answers on which "
                   "the weights of this blend were fitted.");
}
