/* A running average of a student's answers to each skill, in which old answers fade.
 *
 * Each student has two numbers for each skill k, both 0 at first: a sum of right answers and
 * the number of answers it is over. After an attempt of skill k whose outcome y (1 right, 0
 * wrong) is shown,
 *
 *     S_k <- f S_k + y        N_k <- f N_k + 1
 *
 * so that an answer m attempts ago counts f^m. The chance of a right answer to item i is their
 * ratio, with `a` imagined answers to the item at the start, a share g_i of them right:
 *
 *     p_k = (a g_i + S_k) / (a + N_k)
 *
 * An item with several skills has the mean of their p_k, one without skills has g_i; if the
 * data set has no skills, each item is a skill. What is learned:
 *
 *     memory    phi        f = sigma(phi)          one number
 *     strength  alpha      a = e^alpha             one number
 *     start     gamma_i    g_i = sigma(gamma_i)    one for each item
 *
 * The loss of an attempt is -log p if it is right and -log(1 - p) if it is wrong, so that
 * -dloss/dp is 1/p or -1/(1 - p), and
 *
 *     dp_k/dgamma_i = a g_i (1 - g_i) / (a + N_k)
 *     dp_k/dalpha   = a (g_i - p_k) / (a + N_k)
 *     dp_k/dphi     = f (1 - f) (S'_k - p_k N'_k) / (a + N_k)
 *
 * where S' = dS/df and N' = dN/df are carried along with S and N (forward differentiation):
 *
 *     S'_k <- f S'_k + S_k    N'_k <- f N'_k + N_k       with S_k and N_k from before */
#include "base/memory.h"
#include "learn/model.h"
#include "learn/row_sums.h"
#include <math.h>
#include <sleef.h>
#include <string.h>

enum { MEMORY, STRENGTH, N_COMMON }; /* columns of the panel of common numbers */

struct shape {
    size_t common, starts; /* panels */
    uint32_t n_skills;     /* items, if the data set has no skills */
};

struct trace {
    double s, n, ds, dn; /* S, N, S', N' of a skill */
    uint64_t walk;       /* the walk it belongs to; void in any other */
};

struct work {
    const struct shard *shard;
    uint32_t *length; /* attempts of each student, for steps that learn from about as many */
    double f, a;
    uint64_t walk;          /* number of students begun */
    struct trace *traces;   /* of one student */
    real common[N_COMMON];  /* gradient of a block: of the common numbers */
    struct row_sums starts; /* and of the starts */
};

struct skills { /* of an item */
    size_t n;
    const uint32_t *k;
};

static double sigma(double x)
{
    return 1 / (1 + Sleef_cinz_expd1_u10purec(-x));
}

static real *gamma_of(const struct model *model, size_t item)
{
    const struct shape *shape = model->shape;
    return params_rows(&model->params, shape->starts) +
           item * model->params.panels[shape->starts].stride;
}

/* Without skills an item is its own; among skills, one without has number n_skills, of which
 * nothing is ever observed. */
static struct skills skills_of(const struct model *model, const struct dataset *dataset,
                               const uint32_t *item)
{
    if (model->n_skills == 0)
        return (struct skills){1, item};
    const uint64_t first = dataset->item_first[*item], end = dataset->item_first[*item + 1];
    if (first == end)
        return (struct skills){1, &((const struct shape *)model->shape)->n_skills};
    return (struct skills){end - first, dataset->item_skills + first};
}

static enum status declare(struct model *model)
{
    struct shape *shape = model->shape;
    struct params *params = &model->params;
    shape->n_skills = (uint32_t)(model->n_skills > 0 ? model->n_skills : model->n_items);
    shape->common = params_panel(params, 1, N_COMMON);
    shape->starts = params_panel_of(params, "item", model->n_items, 1);
    params_logits(params, &(struct tensor){"memory", shape->common, MEMORY, 1, 1, {1}, false});
    params_tensor(params,
                  &(struct tensor){"log_strength", shape->common, STRENGTH, 1, 1, {1}, false});
    params_logits(params,
                  &(struct tensor){"start", shape->starts, 0, 1, 1, {model->n_items}, false});
    return OK;
}

static void init(struct model *model, uint64_t seed, const struct item_counts *counts)
{
    (void)seed;
    const struct shape *shape = model->shape;
    double *logit = item_counts_log_odds(counts);
    for (size_t i = 0; i < model->n_items; i++)
        *gamma_of(model, i) = (real)logit[i];
    memory_free(logit);
    real *common = params_rows(&model->params, shape->common);
    common[MEMORY] = (real)Sleef_cinz_logd1_u10purec(0.9 / 0.1);
    common[STRENGTH] = (real)Sleef_cinz_logd1_u10purec(5);
}

static void *attach(const struct model *model, const struct shard *shard, enum model_use use)
{
    (void)use;
    const struct shape *shape = model->shape;
    struct work *work = NEW(struct work, 1);
    work->shard = shard;
    work->traces = NEW(struct trace, shape->n_skills + 1);
    row_sums_create(&work->starts, &model->params.panels[shape->starts]);
    return work;
}

static void detach(void *view)
{
    struct work *work = view;
    row_sums_free(&work->starts);
    memory_free(work->traces);
    memory_free(work);
}

static void training(const void *view, bool *has_training, int64_t *n_attempts)
{
    const struct shard *shard = ((const struct work *)view)->shard;
    *n_attempts = 0;
    for (size_t s = 0; s < shard->n_students; s++) {
        has_training[s] = false;
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
            has_training[s] |= mark_trains(shard->mark[t]);
            *n_attempts += mark_trains(shard->mark[t]);
        }
    }
}

static void begin(const struct model *model, struct work *work)
{
    const real *common = params_rows(&model->params, ((struct shape *)model->shape)->common);
    work->f = sigma(common[MEMORY]);
    work->a = Sleef_cinz_expd1_u10purec(common[STRENGTH]);
    work->walk++;
}

static struct trace *trace_of(struct work *work, uint32_t k)
{
    struct trace *trace = &work->traces[k];
    if (trace->walk != work->walk)
        *trace = (struct trace){.walk = work->walk};
    return trace;
}

static double chance(const struct model *model, struct work *work, uint32_t item)
{
    const struct skills skills = skills_of(model, work->shard->dataset, &item);
    const double g = sigma(*gamma_of(model, item));
    double sum = 0;
    for (size_t j = 0; j < skills.n; j++) {
        const struct trace *k = trace_of(work, skills.k[j]);
        sum += (work->a * g + k->s) / (work->a + k->n);
    }
    return sum / (double)skills.n;
}

/* Adds `by_p` times the derivatives of p to the sums of the block. */
static void add_gradient(const struct model *model, struct work *work, uint32_t item,
                         double by_p)
{
    const struct skills skills = skills_of(model, work->shard->dataset, &item);
    const double a = work->a, f = work->f, g = sigma(*gamma_of(model, item));
    for (size_t j = 0; j < skills.n; j++) {
        const struct trace *k = trace_of(work, skills.k[j]);
        const double p = (a * g + k->s) / (a + k->n);
        const double scale = by_p / ((double)skills.n * (a + k->n));
        work->common[MEMORY] += (real)(scale * f * (1 - f) * (k->ds - p * k->dn));
        work->common[STRENGTH] += (real)(scale * a * (g - p));
        *row_sums_at(&work->starts, item) += (real)(scale * a * g * (1 - g));
    }
}

/* Looks at the outcome of an attempt, if it is shown. */
static void observe(const struct model *model, struct work *work, uint32_t item, uint8_t mark)
{
    const struct skills skills = skills_of(model, work->shard->dataset, &item);
    const double f = work->f;
    const bool has_skill = skills.k != &((struct shape *)model->shape)->n_skills;
    if (!has_skill || !mark_is_shown(mark) || mark_outcome(mark) == UNKNOWN)
        return; /* see skills_of */
    const bool right = mark_outcome(mark) == CORRECT;
    for (size_t j = 0; j < skills.n; j++) {
        struct trace *k = trace_of(work, skills.k[j]);
        *k = (struct trace){f * k->s + right, f * k->n + 1, f * k->ds + k->s, f * k->dn + k->n,
                            k->walk};
    }
}

/* Walks through the attempts of student s: predicts those of `splits` to p, learns from those
 * for training if there is a tally, and looks at the outcome last. */
static void walk(const struct model *model, struct work *work, size_t s, unsigned splits,
                 real *p, struct tally *tally)
{
    const struct shard *shard = work->shard;
    begin(model, work);
    for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
        const uint8_t mark = shard->mark[t];
        const bool right = mark_outcome(mark) == CORRECT;
        if (splits >> mark_split(mark) & 1)
            p[t - shard->first[s]] = (real)chance(model, work, shard->item[t]);
        if (tally != NULL && mark_trains(mark)) {
            const double q = chance(model, work, shard->item[t]);
            tally_add_loss(tally, -Sleef_cinz_logd1_u10purec(right ? q : 1 - q));
            tally->n_scored++;
            add_gradient(model, work, shard->item[t], right ? 1 / q : -1 / (1 - q));
        }
        observe(model, work, shard->item[t], mark);
    }
}

static void accumulate(const struct model *model, void *view, const uint32_t *students,
                       size_t n, const struct draw *draw, struct tally *tally)
{
    (void)draw;
    struct work *work = view;
    const struct shape *shape = model->shape;
    memset(work->common, 0, sizeof work->common);
    for (size_t i = 0; i < n; i++)
        walk(model, work, students[i], 0, NULL, tally);
    tally_add(tally, model->params.panels[shape->common].offset, work->common, N_COMMON);
    row_sums_flush(&work->starts, &model->params.panels[shape->starts], tally);
}

static void predict(const struct model *model, void *view, size_t s, unsigned splits, real *p)
{
    walk(model, view, s, splits, p, NULL);
}

static void live_begin(const struct model *model, void *view, void *state)
{
    (void)state;
    begin(model, view);
}

static void live_tell(const struct model *model, void *view, size_t n, void *const *state,
                      const struct live_attempt *attempts)
{
    (void)state;
    struct work *work = view;
    for (size_t i = 0; i < n; i++)
        observe(model, work, attempts[i].item, attempts[i].mark);
}

static void live_ask(const struct model *model, void *view, const void *state,
                     const struct live_attempt *when, const uint32_t *items, size_t n, real *p)
{
    (void)state;
    (void)when;
    struct work *work = view;
    for (size_t i = 0; i < n; i++)
        p[i] = (real)chance(model, work, items[i]);
}

static unsigned uses(const struct model *model)
{
    return model->n_skills > 0 ? MODEL_SKILLS : 0;
}

static void table(const struct model *model, size_t k, struct table *table)
{
    const struct shape *shape = model->shape;
    if (k == 0) {
        table_create(table, "items", "item", model->n_items, "start");
        table->caption =
            "start is the chance of a correct answer at a student's first attempt.";
        for (size_t i = 0; i < model->n_items; i++)
            table_row(table, i)[0] = sigma(*gamma_of(model, i));
        return;
    }
    const real *common = params_rows(&model->params, shape->common);
    table_create(table, "common", "of", 1, "memory half_life strength");
    table->caption =
        "memory is the weight of an answer relative to the next one, half_life the attempts "
        "until its weight has halved, strength the number of answers that the start counts "
        "for.";
    names_add(&table->row_names, "all", strlen("all"));
    double *cell = table_row(table, 0);
    cell[0] = sigma(common[MEMORY]);
    cell[1] = log(0.5) / log(cell[0]);
    cell[2] = exp(common[STRENGTH]);
}

const struct model_kind average_kind = {
    .name = "average",
    .title = "running average of a student's answers per skill, with forgetting",
    .source = "after Galyardt and Goldin 2015, Move your lamp post",
    .loss = "cross-entropy of training answers in nats",
    .shape_size = sizeof(struct shape),
    .defaults = "optimizer.method = adam\noptimizer.rate = 0.03\ntrain.batch = 200\n"
                "train.epochs = 100\n",
    .declare = declare,
    .init = init,
    .attach = attach,
    .detach = detach,
    .training = training,
    .accumulate = accumulate,
    .predict = predict,
    .setup = {.uses = uses},
    .view = {.n_tables = 2, .table = table},
    .live = {.begin = live_begin, .tell = live_tell, .ask = live_ask},
};
