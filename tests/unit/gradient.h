/* tests: a model of a class with its tally, and the model's gradient compared with finite
 * differences of its own loss. */
#ifndef COHORT_GRADIENT_H
#define COHORT_GRADIENT_H

#include "tiny.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct bench {
    struct tiny_model tiny;
    struct model *model;
    void *work; /* private to the kind */
    struct tally tally;
    struct draw draw;
};

/* Declare the model, without values; once it has values, attach it to the class. */
static inline void bench_declare(struct bench *bench, const struct tiny *class,
                                 const char *kind, const char *options)
{
    tiny_model_open(&bench->tiny, kind, options, &class->dataset);
    bench->model = bench->tiny.model;
}

static inline void bench_attach(struct bench *bench, const struct tiny *class, int bits)
{
    bench->work = bench->model->kind->attach(bench->model, &class->shard, TO_TRAIN);
    tally_create(&bench->tally, bench->model->params.n, true, bits, NULL);
    bench->draw = (struct draw){.seed = 6, .epoch = 2};
}

static inline void close_bench(struct bench *bench)
{
    tally_destroy(&bench->tally);
    bench->model->kind->detach(bench->work);
    tiny_model_close(&bench->tiny);
}

/* The loss of these students; leaves the gradient in the tally. */
static inline double accumulate(struct bench *bench, const uint32_t *students, size_t n)
{
    tally_clear(&bench->tally);
    bench->tally.loss = bench->tally.n_scored = 0;
    bench->model->kind->accumulate(bench->model, bench->work, students, n, &bench->draw,
                                   &bench->tally);
    assert_int_equal(bench->tally.out_of_range, 0);
    return ldexp((double)bench->tally.loss, -LOSS_BITS);
}

/* f'(0) from f at 1, 2, 3, -1, -2, -3 times `step`, of sixth order. */
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

/* What is compared: every `stride`-th number, starting at `first`, of the trained tensors
 * (NULL: all; other tensors must have no gradient). The largest gradient must be at least
 * `least`. */
struct comparison {
    const uint32_t *students;
    size_t n_students, stride, first;
    bool (*is_trained)(const struct tensor *tensor);
    double least, slack;
};

/* The loss is accurate to 2^-41 per target, hence the difference to about 1e-9. */
static inline void expect_differences(struct bench *bench, const char *options,
                                      const struct comparison *c)
{
    const struct params *params = &bench->model->params;
    const double step = 4e-3;
    accumulate(bench, c->students, c->n_students);
    expect_padding(bench, options);
    double *gradient = NEW(double, params->n), largest = 0;
    for (size_t i = 0; i < params->n; i++) {
        gradient[i] = -tiny_statistic(&bench->tally, i);
        largest = fmax(largest, fabs(gradient[i]));
    }
    assert_true(largest > c->least);
    size_t n = 0;
    for (size_t i = 0; i < params->n; i++) {
        const struct tensor *tensor = params_find(params, i);
        if (tensor == NULL)
            continue;
        if (c->is_trained != NULL && !c->is_trained(tensor)) {
            assert_true(gradient[i] == 0);
            continue;
        }
        if (n++ % c->stride != c->first % c->stride)
            continue;
        const real value = params->value[i];
        double f[6];
        for (unsigned k = 0; k < 6; k++) {
            params->value[i] = value + (real)moved(k, step);
            f[k] = accumulate(bench, c->students, c->n_students);
        }
        params->value[i] = value;
        const double expected = difference(f, step);
        if (!(fabs(gradient[i] - expected) <= 1e-6 * fabs(expected) + c->slack))
            fail_msg("%s: %s, number %zu: %.12g instead of %.12g", options, tensor->name, i,
                     gradient[i], expected);
    }
    memory_free(gradient);
}

/* Compare every `stride`-th number of the gradient in the tally with an oracle's. */
static inline void expect_gradient(const struct bench *bench, const char *options,
                                   const double *gradient, size_t stride, double relative,
                                   double slack)
{
    const struct params *params = &bench->model->params;
    for (size_t i = 0, n = 0; i < params->n; i++) {
        if (params_find(params, i) == NULL || n++ % stride != 0)
            continue;
        const double got = -tiny_statistic(&bench->tally, i);
        if (!(fabs(got - gradient[i]) <= relative * fabs(gradient[i]) + slack))
            fail_msg("%s: %s, number %zu: %.12g instead of %.12g", options,
                     params_find(params, i)->name, i, got, gradient[i]);
    }
}

#endif
