/* Which skills and students a report measures. A large class is sampled: of n students, those at
 * the places n i / m. So no rank computes more than its part of a thousand students, and the
 * choice does not depend on the ranks. Of the skills, those with the most attempts are chosen. */
#include "base/memory.h"
#include "report/report_mastery.h"
#include <stdlib.h>
#include <string.h>

struct ranked {
    int64_t n;
    uint32_t k;
};

static int compare(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return x->n != y->n ? (x->n < y->n ? 1 : -1) : (x->k > y->k) - (x->k < y->k);
}

size_t report_sample_most(const int64_t *count, size_t n, size_t most, uint32_t **chosen,
                          size_t *n_all)
{
    struct ranked *ranked = NEW_SCRATCH(struct ranked, n);
    *n_all = 0;
    for (uint32_t k = 0; k < n; k++)
        if (count[k] > 0)
            ranked[(*n_all)++] = (struct ranked){count[k], k};
    qsort(ranked, *n_all, sizeof *ranked, compare);
    const size_t n_chosen = size_min(*n_all, most);
    *chosen = NEW_SCRATCH(uint32_t, n_chosen);
    for (size_t k = 0; k < n_chosen; k++)
        (*chosen)[k] = ranked[k].k;
    memory_free(ranked);
    return n_chosen;
}

size_t report_sample_skills(const struct standing *standing, size_t most, uint32_t **skills,
                            size_t *n_all)
{
    const struct shard *shard = &standing->inference->shard;
    const size_t n = standing->skills.n;
    int64_t *count = NEW(int64_t, n);
    struct report_answers *answers = NEW(struct report_answers, n);
    for (size_t s = 0; s < shard->n_students; s++)
        report_path_count(standing, s, answers);
    for (size_t k = 0; k < n; k++)
        if (standing->skills.first[k] < standing->skills.first[k + 1])
            count[k] = answers[k].n;
    comm_sum_i64(standing->inference->comm, count, n);
    const size_t n_chosen = report_sample_most(count, n, most, skills, n_all);
    memory_free(count);
    memory_free(answers);
    return n_chosen;
}

size_t report_sample_students(const struct dataset *dataset, uint64_t fewest, size_t most,
                              uint64_t **students, size_t *n_all)
{
    uint64_t *list = NEW_SCRATCH(uint64_t, dataset->n_students);
    size_t n = 0;
    for (size_t s = 0; s < dataset->n_students; s++)
        if (dataset->first[s + 1] - dataset->first[s] >= fewest)
            list[n++] = s;
    const size_t n_chosen = size_min(n, most);
    for (size_t i = 0; i < n_chosen; i++)
        list[i] = list[size_cut(n, i, n_chosen)];
    *students = list;
    *n_all = n;
    return n_chosen;
}

size_t report_sample_own(const struct shard *shard, const uint64_t *students, size_t n,
                         uint32_t *own)
{
    size_t n_own = 0;
    for (size_t i = 0; i < n; i++)
        if (students[i] >= shard->first_student &&
            students[i] < shard->first_student + shard->n_students)
            own[n_own++] = (uint32_t)(students[i] - shard->first_student);
    return n_own;
}
