/* The table of simulators and what they share: names, named random numbers (so that the options
 * determine a class bit for bit), the truth stored with the data, and the split. Students and
 * their truth are put into the order of the data set after they are generated. */
#include "data_tools/simulate.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/split.h"
#include "data_tools/summary.h"
#include <sleef.h>
#include <stdio.h>
#include <string.h>

const char *const simulate_models[] = {"1pl", "2pl", NULL};

static const char irt_help[] =
    "Simulate item response theory: P(correct) = sigmoid(sum_k a_ik theta_k - b_i), where "
    "item i needs the skills of its row in the Q-matrix. Each student answers each item once, "
    "in random order. Truth: theta, a, b, q.";
static const char bkt_help[] =
    "Simulate Bayesian knowledge tracing: a skill is known at first with probability p0 and "
    "learned at each attempt with probability `learn`. Students may slip on known skills and "
    "guess on unknown ones. Truth: p0, learn, forget, guess, slip, and what each student knows "
    "after the last attempt (known).";
static const char grockit_help[] =
    "Simulate a class in the shape of the Grockit contest: 131072 students, 6046 items, "
    "about 5 million attempts with long tails of activity and popularity, tracks, tags, "
    "skipped and timed-out answers, each student's last attempts held out. Truth: ability, "
    "track_ability, discrimination, difficulty.";

static const struct simulate_kind kinds[] = {
    {.entry = {"irt", irt_help, " students items skills model correlation missing "},
     .split = "by-student=80/10/10",
     .n_students = 2000,
     .n_items = 50,
     .n_skills = 1,
     .make = simulate_irt},
    {.entry = {"bkt", bkt_help, " students items skills attempts forget "},
     .split = "by-student=80/10/10",
     .n_students = 2000,
     .n_skills = 5,
     .make = simulate_bkt},
    {.entry = {"grockit", grockit_help, " students items skills attempts "},
     .split = "by-last",
     .n_students = 131072,
     .n_items = 6046,
     .n_skills = 281,
     .has_time = true,
     .make = simulate_grockit},
};

const struct subcommands simulate_menu = {
    .command = "simulate",
    .noun = "kind",
    .takes = " seed split output shuffle-outcomes ",
    .rows = kinds,
    .n = COUNT(kinds),
    .stride = sizeof kinds[0],
};

double simulate_exp(double x)
{
    return Sleef_cinz_expd1_u10purec(x);
}

double simulate_log(double x)
{
    return Sleef_cinz_logd1_u10purec(x);
}

double simulate_sigmoid(double x)
{
    return 1 / (1 + simulate_exp(-x));
}

struct rng simulate_rng(const struct simulation *simulation, uint32_t part, size_t who)
{
    return (struct rng){
        .seed = simulation->seed, .purpose = RNG_SIMULATE, .part = part, .who = (uint32_t)who};
}

double *simulate_truth(struct simulation *simulation, const char *name, size_t n_rows,
                       size_t n_columns, bool of_students)
{
    ENSURE(simulation->n_truths < SIMULATE_MOST_TRUTHS);
    struct simulate_truth *truth = &simulation->truths[simulation->n_truths++];
    *truth = (struct simulate_truth){.name = name,
                                     .rank = n_columns > 0 ? 2 : 1,
                                     .shape = {n_rows, n_columns},
                                     .values = NEW(double, n_rows *size_max(n_columns, 1)),
                                     .of_students = of_students};
    return truth->values;
}

void simulate_names(struct simulation *simulation)
{
    const struct {
        const char *word;
        size_t n;
        uint32_t (*add)(struct builder *, const char *, size_t);
    } all[] = {
        {"student", simulation->n_students, builder_student},
        {"item", simulation->n_items, builder_item},
        {"skill", simulation->n_skills, builder_skill},
    };
    for (size_t a = 0; a < COUNT(all); a++)
        for (size_t i = 0; i < all[a].n; i++) {
            char name[64];
            const int n = snprintf(name, sizeof name, "%s-%zu", all[a].word, i + 1);
            all[a].add(simulation->builder, name, (size_t)n);
        }
}

static enum status write_class(struct simulation *simulation, struct builder_result *result)
{
    const struct simulate_flags *flags = simulation->flags;
    struct truth truths[SIMULATE_MOST_TRUTHS];
    for (size_t i = 0; i < simulation->n_truths; i++) {
        struct simulate_truth *truth = &simulation->truths[i];
        if (truth->of_students) {
            double *values =
                builder_rows_of_students(result, truth->values, size_max(truth->shape[1], 1));
            memory_free(truth->values);
            truth->values = values;
            truth->shape[0] = result->content.head.n_students;
        }
        truths[i] = (struct truth){.name = truth->name,
                                   .rank = truth->rank,
                                   .shape = {truth->shape[0], truth->shape[1]},
                                   .values = truth->values};
    }
    result->content.truths = truths;
    result->content.n_truths = simulation->n_truths;
    enum status status = dataset_write(&result->content, flags->output);
    result->content.n_truths = 0;
    return status;
}

static enum status finish(struct simulation *simulation)
{
    const struct simulate_flags *flags = simulation->flags;
    const char *split = flags->split[0] != '\0' ? flags->split : simulation->kind->split;
    struct split_plan plan = {.seed = simulation->seed};
    TRY(split_parse(split, &plan));
    struct builder_result result;
    builder_finish(simulation->builder, &result);
    plan.student_number = result.student_number;
    struct dataset *head = &result.content.head;
    head->withheld = split_withholds(&plan);
    head->source =
        memory_text("simulated: %s, seed %llu; split %s%s", simulation->kind->entry.name,
                    (unsigned long long)simulation->seed, split,
                    flags->shuffle_outcomes ? "; outcomes shuffled" : "");
    if (flags->shuffle_outcomes)
        builder_shuffle_outcomes(&result, simulation->seed);
    enum status status =
        head->n_attempts > 0
            ? split_apply(&plan, &result.content, result.mark)
            : fail(BAD_USER, "the class has no attempts; use a smaller --missing");
    if (status == OK)
        status = write_class(simulation, &result);
    if (status == OK) {
        summary_say(&result.content);
        log_say("wrote %s (digest %s)", flags->output, head->digest);
    }
    memory_free(head->source);
    builder_result_free(&result);
    return status;
}

static size_t choose(int64_t asked, size_t standard)
{
    return asked > 0 ? (size_t)asked : standard;
}

enum status simulate_run(const struct simulate_kind *kind, const struct simulate_flags *flags)
{
    struct simulation simulation = {
        .kind = kind,
        .flags = flags,
        .seed = (uint64_t)flags->seed,
        .n_students = choose(flags->n_students, kind->n_students),
        .n_items = choose(flags->n_items, kind->n_items),
        .n_skills = choose(flags->n_skills, kind->n_skills),
        .plan = {.seed = (uint64_t)flags->seed, .has_time = kind->has_time},
    };
    simulation.builder = builder_create(&simulation.plan);
    enum status status = kind->make(&simulation);
    if (status == OK)
        status = finish(&simulation);
    builder_destroy(simulation.builder);
    for (size_t i = 0; i < simulation.n_truths; i++)
        memory_free(simulation.truths[i].values);
    return status;
}
