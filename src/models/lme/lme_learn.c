/* A pass: evaluates the deviance and its gradient at the next point of the search, starting
 * from the effects of the last accepted one. Then the search moves on. Only accepted points are
 * published. */
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "models/lme/lme_internal.h"
#include <math.h>
#include <sleef.h>
#include <string.h>

/* The first point: the values set by init. */
static void start(struct lme_search *search, const struct model *model,
                  const struct lme_shape *shape)
{
    const real *fixed = params_rows(&model->params, shape->fixed_panel);
    const real *spread = params_rows(&model->params, shape->spread_panel);
    for (size_t k = 0; k < shape->n_fixed; k++)
        search->trial[k] = (double)fixed[k];
    for (size_t f = 0; f < shape->n_spread; f++)
        search->trial[shape->n_fixed + f] = (double)spread[f];
    if (!shape->logit)
        search->trial[shape->n_outer - 1] =
            Sleef_cinz_logd1_u10purec(search->trial[shape->n_outer - 1]);
}

/* The rows of a factor's tensor are its levels; those of a group, items. */
static size_t n_rows(const struct lme_work *work, const struct lme_factor *factor)
{
    return factor->kind == FACTOR_GROUP ? work->model->n_items : factor->n;
}
static int64_t level_of(const struct lme_work *work, const struct lme_factor *factor,
                        size_t row)
{
    return factor->kind == FACTOR_GROUP ? work->shard->dataset->item_group[row] : (int64_t)row;
}

/* Collective: shares values of which every rank has some, and zeros for the others. */
static void share(const struct comm *comm, double *values, size_t n)
{
    int64_t *bits = NEW(int64_t, n);
    memcpy(bits, values, n * sizeof *values);
    comm_sum_i64(comm, bits, n);
    memcpy(values, bits, n * sizeof *values);
    memory_free(bits);
}

/* Collective: the effects of all levels of a factor after the last pass. */
static double *known_effects(const struct lme_work *work, const struct lme_factor *factor)
{
    const struct shard *shard = work->shard;
    double *effects = NEW(double, factor->n);
    if (factor->kind == FACTOR_STUDENT) {
        memcpy(effects + shard->first_student, work->effect,
               shard->n_students * sizeof *effects);
        share(work->solver->comm, effects, factor->n);
        return effects;
    }
    const real *rows = params_rows(&work->model->params, factor->effect_panel);
    for (size_t row = 0; row < n_rows(work, factor); row++)
        if (level_of(work, factor, row) >= 0)
            effects[level_of(work, factor, row)] = (double)rows[row];
    return effects;
}

/* The place of U of level l of factor f: a unit of this rank, or a column. */
static double *place_of(const struct lme_work *work, size_t f, size_t l)
{
    return f == work->shape->unit ? &lme_unit(work, l - work->first_unit)[AT_U]
                                  : &work->solver->u[work->shape->factors[f].first + l];
}

/* Collective: starts from the old effects, in units of the current sigma. */
static void set_effects(struct lme_work *work)
{
    const struct lme_shape *shape = work->shape;
    for (size_t f = 0; f < shape->n_factors; f++) {
        const double spread = work->solver->spread[f];
        const size_t start = f == shape->unit ? work->first_unit : 0;
        const size_t end =
            f == shape->unit ? work->first_unit + work->n_units : shape->factors[f].n;
        const bool is_here = f == 0 && f == shape->unit; /* students, kept by their own rank */
        double *effects = is_here ? NULL : known_effects(work, &shape->factors[f]);
        for (size_t l = start; l < end; l++) {
            const double effect = is_here ? work->effect[l - start] : effects[l];
            *place_of(work, f, l) = spread == 0 ? 0 : effect / spread;
        }
        memory_free(effects);
    }
}

/* Students' effects stay on their ranks. */
static void keep_students(struct lme_work *work)
{
    for (size_t s = 0; s < work->shard->n_students; s++)
        work->effect[s] =
            work->solver->spread[0] * *place_of(work, 0, work->shard->first_student + s);
}

/* The current effects of a factor's levels and their errors. */
static void take_effects(const struct lme_work *work, size_t f, double *effects, double *errors)
{
    const struct lme_solver *solver = work->solver;
    const struct lme_factor *factor = &work->shape->factors[f];
    const double spread = solver->spread[f];
    for (size_t l = 0; f != work->shape->unit && l < factor->n; l++) {
        effects[l] = spread * solver->u[factor->first + l];
        errors[l] = fabs(spread) * sqrt(solver->diagonal[factor->first + l]);
    }
    for (size_t l = 0; f == work->shape->unit && l < work->n_units; l++) {
        effects[work->first_unit + l] = spread * lme_unit(work, l)[AT_U];
        errors[work->first_unit + l] = fabs(spread) * sqrt(lme_unit(work, l)[AT_VARIANCE]);
    }
}

/* Collective: effects and their errors by factor; and the total of an item. */
static void put_effects(const struct lme_work *work, real *flat)
{
    const struct lme_shape *shape = work->shape;
    const struct dataset *dataset = work->shard->dataset;
    const struct params *params = &work->model->params;
    double *total = NEW(double, work->model->n_items);
    for (size_t f = 1; f < shape->n_factors; f++) {
        const struct lme_factor *factor = &shape->factors[f];
        double *effects = NEW(double, 2 * factor->n), *errors = effects + factor->n;
        take_effects(work, f, effects, errors);
        if (f == shape->unit)
            share(work->solver->comm, effects, 2 * factor->n);
        for (size_t row = 0; row < n_rows(work, factor); row++) {
            const int64_t level = level_of(work, factor, row);
            if (level < 0)
                continue;
            flat[params->panels[factor->effect_panel].offset + row] = (real)effects[level];
            flat[params->panels[factor->error_panel].offset + row] = (real)errors[level];
            if (factor->kind == FACTOR_ITEM || factor->kind == FACTOR_GROUP)
                total[row] += effects[level];
        }
        for (size_t i = 0; factor->kind == FACTOR_SKILL && i < work->model->n_items; i++)
            for (uint64_t k = dataset->item_first[i]; k < dataset->item_first[i + 1]; k++)
                total[i] += effects[dataset->item_skills[k]];
        memory_free(effects);
    }
    for (size_t i = 0; i < work->model->n_items; i++)
        flat[params->panels[shape->total_panel].offset + i] = (real)total[i];
    memory_free(total);
}

/* Writes an accepted point to the parameters. */
static void put_point(const struct lme_work *work, const struct lme_laplace *found, real *flat)
{
    const struct lme_solver *solver = work->solver;
    const struct lme_shape *shape = work->shape;
    const struct params *params = &work->model->params;
    double covariance[MOST_FIXED * MOST_FIXED];
    memcpy(covariance, found->information,
           shape->n_fixed * shape->n_fixed * sizeof *covariance);
    lme_search_factor(covariance, shape->n_fixed);
    lme_search_invert(covariance, shape->n_fixed);
    for (size_t k = 0; k < shape->n_fixed; k++) {
        flat[params->panels[shape->fixed_panel].offset + k] =
            (real)lme_scale_back(work, solver->fixed, k);
        flat[params->panels[shape->fixed_error_panel].offset + k] =
            (real)lme_scale_error(work, covariance, k);
    }
    for (size_t f = 0; f < shape->n_spread; f++)
        flat[params->panels[shape->spread_panel].offset + f] = (real)fabs(solver->spread[f]);
    put_effects(work, flat);
}

/* Refuses fixed effects that the data cannot distinguish. */
static enum status check_design(const struct lme_work *work, const struct lme_laplace *found)
{
    const size_t n = work->shape->n_fixed;
    double copy[MOST_FIXED * MOST_FIXED];
    memcpy(copy, found->information, n * n * sizeof *copy);
    const size_t bad = lme_search_factor(copy, n);
    if (bad == n)
        return OK;
    return fail(BAD_USER,
                "model.fixed: in these data '%s' is a linear combination of the fixed "
                "effects before it, or always zero (a singular design); remove it",
                work->shape->fixed[bad].name);
}

/* Reports the result of the search. */
static void say_end(const struct lme_work *work, const struct lme_search *search)
{
    const struct lme_shape *shape = work->shape;
    const double *spread = search->x + shape->n_fixed;
    log_say("deviance %.4f, intercept %.5f, student sd %.5f; peak memory of the first rank "
            "%.0f MB",
            search->deviance, lme_scale_back(work, search->x, 0), fabs(spread[0]),
            (double)memory_peak() / 1e6);
    for (size_t f = 0; f < shape->n_factors; f++)
        if (spread[f] == 0 && !(f == 0 && search->without_students))
            log_say("note: the standard deviation of %s effects is zero: in these data they "
                    "differ no more than by chance, so all of them are zero",
                    shape->factors[f].name);
}

/* Collective: at the end of a search, whether Laplace's approximation holds at the point that
 * `flat` has. If not, the search starts again, from the first point but without effects of
 * students. */
static bool holds(struct lme_work *work, struct lme_search *search, const struct comm *comm,
                  real *flat)
{
    const struct lme_shape *shape = work->shape;
    struct model model = *work->model;
    model.params.value = flat;
    if (!shape->logit || search->x[shape->n_fixed] == 0)
        return true;
    struct lme_check check;
    lme_check(&model, work, comm, &check);
    if (search->deviance + check.error <= check.alike)
        return true;
    log_say("note: Laplace's approximation fails for these students: the deviance is %.4g, not "
            "%.4g, and %.4g if all are alike; the standard deviation of student effects is set "
            "to zero",
            search->deviance + check.error, search->deviance, check.alike);
    *search = (struct lme_search){.without_students = true};
    search->trial[0] = Sleef_cinz_logd1_u10purec((check.right + 1) / (check.wrong + 1));
    for (size_t f = 1; f < shape->n_spread; f++)
        search->trial[shape->n_fixed + f] = 1;
    return false;
}

/* With link = identity the deviance has no minimum if the residual can be zero. */
static void explain(const struct lme_work *work)
{
    if (work->shape->logit || work->solver->dispersion > 1e-6)
        return;
    fail_clear();
    fail(DIVERGED,
         "training diverged: the factors explain every outcome, so with model.link = identity "
         "the residual standard deviation tends to zero (now %g); start another run= with "
         "model.link=logit",
         sqrt(work->solver->dispersion));
}

enum status lme_learn(struct model *model, void *memory, struct pass *pass)
{
    struct lme_work *work = memory;
    const struct lme_shape *shape = work->shape;
    const struct lme_options *o = model->options;
    if (work->solver == NULL) {
        TRY(comm_agree(pass->comm, lme_solver_create(work, pass->comm)));
        log_say("%ss are eliminated; dense matrix of order %zu on a grid of %d x %d ranks",
                shape->factors[shape->unit].name, shape->n_columns, work->solver->grid.n_rows,
                work->solver->grid.n_columns);
    }
    struct lme_solver *solver = work->solver;
    real *flat = NEW(real, model->params.n);
    memcpy(flat, model->params.value, model->params.n * sizeof *flat);
    real *pairs = flat + model->params.panels[shape->search_panel].offset;
    struct lme_search search = {0};
    lme_search_load(&search, shape->n_outer, pairs);
    if (search.phase == SEARCH_FRESH && !search.without_students)
        start(&search, model, shape);
    lme_solver_set(work, search.trial);
    set_effects(work);
    struct lme_laplace found;
    enum status status = lme_modes_find(work);
    if (status == OK) {
        lme_laplace_evaluate(work, &found);
        comm_sum_i64(pass->comm, &work->n_bad, 1);
        status = work->n_bad > 0 || !isfinite(found.deviance)
                     ? fail(DIVERGED,
                            "training diverged: the likelihood of the mixed model is not a "
                            "finite number; %lld terms were too large",
                            (long long)work->n_bad)
                     : check_design(work, &found);
    }
    if (status == DIVERGED)
        explain(work);
    if (status == OK) {
        keep_students(work);
        if (lme_search_advance(&search, shape, &found, o->tolerance))
            put_point(work, &found, flat);
        const double deviance = search.deviance;
        pass->converged = search.phase == SEARCH_DONE && holds(work, &search, pass->comm, flat);
        search.n_attempts = (double)solver->n_training;
        lme_search_store(&search, shape->n_outer, pairs);
        exact_slices_publish(pass->slices, flat);
        if (pass->converged)
            say_end(work, &search);
        if (pass->comm->rank == 0) {
            const double most = ldexp(1, 62 - LOSS_BITS);
            pass->loss = (int64_t)ldexp(fmin(deviance / 2, most), LOSS_BITS);
            pass->n_scored = solver->n_training;
        }
    }
    memory_free(flat);
    return status;
}
