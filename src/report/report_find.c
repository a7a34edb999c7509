/* Finds a student by name; if there is none, the nearest names are suggested. */
#include "base/config.h"
#include "base/fail.h"
#include "base/memory.h"
#include "report/report_mastery.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_NEAREST = 3 };

struct near {
    int distance;
    const char *name;
};

static int compare_near(const void *a, const void *b)
{
    const struct near *x = a, *y = b;
    return x->distance != y->distance ? (x->distance > y->distance ? 1 : -1)
                                      : strcmp(x->name, y->name);
}

static enum status fail_unknown(const struct inference *inference, const struct names *names,
                                const char *student)
{
    struct near *near = NEW_SCRATCH(struct near, names->n);
    for (size_t s = 0; s < names->n; s++)
        near[s] =
            (struct near){config_distance(student, names_get(names, s)), names_get(names, s)};
    qsort(near, names->n, sizeof *near, compare_near);
    char *list = memory_text("%s", "");
    for (size_t i = 0; i < size_min(names->n, MOST_NEAREST); i++) {
        char *longer = memory_text("%s%s'%.60s'", list, i > 0 ? ", " : "", near[i].name);
        memory_free(list);
        list = longer;
    }
    const enum status status = fail(
        BAD_USER,
        "%s: no student is called '%.60s'; expected a name of the data set, the nearest: %s",
        inference->dataset.path, student, list);
    memory_free(list);
    memory_free(near);
    return status;
}

enum status report_find_student(const struct inference *inference, const char *student,
                                size_t *found)
{
    struct names names = {0};
    enum status status = OK;
    *found = SIZE_MAX;
    if (inference->comm->rank == 0) {
        status = inference_students(inference, 0, inference->dataset.n_students, &names);
        for (size_t s = 0; s < names.n && *found == SIZE_MAX; s++)
            if (strcmp(names_get(&names, s), student) == 0)
                *found = s;
        if (status == OK && *found == SIZE_MAX)
            status = fail_unknown(inference, &names, student);
        names_free(&names);
    }
    comm_broadcast(inference->comm, found, sizeof *found, 0);
    return comm_agree(inference->comm, status);
}
