/* tests: a tiny RBM by brute force, in double precision. Every state of the hidden units and of
 * the visible counts has an explicit weight,
 *
 *     weight(n, h) = prod_u C(N, n_u) exp(n_u a_u^1 + (N - n_u) a_u^0)
 *                    prod_j f(h_j) exp(h_j x_j(n))
 *
 * with f = 1 for h_j in {0, 1} and a normal density for gaussian units. Everything else is a
 * sum over states. Only the values of the tensors come from the engine. */
#ifndef COHORT_RBM_ORACLE_H
#define COHORT_RBM_ORACLE_H

#include "tiny.h"

enum { MOST_ITEMS = 5, MOST_HIDDEN = 3, MOST_UNITS = 8, MOST_STATES = 256 };
enum oracle_hidden { BINARY, GAUSSIAN, RELU };

struct oracle {
    const struct params *params;
    size_t n_items, m, n_factors, dims; /* dims: of a stored row */
    int copies;
    bool softmax, conditional, last, common;
    size_t window; /* answers per run; 0: all */
    enum oracle_hidden kind;
    double row[MOST_ITEMS][2][MOST_HIDDEN]; /* A, or W without factors; with the common row */
    double w[MOST_ITEMS][2][MOST_HIDDEN];   /* W = A B */
    double a[MOST_ITEMS][2], b[MOST_HIDDEN], d[MOST_ITEMS][MOST_HIDDEN];
    double factor[MOST_HIDDEN][MOST_HIDDEN];
};

/* The visible units of a student, and the items seen. */
struct oracle_units {
    size_t n;
    size_t item[MOST_UNITS];
    int correct[MOST_UNITS];
    bool seen[MOST_ITEMS];
};

/* The number of draws, smaller in slow builds. */
static inline uint32_t oracle_draws(uint32_t n)
{
    return getenv("COHORT_QUICK") ? n / 8 : n;
}

static inline bool oracle_says(const struct tiny_model *tiny, const char *key,
                               const char *value)
{
    const char *said = config_get(tiny->config, "model", key);
    return said != NULL && strcmp(said, value) == 0;
}

static inline int oracle_number(const struct tiny_model *tiny, const char *key)
{
    const char *said = config_get(tiny->config, "model", key);
    return said ? atoi(said) : 0;
}

static inline const struct tensor *oracle_tensor(const struct params *params, const char *name)
{
    for (size_t t = 0; t < params->n_tensors; t++)
        if (strcmp(params->tensors[t].name, name) == 0)
            return &params->tensors[t];
    return NULL;
}

/* The place of number i of a tensor in the flat vector. */
static inline size_t oracle_place(const struct params *params, const char *name, size_t i)
{
    const struct tensor *tensor = oracle_tensor(params, name);
    const struct panel *panel = &params->panels[tensor->panel];
    return panel->offset + i / tensor->n_columns * panel->stride + tensor->first_column +
           i % tensor->n_columns;
}

static inline double oracle_value(const struct oracle *o, const char *name, size_t i)
{
    return (double)o->params->value[oracle_place(o->params, name, i)];
}

/* Row (item, outcome) of the visible table; bernoulli has rows for correct answers only. */
static inline size_t oracle_row(const struct oracle *o, size_t item, int k)
{
    return o->softmax ? 2 * item + (size_t)k : item;
}

/* Read the tensors. The options must give copies, hidden and everything that differs from:
 * softmax, binary, not conditional, no factors, repeats = each. */
static inline void oracle_read(struct oracle *o, const struct tiny_model *tiny)
{
    *o = (struct oracle){.params = &tiny->model->params,
                         .n_items = tiny->model->n_items,
                         .m = (size_t)oracle_number(tiny, "hidden"),
                         .n_factors = (size_t)oracle_number(tiny, "factors"),
                         .copies = oracle_number(tiny, "copies"),
                         .softmax = !oracle_says(tiny, "visible", "bernoulli"),
                         .conditional = oracle_says(tiny, "conditional", "yes"),
                         .last = oracle_says(tiny, "repeats", "last"),
                         .common = oracle_says(tiny, "common", "yes"),
                         .window = (size_t)oracle_number(tiny, "window"),
                         .kind = oracle_says(tiny, "hidden_kind", "gaussian") ? GAUSSIAN
                                 : oracle_says(tiny, "hidden_kind", "relu")   ? RELU
                                                                              : BINARY};
    o->dims = o->n_factors > 0 ? o->n_factors : o->m;
    for (size_t c = 0; c < o->n_factors; c++)
        for (size_t j = 0; j < o->m; j++)
            o->factor[c][j] = oracle_value(o, "factors", c * o->m + j);
    for (size_t j = 0; j < o->m; j++)
        o->b[j] = oracle_value(o, "hidden_bias", j);
    for (size_t i = 0; i < o->n_items; i++) {
        for (size_t j = 0; o->conditional && j < o->m; j++)
            o->d[i][j] = oracle_value(o, "seen", i * o->m + j);
        for (int k = o->softmax ? 0 : 1; k < 2; k++) {
            const size_t row = oracle_row(o, i, k);
            o->a[i][k] = oracle_value(o, "visible_bias", row);
            for (size_t c = 0; c < o->dims; c++)
                o->row[i][k][c] =
                    oracle_value(o, "weights", row * o->dims + c) +
                    (o->common ? oracle_value(o, "common", oracle_row(o, 0, k) * o->dims + c)
                               : 0);
            for (size_t j = 0; j < o->m; j++) {
                o->w[i][k][j] = o->n_factors == 0 ? o->row[i][k][j] : 0;
                for (size_t c = 0; c < o->n_factors; c++)
                    o->w[i][k][j] += o->row[i][k][c] * o->factor[c][j];
            }
        }
    }
}

static inline void oracle_input(const struct oracle *o, const struct oracle_units *units,
                                const int *count, double *x)
{
    for (size_t j = 0; j < o->m; j++) {
        x[j] = o->b[j];
        for (size_t i = 0; o->conditional && i < o->n_items; i++)
            x[j] += units->seen[i] ? o->d[i][j] : 0;
        for (size_t u = 0; u < units->n; u++)
            x[j] += count[u] * o->w[units->item[u]][1][j] +
                    (o->copies - count[u]) * o->w[units->item[u]][0][j];
    }
}

static inline double oracle_choose(int n, int k)
{
    double result = 1;
    for (int c = 0; c < k; c++)
        result = result * (n - c) / (c + 1);
    return result;
}

/* The sum over the states of the hidden units of f(h) exp(h x), and from it E[h]. */
static inline double oracle_hidden_sum(const struct oracle *o, const double *x, double *mean)
{
    double total = 0, sum[MOST_HIDDEN] = {0};
    if (o->kind == BINARY) {
        for (unsigned state = 0; state < 1u << o->m; state++) {
            double exponent = 0;
            for (size_t j = 0; j < o->m; j++)
                exponent += state >> j & 1 ? x[j] : 0;
            total += exp(exponent);
            for (size_t j = 0; j < o->m; j++)
                sum[j] += state >> j & 1 ? exp(exponent) : 0;
        }
    } else { /* the units are independent given x: one integral per unit, by the trapezoidal
              * rule */
        total = 1;
        for (size_t j = 0; j < o->m; j++) {
            const double step = 1. / 16;
            double whole = 0, first = 0;
            for (double z = -12; z <= 12; z += step) {
                const double h = x[j] + z, f = step * exp(h * x[j] - 0.5 * h * h);
                whole += f;
                first += f * h;
            }
            total *= whole;
            sum[j] = first / whole;
        }
        for (size_t j = 0; j < o->m; j++)
            sum[j] *= total;
    }
    for (size_t j = 0; mean != NULL && j < o->m; j++)
        mean[j] = o->kind == RELU ? log1p(exp(x[j])) : sum[j] / total;
    return total;
}

/* The sum of the weight of counts over all hidden states. */
static inline double oracle_weight(const struct oracle *o, const struct oracle_units *units,
                                   const int *count)
{
    double x[MOST_HIDDEN], weight = 1;
    oracle_input(o, units, count, x);
    for (size_t u = 0; u < units->n; u++)
        weight *= oracle_choose(o->copies, count[u]) *
                  exp(count[u] * o->a[units->item[u]][1] +
                      (o->copies - count[u]) * o->a[units->item[u]][0]);
    return weight * oracle_hidden_sum(o, x, NULL);
}

/* The counts of the data: all copies correct or none. */
static inline void oracle_data(const struct oracle *o, const struct oracle_units *units,
                               int *count)
{
    for (size_t u = 0; u < units->n; u++)
        count[u] = units->correct[u] * o->copies;
}

/* Add an answer; it replaces an older one where only the last counts. */
static inline void oracle_answer(const struct oracle *o, struct oracle_units *units,
                                 size_t item, int correct)
{
    size_t u = 0;
    while (u < units->n && !(o->last && units->item[u] == item))
        u++;
    if (u == MOST_UNITS)
        abort();
    units->item[u] = item;
    units->correct[u] = correct;
    units->n = size_max(units->n, u + 1);
}

/* The units on which student s of a class trains. */
static inline void oracle_student(const struct oracle *o, const struct shard *shard, size_t s,
                                  struct oracle_units *units)
{
    *units = (struct oracle_units){0};
    for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
        const uint8_t mark = shard->mark[t];
        units->seen[shard->item[t]] = true;
        if (mark_split(mark) == TRAIN && mark_outcome(mark) != UNKNOWN)
            oracle_answer(o, units, shard->item[t], mark_outcome(mark) == CORRECT);
    }
}

/* Run number `run` of a student's units, an RBM of its own; false after the last. */
static inline bool oracle_run(const struct oracle *o, const struct oracle_units *units,
                              size_t run, struct oracle_units *part)
{
    const size_t length = o->window > 0 ? o->window : MOST_UNITS, first = run * length;
    *part = *units;
    part->n = 0;
    for (size_t u = first; u < units->n && u < first + length; u++, part->n++) {
        part->item[part->n] = units->item[u];
        part->correct[part->n] = units->correct[u];
    }
    return part->n > 0;
}

/* Drop the oldest units beyond the window. */
static inline void oracle_forget(const struct oracle *o, struct oracle_units *units)
{
    if (o->window == 0 || units->n <= o->window)
        return;
    units->n--;
    for (size_t u = 0; u < units->n; u++) {
        units->item[u] = units->item[u + 1];
        units->correct[u] = units->correct[u + 1];
    }
}

/* States of the visible units, as numbers with digits 0 .. copies. */
static inline size_t oracle_n_states(const struct oracle *o, const struct oracle_units *units)
{
    size_t n = 1;
    for (size_t u = 0; u < units->n; u++)
        n *= (size_t)o->copies + 1;
    if (n > MOST_STATES)
        abort();
    return n;
}

static inline void oracle_state(const struct oracle *o, const struct oracle_units *units,
                                size_t state, int *count)
{
    for (size_t u = 0; u < units->n; u++, state /= (size_t)o->copies + 1)
        count[u] = (int)(state % ((size_t)o->copies + 1));
}

static inline size_t oracle_state_of(const struct oracle *o, const struct oracle_units *units,
                                     const int *count)
{
    size_t state = 0;
    for (size_t u = units->n; u-- > 0;)
        state = state * ((size_t)o->copies + 1) + (size_t)count[u];
    return state;
}

/* P(counts), normalised over all states of the answered units. */
static inline void oracle_equilibrium(const struct oracle *o, const struct oracle_units *units,
                                      double *chance)
{
    const size_t n = oracle_n_states(o, units);
    double total = 0;
    for (size_t state = 0; state < n; state++) {
        int count[MOST_UNITS];
        oracle_state(o, units, state, count);
        total += chance[state] = oracle_weight(o, units, count);
    }
    for (size_t state = 0; state < n; state++)
        chance[state] /= total;
}

/* Starting from a state of counts with probability `chance` and hidden units `h`, add the
 * probabilities of the next states to `next`: copies are drawn one by one. */
static inline void oracle_spread(const struct oracle *o, const struct oracle_units *units,
                                 const double *h, double chance, double *next)
{
    const size_t n = oracle_n_states(o, units);
    double p[MOST_UNITS][8];
    for (size_t u = 0; u < units->n; u++) {
        double logit = o->a[units->item[u]][1] - o->a[units->item[u]][0];
        for (size_t j = 0; j < o->m; j++)
            logit += h[j] * (o->w[units->item[u]][1][j] - o->w[units->item[u]][0][j]);
        const double right = 1 / (1 + exp(-logit));
        for (int k = 0; k <= o->copies; k++) {
            p[u][k] = oracle_choose(o->copies, k);
            for (int c = 0; c < o->copies; c++)
                p[u][k] *= c < k ? right : 1 - right;
        }
    }
    for (size_t state = 0; state < n; state++) {
        int count[MOST_UNITS];
        double product = chance;
        oracle_state(o, units, state, count);
        for (size_t u = 0; u < units->n; u++)
            product *= p[u][count[u]];
        next[state] += product;
    }
}

/* One Gibbs step of a distribution over states: all hidden samples, all counts. For units that
 * are not binary m must be 2, and the noise is integrated over a grid. */
static inline void oracle_gibbs(const struct oracle *o, const struct oracle_units *units,
                                double *chance)
{
    const size_t n = oracle_n_states(o, units);
    double next[MOST_STATES] = {0};
    for (size_t state = 0; state < n; state++) {
        int count[MOST_UNITS];
        double x[MOST_HIDDEN], h[MOST_HIDDEN];
        if (chance[state] == 0)
            continue;
        oracle_state(o, units, state, count);
        oracle_input(o, units, count, x);
        for (unsigned code = 0; o->kind == BINARY && code < 1u << o->m; code++) {
            double p = chance[state];
            for (size_t j = 0; j < o->m; j++) {
                h[j] = code >> j & 1;
                p *= 1 / (1 + exp(h[j] > 0 ? -x[j] : x[j]));
            }
            oracle_spread(o, units, h, p, next);
        }
        if (o->kind == BINARY)
            continue;
        if (o->m != 2)
            abort();
        const double step = o->kind == RELU ? 1. / 8 : 1. / 4, end = 6; /* relu has a kink */
        for (double y = -end; y <= end; y += step)
            for (double z = -end; z <= end; z += step) {
                const double noise[2] = {y, z};
                for (size_t j = 0; j < 2; j++) {
                    h[j] = x[j] + noise[j] * (o->kind == RELU ? sqrt(1 / (1 + exp(-x[j]))) : 1);
                    h[j] = o->kind == RELU ? fmax(h[j], 0) : h[j];
                }
                const double density =
                    exp(-0.5 * (y * y + z * z)) / (2 * 3.14159265358979323846);
                oracle_spread(o, units, h, chance[state] * density * step * step, next);
            }
    }
    memcpy(chance, next, sizeof next);
}

/* The distribution of the counts after this many Gibbs steps from the data. */
static inline void oracle_chain(const struct oracle *o, const struct oracle_units *units,
                                int n_steps, double *chance)
{
    int count[MOST_UNITS];
    memset(chance, 0, MOST_STATES * sizeof *chance);
    oracle_data(o, units, count);
    chance[oracle_state_of(o, units, count)] = 1;
    for (int step = 0; step < n_steps; step++)
        oracle_gibbs(o, units, chance);
}

/* The factor of a student's hidden means in the statistics. */
static inline double oracle_share(const struct oracle *o, const struct oracle_units *units)
{
    return o->kind == BINARY || units->n == 0 ? 1 : 1 / (o->copies * (double)units->n);
}

/* Add the statistics of counts, times `weight`, to a flat vector: d log weight / d parameter,
 * times the student's share in all tensors except the visible biases. */
static inline void oracle_statistic(const struct oracle *o, const struct oracle_units *units,
                                    const int *count, double weight, double *flat)
{
    double x[MOST_HIDDEN], h[MOST_HIDDEN], lowered[MOST_HIDDEN], f[MOST_HIDDEN] = {0};
    oracle_input(o, units, count, x);
    oracle_hidden_sum(o, x, h);
    for (size_t j = 0; j < o->m; j++)
        h[j] *= oracle_share(o, units);
    for (size_t c = 0; c < o->dims; c++) {
        lowered[c] = o->n_factors == 0 ? h[c] : 0;
        for (size_t j = 0; o->n_factors > 0 && j < o->m; j++)
            lowered[c] += o->factor[c][j] * h[j];
    }
    for (size_t u = 0; u < units->n; u++)
        for (int k = o->softmax ? 0 : 1; k < 2; k++) {
            const int n = k == 1 ? count[u] : o->copies - count[u];
            const size_t row = oracle_row(o, units->item[u], k);
            flat[oracle_place(o->params, "visible_bias", row)] += weight * n;
            for (size_t c = 0; c < o->dims; c++) {
                const size_t common = oracle_row(o, 0, k) * o->dims + c;
                flat[oracle_place(o->params, "weights", row * o->dims + c)] +=
                    weight * n * lowered[c];
                if (o->common)
                    flat[oracle_place(o->params, "common", common)] += weight * n * lowered[c];
                f[c] += n * o->row[units->item[u]][k][c];
            }
        }
    for (size_t j = 0; j < o->m; j++) {
        flat[oracle_place(o->params, "hidden_bias", j)] += weight * h[j];
        for (size_t i = 0; o->conditional && i < o->n_items; i++)
            if (units->seen[i])
                flat[oracle_place(o->params, "seen", i * o->m + j)] += weight * h[j];
        for (size_t c = 0; c < o->n_factors; c++)
            flat[oracle_place(o->params, "factors", c * o->m + j)] += weight * f[c] * h[j];
    }
}

/* Mean and variance of (statistics of the data - statistics of counts with this
 * distribution). */
static inline void oracle_expect(const struct oracle *o, const struct oracle_units *units,
                                 const double *chance, double *mean, double *variance)
{
    const size_t n = o->params->n, n_states = oracle_n_states(o, units);
    int count[MOST_UNITS];
    double *one = NEW(double, n), *sum = NEW(double, n), *squares = NEW(double, n);
    for (size_t state = 0; state < n_states; state++) {
        memset(one, 0, n * sizeof *one);
        oracle_state(o, units, state, count);
        oracle_statistic(o, units, count, 1, one);
        for (size_t i = 0; i < n; i++) {
            sum[i] += chance[state] * one[i];
            squares[i] += chance[state] * one[i] * one[i];
        }
    }
    oracle_data(o, units, count);
    oracle_statistic(o, units, count, 1, mean);
    for (size_t i = 0; i < n; i++) {
        mean[i] -= sum[i];
        variance[i] += fmax(0, squares[i] - sum[i] * sum[i]);
    }
    memory_free(one);
    memory_free(sum);
    memory_free(squares);
}

#endif
