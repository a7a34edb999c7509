/* Students of a data set are stored in random order, so the first ones are a sample of them.
 * Rank 0 reads blocks of students until it has seen enough answers, and scales what it counted
 * by the number of all students. The result depends on the file alone. */
#include "data/data_shape.h"
#include "base/fail.h"
#include "base/memory.h"
#include "data/dataset.h"
#include <math.h>

enum { ENOUGH_ATTEMPTS = 400000, BLOCK = 64 };

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
        counts->valid += mark_split(mark) == VALID;
        counts->repeats += trains && ago > 0;
        counts->recent += trains && ago > 0 && ago <= RECENT_ATTEMPTS;
        counts->practice += trains && met;
        trained |= trains;
    }
    counts->trained += trained;
    counts->students++;
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
