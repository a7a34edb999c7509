/* Measures where the students of a class stand after their last attempt.
 *
 * A large class is sampled (report_sample.c). Mastery is measured for every skill that a student
 * has tried, for the tables, and for the skills with the most attempts, for the pictures. Each
 * rank measures its own students (runs/standing.c), and rank 0 gets their rows in the order of
 * the data set.
 *
 * Growth is measured for fewer students, since it needs mastery at eleven points: after 0, 10,
 * ..., 100 % of a student's own attempts. All students therefore count in every point. Over a
 * common axis of attempts, only the diligent would be left at its end. */
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "report/report_internal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_STUDENTS = 500,
    MOST_SKILLS = 20, /* of the pictures */
    MOST_GROWN = 100,
    FEWEST_ATTEMPTS = REPORT_GROWTH - 1, /* of a student whose growth is measured */
    LONG_PATH = 30                       /* attempts that make an example instructive */
};

/* What one rank measures of its students. */
struct rows {
    size_t n_tried, room;
    double *mastery;
    uint8_t *is_tried;
    struct report_tried *tried;
};

/* The student whose place among those of all ranks is `place`, row i of this rank. `answers`: of
 * all skills. */
static void measure_student(struct rows *rows, const struct report_class *class,
                            struct standing *standing, size_t i, size_t place,
                            const struct report_answers *answers)
{
    double *of_tried = NEW_SCRATCH(double, standing->skills.n);
    for (uint32_t k = 0; k < standing->skills.n; k++) {
        const double mastery = of_tried[k] =
            answers[k].n > 0 ? standing_mastery(standing, k) : NAN;
        if (!isfinite(mastery))
            continue;
        GROW(rows->tried, rows->n_tried, rows->room);
        rows->tried[rows->n_tried++] = (struct report_tried){
            .student = (uint32_t)place, .skill = k, .n = answers[k].n, .mastery = mastery};
    }
    for (size_t k = 0; k < class->n_skills; k++) {
        const uint32_t skill = class->skill[k];
        const bool is_tried = answers[skill].n > 0;
        rows->mastery[i * class->n_skills + k] =
            is_tried ? of_tried[skill] : standing_mastery(standing, skill);
        rows->is_tried[i * class->n_skills + k] = is_tried;
    }
    memory_free(of_tried);
}

/* Collective: mastery and answers of the chosen students. */
static void measure_mastery(struct report_class *class, struct standing *standing)
{
    const struct comm *comm = standing->inference->comm;
    const struct shard *shard = &standing->inference->shard;
    const size_t k_all = standing->skills.n, n_skills = class->n_skills;
    uint32_t *own = NEW_SCRATCH(uint32_t, class->n);
    const size_t n = report_sample_own(shard, class->student, class->n, own);
    size_t first_place = 0, n_bytes = 0;
    while (first_place < class->n && class->student[first_place] < shard->first_student)
        first_place++;
    struct rows rows = {.mastery = NEW_SCRATCH(double, n *n_skills),
                        .is_tried = NEW_SCRATCH(uint8_t, n * n_skills)};
    struct report_answers *all = NEW_SCRATCH(struct report_answers, k_all);
    for (size_t first = 0; first < n; first += standing->n_slots) {
        const size_t n_here = size_min(standing->n_slots, n - first);
        log_live("report: mastery of students, %zu of %zu", first, n);
        standing_gather(standing, own + first, n_here);
        for (size_t i = first; i < first + n_here; i++) {
            standing_pick(standing, i - first);
            memset(all, 0, k_all * sizeof *all);
            report_path_count(standing, own[i], all);
            measure_student(&rows, class, standing, i, first_place + i, all);
        }
    }
    class->mastery = comm_gather(comm, rows.mastery, n * n_skills * sizeof(double), &n_bytes);
    class->is_tried = comm_gather(comm, rows.is_tried, n * n_skills, &n_bytes);
    class->tried = comm_gather(comm, rows.tried, rows.n_tried * sizeof *rows.tried, &n_bytes);
    class->n_tried = comm->rank == 0 ? n_bytes / sizeof *class->tried : 0;
    void *const parts[] = {own, rows.mastery, rows.is_tried, rows.tried, all};
    for (size_t p = 0; p < COUNT(parts); p++)
        memory_free(parts[p]);
}

/* Collective: mean mastery after each tenth of a student's attempts. */
static void measure_growth(struct report_class *class, struct standing *standing)
{
    const struct inference *inference = standing->inference;
    const struct shard *shard = &inference->shard;
    const size_t n_skills = class->n_skills;
    uint64_t *students = NULL;
    size_t n_bytes = 0, n_all = 0;
    class->n_grown = report_sample_students(&inference->dataset, FEWEST_ATTEMPTS, MOST_GROWN,
                                            &students, &n_all);
    uint32_t *own = NEW_SCRATCH(uint32_t, class->n_grown);
    const size_t n = report_sample_own(shard, students, class->n_grown, own);
    double *growth = NEW_SCRATCH(double, n *REPORT_GROWTH);
    for (size_t i = 0; i < n; i++) {
        const uint64_t from = shard->first[own[i]], length = shard->first[own[i] + 1] - from;
        log_live("report: growth of students, %zu of %zu", i, n);
        for (size_t g = 0; g < REPORT_GROWTH; g++) {
            double sum = 0;
            standing_go(standing, own[i], from + size_cut(length, g, REPORT_GROWTH - 1));
            for (size_t k = 0; k < n_skills; k++)
                sum += standing_mastery(standing, class->skill[k]);
            growth[i * REPORT_GROWTH + g] = sum / (double)n_skills;
        }
    }
    class->growth =
        comm_gather(inference->comm, growth, n * REPORT_GROWTH * sizeof *growth, &n_bytes);
    memory_free(students);
    memory_free(own);
    memory_free(growth);
}

struct mean {
    double value;
    size_t i;
};

static int compare_means(const void *a, const void *b)
{
    const struct mean *x = a, *y = b;
    return x->value != y->value ? (x->value > y->value ? 1 : -1)
                                : (x->i > y->i) - (x->i < y->i);
}

/* Rank 0: the student in the middle, by mean mastery, of those with long paths; or of those with
 * the longest, if none is long. */
static size_t choose_example(const struct report_class *class, const struct dataset *dataset)
{
    struct mean *means = NEW_SCRATCH(struct mean, class->n);
    uint64_t longest = 0;
    size_t n = 0;
    for (size_t i = 0; i < class->n; i++) {
        const uint64_t s = class->student[i],
                       length = dataset->first[s + 1] - dataset->first[s];
        longest = length > longest ? length : longest;
    }
    for (size_t i = 0; i < class->n; i++) {
        const uint64_t s = class->student[i],
                       length = dataset->first[s + 1] - dataset->first[s];
        double sum = 0;
        for (size_t k = 0; k < class->n_skills; k++)
            sum += class->mastery[i * class->n_skills + k];
        if (length >= size_min(longest, LONG_PATH))
            means[n++] = (struct mean){sum, i};
    }
    qsort(means, n, sizeof *means, compare_means);
    const size_t example = means[n / 2].i;
    memory_free(means);
    return example;
}

/* Collective: the path of one student, who is on one rank. */
static void measure_path(struct report_class *class, struct standing *standing)
{
    const struct inference *inference = standing->inference;
    uint32_t own = 0;
    size_t n_bytes = 0;
    if (inference->comm->rank == 0)
        class->example = choose_example(class, &inference->dataset);
    comm_broadcast(inference->comm, &class->example, sizeof class->example, 0);
    const size_t n =
        report_sample_own(&inference->shard, &class->student[class->example], 1, &own);
    if (n > 0)
        report_path_take(&class->path, standing, own);
    struct report_path *path =
        comm_gather(inference->comm, &class->path, n * sizeof class->path, &n_bytes);
    if (inference->comm->rank == 0)
        class->path = *path;
    memory_free(path);
}

/* Rank 0: names of the students, if they are wanted. */
static enum status read_names(struct report_class *class, const struct inference *inference)
{
    struct names all = {0};
    TRY(inference_students(inference, 0, inference->dataset.n_students, &all));
    for (size_t i = 0; i < class->n; i++) {
        const char *name = names_get(&all, class->student[i]);
        names_add(&class->names, name, strlen(name));
    }
    names_free(&all);
    return OK;
}

enum status report_class_measure(struct report_class *class, const struct inference *inference,
                                 const struct report_plan *plan)
{
    struct standing standing;
    const struct dataset *dataset = &inference->dataset;
    if (model_task(inference->model) != TASK_TRACE)
        return OK;
    enum status status = standing_open(&standing, inference);
    if (status == OK) {
        class->by_item = standing.by_item;
        class->is_fixed = report_is_fixed(inference->model->kind, inference->config);
        class->rule = report_rule_of(live_knows(inference->model));
        names_copy(&class->things, class->by_item ? &dataset->items : &dataset->skills);
        class->n_skills =
            report_sample_skills(&standing, MOST_SKILLS, &class->skill, &class->n_all_skills);
        class->n =
            report_sample_students(dataset, 1, MOST_STUDENTS, &class->student, &class->n_all);
        class->is_there = class->n > 0 && class->n_skills > 0;
    }
    if (class->is_there) {
        measure_mastery(class, &standing);
        measure_growth(class, &standing);
        measure_path(class, &standing);
        if (plan->names && inference->comm->rank == 0)
            status = read_names(class, inference);
        status = comm_agree(inference->comm, status);
    }
    standing_close(&standing);
    return status;
}

void report_class_free(struct report_class *class)
{
    names_free(&class->things);
    names_free(&class->names);
    void *const parts[] = {class->student,  class->skill, class->mastery,
                           class->is_tried, class->tried, class->growth};
    for (size_t p = 0; p < COUNT(parts); p++)
        memory_free(parts[p]);
    *class = (struct report_class){0};
}
