/* Item response theory, logistic:
 *
 *     P(student s answers item i correctly) = sigmoid(sum_k a_ik theta_sk - b_i)
 *
 *     theta  [students, skills]  abilities: standard normal, each pair of skills correlated
 *     q      [items, skills]     1 if the item needs the skill: skill i mod K always, each
 *                                other one with probability 1/4
 *     a      [items, skills]     discriminations: q in the 1pl, log-normal about 1 in the 2pl
 *     b      [items]             difficulties: standard normal */
#include "base/memory.h"
#include "data_tools/simulate.h"
#include <math.h>

enum part { THETA, EXTRA_SKILL, DISCRIMINATION, DIFFICULTY, ITEM_ORDER, MISSING, OUTCOME };
enum model { ONE_PL, TWO_PL };

struct class
{
    double *theta, *q, *a, *b;
};

static void make_items(struct simulation *simulation, const struct class *class)
{
    const size_t n_skills = simulation->n_skills;
    for (size_t i = 0; i < simulation->n_items; i++) {
        const struct rng extra = simulate_rng(simulation, EXTRA_SKILL, i);
        const struct rng strength = simulate_rng(simulation, DISCRIMINATION, i);
        const struct rng difficulty = simulate_rng(simulation, DIFFICULTY, i);
        for (size_t k = 0; k < n_skills; k++) {
            const size_t ik = i * n_skills + k;
            if (i % n_skills != k && rng_uniform(&extra, (uint32_t)k) > 0.25)
                continue;
            class->q[ik] = 1;
            class->a[ik] = simulation->flags->model == ONE_PL
                               ? 1
                               : simulate_exp(0.35 * rng_normal(&strength, (uint32_t)k));
            builder_item_skill(simulation->builder, (uint32_t)i, (uint32_t)k);
        }
        class->b[i] = rng_normal(&difficulty, 0);
    }
}

static void make_student(struct simulation *simulation, const struct class *class, size_t s,
                         uint32_t *order)
{
    const size_t n_skills = simulation->n_skills;
    const double correlation = simulation->flags->correlation;
    const struct rng ability = simulate_rng(simulation, THETA, s);
    const struct rng orders = simulate_rng(simulation, ITEM_ORDER, s);
    const struct rng missing = simulate_rng(simulation, MISSING, s);
    const struct rng outcomes = simulate_rng(simulation, OUTCOME, s);
    double *theta = class->theta + s * n_skills;
    const double common = rng_normal(&ability, 0); /* what the abilities share */
    for (size_t k = 0; k < n_skills; k++)
        theta[k] = sqrt(correlation) * common +
                   sqrt(1 - correlation) * rng_normal(&ability, (uint32_t)k + 1);
    rng_order(&orders, order, simulation->n_items);
    for (size_t t = 0; t < simulation->n_items; t++) {
        const uint32_t i = order[t];
        if (rng_uniform(&missing, i) < simulation->flags->missing)
            continue;
        double logit = -class->b[i];
        for (size_t k = 0; k < n_skills; k++)
            logit += class->a[i * n_skills + k] * theta[k];
        const bool correct = rng_uniform(&outcomes, i) < simulate_sigmoid(logit);
        builder_add(simulation->builder, (uint32_t)s, i,
                    mark_make(correct ? CORRECT : INCORRECT, TRAIN, false, true), 0);
    }
}

enum status simulate_irt(struct simulation *simulation)
{
    const size_t n_items = simulation->n_items, n_skills = simulation->n_skills;
    const struct class class = {
        .theta = simulate_truth(simulation, "theta", simulation->n_students, n_skills, true),
        .q = simulate_truth(simulation, "q", n_items, n_skills, false),
        .a = simulate_truth(simulation, "a", n_items, n_skills, false),
        .b = simulate_truth(simulation, "b", n_items, 0, false),
    };
    simulate_names(simulation);
    make_items(simulation, &class);
    uint32_t *order = NEW(uint32_t, n_items);
    for (size_t s = 0; s < simulation->n_students; s++)
        make_student(simulation, &class, s, order);
    memory_free(order);
    return OK;
}
