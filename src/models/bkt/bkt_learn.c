/* EM for Bayesian knowledge tracing; symbols as in bkt.c.
 *
 * One epoch is one iteration:
 *
 *     E   expected counts of every skill over all traces (bkt_traces.c), in whole units, summed
 *         over the ranks
 *     M   rate = (expected count + prior * centre) / (opportunities + prior)
 *
 * The objective is a sum of one concave term per rate. A rate beyond its bound is therefore set
 * to the bound, and log-likelihood plus log-prior never falls.
 *
 * In the first `explore` epochs all starts run side by side, and items share the guess and slip
 * of their skill. Each skill then continues with its start of highest likelihood. Skills are
 * independent: one whose gain is below `tolerance` is settled, keeps its rates, and its traces
 * are no longer packed. All state is in the parameters, so a continued run gives the same
 * result as an uninterrupted one. */
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "models/bkt/bkt_internal.h"
#include <math.h>
#include <sleef.h>
#include <string.h>

static bool is_emission(size_t c)
{
    return c == RATE_GUESS || c == RATE_SLIP;
}

static double limited(const struct bkt_options *o, size_t c, double rate)
{
    const double most = c == RATE_GUESS  ? o->most_guess
                        : c == RATE_SLIP ? o->most_slip
                                         : 1 - BKT_LEAST_RATE;
    return fmin(fmax(rate, BKT_LEAST_RATE), most);
}

/* The maximum of the posterior of a rate after `yes` of `all` opportunities, with n priors; the
 * old rate if there is no evidence. */
static double share(const struct bkt_options *o, size_t c, double yes, double all, double n,
                    double old)
{
    const double prior = n * o->prior, with_prior = fmax(all, 0) + prior;
    if (with_prior <= 0)
        return old;
    return limited(o, c, (fmax(yes, 0) + prior * bkt_centres[c]) / with_prior);
}

/* The log-density of the prior at a rate, up to a constant. */
static double log_prior(const struct bkt_options *o, size_t c, double rate)
{
    return o->prior * (bkt_centres[c] * Sleef_cinz_logd1_u10purec(rate) +
                       (1 - bkt_centres[c]) * Sleef_cinz_logd1_u10purec(1 - rate));
}

/* ---- counts that do not change: once per run */

static bool has_row(const struct bkt_work *work, size_t row)
{
    return work->row_counts[row][SEEN_RIGHT] + work->row_counts[row][SEEN_WRONG] > 0;
}

/* The skill of an item with its own guess and slip; n_skills if the item has none. */
static size_t owner_of(const struct bkt_work *work, size_t i)
{
    const uint64_t first = work->links.first[i];
    return work->links.first[i + 1] - first == 1 ? work->links.skill[first]
                                                 : work->shape->n_skills;
}

static void say_what_lacks(const struct model *model, const struct bkt_work *work)
{
    const struct bkt_shape *shape = work->shape;
    size_t n_bare = 0, bare = 0, n_new = 0;
    for (size_t i = model->n_items; i-- > 0;)
        if (work->links.first[i + 1] == work->links.first[i]) {
            n_bare++;
            bare = i;
        }
    for (size_t k = 0; k < shape->n_skills; k++)
        n_new += work->counts[k][COUNT_WRONG] + work->counts[k][COUNT_RIGHT] == 0;
    if (n_bare > 0)
        log_warn("items without a skill: %zu of %zu, for example '%s'; they are not learned "
                 "from and are predicted by the mean of all skills; give them skills at "
                 "import, or use model.trace=item",
                 n_bare, model->n_items, names_get(&model->dataset->items, bare));
    if (n_new > 0 && !shape->by_item)
        log_say("note: skills without training attempts: %zu of %zu; they get the mean rates "
                "of all skills",
                n_new, shape->n_skills);
}

static void count(const struct model *model, struct bkt_work *work, const struct comm *comm)
{
    const struct bkt_shape *shape = work->shape;
    const size_t n_skills = shape->n_skills, n_rows = n_skills + model->n_items;
    struct bkt_traces *traces = &work->traces;
    bkt_traces_create(traces, work->shard, &work->links, shape);
    work->counts = memory_zeroed(n_skills, sizeof *work->counts);
    work->row_counts = memory_zeroed(n_rows, sizeof *work->row_counts);
    for (size_t i = 0; i < traces->n; i++) {
        const struct bkt_trace *trace = &traces->list[i];
        int64_t *of_skill = work->counts[trace->skill];
        of_skill[COUNT_TRACES]++;
        of_skill[COUNT_STEPS] += trace->length;
        for (uint64_t t = trace->start; t < trace->start + trace->length; t++) {
            const uint8_t outcome = traces->outcome[t];
            if (outcome == SEEN_NONE)
                continue;
            of_skill[outcome == SEEN_RIGHT ? COUNT_RIGHT : COUNT_WRONG]++;
            work->row_counts[traces->row != NULL ? traces->row[t] : trace->skill][outcome]++;
        }
    }
    comm_sum_i64(comm, work->counts[0], n_skills * COUNT(work->counts[0]));
    comm_sum_i64(comm, work->row_counts[0], n_rows * COUNT(work->row_counts[0]));
    int64_t n_steps = 0;
    for (size_t k = 0; k < n_skills; k++) {
        n_steps += work->counts[k][COUNT_STEPS];
        work->counts[k][COUNT_ROWS] = has_row(work, k);
    }
    for (size_t i = 0; i < model->n_items; i++)
        if (has_row(work, n_skills + i))
            work->counts[owner_of(work, i)][COUNT_ROWS]++;
    /* No sum exceeds 17 per step, -log2 of the smallest probability of an outcome. */
    int bits = 47;
    while (n_steps >> (47 - bits) > 0)
        bits--;
    work->unit = ldexp(1, bits < 40 ? bits : 40);
    say_what_lacks(model, work);
    work->is_counted = true;
}

/* ---- one iteration */

/* The expected counts of a set of rates, as floating-point numbers. */
struct expected {
    double (*sums)[N_CHAINS_SUMS];    /* of a skill */
    double (*row_sums)[N_SEEN_KINDS]; /* of a row */
    size_t n_sums, n_rows;
};

static void expected_create(struct expected *e, size_t n_sums, size_t n_rows)
{
    *e = (struct expected){.n_sums = n_sums, .n_rows = n_rows};
    e->sums = memory_zeroed(n_sums, sizeof *e->sums);
    e->row_sums = memory_zeroed(n_rows, sizeof *e->row_sums);
}

static void expected_free(struct expected *e)
{
    memory_free(e->sums);
    memory_free(e->row_sums);
}

static void add_ranks(const struct comm *comm, double *values, size_t n, double unit)
{
    int64_t *whole = NEW_SCRATCH(int64_t, n);
    for (size_t i = 0; i < n; i++)
        whole[i] = (int64_t)values[i];
    comm_sum_i64(comm, whole, n);
    for (size_t i = 0; i < n; i++)
        values[i] = (double)whole[i] / unit;
    memory_free(whole);
}

/* Collective: sums the whole units of all ranks and converts them to numbers. */
static void expected_sum(struct expected *e, const struct comm *comm, double unit)
{
    add_ranks(comm, e->sums[0], e->n_sums * N_CHAINS_SUMS, unit);
    if (e->n_rows > 0)
        add_ranks(comm, e->row_sums[0], e->n_rows * N_SEEN_KINDS, unit);
}

/* Rates of n rows of a panel as probabilities. */
static void take_rates(const struct model *model, const struct bkt_shape *shape, size_t panel,
                       size_t first, size_t n, real (*rates)[N_RATES])
{
    const struct params *p = &model->params;
    for (size_t k = 0; k < n; k++) {
        const real *row = bkt_row(p, p->value, panel, first + k);
        for (size_t c = 0; c < shape->n_rates; c++)
            rates[k][c] = (real)bkt_rate(row[c]);
    }
}

static double log_likelihood(const double *sums)
{
    return sums[CHAINS_LOG] + 0x1.62e42fefa39efp-1 * sums[CHAINS_EXPONENT];
}

/* The M step for a skill: `row` holds the old rates and receives the new ones. Its guess and
 * slip count for n_rows rows in the prior. */
static void move_rates(const struct bkt_options *o, const int64_t *counts, const double *sums,
                       size_t n_rates, double n_rows, real *row)
{
    const double n_traces = (double)counts[COUNT_TRACES];
    const double n_moves = (double)counts[COUNT_STEPS] - n_traces;
    const double right = (double)counts[COUNT_RIGHT], wrong = (double)counts[COUNT_WRONG];
    const double known_right = sums[CHAINS_RIGHT], known_wrong = sums[CHAINS_WRONG];
    const double known = known_right + known_wrong;
    const double known_before = known + sums[CHAINS_OTHER] - sums[CHAINS_LAST];
    /* known or learned, but not known at the end */
    const double forgotten = sums[CHAINS_FIRST] + sums[CHAINS_LEARNED] - sums[CHAINS_LAST];
    const double yes[N_RATES] = {sums[CHAINS_FIRST], sums[CHAINS_LEARNED], right - known_right,
                                 known_wrong, forgotten};
    const double all[N_RATES] = {n_traces, n_moves - known_before, right + wrong - known, known,
                                 known_before};
    for (size_t c = 0; c < n_rates; c++)
        row[c] = bkt_log_odds(
            share(o, c, yes[c], all[c], is_emission(c) ? n_rows : 1, bkt_chance(row[c])));
}

/* The M step for a row with its own guess and slip, at `row` and the number after it. */
static void move_row(const struct bkt_options *o, const int64_t *counts, const double *sums,
                     real *row)
{
    const double right = (double)counts[SEEN_RIGHT], wrong = (double)counts[SEEN_WRONG];
    const double known = sums[SEEN_RIGHT] + sums[SEEN_WRONG];
    row[0] = bkt_log_odds(share(o, RATE_GUESS, right - sums[SEEN_RIGHT], right + wrong - known,
                                1, bkt_chance(row[0])));
    row[1] = bkt_log_odds(share(o, RATE_SLIP, sums[SEEN_WRONG], known, 1, bkt_chance(row[1])));
}

static bool has_training(const struct bkt_work *work, size_t k)
{
    return work->counts[k][COUNT_TRACES] > 0;
}

/* The log-prior of a row of rates, whose guess and slip count for n_rows rows. */
static double prior_of(const struct bkt_options *o, const struct bkt_shape *shape,
                       const real *row, double n_rows)
{
    double sum = 0;
    for (size_t c = 0; c < shape->n_rates; c++)
        sum += (is_emission(c) ? n_rows : 1) * log_prior(o, c, bkt_rate(row[c]));
    return sum;
}

/* Items get the mean guess and slip of their skills: items without training attempts of their
 * own, or all items. */
static void follow_skills(const struct model *model, const struct bkt_work *work, real *flat,
                          bool all)
{
    const struct bkt_shape *shape = work->shape;
    const struct params *p = &model->params;
    for (size_t i = 0; shape->has_items && i < model->n_items; i++) {
        const uint64_t first = work->links.first[i], end = work->links.first[i + 1];
        real *row = bkt_row(p, flat, shape->item_panel, i);
        for (size_t c = 0; c < 2 && (all || !has_row(work, shape->n_skills + i)); c++) {
            const real *common = bkt_row(p, flat, shape->common_panel, 0);
            double sum = end == first ? bkt_chance(common[RATE_GUESS + c]) : 0;
            for (uint64_t j = first; j < end; j++)
                sum += bkt_chance(
                    bkt_row(p, flat, shape->skill_panel, work->links.skill[j])[RATE_GUESS + c]);
            row[c] = bkt_log_odds(sum / (double)size_max(end - first, 1));
        }
    }
}

/* All starts side by side; each skill's row becomes the start with the highest likelihood. */
static void explore(const struct model *model, struct bkt_work *work, const struct comm *comm,
                    real *flat)
{
    const struct bkt_options *o = model->options;
    const struct bkt_shape *shape = work->shape;
    const struct params *p = &model->params;
    const size_t n_skills = shape->n_skills, n_tries = (size_t)o->restarts;
    real(*rates)[N_RATES] = memory_zeroed(n_skills, sizeof *rates);
    struct expected e;
    expected_create(&e, n_tries * n_skills, 0);
    if (work->traces.groups == NULL)
        bkt_traces_pack(&work->traces, NULL);
    for (size_t r = 0; r < n_tries; r++) {
        take_rates(model, shape, shape->try_panel, r * n_skills, n_skills, rates);
        bkt_traces_expect(&work->traces, rates, NULL, o->forget, work->unit,
                          e.sums + r * n_skills, NULL);
    }
    expected_sum(&e, comm, work->unit);
    for (size_t k = 0; k < n_skills; k++) {
        real *row = bkt_row(p, flat, shape->skill_panel, k);
        if (!has_training(work, k))
            continue;
        for (size_t r = 0; r < n_tries; r++) {
            real *try = bkt_row(p, flat, shape->try_panel, r * n_skills + k);
            const double *sums = e.sums[r * n_skills + k];
            const double n_rows = (double)work->counts[k][COUNT_ROWS];
            const real fit = (real)(log_likelihood(sums) + prior_of(o, shape, try, n_rows));
            move_rates(o, work->counts[k], sums, shape->n_rates, n_rows, try);
            if (r == 0 || fit > row[shape->fit]) {
                memcpy(row, try, shape->n_rates * sizeof *row);
                row[shape->fit] = fit;
            }
        }
    }
    follow_skills(model, work, flat, true);
    expected_free(&e);
    memory_free(rates);
}

/* The probabilities of outcomes of every row: skills first, then items. */
static real (*make_chances(const struct model *model,
                           const struct bkt_work *work))[N_SEEN_KINDS][2]
{
    const struct bkt_shape *shape = work->shape;
    const struct params *p = &model->params;
    const size_t n_rows = shape->n_skills + model->n_items;
    real(*chance)[N_SEEN_KINDS][2] = memory_zeroed(n_rows, sizeof *chance);
    for (size_t row = 0; row < n_rows; row++) {
        const real *rates =
            row < shape->n_skills
                ? bkt_row(p, p->value, shape->skill_panel, row) + RATE_GUESS
                : bkt_row(p, p->value, shape->item_panel, row - shape->n_skills);
        const double guess = bkt_rate(rates[0]), slip = bkt_rate(rates[1]);
        chance[row][SEEN_RIGHT][0] = (real)(1 - slip);
        chance[row][SEEN_RIGHT][1] = (real)guess;
        chance[row][SEEN_WRONG][0] = (real)slip;
        chance[row][SEEN_WRONG][1] = (real)(1 - guess);
        chance[row][SEEN_NONE][0] = chance[row][SEEN_NONE][1] = 1;
    }
    return chance;
}

/* Packs again once a quarter of the packed traces belong to settled skills. */
static void pack(struct bkt_work *work, const bool *settled)
{
    struct bkt_traces *traces = &work->traces;
    size_t n_live = 0;
    for (size_t i = 0; i < traces->n; i++)
        n_live += !settled[traces->list[i].skill];
    if (traces->groups == NULL || 4 * n_live < 3 * traces->n_packed)
        bkt_traces_pack(traces, settled);
}

/* The M step for the items, and for guess and slip of skills that some items share. */
static void move_rows(const struct model *model, const struct bkt_work *work,
                      const struct expected *e, const bool *settled, real *flat)
{
    const struct bkt_options *o = model->options;
    const struct bkt_shape *shape = work->shape;
    for (size_t k = 0; k < shape->n_skills; k++)
        if (!settled[k] && has_row(work, k)) {
            real *row = bkt_row(&model->params, flat, shape->skill_panel, k) + RATE_GUESS;
            memcpy(row,
                   bkt_row(&model->params, model->params.value, shape->skill_panel, k) +
                       RATE_GUESS,
                   2 * sizeof *row);
            move_row(o, work->row_counts[k], e->row_sums[k], row);
        }
    for (size_t i = 0; i < model->n_items; i++) {
        const size_t k = owner_of(work, i), row = shape->n_skills + i;
        if (k < shape->n_skills && !settled[k] && has_row(work, row))
            move_row(o, work->row_counts[row], e->row_sums[row],
                     bkt_row(&model->params, flat, shape->item_panel, i));
    }
}

/* Adds the log-prior of the items' guess and slip to the fits of their skills. */
static void add_item_priors(const struct model *model, const struct bkt_work *work,
                            double *fits)
{
    const struct bkt_options *o = model->options;
    const struct bkt_shape *shape = work->shape;
    for (size_t i = 0; i < model->n_items; i++) {
        const size_t k = owner_of(work, i);
        if (k == shape->n_skills || !has_row(work, shape->n_skills + i))
            continue;
        const real *row = bkt_row(&model->params, model->params.value, shape->item_panel, i);
        fits[k] += log_prior(o, RATE_GUESS, bkt_rate(row[0])) +
                   log_prior(o, RATE_SLIP, bkt_rate(row[1]));
    }
}

/* Fits are summed in fixed point, and a damaged checkpoint may hold any value. */
static enum status check_fits(const struct model *model, const struct bkt_shape *shape)
{
    const struct params *p = &model->params;
    double sum = 0;
    for (size_t k = 0; k < shape->n_skills; k++) {
        const real fit = bkt_row(p, p->value, shape->skill_panel, k)[shape->fit];
        sum += fabs((double)fit);
        if (!(sum < ldexp(1, 62 - LOSS_BITS)))
            return fail(BAD_DATA,
                        "the checkpoint is damaged: it holds a log-likelihood of %g for "
                        "skill %zu, which no data can give; choose another run=",
                        (double)fit, k + 1);
    }
    return OK;
}

/* One iteration for the skills that are not settled. Returns whether all are settled now. */
static bool advance(const struct model *model, struct bkt_work *work, const struct pass *pass,
                    real *flat)
{
    const struct bkt_options *o = model->options;
    const struct bkt_shape *shape = work->shape;
    const struct params *p = &model->params;
    const size_t n_skills = shape->n_skills;
    const int64_t first = shape->has_tries ? o->explore : 0; /* first epoch after exploration */
    bool *settled = NEW(bool, n_skills);
    for (size_t k = 0; k < n_skills; k++)
        settled[k] = !has_training(work, k) ||
                     bkt_row(p, p->value, shape->skill_panel, k)[shape->settled] > 0;
    pack(work, settled);
    real(*rates)[N_RATES] = memory_zeroed(n_skills, sizeof *rates);
    real(*chance)[N_SEEN_KINDS][2] = shape->has_items ? make_chances(model, work) : NULL;
    double *fits = NEW(double, n_skills);
    struct expected e;
    expected_create(&e, n_skills, shape->has_items ? n_skills + model->n_items : 0);
    take_rates(model, shape, shape->skill_panel, 0, n_skills, rates);
    bkt_traces_expect(&work->traces, rates, chance, o->forget, work->unit, e.sums, e.row_sums);
    expected_sum(&e, pass->comm, work->unit);
    if (shape->has_items)
        add_item_priors(model, work, fits);
    bool all_settled = true;
    for (size_t k = 0; k < n_skills; k++) {
        real *row = bkt_row(p, flat, shape->skill_panel, k);
        if (settled[k])
            continue;
        fits[k] += log_likelihood(e.sums[k]) + prior_of(o, shape, row, has_row(work, k));
        const real fit = (real)fits[k];
        settled[k] = pass->draw.epoch > first &&
                     (double)(fit - row[shape->fit]) <= o->tolerance * fabs((double)fit);
        row[shape->fit] = fit;
        row[shape->settled] = settled[k];
        all_settled &= settled[k];
        if (!settled[k])
            move_rates(o, work->counts[k], e.sums[k], shape->n_rates, 1, row);
    }
    if (shape->has_items)
        move_rows(model, work, &e, settled, flat);
    expected_free(&e);
    memory_free(fits);
    memory_free(chance);
    memory_free(rates);
    memory_free(settled);
    return all_settled;
}

/* The mean of all skills, weighted by attempts; skills without attempts get it. */
static void make_common(const struct model *model, const struct bkt_work *work, real *flat)
{
    const struct bkt_shape *shape = work->shape;
    const struct params *p = &model->params;
    real *common = bkt_row(p, flat, shape->common_panel, 0);
    double sum[N_RATES] = {0}, n_all = 0;
    for (size_t k = 0; k < shape->n_skills; k++) {
        real *row = bkt_row(p, flat, shape->skill_panel, k);
        const double n = (double)(work->counts[k][COUNT_RIGHT] + work->counts[k][COUNT_WRONG]);
        row[shape->attempts] = (real)n;
        n_all += n;
        for (size_t c = 0; c < shape->n_rates; c++)
            sum[c] += n * bkt_chance(row[c]);
    }
    for (size_t c = 0; c < shape->n_rates; c++)
        common[c] = bkt_log_odds(sum[c] / n_all);
    for (size_t k = 0; k < shape->n_skills; k++)
        if (!has_training(work, k))
            memcpy(bkt_row(p, flat, shape->skill_panel, k), common,
                   shape->n_rates * sizeof *common);
}

enum status bkt_learn(struct model *model, void *memory, struct pass *pass)
{
    struct bkt_work *work = memory;
    const struct bkt_options *o = model->options;
    const struct bkt_shape *shape = work->shape;
    const struct params *p = &model->params;
    const bool explores = shape->has_tries && pass->draw.epoch < o->explore;
    if (!work->is_counted) {
        TRY(check_fits(model, shape));
        count(model, work, pass->comm);
    }
    real *flat = NEW_SCRATCH(real, p->n);
    memcpy(flat, p->value, p->n * sizeof *flat);
    if (explores)
        explore(model, work, pass->comm, flat);
    else
        pass->converged = advance(model, work, pass, flat);
    make_common(model, work, flat);
    follow_skills(model, work, flat, false);
    int64_t n_steps = 0, n_live = 0;
    for (size_t k = 0; k < shape->n_skills; k++) {
        n_steps += work->counts[k][COUNT_STEPS];
        if (!(bkt_row(p, p->value, shape->skill_panel, k)[shape->settled] > 0))
            n_live += work->counts[k][COUNT_STEPS] * (explores ? o->restarts : 1);
    }
    pass->share = (double)n_live / (double)n_steps;
    for (size_t k = 0; pass->comm->rank == 0 && k < shape->n_skills; k++) {
        const double fit = (double)bkt_row(p, flat, shape->skill_panel, k)[shape->fit];
        exact_sum_add(&pass->loss, -rint(ldexp(fit, LOSS_BITS)));
        pass->n_scored += work->counts[k][COUNT_RIGHT] + work->counts[k][COUNT_WRONG];
    }
    exact_slices_publish(pass->slices, flat);
    memory_free(flat);
    return OK;
}
