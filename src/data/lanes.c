/* Training is defined for L lanes, not for P ranks; P only decides how fast a step is.
 *
 *     students     0 ......................................................... n-1
 *     lanes        |  lane 0  |  lane 1  |  lane 2  |  lane 3  |  lane 4  | lane 5 |
 *     ranks (P=2)  |             rank 0             |            rank 1            |
 *
 *     step         block of lane 0 + block of lane 1 + ... + block of lane 5 = mini-batch
 *
 * A lane is a contiguous range of students; all lanes have about the same number of attempts. A
 * rank owns a contiguous range of lanes, so it reads one hyperslab of each array. In each epoch
 * a lane shuffles its training students by Philox(seed, epoch, lane) and splits them as evenly
 * as possible into one block per step: no step gets a remainder, and no lane runs out early.
 *
 * A mini-batch larger than the class may have many more lanes than there are students. Most of
 * them are empty and add nothing to any sum, so only lanes with students are kept: those of the
 * rank's students. Lane l begins at the first student at or after attempt floor(n l / L), for n
 * attempts. So a student whose attempts begin at number f is in the last lane with
 * n l / L < f + 1.
 *
 * Sequence models prefer students of similar length in a block. Blocks with equal numbers of
 * students would then have very unequal weight: on ASSISTments a tenth of the steps would hold
 * half of all answers, and Adam would learn little in the others. So their blocks are split by
 * attempts. */
#include "data/lanes.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "data/sequence.h"

/* Number of steps whose students are sorted by length together: more would make the students of
 * a block more similar, and batches less random. */
enum { STRETCH = 8 };

/* The lane of a student of the data set. */
static size_t lane_of(const struct dataset *dataset, size_t s, size_t n_lanes)
{
    const unsigned __int128 end = (unsigned __int128)(dataset->first[s] + 1) * n_lanes;
    const uint64_t n_attempts = size_max(1, dataset->n_attempts);
    const unsigned __int128 last = (end - 1) / n_attempts;
    return last < n_lanes ? (size_t)last : n_lanes - 1;
}

enum status lanes_create(struct lanes *lanes, const struct dataset *dataset, size_t batch,
                         size_t block, size_t *first_student, size_t *n_students)
{
    const struct comm *comm = dataset->comm;
    const size_t n_ranks = (size_t)comm->size, rank = (size_t)comm->rank;
    const size_t n_lanes = size_max(1, (batch + block - 1) / block);
    if (n_ranks > n_lanes)
        return fail(BAD_USER,
                    "there are %zu ranks but only %zu block%s of students per mini-batch "
                    "(train.batch = %zu, train.block = %zu); use at most %zu rank%s, a larger "
                    "batch or a smaller block",
                    n_ranks, n_lanes, n_lanes == 1 ? "" : "s", batch, block, n_lanes,
                    n_lanes == 1 ? "" : "s");
    *lanes = (struct lanes){.n_lanes = n_lanes};
    const size_t start = dataset_cut(dataset, size_cut(n_lanes, rank, n_ranks), n_lanes);
    const size_t end = dataset_cut(dataset, size_cut(n_lanes, rank + 1, n_ranks), n_lanes);
    const size_t most = size_min(n_lanes, end - start);
    lanes->number = NEW(size_t, most);
    lanes->first = NEW(uint64_t, most + 1);
    for (size_t s = start; s < end; s++) {
        const size_t lane = lane_of(dataset, s, n_lanes);
        if (s > start && lane == lanes->number[lanes->n_own - 1])
            continue;
        lanes->first[lanes->n_own] = s;
        lanes->number[lanes->n_own++] = lane;
    }
    lanes->first[lanes->n_own] = end;
    lanes->students = NEW(uint32_t *, lanes->n_own);
    lanes->order = NEW(uint32_t *, lanes->n_own);
    lanes->n_students = NEW(size_t, lanes->n_own);
    lanes->cuts = NEW(size_t *, lanes->n_own);
    *first_student = start;
    *n_students = end - start;
    return OK;
}

enum status lanes_fill(struct lanes *lanes, const struct shard *shard, const bool *has_training,
                       const uint32_t *length, size_t batch)
{
    const struct comm *comm = shard->dataset->comm;
    int64_t n_training = 0;
    for (size_t l = 0; l < lanes->n_own; l++) {
        const size_t start = lanes->first[l] - shard->first_student;
        const size_t end = lanes->first[l + 1] - shard->first_student;
        lanes->students[l] = NEW(uint32_t, end - start);
        lanes->order[l] = NEW(uint32_t, end - start);
        for (size_t s = start; s < end; s++)
            if (has_training[s])
                lanes->students[l][lanes->n_students[l]++] = (uint32_t)s;
        n_training += (int64_t)lanes->n_students[l];
    }
    comm_sum_i64(comm, &n_training, 1);
    if (n_training == 0)
        return fail(
            BAD_USER,
            "%s: no student has a training attempt that this model can learn from: the "
            "outcome must be known and, if the model uses skills, the item must have one; "
            "see `cohort inspect`, and the split and the skills of the import",
            shard->dataset->path);
    lanes->length = length;
    lanes->n_training = (size_t)n_training;
    lanes->most_blocks = size_min(lanes->n_lanes, lanes->n_training);
    lanes->n_steps = ((size_t)n_training + batch - 1) / batch;
    /* A block is at most one student larger than the mean of its lane, or holds a stretch. */
    const size_t n_together = length != NULL ? size_min(STRETCH, lanes->n_steps) : 1;
    int64_t most = 0;
    for (size_t l = 0; l < lanes->n_own; l++)
        most += (int64_t)((lanes->n_students[l] * n_together + lanes->n_steps - 1) /
                          lanes->n_steps);
    comm_sum_i64(comm, &most, 1);
    lanes->most_students = (size_t)most;
    lanes->step_order = NEW(uint32_t, lanes->n_steps);
    for (size_t l = 0; l < lanes->n_own; l++)
        lanes->cuts[l] = NEW(size_t, lanes->n_steps + 1);
    return OK;
}

void lanes_destroy(struct lanes *lanes)
{
    for (size_t l = 0; l < lanes->n_own; l++) {
        memory_free(lanes->students[l]);
        memory_free(lanes->order[l]);
        memory_free(lanes->cuts[l]);
    }
    memory_free(lanes->cuts);
    memory_free(lanes->number);
    memory_free(lanes->first);
    memory_free(lanes->students);
    memory_free(lanes->order);
    memory_free(lanes->n_students);
    memory_free(lanes->step_order);
    *lanes = (struct lanes){0};
}

/* Finds where a lane's blocks begin when students are sorted by length. Within stretches of
 * several steps, students are sorted and split into blocks with equal numbers of attempts: few
 * long students or many short ones. */
static void cut_by_length(struct lanes *lanes, size_t l)
{
    const size_t n = lanes->n_students[l], n_steps = lanes->n_steps;
    for (size_t step = 0; step < n_steps; step += STRETCH) {
        const size_t n_here = size_min(STRETCH, n_steps - step);
        const size_t start = size_cut(n, step, n_steps),
                     end = size_cut(n, step + n_here, n_steps);
        uint32_t *const students = lanes->order[l] + start;
        sequence_sort(students, end - start, lanes->length);
        uint64_t all = 0, before = 0;
        for (size_t i = 0; i < end - start; i++)
            all += lanes->length[students[i]];
        size_t k = 0;
        for (size_t i = 0; i < end - start; i++) {
            /* a student belongs to the block that contains its middle */
            const uint64_t middle = 2 * before + lanes->length[students[i]];
            for (; k < n_here && middle * n_here >= 2 * all * k; k++)
                lanes->cuts[l][step + k] = start + i;
            before += lanes->length[students[i]];
        }
        for (; k < n_here; k++)
            lanes->cuts[l][step + k] = end;
    }
    lanes->cuts[l][n_steps] = n;
}

void lanes_shuffle(struct lanes *lanes, uint64_t seed, uint32_t epoch)
{
    for (size_t l = 0; l < lanes->n_own; l++) {
        const struct rng rng = {.seed = seed,
                                .purpose = RNG_ORDER,
                                .when = epoch,
                                .who = (uint32_t)lanes->number[l]};
        rng_order(&rng, lanes->order[l], lanes->n_students[l]);
        for (size_t i = 0; i < lanes->n_students[l]; i++)
            lanes->order[l][i] = lanes->students[l][lanes->order[l][i]];
        if (lanes->length != NULL)
            cut_by_length(lanes, l);
    }
    const struct rng rng = {
        .seed = seed, .purpose = RNG_ORDER, .part = 1, .when = epoch, .who = 0};
    rng_order(&rng, lanes->step_order, lanes->n_steps);
}

const uint32_t *lanes_block(const struct lanes *lanes, size_t l, size_t step, size_t *n)
{
    size_t start = size_cut(lanes->n_students[l], step, lanes->n_steps);
    size_t end = size_cut(lanes->n_students[l], step + 1, lanes->n_steps);
    if (lanes->length != NULL) {
        start = lanes->cuts[l][lanes->step_order[step]];
        end = lanes->cuts[l][lanes->step_order[step] + 1];
    }
    *n = end - start;
    return lanes->order[l] + start;
}
