/* The blend of `cohort auto` (see auto.c): the best runs get names, and weights are fitted on
 * validation, again without the members whose weights are small, until all count. A model that is
 * left alone is the best one without a blend. If asked, the members are trained once more on
 * validation too. */
#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "runs/blending.h"
#include "runs/refit.h"
#include "runs/trainer.h"
#include "sweep/auto_internal.h"
#include "sweep/auto_links.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LEAST_WEIGHT 0.005 /* members below it are dropped from the blend */

/* The name of a model, which is DIR/models/KIND or DIR/models/KIND-2; caller frees. */
static char *name_of(const struct auto_work *work, const char *kind, size_t place)
{
    return place == 0 ? memory_text("%s/models/%s", work->plan->directory, kind)
                      : memory_text("%s/models/%s-%zu", work->plan->directory, kind, place + 1);
}

/* Collective: lists the models under their names. */
enum status auto_blend_name(struct auto_work *work)
{
    char *directory = memory_text("%s/models", work->plan->directory);
    const bool first = work->comm->rank == 0;
    enum status status = first ? file_make_directory(directory) : OK;
    memory_free(directory);
    work->models = NEW(struct auto_model, N_RUNS * work->n_kinds);
    for (size_t r = 0; r < N_RUNS; r++)
        for (size_t k = 0; k < work->n_kinds; k++) {
            struct auto_model *model = &work->kinds[k].runs[r];
            if (model->run == NULL || (r > 0 && work->n_models == BLEND_MOST))
                continue;
            char *name = name_of(work, model->kind, r);
            if (status == OK && first)
                status = auto_links_make(work->plan->directory, model->run, "../", name);
            memory_free(model->run);
            model->run = name;
            work->models[work->n_models++] = *model;
            *model = (struct auto_model){.valid = NAN};
        }
    return comm_agree(work->comm, status);
}

/* The directory of the refit of a run, which is models/KIND; caller frees. */
static char *refit_of(const struct auto_work *work, const char *run)
{
    return memory_text("%s/refit-%s", work->plan->directory, strrchr(run, '/') + 1);
}

/* Collective: each rank trains some of the refits, alone. */
static enum status refit_members(const struct auto_work *work, char **runs, size_t n)
{
    const struct comm *comm = work->comm;
    const struct comm self = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};
    enum status status = OK;
    const bool muted = log_muted();
    log_mute(true);
    for (size_t m = (size_t)comm->rank; status == OK && m < n; m += (size_t)comm->size) {
        struct config *config = config_create();
        struct settings settings = {0};
        struct result result;
        char *directory = refit_of(work, runs[m]);
        char *text = memory_text("train.refit = %s\nrun.directory = %s\n", runs[m], directory);
        memory_free(directory);
        status = config_read_text(config, text, "auto");
        if (status == OK)
            status = refit_settings(&self, &settings, config);
        else
            config_destroy(config);
        if (status == OK)
            status = trainer_run(&self, &settings, &result);
        settings_destroy(&settings);
        memory_free(text);
    }
    log_mute(muted);
    TRY(comm_agree(comm, status));
    for (size_t m = 0; m < n; m++) {
        char *refit = refit_of(work, runs[m]);
        memory_free(runs[m]);
        runs[m] = refit;
    }
    return OK;
}

/* Drops the members with small weights. */
static void drop_small(struct blend_weights *weights)
{
    size_t kept = 0;
    for (size_t m = 0; m < weights->n; m++)
        if (weights->weights[m] >= LEAST_WEIGHT)
            weights->members[kept++] = weights->members[m];
    weights->n = kept;
}

/* Collective: the members that count, as places in the list of models. */
static enum status choose_members(const struct auto_work *work, struct blend_weights *members)
{
    const char *runs[BLEND_MOST];
    struct blend blend;
    *members = (struct blend_weights){.method = BLEND_CONVEX,
                                      .n = size_min(work->n_models, BLEND_MOST)};
    for (size_t m = 0; m < members->n; m++) {
        members->members[m] = m;
        runs[m] = work->models[m].run;
    }
    const enum status status = blend_create(&blend, work->comm, runs, members->n, "");
    for (size_t before = 0; status == OK && members->n != before;) {
        before = members->n;
        blend_fit(&blend, members);
        drop_small(members);
    }
    blend_destroy(&blend);
    return status;
}

/* Collective: fits weights of the runs and saves their blend. */
static enum status save_blend(const struct auto_work *work, char *const *runs, size_t n,
                              const char *directory, struct blend_weights *weights)
{
    struct blend blend;
    enum status status = blend_create(&blend, work->comm, (const char *const *)runs, n, "");
    if (status == OK) {
        *weights = (struct blend_weights){.method = BLEND_CONVEX, .n = n};
        for (size_t m = 0; m < n; m++)
            weights->members[m] = m;
        blend_fit(&blend, weights);
        status = blend_save(&blend, weights, directory);
    }
    blend_destroy(&blend);
    return status;
}

/* Second best runs that are not in the blend are not in the leaderboard either. */
static void drop_idle(struct auto_work *work)
{
    size_t kept = 0;
    for (size_t m = 0; m < work->n_models; m++)
        if (m < work->n_kinds || work->models[m].weight > 0)
            work->models[kept++] = work->models[m];
        else
            auto_forget(&work->models[m]);
    work->n_models = kept;
}

/* Collective: one model is the best one, and the only one with a weight. */
static enum status link_best(struct auto_work *work, size_t only, const char *best)
{
    char *run = memory_text("%s", work->models[only].run);
    for (size_t m = 0; m < work->n_models; m++)
        work->models[m].weight = m == only;
    drop_idle(work);
    enum status status = work->plan->refit ? refit_members(work, &run, 1) : OK;
    if (status == OK)
        status = comm_agree(
            work->comm,
            work->comm->rank == 0 ? auto_links_make(work->plan->directory, run, "", best) : OK);
    memory_free(run);
    return status;
}

/* Collective: whether a directory is in the place of a link: the blend of an earlier start with
 * other options, which is written again. */
static bool is_blend(const struct auto_work *work, const char *best)
{
    int64_t found = work->comm->rank == 0 && file_is_directory(best);
    comm_sum_i64(work->comm, &found, 1);
    return found > 0;
}

/* Collective: trains the members again if asked, blends them, and notes the weights that are
 * saved. */
static enum status make_blend(struct auto_work *work, const struct blend_weights *members,
                              const char *best)
{
    char *runs[BLEND_MOST];
    struct blend_weights saved = {.n = 0};
    for (size_t m = 0; m < members->n; m++)
        runs[m] = memory_text("%s", work->models[members->members[m]].run);
    enum status status = work->plan->refit ? refit_members(work, runs, members->n) : OK;
    if (status == OK)
        status = save_blend(work, runs, members->n, best, &saved);
    for (size_t m = 0; m < saved.n; m++)
        work->models[members->members[m]].weight = saved.weights[m];
    for (size_t m = 0; m < members->n; m++)
        memory_free(runs[m]);
    drop_idle(work);
    return status;
}

/* Collective: keeps the members that count, best first; a blend has at least two. */
enum status auto_blend_best(struct auto_work *work, struct auto_result *result)
{
    struct blend_weights members;
    result->best = memory_text("%s/best", work->plan->directory);
    if (work->n_models < 2)
        return link_best(work, 0, result->best);
    TRY(comm_agree(work->comm, work->comm->rank == 0 ? auto_links_remove(result->best) : OK));
    TRY(choose_members(work, &members));
    if (members.n == 1 && !is_blend(work, result->best))
        return link_best(work, members.members[0], result->best);
    if (members.n == 1) {
        members.members[1] = members.members[0] == 0 ? 1 : 0;
        members.n = 2;
    }
    result->blended = true;
    return make_blend(work, &members, result->best);
}
