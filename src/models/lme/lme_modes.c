/* The mode of all random effects, by Newton's method (penalised iteratively reweighted least
 * squares). With r = mu - y and w = -l'' of each attempt, and U the effects in units of their
 * standard deviations:
 *
 *     minimise  D = sum of -2 l  +  U^T U
 *
 *     gradient / 2:  g_s  = sigma_s sum r + U_s            (units), likewise g_j (columns)
 *     H:             d_s  = 1 + sigma_s^2 sum w
 *                    H_sj = sigma_s sigma_j w_sj
 *                    H_jk = I + ...
 *
 * Eliminating the units:
 *
 *     S        = H_jk - sum over s of H_js H_sk / d_s
 *     S step_j = -(g_j - sum over s of H_js g_s / d_s)
 *     step_s   = -(g_s + H_sj step_j) / d_s
 *
 * D never rises: a step that would raise it is halved. The search starts from the effects of
 * the last pass. Building and factoring S dominates the cost. A factor is therefore reused as
 * long as the expected decrease of D falls fast enough. The last factor belongs to the mode. */
#include "base/fail.h"
#include "base/memory.h"
#include "kernels/lme_kernels.h"
#include "models/lme/lme_internal.h"
#include <math.h>
#include <string.h>

enum { MOST_STEPS = 200, MOST_HALVINGS = 40 };
static const double promise_wanted = 1e-20; /* of D: log det H, which is not flat, needs this */
static const double slow = 0.2;             /* refactor if a step lowers the promise by less */
static const double deviance_unit = 0x1p48;

double lme_modes_unit(double most, double size, int room)
{
    return ldexp(1, room - ilogb(most + 1) - 1 - (size > 0 ? ilogb(size) + 1 : 0));
}

/* Residuals and weights of a unit's attempts; returns -2 log of their probability. */
static double look_at(struct lme_work *work, size_t s)
{
    const struct lme_solver *solver = work->solver;
    const size_t n_x = work->shape->n_fixed - 1;
    double *unit = lme_unit(work, s);
    const double base = solver->fixed[0] + solver->unit_spread * unit[AT_U];
    const uint32_t *column = work->cell_column + work->cell_first[s];
    double *cell = work->cell_weight + work->cell_first[s];
    memset(cell, 0, (work->cell_first[s + 1] - work->cell_first[s]) * sizeof *cell);
    const uint64_t start = work->first[s], end = work->first[s + 1];
    for (uint64_t a = start; a < end; a++) {
        double eta = base;
        for (size_t k = 0; k < n_x; k++)
            eta += solver->fixed[k + 1] * work->trained_x[a * n_x + k];
        for (uint64_t k = work->place_first[a]; k < work->place_first[a + 1]; k++)
            eta += solver->effect[column[work->place[k]]];
        work->residual[a] = eta;
    }
    double loss = 0, residuals = 0, weights = 0;
    if (work->shape->logit)
        loss = lme_kernels->logistic(work->residual + start, work->outcome + start,
                                     work->weight + start, end - start);
    for (uint64_t a = start; a < end; a++) {
        if (!work->shape->logit) {
            const double off = work->residual[a] - work->outcome[a];
            work->residual[a] = off / solver->dispersion;
            work->weight[a] = 1 / solver->dispersion;
            loss += 0.5 * off * work->residual[a];
        }
        residuals += work->residual[a];
        weights += work->weight[a];
        for (uint64_t k = work->place_first[a]; k < work->place_first[a + 1]; k++)
            cell[work->place[k]] += work->weight[a];
    }
    unit[AT_RESIDUAL] = residuals;
    unit[AT_WEIGHT] = weights;
    unit[AT_CURVE] = 1 + solver->unit_spread * solver->unit_spread * weights;
    return 2 * loss;
}

/* Collective: evaluates everything at the effects u; returns the penalised deviance. */
static double evaluate(struct lme_work *work)
{
    struct lme_solver *solver = work->solver;
    double columns = 0;
    __int128 units = 0; /* deviances one by one, so that their order does not matter */
    for (size_t j = 0; j < work->shape->n_columns; j++)
        solver->effect[j] = solver->column_spread[j] * solver->u[j];
    for (size_t s = 0; s < work->n_units; s++) {
        const double u = lme_unit(work, s)[AT_U];
        units += lme_fixed_wide(look_at(work, s) + u * u, deviance_unit, &work->n_bad);
    }
    comm_sum_i128(solver->comm, &units, 1);
    for (size_t j = 0; j < work->shape->n_columns; j++)
        columns += solver->u[j] * solver->u[j];
    return (double)units / deviance_unit + columns;
}

/* Collective: residuals by column, and the correction from the units. */
static void sum_columns(struct lme_work *work)
{
    struct lme_solver *solver = work->solver;
    const size_t n = work->shape->n_columns;
    const double size = work->shape->logit ? 1 : 1 / solver->dispersion;
    const double in_units = lme_modes_unit((double)solver->most_column, size, 54);
    int64_t *residual = solver->sums, *lowered = residual + n;
    memset(solver->sums, 0, 2 * n * sizeof *solver->sums);
    for (size_t s = 0; s < work->n_units; s++) {
        double *unit = lme_unit(work, s);
        unit[AT_PULL] = solver->unit_spread * unit[AT_RESIDUAL] + unit[AT_U];
        const double lower = solver->unit_spread * unit[AT_PULL] / unit[AT_CURVE];
        const uint32_t *column = work->cell_column + work->cell_first[s];
        for (uint64_t a = work->first[s]; a < work->first[s + 1]; a++) {
            const int64_t r = lme_fixed_point(work->residual[a], in_units, &work->n_bad);
            for (uint64_t k = work->place_first[a]; k < work->place_first[a + 1]; k++)
                residual[column[work->place[k]]] += r;
        }
        for (uint64_t c = work->cell_first[s]; c < work->cell_first[s + 1]; c++)
            lowered[work->cell_column[c]] +=
                lme_fixed_point(work->cell_weight[c] * lower, in_units, &work->n_bad);
    }
    comm_sum_i64(solver->comm, solver->sums, 2 * n);
    for (size_t j = 0; j < n; j++) {
        const double r = (double)residual[j] / in_units, less = (double)lowered[j] / in_units;
        solver->pull[j] = solver->column_spread[j] * r + solver->u[j];
        solver->step[j] = -(solver->column_spread[j] * (r - less) + solver->u[j]);
    }
}

struct lme_records lme_modes_kinds(const struct lme_work *work, const double *scale)
{
    return (struct lme_records){.n = work->n_kinds,
                                .first = work->kind_first,
                                .column = work->kind_column,
                                .scale = scale};
}

/* Weights by kind of attempt. They are whole multiples of 1 / in_units, below 2^53 of them, so
 * it does not matter which rank has which attempts of a kind. */
static void weigh_kinds(struct lme_work *work, double in_units)
{
    int64_t *sums = NEW(int64_t, work->n_kinds);
    for (uint64_t a = 0; a < work->first[work->n_units]; a++)
        sums[work->kind[a]] += lme_fixed_point(work->weight[a], in_units, &work->n_bad);
    for (size_t k = 0; k < work->n_kinds; k++)
        work->kind_weight[k] = (double)sums[k] / in_units;
    memory_free(sums);
}

/* Collective: the matrix becomes S. */
static void build(struct lme_work *work)
{
    struct lme_solver *solver = work->solver;
    struct scalapack_matrix *matrix = &solver->matrix;
    const double weight = work->shape->logit ? 0.25 : 1 / solver->dispersion;
    const double whole = lme_modes_unit((double)solver->most_column, weight, 52);
    const double single = lme_modes_unit((double)solver->most_cell, weight, 50);
    const double in_units = whole < single ? whole : single;
    double *scale = NEW(double, work->n_units);
    const double variance = solver->unit_spread * solver->unit_spread;
    for (size_t s = 0; s < work->n_units; s++)
        scale[s] = -variance / lme_unit(work, s)[AT_CURVE];
    const struct lme_records units = {.n = work->n_units,
                                      .first = work->cell_first,
                                      .column = work->cell_column,
                                      .value = work->cell_weight,
                                      .scale = scale};
    weigh_kinds(work, in_units);
    const struct lme_records kinds = lme_modes_kinds(work, work->kind_weight);
    scalapack_matrix_clear(matrix);
    if (variance > 0)
        lme_outer_add(solver, &units, in_units, false);
    lme_outer_add(solver, &kinds, in_units, true);
    memory_free(scale);
    for (size_t c = 0; c < matrix->n_own_columns; c++) {
        const double spread = solver->column_spread[matrix->column_of[c]] / in_units;
        for (size_t r = 0; r < matrix->n_own_rows; r++) {
            const size_t at = c * matrix->n_own_rows + r;
            const double same = matrix->row_of[r] == matrix->column_of[c];
            matrix->value[at] = same + spread * solver->column_spread[matrix->row_of[r]] *
                                           (double)matrix->fixed[at];
        }
    }
}

/* Collective: the Newton step of all effects; returns the expected decrease of D. */
static double solve(struct lme_work *work)
{
    struct lme_solver *solver = work->solver;
    scalapack_solve(&solver->matrix, solver->step);
    double promised = 0;
    for (size_t j = 0; j < work->shape->n_columns; j++) {
        promised -= solver->pull[j] * solver->step[j];
        solver->effect[j] = solver->column_spread[j] * solver->step[j];
    }
    int64_t all[2] = {0}; /* large and small parts: the decrease starts large and ends tiny */
    for (size_t s = 0; s < work->n_units; s++) {
        double *unit = lme_unit(work, s), sum = 0;
        for (uint64_t c = work->cell_first[s]; c < work->cell_first[s + 1]; c++)
            sum += work->cell_weight[c] * solver->effect[work->cell_column[c]];
        unit[AT_STEP] = -(unit[AT_PULL] + solver->unit_spread * sum) / unit[AT_CURVE];
        const double part = -unit[AT_PULL] * unit[AT_STEP];
        const int64_t large = lme_fixed_point(part, 0x1p24, &work->n_bad);
        all[0] += large;
        all[1] += lme_fixed_point(part - ldexp((double)large, -24), 0x1p58, &work->n_bad);
    }
    comm_sum_i64(solver->comm, all, COUNT(all));
    return promised + ldexp((double)all[0], -24) + ldexp((double)all[1], -58);
}

static void move(struct lme_work *work, double length)
{
    struct lme_solver *solver = work->solver;
    for (size_t j = 0; j < work->shape->n_columns; j++)
        solver->u[j] = solver->old[j] + length * solver->step[j];
    for (size_t s = 0; s < work->n_units; s++) {
        double *unit = lme_unit(work, s);
        unit[AT_U] = unit[AT_OLD] + length * unit[AT_STEP];
    }
}

static void remember(struct lme_work *work)
{
    struct lme_solver *solver = work->solver;
    memcpy(solver->old, solver->u, work->shape->n_columns * sizeof *solver->old);
    for (size_t s = 0; s < work->n_units; s++)
        lme_unit(work, s)[AT_OLD] = lme_unit(work, s)[AT_U];
}

static enum status lost(struct lme_work *work, const char *what)
{
    comm_sum_i64(work->solver->comm, &work->n_bad, 1);
    return fail(
        DIVERGED,
        "the search for the mode of the random effects failed: %s (student sd %g, intercept "
        "%g); start "
        "another run= without fixed effects or factors that the data cannot distinguish",
        what, work->solver->spread[0], work->solver->fixed[0]);
}

/* Collective: S and its factor at the current effects. */
static enum status factor(struct lme_work *work)
{
    build(work);
    if (!scalapack_factor(&work->solver->matrix, &work->solver->log_determinant))
        return lost(work, "the curvature is not positive");
    return OK;
}

/* Collective: makes the step, halved until it does not raise the deviance. */
static bool descend(struct lme_work *work)
{
    struct lme_solver *solver = work->solver;
    /* A deviance is a sum of millions of terms: a rise within rounding error is none. */
    const double noise = 1e-7 + 1e-14 * fabs(solver->penalised);
    remember(work);
    double length = 1;
    for (int halvings = 0; halvings < MOST_HALVINGS; halvings++, length /= 2) {
        move(work, length);
        const double now = evaluate(work);
        if (now <= solver->penalised + noise) {
            solver->penalised = now;
            return true;
        }
    }
    return false;
}

enum status lme_modes_find(struct lme_work *work)
{
    struct lme_solver *solver = work->solver;
    double before = 0;
    bool fresh = false; /* the factor belongs to the current effects */
    solver->penalised = evaluate(work);
    for (int step = 0; step < MOST_STEPS; step++) {
        sum_columns(work);
        if (step == 0) {
            TRY(factor(work));
            fresh = true;
        }
        double promised = solve(work);
        if (!fresh && promised > slow * before && promised > promise_wanted) {
            sum_columns(work); /* the right side, overwritten by the solution */
            TRY(factor(work));
            fresh = true;
            promised = solve(work);
        }
        if (!(promised < 1e300))
            return lost(work, "a step is NaN or infinite");
        if (promised <= promise_wanted || (promised < 1e-12 && promised > slow * before))
            return fresh ? OK : factor(work);
        if (!descend(work))
            return lost(work, "no step lowers the deviance");
        before = promised;
        fresh = false;
    }
    return lost(work, "too many steps");
}
