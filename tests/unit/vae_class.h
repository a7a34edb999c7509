/* tests: a small class with a Q-matrix, and a VAE of it with random parameters. */
#ifndef TESTS_VAE_CLASS_H
#define TESTS_VAE_CLASS_H

#include "base/rng.h"
#include "gradient.h"
#include "kernels/irt.h"
#include "models/vae/vae_internal.h"

static struct comm world;
static const bool is_double = sizeof(real) == sizeof(double);

enum { N_ITEMS = 5 };

/* Item b has both skills. */
static inline void begin_class(struct tiny *class)
{
    static const uint64_t first[N_ITEMS + 1] = {0, 1, 3, 4, 5, 6};
    static const uint32_t skills[] = {0, 0, 1, 1, 0, 1};
    tiny_begin(class, N_ITEMS, false);
    tiny_q_matrix(class, first, skills);
}

static const char *const texts[] = {"a1 b0 c1 d1 e0", "b1", "c0 b1 c1", "e1v d?",
                                    "a0 a1 a0 b1"};
enum { N_STUDENTS = COUNT(texts) };
static const uint32_t all_students[N_STUDENTS] = {0, 1, 2, 3, 4};

static inline void open_class(struct tiny *class)
{
    begin_class(class);
    for (size_t s = 0; s < N_STUDENTS; s++)
        tiny_text(class, texts[s]);
    tiny_finish(class, &world);
}

static inline const struct tensor *find_tensor(const struct bench *bench, const char *name)
{
    const struct params *params = &bench->model->params;
    for (size_t t = 0; t < params->n_tensors; t++)
        if (strcmp(params->tensors[t].name, name) == 0)
            return &params->tensors[t];
    return NULL;
}

/* Random parameters, with discriminations away from zero, where |a| has no derivative, and with
 * the Q-matrix of the data. */
static inline void open_bench(struct bench *bench, const struct tiny *class,
                              const char *options)
{
    bench_declare(bench, class, "vae", options);
    struct model *model = bench->model;
    int64_t counts[2 * N_ITEMS];
    for (size_t i = 0; i < COUNT(counts); i++)
        counts[i] = (int64_t)(2 + i % 3);
    const struct item_counts item_counts = {N_ITEMS, counts, counts + N_ITEMS};
    model->kind->init(model, 4, &item_counts);
    for (size_t t = 0; t < model->params.n_tensors; t++) {
        const struct tensor *tensor = &model->params.tensors[t];
        const size_t n = params_size(&model->params, tensor);
        const bool is_a = strcmp(tensor->name, "discrimination") == 0;
        if (!is_a && strcmp(tensor->name, "difficulty") != 0 &&
            strncmp(tensor->name, "encoder", 7) != 0)
            continue;
        real *dense = NEW(real, n);
        params_take(&model->params, tensor, model->params.value, dense);
        const struct rng rng = {.seed = 8, .purpose = RNG_INIT, .part = (uint32_t)t};
        for (size_t i = 0; i < n; i++) {
            const double x = rng_normal(&rng, (uint32_t)i);
            if (!is_a)
                dense[i] = (real)(0.4 * x);
            else if (dense[i] != 0)
                dense[i] = (real)(copysign(0.3, x) + x);
        }
        params_put(&model->params, tensor, dense, model->params.value);
        memory_free(dense);
    }
    bench_attach(bench, class, 40);
}

/* Mean and standard error of a sequence of numbers. */
struct moments {
    double n, sum, squares;
};

static inline void take(struct moments *moments, double x)
{
    moments->n++;
    moments->sum += x;
    moments->squares += x * x;
}

static inline double mean_of(const struct moments *m)
{
    return m->sum / m->n;
}

static inline double variance_of(const struct moments *m)
{
    return fmax(0, m->squares / m->n - mean_of(m) * mean_of(m));
}

static inline void expect_near(const struct moments *m, double expected, double slack)
{
    const double error = sqrt(variance_of(m) / m->n);
    if (!(fabs(mean_of(m) - expected) <= 4.5 * error + slack))
        fail_msg("%g +- %g instead of %g", mean_of(m), error, expected);
}

#endif
