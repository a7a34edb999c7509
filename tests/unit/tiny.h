/* tests: classes of a few students written in the test, and models for them. */
#ifndef COHORT_TINY_H
#define COHORT_TINY_H

#include "base/comm.h"
#include "base/config.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "data/dataset.h"
#include "learn/model.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A class: begin, add students, finish. Then `dataset` is open over `comm`, and `shard` holds
 * all of its students on every rank. */
struct tiny {
    struct dataset_content draft;
    uint64_t *first;
    uint32_t *item;
    uint8_t *mark;
    double *covariate; /* set with draft.head.covariates; freed with the class */
    size_t n_students, n_attempts, room, room_first;
    char path[512];
    struct dataset dataset;
    struct shard shard;
};

static inline void tiny_must(enum status status)
{
    if (status != OK) {
        fprintf(stderr, "%s\n", fail_sentence());
        abort();
    }
}

/* Collective: the sum of `value` over the ranks before this one. */
static inline int64_t tiny_before(const struct comm *comm, int64_t value)
{
    int64_t before = 0;
    if (comm->size > 1)
        MPI_Exscan(&value, &before, 1, MPI_INT64_T, MPI_SUM, comm->mpi);
    return comm->rank == 0 ? 0 : before;
}

static inline void tiny_begin(struct tiny *tiny, size_t n_items, bool withheld)
{
    *tiny = (struct tiny){0};
    struct dataset *head = &tiny->draft.head;
    head->n_items = n_items;
    head->n_skills = 2;
    head->n_groups = 1;
    head->withheld = withheld;
    head->source = memory_text("a test");
    head->item_first = NEW(uint64_t, n_items + 1);
    head->item_skills = NEW(uint32_t, n_items);
    head->item_group = NEW(int32_t, n_items);
    for (size_t i = 0; i < n_items; i++) {
        char name[32];
        snprintf(name, sizeof name, "item %zu", i);
        names_add(&head->items, name, strlen(name));
        head->item_first[i + 1] = i + 1;
        head->item_skills[i] = (uint32_t)(i % 2);
    }
    names_add(&head->skills, "even", 4);
    names_add(&head->skills, "odd", 3);
    names_add(&head->groups, "all", 3);
    tiny->first = NEW(uint64_t, 1);
    tiny->room_first = 1;
}

/* Replace the skills of the items: item i has skills[first[i] .. first[i + 1]]. */
static inline void tiny_q_matrix(struct tiny *tiny, const uint64_t *first,
                                 const uint32_t *skills)
{
    struct dataset *head = &tiny->draft.head;
    head->item_skills =
        memory_resize(head->item_skills, first[head->n_items], sizeof *head->item_skills);
    memcpy(head->item_first, first, (head->n_items + 1) * sizeof *first);
    memcpy(head->item_skills, skills, first[head->n_items] * sizeof *skills);
}

/* Five items, a to e, with no skill, one, three, one and two of four. */
static inline void tiny_begin_skills(struct tiny *tiny, bool withheld)
{
    static const uint64_t first[] = {0, 0, 1, 4, 5, 7};
    static const uint32_t skills[] = {0, 1, 2, 3, 2, 0, 3};
    tiny_begin(tiny, COUNT(first) - 1, withheld);
    tiny_q_matrix(tiny, first, skills);
    struct dataset *head = &tiny->draft.head;
    head->n_skills = 4;
    names_add(&head->skills, "third", 5);
    names_add(&head->skills, "fourth", 6);
}

static inline void tiny_student(struct tiny *tiny)
{
    char name[32];
    snprintf(name, sizeof name, "student %zu", tiny->n_students);
    names_add(&tiny->draft.students, name, strlen(name));
    tiny->n_students++;
    GROW(tiny->first, tiny->n_students, tiny->room_first);
    tiny->first[tiny->n_students] = tiny->n_attempts;
}

static inline void tiny_attempt(struct tiny *tiny, uint32_t item, uint8_t mark)
{
    if (tiny->n_attempts == tiny->room) {
        tiny->room = tiny->room ? 2 * tiny->room : 16;
        tiny->item = memory_resize(tiny->item, tiny->room, sizeof *tiny->item);
        tiny->mark = memory_resize(tiny->mark, tiny->room, sizeof *tiny->mark);
    }
    tiny->item[tiny->n_attempts] = item;
    tiny->mark[tiny->n_attempts++] = mark;
    tiny->first[tiny->n_students] = tiny->n_attempts;
}

/* A student as a text: "a1 b0 c? d1v a0t." is item a correct, b incorrect, c unknown, d correct
 * in the valid split, a again in the test split with a hidden outcome. */
static inline void tiny_text(struct tiny *tiny, const char *text)
{
    tiny_student(tiny);
    for (const char *at = text; *at != '\0';) {
        const uint32_t item = (uint32_t)(*at++ - 'a');
        const enum outcome outcome = *at == '1' ? CORRECT : *at == '0' ? INCORRECT : UNKNOWN;
        enum split split = TRAIN;
        bool shown = outcome != UNKNOWN;
        for (at++; *at != '\0' && *at != ' '; at++) {
            split = *at == 'v' ? VALID : *at == 't' ? TEST : split;
            shown = shown && *at != '.';
        }
        tiny_attempt(tiny, item, mark_make(outcome, split, shown, true));
        while (*at == ' ')
            at++;
    }
}

/* A student with n random attempts: known with probability 9/10, in the training split with
 * probability `train` / 10, shown according to `withheld`. */
static inline void tiny_random(struct tiny *tiny, const struct rng *rng, size_t n, int train)
{
    const struct dataset *head = &tiny->draft.head;
    tiny_student(tiny);
    for (uint32_t t = 0; t < n; t++) {
        const uint32_t item = (uint32_t)rng_below(rng, 4 * t, head->n_items);
        const enum outcome outcome = rng_below(rng, 4 * t + 1, 10) == 0
                                         ? UNKNOWN
                                         : (enum outcome)rng_below(rng, 4 * t + 2, 2);
        const uint64_t dice = rng_below(rng, 4 * t + 3, 10);
        const enum split split = dice < (uint64_t)train ? TRAIN : dice % 2 == 0 ? VALID : TEST;
        const bool shown = outcome != UNKNOWN && (split == TRAIN || !head->withheld);
        tiny_attempt(tiny, item, mark_make(outcome, split, shown, true));
    }
}

/* Collective over `comm`, which must outlive the class. Every rank passes the same students. */
static inline void tiny_finish(struct tiny *tiny, const struct comm *comm)
{
    struct dataset *head = &tiny->draft.head;
    head->n_students = tiny->n_students;
    head->n_attempts = tiny->n_attempts;
    head->first = tiny->first;
    tiny->draft.item = tiny->item;
    tiny->draft.mark = tiny->mark;
    tiny->draft.covariate = tiny->covariate;
    if (comm->rank == 0) {
        const char *memory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
        const char *where = getenv("TMPDIR"); /* memory, since every write waits for a disk */
        snprintf(tiny->path, sizeof tiny->path, "%s/tiny.XXXXXX", where ? where : memory);
        const int file = mkstemp(tiny->path);
        if (file < 0 || close(file) != 0)
            abort();
        tiny_must(dataset_write(&tiny->draft, tiny->path));
    }
    comm_broadcast(comm, tiny->path, sizeof tiny->path, 0);
    tiny_must(dataset_open(&tiny->dataset, tiny->path, comm));
    tiny_must(dataset_read(&tiny->dataset, 0, tiny->n_students, &tiny->shard));
}

/* Collective. */
static inline void tiny_close(struct tiny *tiny)
{
    const struct comm *comm = tiny->dataset.comm;
    comm_barrier(comm);
    if (comm->rank == 0)
        unlink(tiny->path);
    shard_free(&tiny->shard);
    dataset_close(&tiny->dataset);
    struct dataset *head = &tiny->draft.head;
    memory_free(head->source);
    memory_free(head->item_first);
    memory_free(head->item_skills);
    memory_free(head->item_group);
    names_free(&head->items);
    names_free(&head->skills);
    names_free(&head->groups);
    covariates_free(&head->covariates);
    names_free(&tiny->draft.students);
    memory_free(tiny->first);
    memory_free(tiny->item);
    memory_free(tiny->mark);
    memory_free(tiny->covariate);
}

/* A model declared for a class; `options` are settings of [model], such as "hidden=3,
 * copies=2". */
struct tiny_model {
    struct config *config;
    struct model *model;
    struct model_names names;
};

static inline void tiny_model_open(struct tiny_model *tiny, const char *kind,
                                   const char *options, const struct dataset *dataset)
{
    *tiny = (struct tiny_model){.config = config_create()};
    char *text = memory_text("[model]\nkind = %s\n%s\n", kind, options);
    for (char *at = text; *at != '\0'; at++)
        if (at[0] == ',' && at[1] == ' ')
            *at = '\n';
    tiny_must(config_read_text(tiny->config, text, "test"));
    const struct model_kind *found = NULL;
    tiny_must(model_choose(tiny->config, &found));
    tiny->model = model_create(found);
    const struct option_group groups[] = {
        {"model", model_name_options, COUNT(model_name_options), &tiny->names},
        {"model", found->options, found->n_options, tiny->model->options},
    };
    tiny_must(config_resolve_some(tiny->config, groups, COUNT(groups)));
    tiny_must(model_declare(tiny->model, dataset, dataset->n_students, dataset->n_items,
                            dataset->n_skills));
    memory_free(text);
}

static inline void tiny_model_close(struct tiny_model *tiny)
{
    model_destroy(tiny->model);
    config_destroy(tiny->config);
}

/* Set all parameters to normal numbers with this standard deviation; padding stays zero. */
static inline void tiny_model_scatter(const struct tiny_model *tiny, double scale,
                                      uint64_t seed)
{
    const struct params *params = &tiny->model->params;
    for (size_t t = 0; t < params->n_tensors; t++) {
        const struct tensor *tensor = &params->tensors[t];
        const size_t n = params_size(params, tensor);
        real *dense = NEW(real, n);
        const struct rng rng = {.seed = seed, .purpose = RNG_INIT, .part = (uint32_t)t};
        for (size_t i = 0; i < n; i++)
            dense[i] = (real)(scale * rng_normal(&rng, (uint32_t)i));
        params_put(params, tensor, dense, params->value);
        memory_free(dense);
    }
}

/* Number i of a tally, as a real number. */
static inline double tiny_statistic(const struct tally *tally, size_t i)
{
    return tally_unit(tally) * (tally->wide ? (double)((const int64_t *)tally->values)[i]
                                            : (double)((const int32_t *)tally->values)[i]);
}

#endif
