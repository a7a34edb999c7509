/* cohort sample: samples students from a model into a data set. */
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/rng.h"
#include "commands/commands.h"
#include "data/split.h"
#include "data_tools/summary.h"
#include "runs/inference.h"
#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct values {
    const char *data, *output, *split;
    int64_t n_students, seed, n_gibbs;
};

#define AT(field) offsetof(struct values, field)
static const struct flag flags[] = {
    {{"output", OPTION_TEXT, AT(output), "", 0, 0, NULL, "write the data set to this file"},
     'o',
     "DATA.h5"},
    {{"students", OPTION_INTEGER, AT(n_students), "100", 1, 4e9, NULL,
      "number of students to sample"},
     0,
     NULL},
    {{"seed", OPTION_INTEGER, AT(seed), "1", 0, 9e15, NULL, "seed of the random numbers"},
     0,
     NULL},
    {{"gibbs", OPTION_INTEGER, AT(n_gibbs), "100", 1, 1e6, NULL,
      "Gibbs steps for a step with many answers; steps with few are sampled exactly"},
     0,
     NULL},
    {{"split", OPTION_TEXT, AT(split), "none", 0, 0, NULL,
      "split of the new data set, as in `cohort import`; none: all for training"},
     0,
     "SPLIT"},
    {{"data", OPTION_TEXT, AT(data), "", 0, 0, NULL,
      "take the sequences of items from this data set instead of the one the run was trained "
      "on"},
     0,
     "DATA.h5"},
};

/* Attempts as they are drawn. */
struct draft {
    size_t n, item_room, mark_room;
    uint32_t *item;
    uint8_t *mark;
};

static void take(void *arg, uint32_t item, bool correct, bool begins_step)
{
    struct draft *draft = arg;
    size_t n = draft->n;
    GROW(draft->item, n, draft->item_room);
    GROW(draft->mark, n, draft->mark_room);
    draft->item[n] = item;
    draft->mark[n] = mark_make(correct ? CORRECT : INCORRECT, TRAIN, true, begins_step);
    draft->n++;
}

/* Students who have attempts. */
static size_t list_askable(const struct shard *shard, uint32_t *askable)
{
    size_t n = 0;
    for (size_t s = 0; s < shard->n_students; s++)
        if (shard->first[s + 1] > shard->first[s])
            askable[n++] = (uint32_t)s;
    return n;
}

static void draw_students(const struct inference *inference, const struct values *values,
                          struct dataset_content *content, struct draft *draft)
{
    const struct sample_sink sink = {take, draft};
    uint32_t *askable = NEW(uint32_t, inference->shard.n_students);
    const size_t n_askable = list_askable(&inference->shard, askable);
    for (size_t s = 0; s < content->head.n_students && n_askable > 0; s++) {
        const struct rng rng = {.seed = (uint64_t)values->seed,
                                .purpose = RNG_SIMULATE,
                                .who = (uint32_t)s,
                                .when = 1};
        const uint32_t like = askable[rng_below(&rng, 0, n_askable)];
        inference->model->kind->sequence.sample(inference->model, inference->work, like,
                                                (uint64_t)values->seed, (uint32_t)s,
                                                values->n_gibbs, &sink);
        content->head.first[s + 1] = draft->n;
        char name[32];
        const int n = snprintf(name, sizeof name, "sample-%zu", s + 1);
        names_add(&content->students, name, (size_t)n);
    }
    memory_free(askable);
}

static enum status write(const struct inference *inference, const struct values *values,
                         struct dataset_content *content, struct draft *draft)
{
    struct split_plan plan = {.seed = (uint64_t)values->seed};
    TRY(split_parse(values->split, &plan));
    content->head.n_attempts = draft->n;
    content->head.withheld = split_withholds(&plan);
    content->item = draft->item;
    content->mark = draft->mark;
    if (draft->n == 0)
        return fail(BAD_USER,
                    "%s: no student has any attempts, so there are no item sequences to sample "
                    "from; name another data set with --data",
                    inference->dataset.path);
    TRY(split_apply(&plan, content, draft->mark));
    TRY(dataset_write(content, values->output));
    summary_say(content);
    log_say("wrote %s (digest %s)", values->output, content->head.digest);
    return OK;
}

static enum status sample(const struct inference *inference, const struct values *values)
{
    const struct dataset *dataset = &inference->dataset;
    if (inference->model->kind->sequence.sample == NULL)
        return fail(BAD_USER, "%s: %s models cannot be sampled from; only rtrbm models can",
                    inference->checkpoint.path, inference->model->kind->name);
    struct dataset_content content = {
        .head = {.n_students = (size_t)values->n_students,
                 .n_items = dataset->n_items,
                 .n_skills = dataset->n_skills,
                 .n_groups = dataset->n_groups,
                 .source = memory_text("sampled from %s, digest %s, seed %lld",
                                       inference->model->kind->name,
                                       inference->checkpoint.digest, (long long)values->seed),
                 .first = NEW(uint64_t, (size_t)values->n_students + 1),
                 .item_first = dataset->item_first,
                 .item_skills = dataset->item_skills,
                 .item_group = dataset->item_group,
                 .items = dataset->items,
                 .skills = dataset->skills,
                 .groups = dataset->groups}};
    struct draft draft = {0};
    draw_students(inference, values, &content, &draft);
    enum status status = write(inference, values, &content, &draft);
    names_free(&content.students);
    memory_free(content.head.source);
    memory_free(content.head.first);
    memory_free(draft.item);
    memory_free(draft.mark);
    return status;
}

/* One rank does it all: it draws sequences one after the other, into one file. */
static enum status open_and_sample(const struct comm *alone, int argc, char **argv)
{
    struct values values = {0};
    const char **words = NEW(const char *, (size_t)argc);
    int n_words = 0;
    enum status status = command_parse(&command_sample, argc, argv, &values, words, &n_words);
    if (status == OK && n_words != 1)
        status = command_usage(&command_sample);
    if (status == OK)
        status = command_check_output(&command_sample, values.output, "the data set to write");
    if (status == OK) {
        struct inference inference;
        status = inference_open(&inference, words[0], values.data, alone);
        if (status == OK)
            status = sample(&inference, &values);
        inference_close(&inference);
    }
    memory_free(words);
    return status;
}

static enum status run(const struct comm *comm, int argc, char **argv)
{
    struct comm alone;
    comm_split(comm, comm->rank, &alone);
    enum status status = comm->rank == 0 ? open_and_sample(&alone, argc, argv) : OK;
    comm_leave(&alone);
    return comm_agree(comm, status);
}

const struct command command_sample = {
    .name = "sample",
    .usage = "sample RUN_OR_CHECKPOINT [--students N] [--seed N] -o DATA.h5",
    .summary = "Sample students from a model of sequences (rtrbm) into a data set",
    .details =
        "A sampled student is asked the items of a randomly chosen student of the data set, "
        "and answers as the model predicts: each step is sampled given the sampled steps "
        "before it. The result is a data set like any other. The same model, data and options "
        "always give the same file, byte for byte.",
    .examples = "Sample 1000 students and train on them:\n\n"
                "  cohort sample runs/rtrbm --students 1000 \\\n"
                "      --split by-student=80/10/10 -o sampled.h5\n"
                "  cohort train model.kind=rtrbm data=sampled.h5 run=runs/again",
    .see_also = "cohort-simulate(1), cohort-files(5)",
    .flags = flags,
    .n_flags = COUNT(flags),
    .run = run,
};
