/* tests: deep knowledge tracing one number at a time, in double precision, straight from its
 * equations. The loss of a student is a function of the parameters that tests differentiate
 * numerically. The oracle shares with the engine only the names and places of the tensors and
 * the random numbers.
 *
 * States cut off by a window count as constants: they keep the values they had for the
 * parameters at which `oracle_keep` was called. */
#ifndef COHORT_DKT_ORACLE_H
#define COHORT_DKT_ORACLE_H

#include "tiny.h"

enum { MOST_LAYERS = 3, MOST_HIDDEN = 64, MOST_STEPS = 64, MOST_GATES = 4 };

/* Where a tensor is stored: number j of row r is value[at + r * stride + j]. */
struct place {
    size_t at, stride;
};

struct oracle_states {
    double h[MOST_LAYERS][MOST_HIDDEN], c[MOST_LAYERS][MOST_HIDDEN];
};

struct oracle {
    const struct params *params;
    const struct shard *shard;
    double *value; /* of all parameters, in the layout of params */
    char cell;     /* 'r'nn, 'l'stm, 'g'ru */
    bool items, skills, common;
    size_t n_items, hidden, n_layers, n_gates, window;
    double dropout, smoothing;
    struct draw draw;
    struct place input[MOST_GATES], output, output_bias;
    struct place recurrent[MOST_LAYERS][MOST_GATES], below[MOST_LAYERS][MOST_GATES],
        bias[MOST_LAYERS][MOST_GATES];
    struct oracle_states *kept; /* for one student, before each step */
};

static inline struct place oracle_place(const struct params *params, const char *name)
{
    for (size_t t = 0; t < params->n_tensors; t++)
        if (strcmp(params->tensors[t].name, name) == 0) {
            const struct panel *panel = &params->panels[params->tensors[t].panel];
            return (struct place){panel->offset + params->tensors[t].first_column,
                                  panel->stride};
        }
    fprintf(stderr, "unknown tensor '%s'\n", name);
    abort();
}

/* A setting, 0 where it is not given. */
static inline double oracle_number(const struct config *config, const char *key)
{
    const char *text = config_get(config, "model", key);
    return text == NULL ? 0 : atof(text);
}

static inline void oracle_open(struct oracle *o, const struct tiny_model *tiny,
                               const struct shard *shard)
{
    static const char *const gates[][MOST_GATES] = {
        {"state"}, {"in", "forget", "out", "cell"}, {"reset", "keep", "state"}};
    const struct config *config = tiny->config;
    const char *input = config_get(config, "model", "input");
    const char *common = config_get(config, "model", "common");
    *o = (struct oracle){.params = &tiny->model->params,
                         .shard = shard,
                         .cell = config_get(config, "model", "cell")[0],
                         .items = strcmp(input, "skill") != 0,
                         .skills = strcmp(input, "item") != 0,
                         .common = common != NULL && strcmp(common, "yes") == 0,
                         .n_items = tiny->model->n_items,
                         .hidden = (size_t)atoi(config_get(config, "model", "hidden")),
                         .n_layers = (size_t)atoi(config_get(config, "model", "layers")),
                         .window = (size_t)oracle_number(config, "window"),
                         .dropout = oracle_number(config, "dropout"),
                         .smoothing = oracle_number(config, "smoothing")};
    const char *const *names = gates[o->cell == 'r' ? 0 : o->cell == 'l' ? 1 : 2];
    o->n_gates = o->cell == 'r' ? 1 : o->cell == 'l' ? 4 : 3;
    for (size_t g = 0; g < o->n_gates; g++) {
        char name[64];
        snprintf(name, sizeof name, "input_%s", names[g]);
        o->input[g] = oracle_place(o->params, name);
        for (size_t l = 0; l < o->n_layers; l++) {
            snprintf(name, sizeof name, "layer%zu_recurrent_%s", l + 1, names[g]);
            o->recurrent[l][g] = oracle_place(o->params, name);
            snprintf(name, sizeof name, "layer%zu_bias_%s", l + 1, names[g]);
            o->bias[l][g] = oracle_place(o->params, name);
            snprintf(name, sizeof name, "layer%zu_input_%s", l + 1, names[g]);
            if (l > 0)
                o->below[l][g] = oracle_place(o->params, name);
        }
    }
    const char *task = config_get(config, "model", "task");
    if (task == NULL || strcmp(task, "trace") == 0) {
        o->output = oracle_place(o->params, "output");
        o->output_bias = oracle_place(o->params, "output_bias");
    }
    o->value = NEW(double, o->params->n);
    for (size_t i = 0; i < o->params->n; i++)
        o->value[i] = (double)o->params->value[i];
    o->kept = NEW(struct oracle_states, MOST_STEPS);
}

static inline void oracle_close(struct oracle *o)
{
    memory_free(o->value);
    memory_free(o->kept);
}

/* The features of an item; returns how many. */
static inline size_t oracle_features(const struct oracle *o, uint32_t item, size_t *feature)
{
    const struct dataset *dataset = o->shard->dataset;
    size_t n = 0;
    if (o->items)
        feature[n++] = item;
    for (uint64_t k = dataset->item_first[item]; o->skills && k < dataset->item_first[item + 1];
         k++)
        feature[n++] = dataset->item_skills[k] + (o->items ? o->n_items : 0);
    if (o->common)
        feature[n++] = (o->items ? o->n_items : 0) + (o->skills ? dataset->n_skills : 0);
    return n;
}

static inline double oracle_squash(double x)
{
    return 1 / (1 + exp(-x));
}

/* Input to unit j from the rows of one gate: x times these rows (x NULL: zero). */
static inline double oracle_sum(const struct oracle *o, struct place place, const double *x,
                                size_t j)
{
    double sum = 0;
    for (size_t i = 0; x != NULL && i < o->hidden; i++)
        sum += x[i] * o->value[place.at + i * place.stride + j];
    return sum;
}

/* Advance layer l by one step: `input` holds the outside input to each gate of each unit. */
static inline void oracle_cell(const struct oracle *o, size_t l,
                               const double input[MOST_GATES][MOST_HIDDEN],
                               const double *h_before, const double *c_before, double *h,
                               double *c)
{
    const struct place *w = o->recurrent[l];
    double reset[MOST_HIDDEN], z[MOST_GATES] = {0};
    for (size_t j = 0; j < o->hidden && o->cell == 'g'; j++)
        reset[j] = h_before[j] * oracle_squash(input[0][j] + oracle_sum(o, w[0], h_before, j));
    for (size_t j = 0; j < o->hidden; j++) {
        for (size_t g = 0; g < o->n_gates; g++)
            z[g] = input[g][j] +
                   oracle_sum(o, w[g], o->cell == 'g' && g == 2 ? reset : h_before, j);
        if (o->cell == 'r') {
            h[j] = tanh(z[0]);
        } else if (o->cell == 'l') {
            c[j] = oracle_squash(z[1]) * c_before[j] + oracle_squash(z[0]) * tanh(z[3]);
            h[j] = oracle_squash(z[2]) * tanh(c[j]);
        } else {
            const double keep = oracle_squash(z[1]);
            h[j] = keep * h_before[j] + (1 - keep) * tanh(z[2]);
        }
    }
}

/* Update the states with an attempt. */
static inline void oracle_advance(const struct oracle *o, uint32_t item, uint8_t mark,
                                  const struct oracle_states *before,
                                  struct oracle_states *after)
{
    size_t feature[16];
    const size_t n_features = oracle_features(o, item, feature);
    const size_t seen = !mark_is_shown(mark) ? 2 : mark_outcome(mark) == CORRECT ? 1 : 0;
    for (size_t l = 0; l < o->n_layers; l++) {
        double input[MOST_GATES][MOST_HIDDEN];
        for (size_t g = 0; g < o->n_gates; g++)
            for (size_t j = 0; j < o->hidden; j++) {
                input[g][j] = o->value[o->bias[l][g].at + j];
                for (size_t f = 0; l == 0 && f < n_features; f++)
                    input[g][j] += o->value[o->input[g].at +
                                            (3 * feature[f] + seen) * o->input[g].stride + j];
                if (l > 0)
                    input[g][j] += oracle_sum(o, o->below[l][g], after->h[l - 1], j);
            }
        oracle_cell(o, l, input, before->h[l], before->c[l], after->h[l], after->c[l]);
    }
}

static inline double oracle_logit(const struct oracle *o, uint32_t item, const double *h)
{
    size_t feature[16];
    double logit = 0;
    for (size_t f = oracle_features(o, item, feature); f-- > 0;) {
        logit += o->value[o->output_bias.at + feature[f] * o->output_bias.stride];
        for (size_t j = 0; j < o->hidden; j++)
            logit += h[j] * o->value[o->output.at + feature[f] * o->output.stride + j];
    }
    return logit;
}

/* Dropout: the factor for unit j of the state before attempt t, zero or the scale. */
static inline double oracle_mask(const struct oracle *o, size_t s, size_t t, size_t j)
{
    const struct rng rng = {.seed = o->draw.seed,
                            .purpose = RNG_DROPOUT,
                            .part = (uint32_t)t,
                            .when = o->draw.epoch,
                            .who = (uint32_t)(o->shard->first_student + s)};
    uint32_t words[4];
    rng_words(&rng, (uint32_t)(j % 16), words);
    return ldexp((double)(words[j / 16] >> 8), -24) < o->dropout ? 0 : 1 / (1 - o->dropout);
}

/* The loss of student s. `keep`: store the states as the constants at which a window cuts;
 * otherwise use the stored ones. p (may be NULL) receives the probabilities without dropout. */
static inline double oracle_loss(const struct oracle *o, size_t s, bool keep, double *p)
{
    const struct shard *shard = o->shard;
    const uint64_t start = shard->first[s];
    struct oracle_states now = {0};
    double loss = 0;
    for (uint64_t a = start; a < shard->first[s + 1]; a++) {
        const size_t t = a - start;
        const double *top = now.h[o->n_layers - 1];
        double dropped[MOST_HIDDEN];
        if (keep)
            o->kept[t] = now;
        for (size_t j = 0; j < o->hidden; j++)
            dropped[j] = o->dropout > 0 ? top[j] * oracle_mask(o, s, t, j) : top[j];
        const double logit = oracle_logit(o, shard->item[a], dropped);
        const double right =
            mark_outcome(shard->mark[a]) == CORRECT ? 1 - o->smoothing : o->smoothing;
        if (mark_split(shard->mark[a]) == TRAIN && mark_outcome(shard->mark[a]) != UNKNOWN)
            loss -=
                right * log(oracle_squash(logit)) + (1 - right) * log(oracle_squash(-logit));
        if (p != NULL)
            p[t] = oracle_squash(oracle_logit(o, shard->item[a], top));
        const bool cut = o->window > 0 && (t + 1) % o->window == 0 && !keep;
        struct oracle_states after = {0};
        oracle_advance(o, shard->item[a], shard->mark[a], cut ? &o->kept[t] : &now, &after);
        now = after;
    }
    return loss;
}

#endif
