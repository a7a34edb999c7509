/* tests: every kind of model with many settings, and a class to try it on. */
#ifndef COHORT_MODEL_VARIANTS_H
#define COHORT_MODEL_VARIANTS_H

#include "tiny.h"

static struct comm world;

/* Settings to test a kind with, besides its defaults. BY_BLOCK: some statistics are rounded
 * once per block, not once per student. BY_SUM: they are summed in floating point over the rows
 * of a block. */
struct variant {
    const char *kind, *options;
    enum { PLAIN, BY_BLOCK, BY_SUM, STATE } trait;
};
static const struct variant variants[] = {
    {"rbm", "", PLAIN},
    {"rbm", "visible=bernoulli, copies=1, hidden=5", PLAIN},
    {"rbm", "copies=3, hidden=20, conditional=yes, cd_steps=3", PLAIN},
    {"rbm", "copies=2, hidden=33, factors=4, conditional=yes", BY_BLOCK},
    {"rbm", "copies=1, hidden=4, hidden_kind=gaussian, repeats=last", PLAIN},
    {"rbm", "copies=2, hidden=4, hidden_kind=relu, conditional=yes, repeats=last", PLAIN},
    {"rbm", "copies=2, hidden=15, persistent=yes, cd_schedule=0:2 1:4", STATE},
    {"rbm", "copies=2, hidden=15, prediction=mean_field, start=log_odds", PLAIN},
    {"rbm", "copies=2, hidden=6, common=yes, window=4", PLAIN},
    {"rbm", "visible=bernoulli, copies=2, hidden=6, common=yes, factors=2", BY_BLOCK},
    {"dkt", "hidden=5", BY_SUM},
    {"dkt", "cell=gru, layers=2, hidden=17, dropout=0.3", BY_SUM},
    {"dkt", "cell=rnn, hidden=4, smoothing=0.1, window=3", BY_SUM},
    {"dkt", "hidden=4, reconstruction=0.1, waviness=0.3, waviness2=3", BY_SUM},
    {"rtrbm", "hidden=5, recompute=yes", BY_SUM},
    {"rtrbm", "hidden=18, visible=bernoulli, gradient=cd, cd_steps=3", BY_SUM},
    {"rtrbm", "hidden=6, visible=bernoulli, dense=yes", BY_SUM},
    {"rtrbm", "hidden=6, visible=bernoulli, dense=yes, gradient=cd", BY_SUM},
    {"rtrbm", "hidden=4, structure=skills, skill_units=2, penalty=0.01", BY_SUM},
    {"blend",
     "members=[{\"kind\":\"rbm\",\"hidden\":\"4\"},{\"kind\":\"dkt\",\"hidden\":\"5\"}]",
     PLAIN},
    {"blend",
     "method=logistic, members=[{\"kind\":\"rbm\",\"hidden\":\"4\"},"
     "{\"kind\":\"rbm\",\"copies\":\"2\",\"hidden\":\"3\"}]",
     PLAIN},
    {"bkt", "forget=yes, restarts=3", PLAIN},
    {"bkt", "items=yes, several=product, most_odds=0", PLAIN},
    {"bkt", "trace=item, forget=yes", PLAIN},
    {"vae", "hidden=17, posterior=full, samples=5, layers=3, dimensions=3", BY_SUM},
    {"vae", "hidden=4, discrimination=equal, prior_correlation=1 0.6 / 0.6 1", BY_SUM},
    {"vae", "hidden=4, layers=1, discrimination=one, prefixes=0, gradient=plain, samples=3",
     BY_SUM},
    {"vae", "hidden=4, discrimination=signed, prior_b=2, prediction=plug_in", BY_SUM},
    {"vae", "hidden=4, posterior=full, prior_a=0.5, kl_warm_up=9", BY_SUM},
    {"ktm", "features=student item skill attempts_skill wins:decay=0.8 fails, factors=5",
     PLAIN},
    {"lme", "factors=item group skill, fixed=position practice", PLAIN},
    {"lme", "factors=skill", PLAIN},
};

enum { N_ITEMS = 7, N_STUDENTS = 14, LONGEST = 40 };

/* A class and a model for it; `withheld` changes what is shown. */
struct bench {
    struct tiny class;
    struct tiny_model tiny;
    const struct model_kind *kind;
    const struct variant *variant;
    real *p; /* of all attempts */
};

static inline void open_bench(struct bench *b, const struct variant *variant, bool withheld)
{
    *b = (struct bench){.kind = model_find(variant->kind), .variant = variant};
    tiny_begin(&b->class, N_ITEMS, withheld);
    for (uint32_t s = 0; s < N_STUDENTS; s++) {
        const struct rng rng = {.seed = 21, .purpose = RNG_SIMULATE, .who = s};
        tiny_random(&b->class, &rng,
                    s == 3   ? 0
                    : s == 4 ? LONGEST
                             : 2 + s % 11,
                    s == 5 ? 0 : 6);
    }
    tiny_finish(&b->class, &world);
    tiny_model_open(&b->tiny, variant->kind, variant->options, &b->class.dataset);
    int64_t counts[2 * N_ITEMS] = {0};
    for (size_t i = 0; i < 2 * N_ITEMS; i++)
        counts[i] = (int64_t)(i % 5);
    const struct item_counts item_counts = {N_ITEMS, counts, counts + N_ITEMS};
    b->kind->init(b->tiny.model, 5, &item_counts);
    tiny_model_scatter(&b->tiny, 0.5, 3);
    if (b->kind->made_by != NULL) /* weights that make valid probabilities */
        b->tiny.model->params.value[0] = b->tiny.model->params.value[1] = (real)0.5;
    b->p = NEW(real, b->class.n_attempts);
}

static inline void close_bench(struct bench *b)
{
    memory_free(b->p);
    tiny_model_close(&b->tiny);
    tiny_close(&b->class);
}

/* Run `test` for every kind (if `adds`: every kind that adds statistics) and variant, with
 * whole students and with single attempts held out. */
static inline void with_kinds(void (*test)(struct bench *b), bool adds)
{
    for (size_t k = 0; k < n_model_kinds; k++) {
        if (adds && model_kinds[k]->accumulate == NULL)
            continue;
        struct variant standard = {
            .kind = model_kinds[k]->name, .options = "", .trait = BY_SUM};
        for (size_t v = 0; v < COUNT(variants); v++)
            if (strcmp(variants[v].kind, standard.kind) == 0 && variants[v].options[0] == '\0')
                standard.trait = variants[v].trait;
        const size_t n = COUNT(variants) + (model_kinds[k]->made_by == NULL);
        for (size_t v = 0; v < n; v++) {
            const struct variant *variant = v < COUNT(variants) ? &variants[v] : &standard;
            if (strcmp(variant->kind, standard.kind) != 0 ||
                (v < COUNT(variants) && variant->options[0] == '\0'))
                continue;
            for (int withheld = 0; withheld < 2; withheld++) {
                struct bench b;
                open_bench(&b, variant, withheld);
                test(&b);
                close_bench(&b);
            }
        }
    }
}

static inline void with_all(void (*test)(struct bench *b))
{
    with_kinds(test, false);
}

static inline void with_statistics(void (*test)(struct bench *b))
{
    with_kinds(test, true);
}

/* Predictions for all attempts of the shard as it is now. */
static inline void predict(struct bench *b, const struct shard *shard, real *p)
{
    void *work = b->kind->attach(b->tiny.model, shard, TO_TRAIN);
    for (size_t s = 0; s < shard->n_students; s++)
        b->kind->predict(b->tiny.model, work, s, 7, p + shard->first[s]);
    b->kind->detach(work);
}

#endif
