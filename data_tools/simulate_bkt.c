/* Bayesian knowledge tracing (Corbett and Anderson, 1995). A student knows skill k or not:
 *
 *     before the first attempt    P(known)             = p0_k
 *     at an attempt               P(correct | known)   = 1 - slip_k
 *                                 P(correct | unknown) = guess_k
 *     after it                    P(learned | unknown) = learn_k
 *                                 P(forgotten | known) = forget
 *
 * Each attempt is at a random item of a random skill; items of a skill differ only in name. The
 * truth has the rates and, as `known`, what each student knows after the last attempt. */
#include "base/fail.h"
#include "base/memory.h"
#include "data_tools/simulate.h"

enum part { FIRST, RATES, CHOICE, OUTCOME, LEARNING };
enum { ITEMS_PER_SKILL = 4, ATTEMPTS_PER_SKILL = 10 };

struct class
{
    double *p0, *learn, *forget, *guess, *slip; /* each [skills] */
};

static void make_skills(struct simulation *simulation, const struct class *class)
{
    for (size_t k = 0; k < simulation->n_skills; k++) {
        const struct rng rates = simulate_rng(simulation, RATES, k);
        class->p0[k] = 0.1 + 0.5 * rng_uniform(&rates, 0);
        class->learn[k] = 0.05 + 0.25 * rng_uniform(&rates, 1);
        class->guess[k] = 0.1 + 0.2 * rng_uniform(&rates, 2);
        class->slip[k] = 0.05 + 0.15 * rng_uniform(&rates, 3);
        class->forget[k] = simulation->flags->forget;
    }
    for (size_t i = 0; i < simulation->n_items; i++)
        builder_item_skill(simulation->builder, (uint32_t)i,
                           (uint32_t)(i % simulation->n_skills));
}

static void make_student(struct simulation *simulation, const struct class *class, size_t s,
                         size_t n_attempts, bool *known)
{
    const size_t n_skills = simulation->n_skills, n_items = simulation->n_items;
    const struct rng first = simulate_rng(simulation, FIRST, s);
    const struct rng choice = simulate_rng(simulation, CHOICE, s);
    const struct rng outcomes = simulate_rng(simulation, OUTCOME, s);
    const struct rng learning = simulate_rng(simulation, LEARNING, s);
    for (size_t k = 0; k < n_skills; k++)
        known[k] = rng_uniform(&first, (uint32_t)k) < class->p0[k];
    for (uint32_t t = 0; t < n_attempts; t++) {
        const size_t k = rng_below(&choice, 2 * t, n_skills);
        const size_t n_here = (n_items - k + n_skills - 1) / n_skills; /* items of skill k */
        const size_t i = k + n_skills * rng_below(&choice, 2 * t + 1, n_here);
        const double p = known[k] ? 1 - class->slip[k] : class->guess[k];
        const bool correct = rng_uniform(&outcomes, t) < p;
        const double u = rng_uniform(&learning, t);
        known[k] = known[k] ? u >= class->forget[k] : u < class->learn[k];
        builder_add(simulation->builder, (uint32_t)s, (uint32_t)i,
                    mark_make(correct ? CORRECT : INCORRECT, TRAIN, false, true), 0);
    }
}

enum status simulate_bkt(struct simulation *simulation)
{
    const size_t n_skills = simulation->n_skills;
    if (simulation->n_items == 0)
        simulation->n_items = ITEMS_PER_SKILL * n_skills;
    if (simulation->n_items < n_skills)
        return fail(BAD_USER,
                    "%zu items cannot cover %zu skills; use at least as many items as skills",
                    simulation->n_items, n_skills);
    const size_t n_attempts = simulation->flags->n_attempts > 0
                                  ? (size_t)simulation->flags->n_attempts
                                  : ATTEMPTS_PER_SKILL * n_skills;
    const struct class class = {
        .p0 = simulate_truth(simulation, "p0", n_skills, 0, false),
        .learn = simulate_truth(simulation, "learn", n_skills, 0, false),
        .forget = simulate_truth(simulation, "forget", n_skills, 0, false),
        .guess = simulate_truth(simulation, "guess", n_skills, 0, false),
        .slip = simulate_truth(simulation, "slip", n_skills, 0, false),
    };
    simulate_names(simulation);
    make_skills(simulation, &class);
    double *states =
        simulate_truth(simulation, "known", simulation->n_students, n_skills, true);
    bool *known = NEW(bool, n_skills);
    for (size_t s = 0; s < simulation->n_students; s++) {
        make_student(simulation, &class, s, n_attempts, known);
        for (size_t k = 0; k < n_skills; k++)
            states[s * n_skills + k] = known[k];
    }
    memory_free(known);
    return OK;
}
