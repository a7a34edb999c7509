/* The Laplace deviance F(beta, sigma) at the mode, and its exact gradient.
 *
 * With M = Lambda S^-1 Lambda (columns), A_s = sigma_s^2 / d_s and w_s the weights of the cells
 * of a unit, the variance of an attempt's predictor given beta is its leverage (z: the columns
 * of the attempt):
 *
 *     h_a = A_s + z^T M z - 2 A_s z^T M w_s + A_s^2 w_s^T M w_s
 *
 * F depends on a parameter directly, through the weights (log det H has derivative h_a w'_a by
 * eta_a), and through the mode, which solves g(U) = 0, so dU = -H^-1 dg. One further solve,
 * lambda = H^-1 Lambda Z^T (h w'), serves all parameters:
 *
 *     zeta_a      = sigma_s lambda_s + sum over columns of sigma_j lambda_j
 *     kappa_a     = 2 r_a + h_a w'_a - w_a zeta_a
 *     dF/dbeta_k  = sum of kappa_a x_ak
 *     dF/dsigma_f = sum of kappa_a U_f(a) - r_a lambda_f(a)  +  2 freedom_f / sigma_f
 *     freedom_f   = q_f - tr (H^-1)_ff
 *
 * For link = identity w' = 0, and
 *
 *     dF/dlog sigma_e = 2 (n - sum r^2 sigma_e^2 - sum over f of freedom_f)
 *
 * The products M w_s cost as much as building S. */
#include "base/fail.h"
#include "base/memory.h"
#include "models/lme/lme_internal.h"
#include <math.h>
#include <sleef.h>
#include <string.h>

/* Numbers summed over units. */
enum { SUM_LOG, SUM_FREEDOM, SUM_SQUARES, SUM_SPREAD, SUM_FIXED };
enum { MOST_SUMS = SUM_FIXED + MOST_FIXED * (MOST_FIXED + 1) + MOST_FACTORS };
static const double sum_unit = 0x1p32;

static void sums_add(struct lme_work *work, __int128 *sums, const double *values, size_t n)
{
    for (size_t k = 0; k < n; k++)
        sums[k] += lme_fixed_wide(values[k], sum_unit, &work->n_bad);
}

/* Collective: the inverse of S, its diagonal, and the inverse scaled by sigma. */
static void invert(struct lme_work *work)
{
    struct lme_solver *solver = work->solver;
    struct scalapack_matrix *matrix = &solver->matrix;
    scalapack_invert(matrix);
    scalapack_diagonal(matrix, solver->diagonal);
    for (size_t c = 0; c < matrix->n_own_columns; c++) {
        const double spread = solver->column_spread[matrix->column_of[c]];
        double *column = matrix->value + c * matrix->n_own_rows;
        for (size_t r = 0; r < matrix->n_own_rows; r++)
            column[r] *= spread * solver->column_spread[matrix->row_of[r]];
    }
}

/* Collective: M w_s for all units, z^T M z for all kinds of attempts. */
static void multiply(struct lme_work *work)
{
    struct lme_solver *solver = work->solver;
    const struct lme_records units = {.n = work->n_units,
                                      .first = work->cell_first,
                                      .column = work->cell_column,
                                      .value = work->cell_weight};
    lme_outer_multiply(solver, &units, work->cell_product, &work->n_bad);
    if (!work->shape->logit)
        return;
    const struct lme_records kinds = lme_modes_kinds(work, NULL);
    double *product = NEW(double, kinds.first[kinds.n]);
    lme_outer_multiply(solver, &kinds, product, &work->n_bad);
    for (size_t k = 0; k < kinds.n; k++) {
        work->kind_product[k] = 0;
        for (uint64_t c = kinds.first[k]; c < kinds.first[k + 1]; c++)
            work->kind_product[k] += product[c];
    }
    memory_free(product);
}

static double fixed_of(const struct lme_work *work, uint64_t a, size_t k)
{
    return k == 0 ? 1 : work->trained_x[a * (work->shape->n_fixed - 1) + k - 1];
}

/* h w' of a unit's attempts; the unit's part of log det and of the trace. */
static void leverage(struct lme_work *work, size_t s, double values[MOST_SUMS])
{
    const struct lme_solver *solver = work->solver;
    double *unit = lme_unit(work, s);
    const double variance = solver->unit_spread * solver->unit_spread, d = unit[AT_CURVE];
    const double share = variance / d;
    const double *product = work->cell_product + work->cell_first[s];
    double self = 0, slopes = 0, squares = 0;
    for (uint64_t c = work->cell_first[s]; c < work->cell_first[s + 1]; c++)
        self += work->cell_weight[c] * work->cell_product[c];
    for (uint64_t a = work->first[s]; a < work->first[s + 1]; a++) {
        const double r = work->residual[a];
        squares += r * r;
        work->slope[a] = 0;
        if (!work->shape->logit)
            continue;
        double cross = 0;
        for (uint64_t k = work->place_first[a]; k < work->place_first[a + 1]; k++)
            cross += product[work->place[k]];
        const double h = share + work->kind_product[work->kind[a]] - 2 * share * cross +
                         share * share * self;
        work->slope[a] = h * work->weight[a] * (1 - 2 * (r + work->outcome[a]));
        slopes += work->slope[a];
    }
    unit[AT_PULL] = solver->unit_spread * slopes;
    unit[AT_VARIANCE] = (1 + share * self) / d;
    values[SUM_LOG] = Sleef_cinz_logd1_u10purec(d);
    values[SUM_FREEDOM] = share * (unit[AT_WEIGHT] - self / d);
    values[SUM_SQUARES] = squares * solver->dispersion;
}

/* Right sides by column: of the adjoint and of each fixed effect; and the products of the
 * latter. */
static void right_sides(struct lme_work *work, size_t s, int64_t *sums, double in_units,
                        double *values)
{
    const struct lme_solver *solver = work->solver;
    const size_t n = work->shape->n_columns, n_fixed = work->shape->n_fixed;
    const double *unit = lme_unit(work, s);
    const double share = solver->unit_spread * solver->unit_spread / unit[AT_CURVE];
    const uint32_t *column = work->cell_column + work->cell_first[s];
    double of[MOST_FIXED] = {0};
    for (uint64_t a = work->first[s]; a < work->first[s + 1]; a++) {
        const double w = work->weight[a];
        for (size_t k = 0; k <= n_fixed; k++) {
            const double term = k == 0 ? work->slope[a] : w * fixed_of(work, a, k - 1);
            const int64_t fixed = lme_fixed_point(term, in_units, &work->n_bad);
            for (uint64_t c = work->place_first[a]; c < work->place_first[a + 1]; c++)
                sums[k * n + column[work->place[c]]] += fixed;
            if (k == 0)
                continue;
            of[k - 1] += term;
            for (size_t l = 0; l < n_fixed; l++)
                values[(k - 1) * n_fixed + l] += term * fixed_of(work, a, l);
        }
    }
    for (size_t k = 0; k < n_fixed; k++)
        for (size_t l = 0; l < n_fixed; l++)
            values[k * n_fixed + l] -= share * of[k] * of[l];
    for (uint64_t c = work->cell_first[s]; c < work->cell_first[s + 1]; c++)
        for (size_t k = 0; k <= n_fixed; k++) {
            const double part = k == 0 ? solver->unit_spread * unit[AT_PULL] / unit[AT_CURVE]
                                       : share * of[k - 1];
            sums[k * n + work->cell_column[c]] -=
                lme_fixed_point(work->cell_weight[c] * part, in_units, &work->n_bad);
        }
}

/* A unit's part of the gradient over fixed effects and standard deviations; solver->effect
 * holds sigma lambda by column. */
static void slopes(struct lme_work *work, size_t s, double *by_spread, double *by_fixed)
{
    const struct lme_solver *solver = work->solver;
    const struct lme_shape *shape = work->shape;
    const double *unit = lme_unit(work, s);
    const uint32_t *column = work->cell_column + work->cell_first[s];
    double sum = 0;
    for (uint64_t c = work->cell_first[s]; c < work->cell_first[s + 1]; c++)
        sum += work->cell_weight[c] * solver->effect[work->cell_column[c]];
    const double lambda = (unit[AT_PULL] - solver->unit_spread * sum) / unit[AT_CURVE];
    for (uint64_t a = work->first[s]; a < work->first[s + 1]; a++) {
        const double r = work->residual[a];
        double zeta = solver->unit_spread * lambda;
        for (uint64_t k = work->place_first[a]; k < work->place_first[a + 1]; k++)
            zeta += solver->effect[column[work->place[k]]];
        const double kappa = 2 * r + work->slope[a] - work->weight[a] * zeta;
        for (size_t k = 0; k < shape->n_fixed; k++)
            by_fixed[k] += kappa * fixed_of(work, a, k);
        by_spread[shape->unit] += kappa * unit[AT_U] - r * lambda;
        for (uint64_t k = work->place_first[a]; k < work->place_first[a + 1]; k++) {
            const uint32_t j = column[work->place[k]];
            const size_t f = lme_factor_of(shape, j);
            if (solver->spread[f] != 0) /* at zero the derivative is zero: F is even */
                by_spread[f] +=
                    kappa * solver->u[j] - r * solver->effect[j] / solver->spread[f];
        }
    }
}

/* Collective. */
static void information(struct lme_work *work, const int64_t *sums, double in_units,
                        const double *products, double *information)
{
    const size_t n = work->shape->n_columns, n_fixed = work->shape->n_fixed;
    double *sides = NEW(double, n_fixed *n), *solved = NEW(double, n);
    for (size_t i = 0; i < n_fixed * n; i++)
        sides[i] = (double)sums[n + i] / in_units;
    for (size_t k = 0; k < n_fixed; k++) {
        scalapack_multiply(&work->solver->matrix, sides + k * n, solved);
        for (size_t l = 0; l < n_fixed; l++) {
            double sum = products[k * n_fixed + l];
            for (size_t j = 0; j < n; j++)
                sum -= sides[l * n + j] * solved[j];
            information[k * n_fixed + l] = sum;
        }
    }
    memory_free(sides);
    memory_free(solved);
}

void lme_laplace_evaluate(struct lme_work *work, struct lme_laplace *laplace)
{
    struct lme_solver *solver = work->solver;
    const struct lme_shape *shape = work->shape;
    const size_t n = shape->n_columns;
    const size_t n_fixed = shape->n_fixed, n_first = SUM_SPREAD + n_fixed * n_fixed;
    *laplace = (struct lme_laplace){0};
    invert(work);
    multiply(work);

    const double size = shape->logit ? 8 : 8 / solver->dispersion;
    const double in_units = lme_modes_unit((double)solver->most_column, size, 58);
    __int128 totals[MOST_SUMS] = {0};
    int64_t *sums = NEW(int64_t, (1 + n_fixed) * n);
    for (size_t s = 0; s < work->n_units; s++) {
        double values[MOST_SUMS] = {0};
        leverage(work, s, values);
        right_sides(work, s, sums, in_units, values + SUM_SPREAD);
        sums_add(work, totals, values, n_first);
    }
    comm_sum_i64(solver->comm, sums, (1 + n_fixed) * n);
    comm_sum_i128(solver->comm, totals, n_first);
    double first[MOST_SUMS];
    for (size_t k = 0; k < n_first; k++)
        first[k] = (double)totals[k] / sum_unit;
    information(work, sums, in_units, first + SUM_SPREAD, laplace->information);
    for (size_t j = 0; j < n; j++)
        solver->pull[j] = (double)sums[j] / in_units;
    scalapack_multiply(&solver->matrix, solver->pull, solver->effect);
    memory_free(sums);

    const size_t n_second = shape->n_outer;
    memset(totals, 0, sizeof totals);
    for (size_t s = 0; s < work->n_units; s++) {
        double values[MOST_SUMS] = {0};
        slopes(work, s, values + n_fixed, values);
        sums_add(work, totals, values, n_second);
    }
    comm_sum_i128(solver->comm, totals, n_second);
    for (size_t k = 0; k < n_second; k++)
        laplace->gradient[k] = (double)totals[k] / sum_unit;

    double free = 0;
    laplace->freedom[shape->unit] = first[SUM_FREEDOM];
    for (size_t j = 0; j < n; j++)
        laplace->freedom[lme_factor_of(shape, j)] += 1 - solver->diagonal[j];
    for (size_t f = 0; f < shape->n_factors; f++) {
        free += laplace->freedom[f];
        double *slope = &laplace->gradient[n_fixed + f];
        *slope =
            solver->spread[f] == 0 ? 0 : *slope + 2 * laplace->freedom[f] / solver->spread[f];
    }
    laplace->deviance = solver->penalised + solver->log_determinant + first[SUM_LOG];
    if (!shape->logit) {
        const double n_training = (double)solver->n_training;
        laplace->deviance +=
            n_training * Sleef_cinz_logd1_u10purec(2 * M_PI * solver->dispersion);
        laplace->freedom[shape->n_factors] = n_training - free;
        laplace->gradient[n_fixed + shape->n_factors] =
            2 * (n_training - first[SUM_SQUARES] - free);
    }
}
