/* tests: a class with every case DKT must handle, a model of it, and the model's gradient
 * compared with finite differences of its own loss. */
#ifndef COHORT_DKT_CLASS_H
#define COHORT_DKT_CLASS_H

#include "dkt_oracle.h"
#include "gradient.h"

static struct comm world;
static const bool is_double = sizeof(real) == sizeof(double);
static const double tolerance = is_double ? 1e-13 : 3e-6;

enum { N_ITEMS = 5 };

/* Students of 7, 1, 2, 30, 0 and 1 attempts; some attempts are unknown, hidden, or not for
 * training. */
static const char *const texts[] = {"a1 b0 c? d1. e0v c1 b1t.", "b1", "c0 b1", NULL, "", "d?"};
enum { N_STUDENTS = COUNT(texts) };
static const uint32_t all_students[N_STUDENTS] = {0, 1, 2, 3, 4, 5};

static inline void open_class(struct tiny *class)
{
    tiny_begin_skills(class, true);
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

static inline void open_bench(struct bench *bench, const struct tiny *class,
                              const char *options)
{
    bench_declare(bench, class, "dkt", options);
    /* Weights whose sums are about one: states move without becoming chaotic. */
    const double n_hidden = (double)bench->model->kind->view.n_hidden(bench->model);
    tiny_model_scatter(&bench->tiny, 0.8 / sqrt(n_hidden), 21);
    bench_attach(bench, class, 40);
}

/* All combinations of cell, layers, input, dropout and smoothing. */
enum { N_VARIANTS = 3 * 3 * 3 * 2 * 2 };
static inline char *variant(unsigned v, int hidden, int window)
{
    static const char *const cells[] = {"rnn", "lstm", "gru"};
    static const char *const inputs[] = {"item", "skill", "both"};
    return memory_text("hidden=%d, cell=%s, layers=%u, input=%s, dropout=%s, smoothing=%s, "
                       "window=%d, common=%s",
                       hidden, cells[v % 3], 1 + v / 3 % 3, inputs[v / 9 % 3],
                       v / 27 % 2 ? "0.3" : "0", v / 54 % 2 ? "0.1" : "0", window,
                       v / 3 % 2 ? "yes" : "no");
}

static inline void compare_with_differences(const struct tiny *class, const char *options,
                                            size_t stride, size_t first)
{
    struct bench bench;
    open_bench(&bench, class, options);
    expect_differences(&bench, options,
                       &(struct comparison){.students = all_students,
                                            .n_students = N_STUDENTS,
                                            .stride = stride,
                                            .first = first,
                                            .least = 0.01,
                                            .slack = 2e-9});
    close_bench(&bench);
}

#endif
