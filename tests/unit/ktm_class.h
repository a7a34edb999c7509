/* tests: a class and a fixture for knowledge tracing machines. */
#ifndef COHORT_KTM_CLASS_H
#define COHORT_KTM_CLASS_H

#include "data/lanes.h"
#include "models/ktm/ktm_internal.h"
#include "tiny.h"

static struct comm world;

enum { N_ITEMS = 6, N_SKILLS = 3, N_STUDENTS = 30 };

/* Items have one, two, no, one, three and one skills; times increase by 0, 1, 2, 4, ... 512. */
static inline void open_class(struct tiny *class, bool withheld)
{
    static const uint64_t first[N_ITEMS + 1] = {0, 1, 3, 3, 4, 7, 8};
    static const uint32_t skills[] = {0, 1, 2, 1, 0, 1, 2, 2};
    tiny_begin(class, N_ITEMS, withheld);
    struct dataset *head = &class->draft.head;
    head->item_skills = memory_resize(head->item_skills, COUNT(skills), sizeof *skills);
    memcpy(head->item_first, first, sizeof first);
    memcpy(head->item_skills, skills, sizeof skills);
    head->n_skills = N_SKILLS;
    head->has_time = true;
    names_add(&head->skills, "third", 5);
    for (uint32_t s = 0; s < N_STUDENTS; s++) {
        const struct rng rng = {.seed = 6, .purpose = RNG_SIMULATE, .who = s};
        tiny_random(class, &rng, s == 4 ? 0 : 3 + s % 23, 7);
    }
    int64_t *time = NEW(int64_t, class->n_attempts);
    for (size_t t = 1; t < class->n_attempts; t++)
        time[t] = time[t - 1] + (1 << t % 11) / 2;
    class->draft.time = time;
    struct names teachers = {0};
    names_add(&teachers, "Ada", 3);
    names_add(&teachers, "Bo", 2);
    covariates_add(&head->covariates, "load", NULL);
    covariates_add(&head->covariates, "teacher", &teachers);
    names_free(&teachers);
    class->covariate = NEW(double, 2 * class->n_attempts);
    for (size_t t = 0; t < class->n_attempts; t++) {
        class->covariate[2 * t] = t % 5 == 4 ? (double)NAN : (double)(t % 7) / 2 - 1;
        class->covariate[2 * t + 1] = t % 3 == 2 ? (double)NAN : (double)(t % 3);
    }
    tiny_finish(class, &world);
    memory_free(time);
}

/* A model with everything it needs for training. */
struct bench {
    struct tiny_model tiny;
    struct model *model;
    void *work;
    struct lanes lanes;
    struct exact_slices slices;
    struct pass pass;
};

static inline void open_bench(struct bench *b, const char *options, struct tiny *class)
{
    *b = (struct bench){0};
    tiny_model_open(&b->tiny, "ktm", options, &class->dataset);
    b->model = b->tiny.model;
    int64_t counts[2 * N_ITEMS];
    for (size_t i = 0; i < 2 * N_ITEMS; i++)
        counts[i] = 1 + (int64_t)(i % 4);
    const struct item_counts item_counts = {class->dataset.n_items, counts, counts + N_ITEMS};
    b->model->kind->init(b->model, 7, &item_counts);
    b->work = b->model->kind->attach(b->model, &class->shard, TO_TRAIN);
    size_t first = 0, n = 0;
    tiny_must(lanes_create(&b->lanes, &class->dataset, 12, 4, &first, &n));
    bool has_training[N_STUDENTS];
    int64_t n_attempts = 0;
    b->model->kind->training(b->work, has_training, &n_attempts);
    tiny_must(lanes_fill(&b->lanes, &class->shard, has_training, NULL, 12));
    exact_slices_create(&b->slices, &world, &b->model->params);
    b->pass = (struct pass){.comm = &world, .slices = &b->slices, .lanes = &b->lanes};
}

static inline void close_bench(struct bench *b)
{
    exact_slices_destroy(&b->slices);
    lanes_destroy(&b->lanes);
    b->model->kind->detach(b->work);
    tiny_model_close(&b->tiny);
}

/* The sum of the values of some rows at attempt `a` of a walk. */
static inline double sum_of(const struct fm_features *attempts, size_t a, size_t row)
{
    double sum = 0;
    for (size_t e = attempts->first[a]; e < attempts->first[a + 1]; e++)
        if (attempts->row[e] == row)
            sum += (double)attempts->x[e];
    return sum;
}

#endif
