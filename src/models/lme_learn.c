/* A pass: the deviance and its slope at the search's next point, from the effects of the last
 * accepted one; then the search moves on. What is published is always an accepted point. */
#include "fail.h"
#include "lme_parts.h"
#include "log.h"
#include "memory.h"
#include <math.h>
#include <sleef.h>
#include <string.h>

static bool has_residual(const struct lme_shape *shape)
{
    return !shape->logit;
}

/* The first point: where init put it. */
static void start(struct lme_search *search, const struct model *model,
                  const struct lme_shape *shape)
{
    const real *fixed = params_rows(&model->params, shape->fixed_panel);
    const real *spread = params_rows(&model->params, shape->spread_panel);
    for (size_t k = 0; k < shape->n_fixed; k++)
        search->trial[k] = (double)fixed[k];
    for (size_t f = 0; f < shape->n_spread; f++)
        search->trial[shape->n_fixed + f] = (double)spread[f];
    if (has_residual(shape))
        search->trial[shape->n_outer - 1] =
            Sleef_cinz_logd1_u10purec(search->trial[shape->n_outer - 1]);
}

static void set_point(struct lme_work *work, const struct lme_search *search)
{
    struct lme_solver *solver = work->solver;
    const struct lme_shape *shape = &work->shape;
    memcpy(solver->fixed, search->trial, shape->n_fixed * sizeof *solver->fixed);
    for (size_t f = 0; f <= shape->n_factors; f++)
        solver->spread[f] = search->trial[shape->n_fixed + f];
    solver->dispersion = 1;
    if (has_residual(shape)) {
        solver->spread[shape->n_spread - 1] =
            Sleef_cinz_expd1_u10purec(search->trial[shape->n_outer - 1]);
        solver->dispersion =
            solver->spread[shape->n_spread - 1] * solver->spread[shape->n_spread - 1];
    }
    for (size_t f = 0; f < shape->n_factors; f++)
        for (size_t j = 0; j < shape->factors[f].n; j++)
            solver->column_spread[shape->factors[f].first + j] = solver->spread[f + 1];
}

/* Which row of a factor's tensor tells of column j, for all items' columns. */
static size_t row_of(const struct lme_factor *factor, size_t item, uint32_t column)
{
    return factor->kind == FACTOR_SKILL ? column - factor->first : item;
}

/* Effects from where they were, in units of the spreads now. */
static void set_effects(struct lme_work *work)
{
    struct lme_solver *solver = work->solver;
    const struct lme_shape *shape = &work->shape;
    memset(solver->u, 0, shape->n_columns * sizeof *solver->u);
    for (size_t i = 0; i < work->model->n_items; i++)
        for (uint64_t c = work->item_first[i]; c < work->item_first[i + 1]; c++)
            for (size_t f = 0; f < shape->n_factors; f++) {
                const uint32_t j = work->item_column[c];
                const struct lme_factor *factor = &shape->factors[f];
                if (j < factor->first || j >= factor->first + factor->n ||
                    solver->spread[f + 1] == 0)
                    continue;
                solver->u[j] = (double)params_rows(&work->model->params,
                                                   factor->effect_panel)[row_of(factor, i, j)] /
                               solver->spread[f + 1];
            }
    for (size_t s = 0; s < work->shard->n_students; s++)
        work->student[s * N_STUDENT_NUMBERS + AT_U] =
            solver->spread[0] == 0 ? 0 : work->effect[s] / solver->spread[0];
}

/* Effects and their errors, by factor; and together, by item. */
static void put_effects(const struct lme_work *work, real *flat)
{
    const struct lme_solver *solver = work->solver;
    const struct lme_shape *shape = &work->shape;
    const struct params *params = &work->model->params;
    real *total = flat + params->panels[shape->total_panel].offset;
    for (size_t i = 0; i < work->model->n_items; i++) {
        double sum = 0;
        for (uint64_t c = work->item_first[i]; c < work->item_first[i + 1]; c++)
            sum +=
                solver->column_spread[work->item_column[c]] * solver->u[work->item_column[c]];
        total[i] = (real)sum;
        for (uint64_t c = work->item_first[i]; c < work->item_first[i + 1]; c++)
            for (size_t f = 0; f < shape->n_factors; f++) {
                const uint32_t j = work->item_column[c];
                const struct lme_factor *factor = &shape->factors[f];
                if (j < factor->first || j >= factor->first + factor->n)
                    continue;
                const size_t row = row_of(factor, i, j);
                flat[params->panels[factor->effect_panel].offset + row] =
                    (real)(solver->spread[f + 1] * solver->u[j]);
                flat[params->panels[factor->error_panel].offset + row] =
                    (real)(fabs(solver->spread[f + 1]) * sqrt(solver->diagonal[j]));
            }
    }
}

/* An accepted point becomes the parameters. */
static void put_point(const struct lme_work *work, const struct lme_laplace *found, real *flat)
{
    const struct lme_solver *solver = work->solver;
    const struct lme_shape *shape = &work->shape;
    const struct params *params = &work->model->params;
    double covariance[MOST_FIXED * MOST_FIXED];
    memcpy(covariance, found->information,
           shape->n_fixed * shape->n_fixed * sizeof *covariance);
    lme_search_factor(covariance, shape->n_fixed);
    lme_search_invert(covariance, shape->n_fixed);
    for (size_t k = 0; k < shape->n_fixed; k++) {
        flat[params->panels[shape->fixed_panel].offset + k] = (real)solver->fixed[k];
        flat[params->panels[shape->fixed_error_panel].offset + k] =
            (real)sqrt(covariance[k * shape->n_fixed + k]);
    }
    for (size_t f = 0; f < shape->n_spread; f++)
        flat[params->panels[shape->spread_panel].offset + f] = (real)fabs(solver->spread[f]);
    put_effects(work, flat);
}

/* Fixed effects that the data cannot tell apart. */
static enum status check_design(const struct lme_work *work, const struct lme_laplace *found)
{
    const size_t n = work->shape.n_fixed;
    double copy[MOST_FIXED * MOST_FIXED];
    memcpy(copy, found->information, n * n * sizeof *copy);
    const size_t bad = lme_search_factor(copy, n);
    if (bad == n)
        return OK;
    return fail(BAD_USER,
                "model.fixed: '%s' is a combination of the fixed effects before it in these "
                "data, or always zero (a singular design): leave it out",
                work->shape.fixed[bad].name);
}

enum status lme_learn(struct model *model, void *memory, struct pass *pass)
{
    struct lme_work *work = memory;
    const struct lme_shape *shape = &work->shape;
    const struct lme_options *o = model->options;
    if (work->solver == NULL) {
        TRY(comm_agree(pass->comm, lme_solver_create(work, pass->comm)));
        log_say("dense matrix of order %zu on a grid of %d x %d ranks", shape->n_columns,
                work->solver->grid.n_rows, work->solver->grid.n_columns);
    }
    struct lme_solver *solver = work->solver;
    real *flat = NEW(real, model->params.n);
    memcpy(flat, model->params.value, model->params.n * sizeof *flat);
    real *pairs = flat + model->params.panels[shape->search_panel].offset;
    struct lme_search search = {0};
    lme_search_load(&search, shape->n_outer, pairs);
    if (search.phase == SEARCH_FRESH)
        start(&search, model, shape);
    set_point(work, &search);
    set_effects(work);
    struct lme_laplace found;
    enum status status = lme_modes_find(work);
    if (status == OK) {
        lme_laplace_evaluate(work, &found);
        comm_sum_i64(pass->comm, &work->n_bad, 1);
        status = work->n_bad > 0 || !isfinite(found.deviance)
                     ? fail(DIVERGED,
                            "the likelihood of the mixed model is no number any more: "
                            "%lld terms were too large",
                            (long long)work->n_bad)
                     : check_design(work, &found);
    }
    if (status == OK) {
        for (size_t s = 0; s < work->shard->n_students; s++)
            work->effect[s] = solver->spread[0] * work->student[s * N_STUDENT_NUMBERS + AT_U];
        if (lme_search_advance(&search, shape, &found, o->tolerance))
            put_point(work, &found, flat);
        lme_search_store(&search, shape->n_outer, pairs);
        exact_publish(pass->slices, flat);
        pass->converged = search.phase == SEARCH_DONE;
        if (pass->converged)
            log_say("deviance %.4f, intercept %.5f, student sd %.5f; at most %.0f MB of memory "
                    "on the first rank",
                    search.deviance, search.x[0], fabs(search.x[shape->n_fixed]),
                    (double)memory_peak() / 1e6);
        if (pass->comm->rank == 0) {
            const double half = search.deviance / 2;
            pass->loss = (int64_t)ldexp(fmin(half, 4e6), LOSS_BITS);
            pass->n_scored = solver->n_training;
        }
    }
    memory_free(flat);
    return status;
}
