/* Training a knowledge tracing machine: Newton's method, one step per epoch.
 *
 *     F(x) = sum of log-losses + 1/2 sum l2 x^2
 *     H    = J^T D J + l2,   D = p (1 - p)
 *     H step = -gradient     by conjugate gradients
 *     x += step              halved until F falls enough
 *
 * J holds the derivatives of the scores (see src/kernels/fm_kernels.h). For logistic regression
 * H is the Hessian of F. With factors it is the Gauss-Newton matrix, which is never negative. A
 * product with H is one pass over the attempts, whose features are kept (ktm_cache.c).
 * Conjugate gradients run in variables scaled by the diagonal of H. They stop when the residual
 * has fallen to a tenth, since the next epoch starts from a better point anyway. Singular
 * designs (a constant, a feature that is a sum of others) do no harm: no step is made in
 * directions that change nothing.
 *
 * With weights_first, factors start at zero. There the score has no derivative by any factor, so
 * they stay at zero, and the weights converge as in logistic regression. Only then do factors
 * get random values, and all are fitted together. The epochs before are a model without factors,
 * for data in which pairs of features say nothing that validation confirms.
 *
 * Sums: a lane adds up its common rows in floating point, then converts them to fixed point. A
 * lane is never split between ranks, so the result does not depend on their number. Products
 * use a direction of length 1 in scaled variables, where no sum can exceed the square root of
 * the number of features. An epoch keeps only the parameters of the one before. */
#include "base/fail.h"
#include "base/memory.h"
#include "kernels/vec.h"
#include "models/ktm/ktm_solve.h"
#include <math.h>
#include <string.h>

#define MOST_LOSS ((int64_t)1 << 61) /* twice this fits 64 bits */

/* Fraction bits of sums: gradients, their squares, and products (of scaled variables). */
#ifdef COHORT_REAL_DOUBLE
enum { GRADIENT_BITS = 32, CURVE_BITS = 24, PRODUCT_BITS = 44 };
#else
enum { GRADIENT_BITS = 24, CURVE_BITS = 16, PRODUCT_BITS = 36 };
#endif

struct ktm_learner {
    struct ktm_space space;
    struct ktm_block block;
    struct ktm_cache *kept;
    real *penalty; /* l2 of each number */
    real *x, *gradient, *scale;
    real *direction, *rest, *rest_solved, *found, *product, *trial;
    real *curve;    /* diagonal of the second derivatives, before it becomes `scale` */
    real *weight;   /* D of each training attempt */
    real *r;        /* of a student's attempts */
    uint32_t *rows; /* common rows that occur in the lane */
    uint8_t *met;
    size_t n_met;
    int64_t *sums; /* of common rows, twice; then the number out of range, and the loss */
    size_t n_sums; /* of common rows */
    double most;   /* bound on a lane's sum in fixed point, so that all lanes fit 64 bits */
    int64_t n_passes;
};

/* Collective: covariates come in any unit, but their squares must not be too large to sum. */
static enum status check_numbers(const struct ktm_work *work, const struct comm *comm)
{
    const struct shard *shard = work->shard;
    const struct covariates *columns = &shard->dataset->covariates;
    const double most = 1000;
    for (size_t j = 0; j < work->design->n; j++) {
        const struct ktm_feature *f = &work->design->list[j];
        if (f->what != KTM_NUMBER || f->value == KTM_LOG)
            continue;
        double size = 0;
        for (uint64_t t = 0; t < shard->n_attempts; t++)
            if (mark_split(shard->mark[t]) == TRAIN)
                size = fmax(size, fabs(shard->covariate[t * columns->names.n + f->column]));
        comm_max_double(comm, &size, 1);
        const char *name = names_get(&columns->names, f->column);
        if (size > most)
            return fail(BAD_USER,
                        "model.features: values of '%s' are as large as %g, but at most %g is "
                        "supported; use %s:log, or import it in another unit",
                        name, size, most, name);
    }
    return OK;
}

static struct ktm_learner *learner_create(const struct model *model,
                                          const struct ktm_work *work, const struct comm *comm)
{
    const struct ktm_options *o = model->options;
    struct ktm_learner *l = NEW(struct ktm_learner, 1);
    struct ktm_space *space = &l->space;
    ktm_space_make(space, work->design, model, work->shard, comm);
    ktm_block_create(&l->block, work->design);
    l->kept = ktm_cache_create(work->shard->n_students, ktm_cache_most(comm));
    real **const vectors[] = {&l->penalty, &l->x,         &l->gradient,   &l->scale,
                              &l->curve,   &l->direction, &l->rest,       &l->found,
                              &l->product, &l->trial,     &l->rest_solved};
    for (size_t v = 0; v < COUNT(vectors); v++)
        *vectors[v] = NEW(real, space->n);
    for (size_t j = 0; j < work->design->n; j++) {
        const struct ktm_feature *f = &work->design->list[j];
        const size_t end = f->what == KTM_STUDENT ? space->n_rows : f->first_row + f->n_rows;
        for (size_t row = f->first_row; row < end; row++) {
            l->penalty[row] = (real)f->l2;
            for (size_t c = 0; c < (size_t)o->factors; c++)
                l->penalty[space->n_weights + row * space->stride + c] = (real)f->l2_factors;
        }
    }
    size_t longest = 0;
    for (size_t s = 0; s < work->shard->n_students; s++)
        longest = size_max(longest, work->shard->first[s + 1] - work->shard->first[s]);
    l->r = NEW(real, size_padded(longest));
    l->weight = NEW(real, work->shard->n_attempts);
    l->rows = NEW(uint32_t, space->n_common);
    l->met = NEW(uint8_t, space->n_common);
    l->n_sums = space->n_common * (1 + space->k);
    l->sums = NEW(int64_t, 2 * l->n_sums + 2);
    return l;
}

void ktm_learner_free(struct ktm_learner *l)
{
    if (l == NULL)
        return;
    real *const vectors[] = {l->penalty,   l->x,      l->gradient,   l->scale,   l->curve,
                             l->direction, l->rest,   l->found,      l->product, l->trial,
                             l->r,         l->weight, l->rest_solved};
    for (size_t v = 0; v < COUNT(vectors); v++)
        memory_free(vectors[v]);
    ktm_block_free(&l->block);
    ktm_cache_free(l->kept);
    memory_free(l->rows);
    memory_free(l->met);
    memory_free(l->sums);
    memory_free(l);
}

/* Lists the common rows of the current student. */
static void note_rows(struct ktm_learner *l, const struct fm_features *attempts)
{
    const size_t n_entries = attempts->first[attempts->n], n_common = l->space.n_common;
    for (size_t e = 0; e < n_entries; e++) {
        const uint32_t row = attempts->row[e];
        if (row < n_common && !l->met[row]) {
            l->met[row] = 1;
            l->rows[l->n_met++] = row;
        }
    }
}

static int64_t to_fixed(struct ktm_learner *l, double value, double unit)
{
    const double scaled = value * unit;
    if (fabs(scaled) <= l->most)
        return (int64_t)rint(scaled);
    l->sums[2 * l->n_sums]++;
    return 0;
}

/* Converts the lane's sums of common rows (times `scale`, if given) to fixed point. */
static void flush(struct ktm_learner *l, real *vector, const real *scale, int bits,
                  int64_t *sums)
{
    const struct ktm_space *space = &l->space;
    const double unit = (double)((uint64_t)1 << bits);
    for (size_t m = 0; m < l->n_met; m++) {
        const size_t row = l->rows[m];
        sums[row] += to_fixed(l, (double)vector[row] * (scale ? (double)scale[row] : 1), unit);
        vector[row] = 0;
        const size_t at = space->n_weights + row * space->stride;
        for (size_t c = 0; c < space->k; c++) {
            sums[space->n_common + row * space->k + c] +=
                to_fixed(l, (double)vector[at + c] * (scale ? (double)scale[at + c] : 1), unit);
            vector[at + c] = 0;
        }
    }
}

/* Writes the sums over all ranks into the common rows of a vector. */
static void unfix(const struct ktm_learner *l, const int64_t *sums, int bits, real *vector)
{
    const struct ktm_space *space = &l->space;
    const double unit = 1 / (double)((uint64_t)1 << bits);
    for (size_t row = 0; row < space->n_common; row++) {
        vector[row] = (real)((double)sums[row] * unit);
        const size_t at = space->n_weights + row * space->stride;
        for (size_t c = 0; c < space->k; c++)
            vector[at + c] = (real)((double)sums[space->n_common + row * space->k + c] * unit);
    }
}

enum pass_kind { PASS_LOSS, PASS_GRADIENT, PASS_PRODUCT };

/* A student's contribution: to the loss at `at`; to the gradient and the second derivatives; or
 * to the product with the direction `along`. */
static int64_t add_student(struct ktm_learner *l, struct ktm_work *work, size_t s,
                           enum pass_kind kind, real *at, real *along)
{
    const struct ktm_space *space = &l->space;
    const struct shard *shard = work->shard;
    const struct ktm_seen seen =
        ktm_cache_student(l->kept, &work->walk, shard, s, space->n_common + s);
    const struct fm_features *attempts = &seen.attempts;
    const struct fm_point point = ktm_space_point(space, at);
    real *score = work->score, *weight = l->weight + shard->first[s];
    const size_t n = attempts->n, padded = size_padded(n);
    if (kind != PASS_LOSS)
        note_rows(l, attempts);
    if (kind != PASS_PRODUCT || space->k > 0)
        fm_kernels->score(attempts, &point, work->sum, score);
    if (kind == PASS_PRODUCT) {
        const struct fm_point to = ktm_space_point(space, l->product),
                              slope = ktm_space_point(space, along);
        fm_kernels->slope(attempts, &point, work->sum, &slope, l->r);
        for (size_t a = 0; a < n; a++)
            l->r[a] *= weight[a];
        fm_kernels->spread(attempts, &point, work->sum, l->r, &to);
        return 0;
    }
    double loss = 0;
    memcpy(l->r, score, padded * sizeof *score);
    vec->softplus(l->r, padded);
    for (size_t a = 0; a < n; a++) {
        const uint8_t mark = shard->mark[shard->first[s] + seen.place[a]];
        loss += (double)l->r[a] - (mark_outcome(mark) == CORRECT ? (double)score[a] : 0);
    }
    if (kind == PASS_GRADIENT) {
        const struct fm_point gradient = ktm_space_point(space, l->gradient),
                              curve = ktm_space_point(space, l->curve);
        vec->sigmoid(score, padded);
        for (size_t a = 0; a < n; a++) {
            const uint8_t mark = shard->mark[shard->first[s] + seen.place[a]];
            l->r[a] = score[a] - (mark_outcome(mark) == CORRECT ? 1 : 0);
            weight[a] = score[a] * (1 - score[a]);
        }
        fm_kernels->spread(attempts, &point, work->sum, l->r, &gradient);
        fm_kernels->curve(attempts, &point, work->sum, weight, &curve);
        ktm_block_add(&l->block, attempts, weight);
    }
    loss = rint(ldexp(loss, LOSS_BITS));
    return fabs(loss) < (double)MOST_LOSS ? (int64_t)loss : MOST_LOSS;
}

/* Saturates a loss that is out of range, however many such students there are. */
static int64_t bounded(int64_t loss)
{
    return loss > MOST_LOSS ? MOST_LOSS : loss < -MOST_LOSS ? -MOST_LOSS : loss;
}

/* Collective: a pass over all training students. `own` receives the loss of this rank. */
static enum status pass_over(struct ktm_learner *l, struct ktm_work *work,
                             const struct pass *pass, enum pass_kind kind, real *at,
                             real *along, int64_t *own, double *loss)
{
    const size_t n_vectors = kind == PASS_GRADIENT ? 2 : kind == PASS_PRODUCT ? 1 : 0;
    int64_t *last = l->sums + 2 * l->n_sums;
    memset(l->sums, 0, (2 * l->n_sums + 2) * sizeof *l->sums);
    *own = 0;
    l->n_passes++;
    for (size_t lane = 0; lane < pass->lanes->n_own; lane++) {
        l->n_met = 0;
        l->met[0] = 1;
        l->rows[l->n_met++] = 0;
        for (size_t i = 0; i < pass->lanes->n_students[lane]; i++)
            *own = bounded(
                *own + add_student(l, work, pass->lanes->students[lane][i], kind, at, along));
        if (kind == PASS_GRADIENT) {
            flush(l, l->gradient, NULL, GRADIENT_BITS, l->sums);
            flush(l, l->curve, NULL, CURVE_BITS, l->sums + l->n_sums);
        } else if (kind == PASS_PRODUCT) {
            flush(l, l->product, l->scale, PRODUCT_BITS, l->sums);
        }
        for (size_t m = 0; m < l->n_met; m++)
            l->met[l->rows[m]] = 0;
    }
    last[1] = *own;
    if (n_vectors == 1) { /* the unused half must not be sent */
        comm_sum_i64(pass->comm, l->sums, l->n_sums);
        comm_sum_i64(pass->comm, last, 2);
    } else {
        comm_sum_i64(pass->comm, n_vectors == 0 ? last : l->sums,
                     n_vectors == 0 ? 2 : 2 * l->n_sums + 2);
    }
    *loss = ldexp((double)last[1], -LOSS_BITS);
    if (last[0] > 0)
        return fail(DIVERGED, "training diverged: sums over the attempts are too large; use "
                              ":log instead of raw counts, or a larger model.l2 and "
                              "model.l2_factors");
    return OK;
}

/* Collective: 1/2 sum l2 x^2. */
static double penalty_at(struct ktm_learner *l, const real *x)
{
    for (size_t i = 0; i < l->space.n; i++)
        l->product[i] = l->penalty[i] * x[i];
    return ktm_space_dot(&l->space, x, l->product) / 2;
}

/* Collective: loss with penalty, its gradient, and the scale 1 / sqrt(diagonal of H) at x. */
static enum status differentiate(struct ktm_learner *l, struct ktm_work *work,
                                 const struct pass *pass, double *loss)
{
    int64_t own = 0;
    memset(l->gradient, 0, l->space.n * sizeof(real));
    memset(l->curve, 0, l->space.n * sizeof(real));
    ktm_block_clear(&l->block);
    TRY(pass_over(l, work, pass, PASS_GRADIENT, l->x, NULL, &own, loss));
    unfix(l, l->sums, GRADIENT_BITS, l->gradient);
    unfix(l, l->sums + l->n_sums, CURVE_BITS, l->curve);
    *loss += penalty_at(l, l->x);
    for (size_t i = 0; i < l->space.n; i++) {
        l->gradient[i] += l->penalty[i] * l->x[i];
        const double h = (double)l->curve[i] + (double)l->penalty[i];
        l->scale[i] = h > 1e-12 ? (real)(1 / sqrt(h)) : 0; /* without effect: does not move */
    }
    ktm_block_factor(&l->block, &l->space, l->penalty, l->scale);
    return OK;
}

/* Collective: product = H direction, in scaled variables; `length` is that of the direction. */
static enum status multiply(struct ktm_learner *l, struct ktm_work *work,
                            const struct pass *pass, double length)
{
    const size_t n = l->space.n;
    int64_t own = 0;
    double loss = 0;
    for (size_t i = 0; i < n; i++)
        l->trial[i] = (real)((double)l->scale[i] * (double)l->direction[i] / length);
    memset(l->product, 0, n * sizeof(real));
    TRY(pass_over(l, work, pass, PASS_PRODUCT, l->x, l->trial, &own, &loss));
    const size_t from_student = l->space.n_common;
    for (size_t row = from_student; row < l->space.n_rows; row++) {
        l->product[row] *= l->scale[row];
        const size_t at = l->space.n_weights + row * l->space.stride;
        for (size_t c = 0; c < l->space.k; c++)
            l->product[at + c] *= l->scale[at + c];
    }
    unfix(l, l->sums, PRODUCT_BITS, l->product);
    for (size_t i = 0; i < n; i++)
        l->product[i] = (real)(length * ((double)l->product[i] + (double)l->penalty[i] *
                                                                     (double)l->scale[i] *
                                                                     (double)l->trial[i]));
    return OK;
}

/* Collective: found = the step, scaled, and the expected decrease of F per unit of it. */
static enum status solve(struct ktm_learner *l, struct ktm_work *work, const struct pass *pass,
                         int64_t n_products, double *fall)
{
    const struct ktm_space *space = &l->space;
    const double enough = 0.1;
    for (size_t i = 0; i < space->n; i++) {
        l->rest[i] = -l->scale[i] * l->gradient[i];
        l->found[i] = 0;
    }
    ktm_block_apply(&l->block, space, l->rest, l->direction);
    double rest = ktm_space_dot(space, l->rest, l->direction);
    const double first = rest;
    *fall = 0;
    for (int64_t p = 0; p < n_products && rest > 0; p++) {
        const double length = ktm_space_dot(space, l->direction, l->direction);
        TRY(multiply(l, work, pass, sqrt(length)));
        const double bend = ktm_space_dot(space, l->direction, l->product);
        if (!(bend > 0))
            break;
        const double along = rest / bend;
        for (size_t i = 0; i < space->n; i++) {
            l->found[i] += (real)(along * (double)l->direction[i]);
            l->rest[i] -= (real)(along * (double)l->product[i]);
        }
        *fall += along * rest;
        ktm_block_apply(&l->block, space, l->rest, l->rest_solved);
        const double after = ktm_space_dot(space, l->rest, l->rest_solved);
        if (after <= enough * enough * first)
            break;
        for (size_t i = 0; i < space->n; i++)
            l->direction[i] =
                (real)((double)l->rest_solved[i] + after / rest * (double)l->direction[i]);
        rest = after;
    }
    return OK;
}

/* Collective: moves x along the step as far as F falls by a fraction of what was expected. */
static enum status move(struct ktm_learner *l, struct ktm_work *work, struct pass *pass,
                        double before, double fall, bool *moved)
{
    double share = 1;
    *moved = false;
    for (int halvings = 0; halvings < 12; halvings++, share /= 2) {
        double after = 0;
        int64_t own = 0;
        for (size_t i = 0; i < l->space.n; i++)
            l->trial[i] = l->x[i] + (real)(share * (double)l->scale[i] * (double)l->found[i]);
        TRY(pass_over(l, work, pass, PASS_LOSS, l->trial, NULL, &own, &after));
        after += penalty_at(l, l->trial);
        if (halvings == 0)
            pass->loss = own;
        if (after <= before - 1e-4 * share * fall) {
            memcpy(l->x, l->trial, l->space.n * sizeof(real));
            pass->loss = own;
            *moved = true;
            return OK;
        }
    }
    return OK;
}

static void forget_row(struct ktm_learner *l, size_t row)
{
    const struct ktm_space *space = &l->space;
    memset(l->x + space->n_weights + row * space->stride, 0, space->stride * sizeof *l->x);
}

/* Clears the random initial factors of students without training attempts and of rows that are
 * not trained. */
static void forget_untrained(struct ktm_learner *l, const struct ktm_work *work)
{
    const struct ktm_space *space = &l->space;
    const struct shard *shard = work->shard;
    if (space->k == 0)
        return;
    for (size_t s = 0; space->has_students && s < shard->n_students; s++)
        if (ktm_count_training(shard, s) == 0)
            forget_row(l, space->n_common + s);
    for (size_t row = 0; work->walk.own != NULL && row < space->n_common; row++)
        if (work->walk.own[row])
            forget_row(l, row);
}

static enum status prepare(const struct model *model, struct ktm_work *work,
                           const struct pass *pass)
{
    if (work->learner == NULL) {
        TRY(check_numbers(work, pass->comm));
        work->walk.own = ktm_own_rows(work, pass->comm);
        work->learner = learner_create(model, work, pass->comm);
    }
    work->learner->most = 0x1p62 / (double)pass->lanes->most_blocks;
    ktm_space_take(&work->learner->space, model, work->shard->first_student,
                   model->params.value, work->learner->x);
    forget_untrained(work->learner, work);
    return OK;
}

/* Collective: one step of Newton's method. */
static enum status step(struct ktm_learner *l, struct ktm_work *work, struct pass *pass,
                        const struct ktm_options *o)
{
    double before = 0, fall = 0;
    bool moved = false;
    TRY(differentiate(l, work, pass, &before));
    TRY(solve(l, work, pass, o->products, &fall));
    TRY(move(l, work, pass, before, fall, &moved));
    pass->converged = !moved || fall <= o->tolerance * before;
    return OK;
}

/* Whether the factors wait for the weights: those of the common rows are zero. */
static bool factors_wait(const struct ktm_learner *l, const struct ktm_options *o)
{
    const struct ktm_space *space = &l->space;
    if (!o->weights_first || space->k == 0 || o->scale == 0)
        return false;
    for (size_t i = 0; i < space->n_common * space->stride; i++)
        if (l->x[space->n_weights + i] != 0)
            return false;
    return true;
}

/* Gives the factors their random values and keeps the weights. */
static void let_factors_join(struct ktm_learner *l, const struct model *model,
                             struct ktm_work *work, const struct pass *pass)
{
    const size_t n_weights = l->space.n_weights;
    real *flat = NEW(real, model->params.n), *weights = NEW_SCRATCH(real, n_weights);
    memcpy(weights, l->x, n_weights * sizeof *weights);
    ktm_scatter_factors(model, pass->draw.seed, flat);
    ktm_space_take(&l->space, model, work->shard->first_student, flat, l->x);
    memcpy(l->x, weights, n_weights * sizeof *weights);
    forget_untrained(l, work);
    memory_free(flat);
    memory_free(weights);
}

enum status ktm_learn(struct model *model, void *memory, struct pass *pass)
{
    struct ktm_work *work = memory;
    const struct ktm_options *o = model->options;
    TRY(prepare(model, work, pass));
    struct ktm_learner *l = work->learner;
    const bool wait = factors_wait(l, o);
    TRY(step(l, work, pass, o));
    if (wait && pass->converged) {
        let_factors_join(l, model, work, pass);
        TRY(step(l, work, pass, o));
        pass->converged = false;
    }
    for (size_t lane = 0; lane < pass->lanes->n_own; lane++)
        for (size_t i = 0; i < pass->lanes->n_students[lane]; i++) {
            const size_t s = pass->lanes->students[lane][i];
            for (uint64_t t = work->shard->first[s]; t < work->shard->first[s + 1]; t++)
                pass->n_scored += mark_trains(work->shard->mark[t]);
        }
    real *flat = NEW_SCRATCH(real, model->params.n);
    ktm_space_put(&l->space, model, l->x, flat);
    exact_slices_publish(pass->slices, flat);
    memory_free(flat);
    return OK;
}

int64_t ktm_passes(const void *memory)
{
    const struct ktm_work *work = memory;
    return work->learner != NULL ? work->learner->n_passes : 0;
}

enum status ktm_gradient(const struct model *model, void *memory, const struct pass *pass,
                         double *loss, real *gradient)
{
    struct ktm_work *work = memory;
    TRY(prepare(model, work, pass));
    TRY(differentiate(work->learner, work, pass, loss));
    ktm_space_put(&work->learner->space, model, work->learner->gradient, gradient);
    return OK;
}
