/* The portfolio of `cohort auto`: a line for each kind of model. A new kind joins by a line.
 *
 * Every kind that fits the data is trained with its defaults (runs/defaults.c). Around those of
 * the best kinds, the settings below are varied. They are the ones that no rule can choose for
 * all data, few enough that a sweep of one kind has four trials. Quick kinds come first. A kind
 * has several lines if what is worth varying depends on the data; one of them fits. */
#include "sweep/portfolio.h"
#include <math.h>

static bool has_practice(const struct data_shape *shape)
{
    return shape->practice > 0.05;
}

/* The larger of students and items is eliminated; a dense matrix of the other is factored. */
static bool has_small_matrix(const struct data_shape *shape)
{
    return fmin(shape->n_students, shape->n_items) < 8000;
}

/* The effect of practice is that of earlier attempts at the same item. */
static bool has_repeats(const struct data_shape *shape)
{
    return has_small_matrix(shape) && shape->repeats > 0.01;
}

static bool has_no_repeats(const struct data_shape *shape)
{
    return has_small_matrix(shape) && !has_repeats(shape);
}

static bool has_short_steps(const struct data_shape *shape)
{
    return shape->per_step <= 8;
}

static bool has_no_pairs(const struct data_shape *shape)
{
    return !data_shape_has_pairs(shape);
}

const struct portfolio_entry portfolio[] = {
    {"ktm", data_shape_has_pairs, NULL,
     "model.factors = {8, 32}\nmodel.l2_factors = {10, 25}\n", false},
    {"ktm", has_no_pairs, NULL, "model.preset = {fm, bestlr}\nmodel.l2 = {1, 5}\n", false},
    {"average", has_practice, "no student practises a skill twice", NULL, false},
    {"bkt", has_practice, "no student practises a skill twice",
     "model.forget = {yes, no}\nmodel.most_odds = {30, 1000}\n", false},
    {"lme", has_repeats, "too many students and items for its dense matrix",
     "model.fixed = {position, practice, position practice}\n", false},
    {"lme", has_no_repeats, NULL, "model.fixed = {position}\n", false},
    {"vae", NULL, NULL, "model.dimensions = {1, 2}\noptimizer.rate = {0.003, 0.01}\n", true},
    {"rbm", NULL, NULL, "model.hidden = {20, 100}\noptimizer.rate = {0.0005, 0.002}\n", true},
    {"dkt", NULL, NULL, "model.hidden = {50, 200}\nmodel.dropout = {0.3, 0.5}\n", true},
    {"rtrbm", has_short_steps, "too slow for steps of more than 8 attempts",
     "model.hidden = {50, 200}\noptimizer.decay = {0.01, 0.1}\n", true},
};
const size_t n_portfolio = COUNT(portfolio);
