/* Bayesian knowledge tracing (Corbett and Anderson, 1995).
 *
 * A student either knows a skill or does not, at first with probability p0. An attempt is
 * correct with probability 1 - slip if the skill is known, and guess if it is not. After the
 * attempt an unknown skill is learned with probability `learn`, and a known one is forgotten
 * with probability `forget` (0 unless enabled). With k = P(known | everything shown before):
 *
 *     p(correct) = k (1 - slip) + (1 - k) guess
 *     k         <- learn + (1 - forget - learn) P(known | outcome as well)
 *
 *     tensor                              shape             content
 *     p0, learn, guess, slip [, forget]   skills            log-odds, so any number is valid
 *     attempts, log_likelihood, settled   skills            progress of its training
 *     common                              1, rates          mean of all skills, by attempts
 *     item_guess, item_slip               items             with items = yes
 *     tries                    restarts, skills, rates      during exploration
 *
 * Decisions where the literature leaves a choice:
 *   - An attempt at an item with several skills is evidence for each of them, as if it were
 *     the only one. The prediction is the mean of the skills' predictions (or their product,
 *     or the weakest: `several`).
 *   - An attempt whose outcome is unknown or not shown is no evidence, but the skill may still
 *     be learned at it.
 *   - If the data have no skills, every item is its own skill. If some items have none, these
 *     items share one trace, which is predicted from `common` and not learned from. The same
 *     holds for skills that are new in other data. A skill without training attempts has the
 *     rates of `common`.
 *   - guess and slip have upper bounds whose sum is below 1, since otherwise known and unknown
 *     could change roles. A weak Beta prior keeps the rates of rare skills away from 0 and 1
 *     (prior = 0: none).
 *   - With odds of 1e100 for knowing a skill, a student would have to fail about a hundred
 *     times before that matters. Real students are not two-state chains, so predictions limit
 *     the odds to `most_odds`; EM does not. In validation the default costs at most 2e-5 nats
 *     per answer on three simulated classes of true chains. ASSISTments 2009 gains 1e-3,
 *     Statics with its Q-matrix 1e-4, Statics by item nothing.
 *   - Only items with one skill have their own guess and slip (`items`). Items with several use
 *     those of the skills, since a rate shared by two skills would couple their fits.
 *
 * Training is in bkt_learn.c, the traces it runs over in bkt_traces.c, prediction in
 * bkt_predict.c. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "models/bkt/bkt_internal.h"
#include <math.h>
#include <sleef.h>
#include <string.h>

static const char *const trace_kinds[] = {"auto", "skill", "item", NULL};
static const char *const several_kinds[] = {"mean", "product", "weakest", NULL};
const char *const bkt_rate_names[N_RATES] = {"p0", "learn", "guess", "slip", "forget"};
const double bkt_centres[N_RATES] = {0.5, 0.1, 0.2, 0.1, 0.02};

#define AT(field) offsetof(struct bkt_options, field)
static const struct option table[] = {
    {"trace", OPTION_CHOICE, AT(trace), "auto", 0, 0, trace_kinds,
     "what is known or not known: each skill or each item; auto: skills if the data have them"},
    {"forget", OPTION_SWITCH, AT(forget), "no", 0, 0, NULL,
     "let known skills be forgotten, with a forget rate per skill"},
    {"items", OPTION_SWITCH, AT(items), "no", 0, 0, NULL,
     "give each item with a single skill its own guess and slip"},
    {"several", OPTION_CHOICE, AT(several), "mean", 0, 0, several_kinds,
     "how to combine the predictions of the skills of an item with several skills"},
    {"restarts", OPTION_INTEGER, AT(restarts), "1", 1, 1000, NULL,
     "number of EM starts: the first at fixed rates, the others random; each skill keeps the "
     "start with the highest likelihood"},
    {"explore", OPTION_INTEGER, AT(explore), "10", 1, 1e6, NULL,
     "epochs in which all starts run side by side before the best one continues alone"},
    {"prior", OPTION_NUMBER, AT(prior), "2", 0, 1e6, NULL,
     "strength of the Beta prior on every rate, in observations; 0: maximum likelihood"},
    {"most_guess", OPTION_NUMBER, AT(most_guess), "0.5", 1e-3, 0.999, NULL,
     "upper bound of guess; most_guess + most_slip must be below 1"},
    {"most_slip", OPTION_NUMBER, AT(most_slip), "0.4", 1e-3, 0.999, NULL,
     "upper bound of slip; most_guess + most_slip must be below 1"},
    {"most_odds", OPTION_NUMBER, AT(most_odds), "1e4", 0, 1e300, NULL,
     "upper limit on the odds of knowing a skill in predictions, so that a failure after a "
     "long run of right answers soon counts; 0: no limit, exactly Bayes' rule"},
    {"tolerance", OPTION_NUMBER, AT(tolerance), "1e-6", 1e-12, 1, NULL,
     "a skill has converged when an epoch raises its log-likelihood by less than this "
     "fraction"},
};

double bkt_chance(real log_odds)
{
    return 1 / (1 + Sleef_cinz_expd1_u10purec(-(double)log_odds));
}

double bkt_rate(real log_odds)
{
    return fmin(fmax(bkt_chance(log_odds), BKT_LEAST_RATE), 1 - BKT_LEAST_RATE);
}

real bkt_log_odds(double chance)
{
    return (real)Sleef_cinz_logd1_u10purec(chance / (1 - chance));
}

static struct bkt_shape derive(const struct model *model)
{
    const struct bkt_options *o = model->options;
    struct bkt_shape shape = {.by_item = o->trace == TRACE_ITEM ||
                                         (o->trace == TRACE_AUTO && model->n_skills == 0)};
    shape.n_skills = shape.by_item ? model->n_items : model->n_skills;
    shape.n_rates = o->forget ? N_RATES : N_RATES - 1;
    shape.attempts = shape.n_rates;
    shape.fit = shape.n_rates + 1;
    shape.settled = shape.n_rates + 2;
    shape.has_items = o->items;
    shape.has_tries = o->restarts > 1;
    shape.common_panel = 1;
    shape.item_panel = 2;
    shape.try_panel = shape.has_items ? 3 : 2;
    return shape;
}

static enum status check_skills(const struct model *model, const struct bkt_shape *shape)
{
    const struct bkt_options *o = model->options;
    if (o->most_guess + o->most_slip >= 1)
        return fail(BAD_USER,
                    "model.most_guess = %g and model.most_slip = %g must add up to less than "
                    "1: otherwise a student who knows a skill could do worse than one who "
                    "does not",
                    o->most_guess, o->most_slip);
    if (o->items && shape->by_item)
        return fail(BAD_USER,
                    "model.items = yes, but %s: every item already has its own guess and "
                    "slip; use model.items=no",
                    o->trace == TRACE_ITEM ? "model.trace = item"
                                           : "the data set has no "
                                             "skills");
    if (shape->n_skills == 0)
        return fail(BAD_USER,
                    "model.trace = skill, but the data set has no skills; import it with "
                    "--skills or --q-matrix, or use model.trace=item");
    const struct dataset *dataset = model->dataset;
    if (dataset != NULL && !shape->by_item && dataset->item_first[dataset->n_items] == 0)
        return fail(BAD_USER,
                    "%s: none of its items belongs to any of its %zu skills, so there is "
                    "nothing to trace; import it with --skills or --q-matrix, or use "
                    "model.trace=item",
                    dataset->path, shape->n_skills);
    return OK;
}

static enum status declare(struct model *model)
{
    const struct bkt_options *o = model->options;
    struct params *p = &model->params;
    struct bkt_shape *shape = model->shape;
    *shape = derive(model);
    TRY(check_skills(model, shape));
    static const char *const others[] = {"attempts", "log_likelihood", "settled"};
    const uint64_t n = shape->n_skills;
    const char *of = shape->by_item ? "item" : "skill";
    size_t panel = params_panel_of(p, of, n, shape->n_rates + COUNT(others));
    for (size_t c = 0; c < shape->n_rates + COUNT(others); c++) {
        struct tensor tensor = {"", panel, c, 1, 1, {n}, false};
        snprintf(tensor.name, sizeof tensor.name, "%s",
                 c < shape->n_rates ? bkt_rate_names[c] : others[c - shape->n_rates]);
        (c < shape->n_rates ? params_logits : params_tensor)(p, &tensor);
    }
    panel = params_panel(p, 1, shape->n_rates);
    params_logits(
        p, &(struct tensor){"common", panel, 0, shape->n_rates, 2, {1, shape->n_rates}, false});
    if (shape->has_items) {
        panel = params_panel_of(p, "item", model->n_items, 2);
        params_logits(p,
                      &(struct tensor){"item_guess", panel, 0, 1, 1, {model->n_items}, false});
        params_logits(p,
                      &(struct tensor){"item_slip", panel, 1, 1, 1, {model->n_items}, false});
    }
    if (shape->has_tries) {
        const uint64_t n_tries = (uint64_t)o->restarts;
        panel = params_panel(p, n_tries * n, shape->n_rates);
        params_logits(
            p, &(struct tensor){
                   "tries", panel, 0, shape->n_rates, 3, {n_tries, n, shape->n_rates}, false});
    }
    return OK;
}

/* Initial rates number r of a skill. */
static void start(const struct bkt_options *o, uint64_t seed, size_t r, size_t k,
                  size_t n_rates, real *row)
{
    const double least[N_RATES] = {0.05, 0.01, 0.05 * o->most_guess, 0.05 * o->most_slip,
                                   0.005};
    const double most[N_RATES] = {0.95, 0.5, 0.95 * o->most_guess, 0.95 * o->most_slip, 0.2};
    const struct rng rng = {
        .seed = seed, .purpose = RNG_INIT, .part = (uint32_t)r, .who = (uint32_t)k};
    for (size_t c = 0; c < n_rates; c++) {
        const double standard = fmin(fmax(bkt_centres[c], least[c]), most[c]);
        row[c] = bkt_log_odds(r == 0 ? standard
                                     : least[c] + (most[c] - least[c]) *
                                                      rng_uniform(&rng, (uint32_t)c));
    }
}

static void init(struct model *model, uint64_t seed, const struct item_counts *counts)
{
    (void)counts;
    const struct bkt_options *o = model->options;
    const struct bkt_shape *shape = bkt_shape(model);
    const struct params *p = &model->params;
    for (size_t k = 0; k < shape->n_skills; k++)
        start(o, seed, 0, k, shape->n_rates, bkt_row(p, p->value, shape->skill_panel, k));
    start(o, seed, 0, 0, shape->n_rates, bkt_row(p, p->value, shape->common_panel, 0));
    for (size_t i = 0; shape->has_items && i < model->n_items; i++)
        memcpy(bkt_row(p, p->value, shape->item_panel, i),
               bkt_row(p, p->value, shape->common_panel, 0) + RATE_GUESS, 2 * sizeof(real));
    for (size_t r = 0; shape->has_tries && r < (size_t)o->restarts; r++)
        for (size_t k = 0; k < shape->n_skills; k++)
            start(o, seed, r, k, shape->n_rates,
                  bkt_row(p, p->value, shape->try_panel, r * shape->n_skills + k));
}

static void *attach(const struct model *model, const struct shard *shard, enum model_use use)
{
    (void)use;
    struct bkt_work *work = NEW(struct bkt_work, 1);
    const struct dataset *dataset = shard->dataset;
    work->shard = shard;
    work->shape = bkt_shape(model);
    work->beliefs = NEW(struct bkt_belief, work->shape->n_skills + 1);
    work->no_skill = (uint32_t)work->shape->n_skills;
    if (work->shape->by_item) {
        work->links.first = NEW(uint64_t, model->n_items + 1);
        work->links.skill = NEW(uint32_t, model->n_items);
        for (size_t i = 0; i < model->n_items; i++) {
            work->links.first[i + 1] = i + 1;
            work->links.skill[i] = (uint32_t)i;
        }
    } else {
        work->links.first = dataset->item_first;
        work->links.skill = dataset->item_skills;
    }
    return work;
}

static void detach(void *memory)
{
    struct bkt_work *work = memory;
    if (work->shape->by_item) {
        memory_free(work->links.first);
        memory_free(work->links.skill);
    }
    bkt_traces_free(&work->traces);
    memory_free(work->beliefs);
    memory_free(work->counts);
    memory_free(work->row_counts);
    memory_free(work);
}

static void training(const void *memory, bool *has_training, int64_t *n_attempts)
{
    const struct bkt_work *work = memory;
    const struct shard *shard = work->shard;
    *n_attempts = 0;
    for (size_t s = 0; s < shard->n_students; s++) {
        const int64_t before = *n_attempts;
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
            const uint64_t *first = work->links.first + shard->item[t];
            *n_attempts += mark_trains(shard->mark[t]) && first[1] > first[0];
        }
        has_training[s] = *n_attempts > before;
    }
}

static void fill_rates(const real *row, size_t n, double *values)
{
    for (size_t c = 0; c < n; c++)
        values[c] = bkt_chance(row[c]);
}

static bool has_several(const struct model *model, size_t i)
{
    const struct dataset *dataset = model->dataset;
    return dataset != NULL && dataset->item_first != NULL &&
           dataset->item_first[i + 1] - dataset->item_first[i] > 1;
}

static void make_table(const struct model *model, size_t which, struct table *made)
{
    const struct bkt_shape *shape = bkt_shape(model);
    const struct params *p = &model->params;
    const bool forgets = shape->n_rates == N_RATES;
    if (which == 0) {
        table_create(made, "skills", shape->by_item ? "item" : "skill", shape->n_skills,
                     forgets ? "p0 learn guess slip forget attempts log_likelihood"
                             : "p0 learn guess slip attempts log_likelihood");
        made->caption =
            "Bayesian knowledge tracing: the chance that a student knows the skill at the "
            "start (p0), learns it at an attempt (learn), answers correctly without knowing "
            "it (guess) and wrongly despite knowing it (slip). The column forget, if "
            "present, is the chance of forgetting it at an attempt.";
        for (size_t k = 0; k < shape->n_skills; k++) {
            const real *row = bkt_row(p, p->value, shape->skill_panel, k);
            double *values = table_row(made, k);
            fill_rates(row, shape->n_rates, values);
            values[shape->attempts] = (double)row[shape->attempts];
            values[shape->fit] = (double)row[shape->fit];
        }
    } else if (which == 1) {
        table_create(made, "common", "of", 1,
                     forgets ? "p0 learn guess slip forget" : "p0 learn guess slip");
        made->caption = "Mean rates of all skills, weighted by their attempts. Skills "
                        "without training attempts have these rates.";
        names_add(&made->row_names, "all", 3);
        fill_rates(bkt_row(p, p->value, shape->common_panel, 0), shape->n_rates,
                   table_row(made, 0));
    } else {
        table_create(made, "items", "item", shape->has_items ? model->n_items : 0,
                     "guess slip");
        made->caption =
            "Guess and slip of each item with one skill. Items with several skills "
            "are predicted by the rates of their skills and have none of their own.";
        for (size_t i = 0; i < made->n_rows; i++)
            if (has_several(model, i))
                table_row(made, i)[0] = table_row(made, i)[1] = NAN;
            else
                fill_rates(bkt_row(p, p->value, shape->item_panel, i), 2, table_row(made, i));
    }
}

static unsigned uses(const struct model *model)
{
    return bkt_shape(model)->by_item ? 0 : MODEL_SKILLS;
}

const struct model_kind bkt_kind = {
    .name = "bkt",
    .title = "Bayesian knowledge tracing: each skill is known or not known, trained by EM",
    .source = "Corbett and Anderson 1995",
    .loss = "negative log-likelihood of the training answers and the prior, in nats per "
            "answer",
    .options = table,
    .n_options = COUNT(table),
    .options_size = sizeof(struct bkt_options),
    .shape_size = sizeof(struct bkt_shape),
    .declare = declare,
    .init = init,
    .attach = attach,
    .detach = detach,
    .training = training,
    .predict = bkt_predict,
    .setup = {.uses = uses},
    .fit = {.learn = bkt_learn},
    .view = {.n_tables = 3, .table = make_table, .deviation = bkt_deviation},
    .live = {.begin = bkt_live_begin,
             .tell = bkt_live_tell,
             .ask = bkt_live_ask,
             .know = bkt_live_know,
             .knows_items = bkt_knows_items},
};
