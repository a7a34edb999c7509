/* tests: the recurrent temporal RBM from its definition, in double precision: the probability
 * of every step as a sum over all states of visible and hidden units. The oracle shares with
 * the engine only the names and places of the tensors. It sums a few hidden units state by
 * state, and many unit by unit. */
#ifndef COHORT_RTRBM_ORACLE_H
#define COHORT_RTRBM_ORACLE_H

#include "tiny.h"

enum { MOST_HIDDEN = 64, MOST_VISIBLE = 16, MOST_STEPS = 64 };

struct oracle {
    const struct params *params;
    const struct shard *shard;
    double *value; /* of all parameters, in the layout of params */
    bool softmax, dense, skills, items;
    size_t n_items, n_groups, n_shared, group_size, hidden;
    double sharpness, penalty;
};

/* Number (row, column) of a tensor. */
static inline double oracle_at(const struct oracle *o, const char *name, size_t row,
                               size_t column)
{
    for (size_t t = 0; t < o->params->n_tensors; t++)
        if (strcmp(o->params->tensors[t].name, name) == 0) {
            const struct panel *panel = &o->params->panels[o->params->tensors[t].panel];
            return o->value[panel->offset + row * panel->stride + column];
        }
    fprintf(stderr, "unknown tensor '%s'\n", name);
    abort();
}

/* A setting of [model], or its default. */
static inline const char *oracle_setting(const struct tiny_model *tiny, const char *key)
{
    const char *text = config_get(tiny->config, "model", key);
    const struct model_kind *kind = tiny->model->kind;
    for (size_t k = 0; text == NULL && k < kind->n_options; k++)
        if (strcmp(kind->options[k].key, key) == 0)
            text = kind->options[k].standard;
    return text;
}

static inline void oracle_open(struct oracle *o, const struct tiny_model *tiny,
                               const struct shard *shard)
{
    const char *structure = oracle_setting(tiny, "structure");
    *o = (struct oracle){.params = &tiny->model->params,
                         .shard = shard,
                         .softmax = strcmp(oracle_setting(tiny, "visible"), "softmax") == 0,
                         .dense = strcmp(oracle_setting(tiny, "dense"), "yes") == 0,
                         .skills = strcmp(structure, "skills") == 0,
                         .items = strcmp(structure, "items") == 0,
                         .n_items = tiny->model->n_items,
                         .n_shared = (size_t)atoi(oracle_setting(tiny, "hidden")),
                         .group_size = (size_t)atoi(oracle_setting(tiny, "skill_units")),
                         .sharpness = atof(oracle_setting(tiny, "sharpness")),
                         .penalty = atof(oracle_setting(tiny, "penalty"))};
    o->n_groups = o->skills ? tiny->model->n_skills : o->items ? o->n_items : 0;
    o->hidden = o->n_shared + o->n_groups * o->group_size;
    o->value = NEW(double, o->params->n);
    for (size_t i = 0; i < o->params->n; i++)
        o->value[i] = (double)o->params->value[i];
}

static inline void oracle_close(struct oracle *o)
{
    memory_free(o->value);
}

static inline double oracle_squash(double x)
{
    return 1 / (1 + exp(-x));
}

/* The group of a hidden unit, -1 for a shared one. */
static inline int oracle_group(const struct oracle *o, size_t j)
{
    return j < o->n_shared ? -1 : (int)((j - o->n_shared) / o->group_size);
}

static inline double oracle_gate(const struct oracle *o, int a, int b)
{
    return a < 0 || b < 0 || a == b
               ? 1
               : oracle_squash(o->sharpness * oracle_at(o, "gates", (size_t)a, (size_t)b));
}

/* W between an item with an outcome and hidden unit j. */
static inline double oracle_weight(const struct oracle *o, size_t item, unsigned outcome,
                                   size_t j)
{
    const int group = oracle_group(o, j);
    bool connected = group < 0 || (o->items && (size_t)group == item);
    const struct dataset *dataset = o->shard->dataset;
    for (uint64_t k = dataset->item_first[item]; o->skills && k < dataset->item_first[item + 1];
         k++)
        connected |= (int)dataset->item_skills[k] == group;
    if (!connected || (!o->softmax && outcome == 0))
        return 0;
    return oracle_at(o, "weights", o->softmax ? 2 * item + outcome : item, j);
}

static inline double oracle_bias(const struct oracle *o, size_t item, unsigned outcome)
{
    if (o->softmax)
        return oracle_at(o, "visible_bias", item, outcome);
    return outcome ? oracle_at(o, "visible_bias", item, 0) : 0;
}

/* Visible units with outcomes. */
struct oracle_units {
    size_t n, item[MOST_VISIBLE];
    unsigned outcome[MOST_VISIBLE];
};

static inline void oracle_add(struct oracle_units *units, size_t item, unsigned outcome)
{
    units->item[units->n] = item;
    units->outcome[units->n++] = outcome;
}

/* The sum over all hidden states of exp(-energy), for these visible units. */
static inline double oracle_sum(const struct oracle *o, const double *x,
                                const struct oracle_units *units)
{
    double input[MOST_HIDDEN], visible = 0, sum = 0, factors = 1;
    for (size_t a = 0; a < units->n; a++)
        visible += oracle_bias(o, units->item[a], units->outcome[a]);
    for (size_t j = 0; j < o->hidden; j++) {
        input[j] = x[j];
        for (size_t a = 0; a < units->n; a++)
            input[j] += oracle_weight(o, units->item[a], units->outcome[a], j);
        factors *= 1 + exp(input[j]);
    }
    if (o->hidden > 5)
        return exp(visible) * factors;
    for (unsigned h = 0; h < 1u << o->hidden; h++) {
        double energy = -visible;
        for (size_t j = 0; j < o->hidden; j++)
            energy -= h >> j & 1 ? input[j] : 0;
        sum += exp(-energy);
    }
    return sum;
}

/* The probability of the outcomes of the units after the first n_given, given those. */
static inline double oracle_chance(const struct oracle *o, const double *x,
                                   const struct oracle_units *units, size_t n_given)
{
    struct oracle_units other = *units;
    double total = 0;
    for (unsigned state = 0; state < 1u << (units->n - n_given); state++) {
        for (size_t a = n_given; a < units->n; a++)
            other.outcome[a] = state >> (a - n_given) & 1;
        total += oracle_sum(o, x, &other);
    }
    return oracle_sum(o, x, units) / total;
}

/* mean[i] = the probability that item i is on, where every item is visible. */
static inline void oracle_means(const struct oracle *o, const double *x, double *mean)
{
    double total = 0;
    memset(mean, 0, o->n_items * sizeof *mean);
    for (unsigned state = 0; state < 1u << o->n_items; state++) {
        struct oracle_units units = {0};
        for (size_t i = 0; i < o->n_items; i++)
            oracle_add(&units, i, state >> i & 1);
        const double weight = oracle_sum(o, x, &units);
        total += weight;
        for (size_t i = 0; i < o->n_items; i++)
            mean[i] += state >> i & 1 ? weight : 0;
    }
    for (size_t i = 0; i < o->n_items; i++)
        mean[i] /= total;
}

/* The input of a step's RBM from the previous state; NULL: there is none. */
static inline void oracle_input(const struct oracle *o, const double *r, double *x)
{
    for (size_t j = 0; j < o->hidden; j++) {
        x[j] = oracle_at(o, r == NULL ? "first_bias" : "hidden_bias", 0, j);
        for (size_t m = 0; r != NULL && m < o->hidden; m++)
            x[j] += oracle_gate(o, oracle_group(o, m), oracle_group(o, j)) *
                    oracle_at(o, "recurrent", m, j) * r[m];
    }
}

static inline double oracle_penalty(const struct oracle *o)
{
    double open = 0;
    for (int a = 0; a < (int)o->n_groups; a++)
        for (int b = 0; b < (int)o->n_groups; b++)
            open += a != b ? oracle_gate(o, a, b) : 0;
    return o->penalty * open;
}

/* The loss of one step with attempts from .. to - 1. p receives the probabilities; x becomes
 * the input of the next step. */
static inline double oracle_step(const struct oracle *o, uint64_t from, uint64_t to, double *x,
                                 double *p)
{
    const struct shard *shard = o->shard;
    struct oracle_units shown = {0}, given = {0};
    double loss = 0, r[MOST_HIDDEN];
    size_t n_targets = 0, n_given = 0;
    bool on[MOST_VISIBLE] = {0};
    double mean[MOST_VISIBLE];
    if (o->dense)
        oracle_means(o, x, mean);
    for (uint64_t a = from; a < to; a++) {
        const uint8_t mark = shard->mark[a];
        const bool target = mark_split(mark) == TRAIN && mark_outcome(mark) != UNKNOWN;
        struct oracle_units asked = shown;
        oracle_add(&asked, shard->item[a], 1);
        p[a - from] = o->dense ? mean[shard->item[a]] : oracle_chance(o, x, &asked, shown.n);
        if (mark_is_shown(mark))
            oracle_add(&shown, shard->item[a], mark_outcome(mark) == CORRECT);
        if (mark_is_shown(mark) && !target)
            oracle_add(&given, shard->item[a], mark_outcome(mark) == CORRECT);
        n_targets += target;
        on[shard->item[a]] |= (target || mark_is_shown(mark)) && mark_outcome(mark) == CORRECT;
    }
    n_given = given.n;
    for (uint64_t a = from; a < to && !o->dense; a++)
        if (mark_split(shard->mark[a]) == TRAIN && mark_outcome(shard->mark[a]) != UNKNOWN)
            oracle_add(&given, shard->item[a], mark_outcome(shard->mark[a]) == CORRECT);
    if (o->dense) {
        given.n = n_given = 0;
        for (size_t i = 0; i < o->n_items; i++)
            oracle_add(&given, i, on[i]);
    }
    if (n_targets > 0)
        loss =
            -log(oracle_chance(o, x, &given, n_given)) + (double)n_targets * oracle_penalty(o);
    for (size_t j = 0; j < o->hidden; j++) {
        r[j] = x[j];
        for (size_t a = 0; a < shown.n; a++)
            r[j] += oracle_weight(o, shown.item[a], shown.outcome[a], j);
        r[j] = oracle_squash(r[j]);
    }
    oracle_input(o, r, x);
    return loss;
}

/* The loss of student s; p receives the probabilities of its attempts. */
static inline double oracle_loss(const struct oracle *o, size_t s, double *p)
{
    const struct shard *shard = o->shard;
    const uint64_t start = shard->first[s], end = shard->first[s + 1];
    double x[MOST_HIDDEN], loss = 0;
    oracle_input(o, NULL, x);
    for (uint64_t from = start, to; from < end; from = to) {
        for (to = from + 1; to < end && !(shard->mark[to] & MARK_STEP);)
            to++;
        loss += oracle_step(o, from, to, x, p + (from - start));
    }
    return loss;
}

#endif
