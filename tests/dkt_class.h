/* tests: a class with everything that DKT must cope with, a model of it, and its gradient
 * against differences of its own loss. */
#ifndef COHORT_DKT_CLASS_H
#define COHORT_DKT_CLASS_H

#include "dkt_oracle.h"
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static struct comm world;
static const bool is_double = sizeof(real) == sizeof(double);
static const double tolerance = is_double ? 1e-13 : 3e-6;

enum { N_ITEMS = 5, N_SKILLS = 4 };

/* Items a to e have no skill, one, three, one and two. */
static inline void begin_class(struct tiny *class)
{
    static const uint64_t first[N_ITEMS + 1] = {0, 0, 1, 4, 5, 7};
    static const uint32_t skills[] = {0, 1, 2, 3, 2, 0, 3};
    tiny_begin(class, N_ITEMS, true);
    struct dataset *head = &class->draft.head;
    head->item_skills = memory_resize(head->item_skills, COUNT(skills), sizeof *skills);
    memcpy(head->item_first, first, sizeof first);
    memcpy(head->item_skills, skills, sizeof skills);
    head->n_skills = N_SKILLS;
    names_add(&head->skills, "third", 5);
    names_add(&head->skills, "fourth", 6);
}

/* Lengths 7, 1, 2, 30, 0 and 1; attempts that are unknown, not shown, or not to train on. */
static const char *const texts[] = {"a1 b0 c? d1. e0v c1 b1t.", "b1", "c0 b1", NULL, "", "d?"};
enum { N_STUDENTS = COUNT(texts) };
static const uint32_t all_students[N_STUDENTS] = {0, 1, 2, 3, 4, 5};

static inline void open_class(struct tiny *class)
{
    begin_class(class);
    for (uint32_t s = 0; s < N_STUDENTS; s++) {
        const struct rng rng = {.seed = 4, .purpose = RNG_SIMULATE, .who = s};
        if (texts[s] == NULL)
            tiny_random(class, &rng, 30, 7);
        else
            tiny_text(class, texts[s]);
    }
    static double targets[N_STUDENTS] = {1, 0, 0.25, 0, 1, NAN};
    class->draft.head.target = targets;
    tiny_finish(class, &world);
}

/* A model of a class, and a tally for it. */
struct bench {
    struct tiny_model tiny;
    const struct model *model;
    void *work;
    struct tally tally;
    struct draw draw;
};

static inline void open_bench(struct bench *bench, const struct tiny *class,
                              const char *options)
{
    tiny_model_open(&bench->tiny, "dkt", options, &class->dataset);
    bench->model = bench->tiny.model;
    /* Sums of weights of about one: states move, but are not chaotic. */
    const double n_hidden = (double)bench->model->kind->n_hidden(bench->model);
    tiny_model_scatter(&bench->tiny, 0.8 / sqrt(n_hidden), 21);
    bench->work = bench->model->kind->attach(bench->model, &class->shard);
    tally_create(&bench->tally, bench->model->params.n, true, 40, NULL);
    bench->draw = (struct draw){.seed = 6, .epoch = 2};
}

static inline void close_bench(struct bench *bench)
{
    tally_destroy(&bench->tally);
    bench->model->kind->detach(bench->work);
    tiny_model_close(&bench->tiny);
}

/* The loss of these students; the gradient is in the tally. */
static inline double accumulate(struct bench *bench, const uint32_t *students, size_t n)
{
    tally_clear(&bench->tally);
    bench->tally.loss = bench->tally.n_scored = 0;
    bench->model->kind->accumulate(bench->model, bench->work, students, n, &bench->draw,
                                   &bench->tally);
    assert_int_equal(bench->tally.out_of_range, 0);
    return ldexp((double)bench->tally.loss, -LOSS_BITS);
}

/* All combinations of cell, layers, input, dropout and smoothing. */
enum { N_VARIANTS = 3 * 3 * 3 * 2 * 2 };
static inline char *variant(unsigned v, int hidden, int window)
{
    static const char *const cells[] = {"rnn", "lstm", "gru"};
    static const char *const inputs[] = {"item", "skill", "both"};
    return memory_text("hidden=%d, cell=%s, layers=%u, input=%s, dropout=%s, smoothing=%s, "
                       "window=%d",
                       hidden, cells[v % 3], 1 + v / 3 % 3, inputs[v / 9 % 3],
                       v / 27 % 2 ? "0.3" : "0", v / 54 % 2 ? "0.1" : "0", window);
}

/* f'(0) from f at 1, 2, 3, -1, -2, -3 times `step`, to the sixth order. */
static inline double difference(const double f[6], double step)
{
    return (45 * (f[0] - f[3]) - 9 * (f[1] - f[4]) + (f[2] - f[5])) / (60 * step);
}

static inline double moved(unsigned k, double step)
{
    return step * (k < 3 ? (double)k + 1 : 2 - (double)k);
}

static inline void expect_padding(const struct bench *bench, const char *options)
{
    const struct params *params = &bench->model->params;
    size_t n_padding = 0;
    for (size_t i = 0; i < params->n; i++)
        if (params_find(params, i) == NULL) {
            n_padding++;
            if (((const int64_t *)bench->tally.values)[i] != 0)
                fail_msg("%s: number %zu is padding and has a gradient", options, i);
        }
    assert_int_equal(n_padding, params->n - params_count(params));
    assert_true(n_padding > 0);
}

/* The gradient against differences of the model's own loss. The loss is known to 2^-41 for each
 * target, so the difference to about 1e-9. */
static inline void compare_with_differences(const struct tiny *class, const char *options,
                                            size_t stride, size_t first)
{
    struct bench bench;
    open_bench(&bench, class, options);
    const struct params *params = &bench.model->params;
    const double step = 4e-3;
    accumulate(&bench, all_students, N_STUDENTS);
    expect_padding(&bench, options);
    double *gradient = NEW(double, params->n), largest = 0;
    for (size_t i = 0; i < params->n; i++) {
        gradient[i] = -tiny_statistic(&bench.tally, i);
        largest = fmax(largest, fabs(gradient[i]));
    }
    assert_true(largest > 0.01);
    size_t n = 0;
    for (size_t i = 0; i < params->n; i++) {
        if (params_find(params, i) == NULL || n++ % stride != first % stride)
            continue;
        const real value = params->value[i];
        double f[6];
        for (unsigned k = 0; k < 6; k++) {
            params->value[i] = value + (real)moved(k, step);
            f[k] = accumulate(&bench, all_students, N_STUDENTS);
        }
        params->value[i] = value;
        const double expected = difference(f, step);
        if (!(fabs(gradient[i] - expected) <= 1e-6 * fabs(expected) + 2e-9))
            fail_msg("%s: %s, number %zu: %.12g instead of %.12g", options,
                     params_find(params, i)->name, i, gradient[i], expected);
    }
    memory_free(gradient);
    close_bench(&bench);
}

#endif
