/* Tensors are matched by name. A panel says whose its rows are (params.h): all numbers of item i
 * are together, so those of the items that both know are copied in one piece:
 *
 *     checkpoint   | item 0 | item 1 | item 2 |
 *     model        | item 0 | item 1 | item 2 | item 3 | item 4 |        new items: from init
 *
 * Tensors of other panels are copied if their shape is the same. */
#include "runs/warm_start.h"
#include "base/fail.h"
#include "base/h5.h"
#include "base/log.h"
#include "base/memory.h"
#include <math.h>
#include <string.h>

/* The parts of a panel's rows: those of items, of skills, or of something that all share. */
struct parts {
    size_t n, now[3], before[3]; /* owners of each part, in the model and in the checkpoint */
    size_t all_now, all_before;
};

static struct parts count_owners(const struct checkpoint *checkpoint, const struct model *model,
                                 const char *of)
{
    struct parts parts = {0};
    const char *word = of != NULL ? of : "common";
    for (size_t length; parts.n < COUNT(parts.now) && word[0] != '\0'; word += length) {
        word += strspn(word, " ");
        length = strcspn(word, " ");
        const bool items = strncmp(word, "item", length) == 0;
        const bool skills = strncmp(word, "skill", length) == 0;
        parts.now[parts.n] = items ? model->n_items : skills ? model->n_skills : 1;
        parts.before[parts.n] = items ? checkpoint->items.n : skills ? checkpoint->skills.n : 1;
        parts.all_now += parts.now[parts.n];
        parts.all_before += parts.before[parts.n];
        parts.n++;
    }
    return parts;
}

/* Rank 0: the number of values that a tensor has in the checkpoint; 0: it is not there. */
static uint64_t stored_size(const struct checkpoint *checkpoint, const char *name)
{
    int rank = 0;
    uint64_t shape[4] = {0}, n = 1;
    if (h5_shape(checkpoint->file, name, &rank, shape) != OK) {
        fail_clear();
        return 0;
    }
    for (int d = 0; d < rank; d++)
        n *= shape[d];
    return n;
}

/* Puts the numbers of the owners that both know in their places. */
static void place(const struct parts *parts, const real *stored, size_t each, real *dense)
{
    for (size_t k = 0; k < parts->n; k++) {
        memcpy(dense, stored, size_min(parts->before[k], parts->now[k]) * each * sizeof *dense);
        dense += parts->now[k] * each;
        stored += parts->before[k] * each;
    }
}

/* Rank 0: copies a tensor if it fits. */
static enum status copy(const struct checkpoint *checkpoint, struct model *model,
                        const struct tensor *tensor, bool *fits)
{
    const struct params *params = &model->params;
    const size_t size = params_size(params, tensor);
    const struct parts parts =
        count_owners(checkpoint, model, params->panels[tensor->panel].of);
    const size_t each = parts.all_now > 0 ? size / parts.all_now : 0;
    char name[128];
    snprintf(name, sizeof name, "/parameters/%s", tensor->name);
    const uint64_t n = stored_size(checkpoint, name);
    *fits = n == each * parts.all_before;
    if (!*fits || size == 0 || n == 0)
        return OK;
    real *dense = NEW_SCRATCH(real, size), *stored = NEW_SCRATCH(real, n);
    params_take(params, tensor, params->value, dense);
    enum status status = h5_read(checkpoint->file, name, checkpoint_real(), n, stored);
    for (uint64_t i = 0; status == OK && i < n; i++)
        if (!isfinite(stored[i]))
            status = fail(BAD_DATA, "%s: number %llu of %s is not finite", checkpoint->path,
                          (unsigned long long)i, name);
    if (status == OK) {
        place(&parts, stored, each, dense);
        params_put(params, tensor, dense, params->value);
    }
    memory_free(dense);
    memory_free(stored);
    return status;
}

/* Rank 0. */
static enum status copy_all(const struct checkpoint *checkpoint, struct model *model)
{
    for (size_t t = 0; t < model->params.n_tensors; t++) {
        bool fits = false;
        TRY(copy(checkpoint, model, &model->params.tensors[t], &fits));
        if (!fits)
            log_say("note: %s starts anew: its shape depends on what the new data changed",
                    model->params.tensors[t].name);
    }
    return OK;
}

enum status warm_start(const struct checkpoint *checkpoint, const struct comm *comm,
                       struct model *model)
{
    TRY(comm_agree(comm, comm->rank == 0 ? copy_all(checkpoint, model) : OK));
    comm_broadcast(comm, model->params.value, model->params.n * sizeof(real), 0);
    return OK;
}
