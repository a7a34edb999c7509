/* Students of a data set are stored in random order, so the first ones are a sample of them.
 * Rank 0 reads blocks of students until it has seen enough answers, and scales what it counted
 * by the number of all students. The result depends on the file alone.
 *
 * What items and skills say about answers is seen by predicting each answer from others: with n
 * of them, r right, the chance is (r + 2 m) / (n + 2). m is the mean of all answers or, for the
 * student's own answers to a skill, the chance that the skill has. Several skills have the mean
 * of their chances. */
#include "data/data_shape.h"
#include "base/fail.h"
#include "base/memory.h"
#include "data/dataset.h"
#include <math.h>

enum { ENOUGH_ATTEMPTS = 400000, BLOCK = 64 };

/* ---- how many students, answers and repetitions there are */

struct counts {
    uint64_t attempts;
    double students, trained, answers, valid, steps, repeats, recent, practice;
};

/* Marks item (or skill) i as met at attempt t of all, and gives how many attempts ago the
 * student, whose first one is `first`, met it before; 0: never. */
static uint64_t meet(uint64_t *last, uint32_t i, uint64_t t, uint64_t first)
{
    const uint64_t ago = last[i] > first ? t + 1 - last[i] : 0;
    last[i] = t + 1;
    return ago;
}

static bool meet_skills(const struct dataset *dataset, uint64_t *last, uint32_t item,
                        uint64_t t, uint64_t first)
{
    bool met = false;
    for (uint64_t k = dataset->item_first[item]; k < dataset->item_first[item + 1]; k++)
        met |= meet(last, dataset->item_skills[k], t, first) > 0;
    return met;
}

static void count_student(const struct shard *shard, size_t s, uint64_t *items,
                          uint64_t *skills, struct counts *counts)
{
    const struct dataset *dataset = shard->dataset;
    const uint64_t first = counts->attempts;
    const bool has_target =
        dataset->target != NULL && !isnan(dataset->target[shard->first_student + s]);
    bool trained = false;
    for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
        const uint8_t mark = shard->mark[t];
        const bool trains = mark_trains(mark);
        const uint64_t ago = meet(items, shard->item[t], counts->attempts, first);
        const bool met = dataset->n_skills > 0 ? meet_skills(dataset, skills, shard->item[t],
                                                             counts->attempts, first)
                                               : ago > 0;
        counts->attempts++;
        counts->steps += (mark & MARK_STEP) != 0;
        counts->answers += trains;
        counts->valid +=
            mark_split(mark) == VALID && (mark_outcome(mark) != UNKNOWN || has_target);
        counts->repeats += trains && ago > 0;
        counts->recent += trains && ago > 0 && ago <= RECENT_ATTEMPTS;
        counts->practice += trains && met;
        trained |= trains;
    }
    counts->trained += trained;
    counts->students++;
}

/* ---- what items and skills say about answers */

struct answers {
    uint64_t student; /* + 1, if they are one student's */
    double n, right;
};

struct losses {
    struct answers all, *items, *skills, *own; /* own: of a student to each skill */
    double item, skill, practice;              /* sums */
};

static void add(struct answers *answers, bool right)
{
    answers->n++;
    answers->right += right;
}

static double chance(const struct answers *answers, double mean)
{
    return (answers->right + 2 * mean) / (answers->n + 2);
}

/* The chance by all answers but one. */
static double chance_without(const struct answers *answers, bool right, double mean)
{
    const struct answers others = {.n = answers->n - 1, .right = answers->right - right};
    return chance(&others, mean);
}

static double loss(double chance, bool right)
{
    return -log(right ? chance : 1 - chance);
}

static void add_answer(struct losses *losses, const struct dataset *dataset, uint32_t item,
                       bool right)
{
    add(&losses->all, right);
    add(&losses->items[item], right);
    for (uint64_t k = dataset->item_first[item]; k < dataset->item_first[item + 1]; k++)
        add(&losses->skills[dataset->item_skills[k]], right);
}

static void add_losses(struct losses *losses, const struct dataset *dataset, uint64_t student,
                       uint32_t item, bool right)
{
    const double mean = losses->all.right / losses->all.n;
    const uint64_t first = dataset->item_first[item], end = dataset->item_first[item + 1];
    double skill = end == first ? mean : 0, practice = skill;
    for (uint64_t j = first; j < end; j++) {
        const uint32_t k = dataset->item_skills[j];
        const double of_skill = chance_without(&losses->skills[k], right, mean);
        if (losses->own[k].student != student + 1)
            losses->own[k] = (struct answers){.student = student + 1};
        skill += of_skill / (double)(end - first);
        practice += chance(&losses->own[k], of_skill) / (double)(end - first);
        add(&losses->own[k], right);
    }
    losses->item += loss(chance_without(&losses->items[item], right, mean), right);
    losses->skill += loss(skill, right);
    losses->practice += loss(practice, right);
}

/* Counts the answers of some students, or adds what they cost. */
static enum status walk_answers(const struct dataset *dataset, size_t n_students,
                                struct losses *losses, bool counts)
{
    enum status status = OK;
    for (size_t first = 0; status == OK && first < n_students; first += BLOCK) {
        struct shard shard = {0};
        status = dataset_read(dataset, first, size_min(BLOCK, n_students - first), &shard);
        for (size_t s = 0; status == OK && s < shard.n_students; s++)
            for (uint64_t t = shard.first[s]; t < shard.first[s + 1]; t++) {
                const bool right = mark_outcome(shard.mark[t]) == CORRECT;
                if (!mark_trains(shard.mark[t]))
                    continue;
                if (counts)
                    add_answer(losses, dataset, shard.item[t], right);
                else
                    add_losses(losses, dataset, shard.first_student + s, shard.item[t], right);
            }
        shard_free(&shard);
    }
    return status;
}

static enum status measure_losses(const struct dataset *dataset, size_t n_students,
                                  struct data_shape *shape)
{
    struct losses losses = {.items = NEW(struct answers, dataset->n_items + 1),
                            .skills = NEW(struct answers, dataset->n_skills + 1),
                            .own = NEW(struct answers, dataset->n_skills + 1)};
    enum status status = walk_answers(dataset, n_students, &losses, true);
    if (status == OK)
        status = walk_answers(dataset, n_students, &losses, false);
    const double n = fmax(1, losses.all.n);
    shape->item_loss = losses.item / n;
    shape->skill_loss = losses.skill / n;
    shape->practice_loss = losses.practice / n;
    memory_free(losses.items);
    memory_free(losses.skills);
    memory_free(losses.own);
    return status;
}

static enum status count(const struct dataset *dataset, struct counts *counts)
{
    uint64_t *items = NEW(uint64_t, dataset->n_items + 1);
    uint64_t *skills = NEW(uint64_t, dataset->n_skills + 1);
    enum status status = OK;
    for (size_t first = 0;
         status == OK && first < dataset->n_students && counts->attempts < ENOUGH_ATTEMPTS;
         first += BLOCK) {
        struct shard shard = {0};
        status =
            dataset_read(dataset, first, size_min(BLOCK, dataset->n_students - first), &shard);
        for (size_t s = 0; status == OK && s < shard.n_students; s++)
            count_student(&shard, s, items, skills, counts);
        shard_free(&shard);
    }
    memory_free(items);
    memory_free(skills);
    return status;
}

static enum status read_shape(struct data_shape *shape, const char *path)
{
    const struct comm self = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};
    struct dataset dataset = {0};
    struct counts counts = {0};
    enum status status = dataset_open(&dataset, path, &self);
    if (status == OK)
        status = count(&dataset, &counts);
    if (status == OK) {
        const double all = (double)dataset.n_students / fmax(1, counts.students);
        const double answers = fmax(1, counts.answers);
        *shape = (struct data_shape){
            .n_items = (double)dataset.n_items,
            .n_skills = (double)dataset.n_skills,
            .skills_per_item =
                (double)dataset.item_first[dataset.n_items] / fmax(1, (double)dataset.n_items),
            .n_students = counts.trained * all,
            .n_answers = counts.answers * all,
            .per_student = answers / fmax(1, counts.trained),
            .per_item = counts.answers * all / fmax(1, (double)dataset.n_items),
            .per_step = (double)counts.attempts / fmax(1, counts.steps),
            .repeats = counts.repeats / answers,
            .recent = counts.recent / answers,
            .practice = counts.practice / answers,
            .has_valid = counts.valid > 0,
            .has_time = dataset.has_time};
        if (dataset.n_skills > 0)
            status = measure_losses(&dataset, (size_t)counts.students, shape);
    }
    dataset_close(&dataset);
    return status;
}

enum status data_shape_read(struct data_shape *shape, const char *path, const struct comm *comm)
{
    *shape = (struct data_shape){0};
    TRY(comm_agree(comm, comm->rank == 0 ? read_shape(shape, path) : OK));
    comm_broadcast(comm, shape, sizeof *shape, 0);
    return OK;
}
