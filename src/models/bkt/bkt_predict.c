/* Prediction by Bayesian knowledge tracing; symbols as in bkt.c.
 *
 * A walk along the student's attempts keeps the belief about every skill met. An answer at item q
 * has the chance that its skills give, then the outcome changes the belief about each of them. */
#include "models/bkt/bkt_internal.h"
#include <math.h>

/* The current belief about a skill of the student; p0 at the first attempt in this call. */
static struct bkt_belief *belief_of(const struct model *model, struct bkt_work *work, size_t k)
{
    struct bkt_belief *belief = &work->beliefs[k];
    if (belief->call == work->n_calls)
        return belief;
    const struct bkt_shape *shape = work->shape;
    const struct params *p = &model->params;
    const real *row = k < shape->n_skills ? bkt_row(p, p->value, shape->skill_panel, k)
                                          : bkt_row(p, p->value, shape->common_panel, 0);
    for (size_t c = 0; c < shape->n_rates; c++)
        belief->rate[c] = bkt_rate(row[c]);
    belief->odds = (1 - belief->rate[RATE_FIRST]) / belief->rate[RATE_FIRST];
    belief->depth = 0;
    belief->call = work->n_calls;
    return belief;
}

static double chance_of_right(const struct bkt_belief *belief, double guess, double slip)
{
    const double odds = belief->depth > 0 ? 0 : belief->odds;
    return ((1 - slip) + odds * guess) / (1 + odds);
}

/* The variance of the chance: 1 - slip if the student knows the skill, else guess. */
static double variance_of_right(const struct bkt_belief *belief, double guess, double slip)
{
    const double odds = belief->depth > 0 ? 0 : belief->odds, gap = 1 - slip - guess;
    return odds / (1 + odds) / (1 + odds) * gap * gap;
}

/* Bayes' rule with the outcome, then the transition (learn, forget). Odds below 1 / UNIT are
 * kept in units of 1 / UNIT, 1 / UNIT^2, ...: a long run of right outcomes then needs an
 * equally long run of wrong ones to undo it, which a number with a smallest value could not
 * represent. (With forgetting the odds never get that small.) */
static void update(struct bkt_belief *belief, uint8_t mark, double guess, double slip,
                   double least)
{
    static const double unit = 0x1p512;
    const double learn = belief->rate[RATE_LEARN], forget = belief->rate[RATE_FORGET];
    double odds = belief->odds;
    if (mark_is_shown(mark))
        odds *= mark_outcome(mark) == CORRECT ? guess / (1 - slip) : (1 - guess) / slip;
    odds = belief->depth > 0 ? (1 - learn) * odds
                             : (forget + (1 - learn) * odds) / ((1 - forget) + learn * odds);
    if (odds < 1 / unit) {
        odds *= unit;
        belief->depth++;
    } else if (belief->depth > 0 && odds > 1) {
        odds /= unit;
        belief->depth--;
    }
    if (belief->depth > 0 ? least > 0 : odds < least) {
        odds = least;
        belief->depth = 0;
    }
    belief->odds = odds;
}

/* The skills of an item; items without skills share one trace. */
struct traced {
    const uint32_t *skills;
    size_t n;
    bool has_own; /* the item has its own guess and slip */
    double guess, slip;
};

static struct traced traced_by(const struct model *model, const struct bkt_work *work,
                               uint32_t item)
{
    const struct bkt_shape *shape = work->shape;
    struct traced traced = {.skills = work->links.skill + work->links.first[item],
                            .n = work->links.first[item + 1] - work->links.first[item]};
    traced.has_own = shape->has_items && traced.n == 1;
    if (traced.has_own) {
        const real *own = bkt_row(&model->params, model->params.value, shape->item_panel, item);
        traced.guess = bkt_rate(own[0]);
        traced.slip = bkt_rate(own[1]);
    }
    if (traced.n == 0) {
        traced.skills = &work->no_skill;
        traced.n = 1;
    }
    return traced;
}

static real chance_at(const struct model *model, struct bkt_work *work, struct traced traced)
{
    const struct bkt_options *o = model->options;
    double sum = 0, product = 1, weakest = 1;
    for (size_t j = 0; j < traced.n; j++) {
        const struct bkt_belief *belief = belief_of(model, work, traced.skills[j]);
        const double right =
            chance_of_right(belief, traced.has_own ? traced.guess : belief->rate[RATE_GUESS],
                            traced.has_own ? traced.slip : belief->rate[RATE_SLIP]);
        sum += right;
        product *= right;
        weakest = fmin(weakest, right);
    }
    return (real)(o->several == SEVERAL_MEAN      ? sum / (double)traced.n
                  : o->several == SEVERAL_PRODUCT ? product
                                                  : weakest);
}

/* The standard deviation of the chance. Skills are known independently of each other. */
static real deviation_at(const struct model *model, struct bkt_work *work, struct traced traced)
{
    const struct bkt_options *o = model->options;
    double variances = 0, squares = 1, product = 1, weakest = 1, weakest_variance = 0;
    for (size_t j = 0; j < traced.n; j++) {
        const struct bkt_belief *belief = belief_of(model, work, traced.skills[j]);
        const double guess = traced.has_own ? traced.guess : belief->rate[RATE_GUESS];
        const double slip = traced.has_own ? traced.slip : belief->rate[RATE_SLIP];
        const double right = chance_of_right(belief, guess, slip);
        const double variance = variance_of_right(belief, guess, slip);
        product *= right;
        variances += variance;
        squares *= variance + right * right;
        if (right < weakest)
            weakest_variance = variance;
        weakest = fmin(weakest, right);
    }
    return (real)(o->several == SEVERAL_MEAN      ? sqrt(variances) / (double)traced.n
                  : o->several == SEVERAL_PRODUCT ? sqrt(fmax(0, squares - product * product))
                                                  : sqrt(weakest_variance));
}

static void attempt_made(const struct model *model, struct bkt_work *work, struct traced traced,
                         uint8_t mark)
{
    const struct bkt_options *o = model->options;
    for (size_t j = 0; j < traced.n; j++) {
        struct bkt_belief *belief = belief_of(model, work, traced.skills[j]);
        update(belief, mark, traced.has_own ? traced.guess : belief->rate[RATE_GUESS],
               traced.has_own ? traced.slip : belief->rate[RATE_SLIP],
               o->most_odds > 0 ? 1 / o->most_odds : 0);
    }
}

/* Fills p and `deviation` unless they are NULL. */
static void trace(const struct model *model, struct bkt_work *work, size_t s, unsigned splits,
                  real *p, real *deviation)
{
    const struct shard *shard = work->shard;
    const uint64_t begin = shard->first[s];
    work->n_calls++;
    for (uint64_t t = begin; t < shard->first[s + 1]; t++) {
        const struct traced traced = traced_by(model, work, shard->item[t]);
        const bool wanted = splits >> mark_split(shard->mark[t]) & 1;
        if (wanted && p != NULL)
            p[t - begin] = chance_at(model, work, traced);
        if (wanted && deviation != NULL)
            deviation[t - begin] = deviation_at(model, work, traced);
        attempt_made(model, work, traced, shard->mark[t]);
    }
}

void bkt_predict(const struct model *model, void *work, size_t s, unsigned splits, real *p)
{
    trace(model, work, s, splits, p, NULL);
}

void bkt_deviation(const struct model *model, void *memory, const uint32_t *students, size_t n,
                   unsigned splits, real *deviation)
{
    struct bkt_work *work = memory;
    for (size_t i = 0; i < n; i++)
        trace(model, work, students[i], splits, NULL,
              deviation + work->shard->first[students[i]]);
}

void bkt_live_begin(const struct model *model, void *memory, void *state)
{
    (void)model;
    (void)state;
    ((struct bkt_work *)memory)->n_calls++;
}

void bkt_live_tell(const struct model *model, void *memory, size_t n, void *const *state,
                   const struct live_attempt *attempts)
{
    (void)state;
    for (size_t i = 0; i < n; i++)
        attempt_made(model, memory, traced_by(model, memory, attempts[i].item),
                     attempts[i].mark);
}

void bkt_live_ask(const struct model *model, void *memory, const void *state,
                  const struct live_attempt *when, const uint32_t *items, size_t n, real *p)
{
    (void)state;
    (void)when;
    for (size_t i = 0; i < n; i++)
        p[i] = chance_at(model, memory, traced_by(model, memory, items[i]));
}

/* P(known), after the transition that follows the last attempt. */
void bkt_live_know(const struct model *model, void *memory, const void *state, uint32_t k,
                   real *p)
{
    (void)state;
    const struct bkt_belief *belief = belief_of(model, memory, k);
    *p = (real)chance_of_right(belief, 0, 0);
}

bool bkt_knows_items(const struct model *model)
{
    return bkt_shape(model)->by_item;
}
