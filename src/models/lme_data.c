/* The attempts as the mixed model sees them: for each training attempt the columns it has (its
 * item, the item's group and skills), as places among the distinct columns of its student. A
 * student meets an item more than once in some data; its outer product is over the distinct
 * ones. */
#include "fail.h"
#include "lme_parts.h"
#include "memory.h"
#include <sleef.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static void list_columns(struct lme_work *work)
{
    const struct dataset *dataset = work->shard->dataset;
    const struct lme_shape *shape = &work->shape;
    size_t n = 0, capacity = 0;
    work->item_first = NEW(uint64_t, dataset->n_items + 1);
    for (size_t i = 0; i < dataset->n_items; i++) {
        for (size_t f = 0; f < shape->n_factors; f++) {
            const struct lme_factor *factor = &shape->factors[f];
            const uint32_t single =
                factor->kind == FACTOR_ITEM ? (uint32_t)i : (uint32_t)dataset->item_group[i];
            const bool skills = factor->kind == FACTOR_SKILL;
            const bool none = factor->kind == FACTOR_GROUP && dataset->item_group[i] < 0;
            const uint32_t *level =
                skills ? dataset->item_skills + dataset->item_first[i] : &single;
            const size_t n_levels =
                skills ? dataset->item_first[i + 1] - dataset->item_first[i] : !none;
            for (size_t k = 0; k < n_levels; k++) {
                GROW(work->item_column, n, capacity);
                work->item_column[n++] = (uint32_t)factor->first + level[k];
            }
        }
        work->item_first[i + 1] = n;
        if (n > work->item_first[i])
            qsort(work->item_column + work->item_first[i], n - work->item_first[i],
                  sizeof *work->item_column, compare);
    }
}

/* Fixed effects of all attempts; what is counted is earlier attempts, never their outcome.
 * (What a covariate tells is up to who imports it: a number of hints taken tells the outcome.)
 */
static void list_fixed(struct lme_work *work)
{
    const struct shard *shard = work->shard;
    const size_t n_x = work->shape.n_fixed - 1;
    work->met = NEW(uint32_t, shard->dataset->n_items);
    work->x = NEW(double, n_x * shard->n_attempts);
    for (size_t s = 0; n_x > 0 && s < shard->n_students; s++) {
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
            for (size_t k = 0; k < n_x; k++) {
                const struct lme_fixed *fixed = &work->shape.fixed[k + 1];
                const uint64_t before = fixed->kind == FIXED_POSITION
                                            ? t - shard->first[s]
                                            : work->met[shard->item[t]];
                work->x[t * n_x + k] =
                    fixed->kind == FIXED_COVARIATE
                        ? shard->covariate[t * shard->dataset->covariates.n + fixed->covariate]
                        : Sleef_cinz_log1pd1_u10purec((double)before);
            }
            work->met[shard->item[t]]++;
        }
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++)
            work->met[shard->item[t]] = 0;
    }
}

static void list_training(struct lme_work *work)
{
    const struct shard *shard = work->shard;
    size_t n = 0, n_places = 0;
    for (uint64_t t = 0; t < shard->n_attempts; t++)
        if (lme_trains(shard->mark[t])) {
            n++;
            n_places += work->item_first[shard->item[t] + 1] - work->item_first[shard->item[t]];
        }
    work->first = NEW(uint64_t, shard->n_students + 1);
    work->item = NEW(uint32_t, n);
    work->outcome = NEW(uint8_t, n);
    work->from = NEW(uint64_t, n);
    work->place_first = NEW(uint64_t, n + 1);
    work->place = NEW(uint32_t, n_places);
    size_t a = 0;
    for (size_t s = 0; s < shard->n_students; s++) {
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
            if (!lme_trains(shard->mark[t]))
                continue;
            const uint32_t i = shard->item[t];
            work->item[a] = i;
            work->outcome[a] = mark_outcome(shard->mark[t]) == CORRECT;
            work->from[a] = t;
            work->place_first[a + 1] =
                work->place_first[a] + work->item_first[i + 1] - work->item_first[i];
            a++;
        }
        work->first[s + 1] = a;
    }
}

/* Cells of every student, and the places of its attempts among them. */
static void list_cells(struct lme_work *work)
{
    const struct shard *shard = work->shard;
    const size_t n_columns = work->shape.n_columns;
    uint32_t *where = NEW(uint32_t, n_columns); /* 1 + place, 0: not met */
    size_t capacity = 0, n = 0;
    work->cell_first = NEW(uint64_t, shard->n_students + 1);
    for (size_t s = 0; s < shard->n_students; s++) {
        const size_t start = n;
        for (uint64_t a = work->first[s]; a < work->first[s + 1]; a++)
            for (uint64_t c = work->item_first[work->item[a]];
                 c < work->item_first[work->item[a] + 1]; c++)
                if (where[work->item_column[c]] == 0) {
                    where[work->item_column[c]] = 1;
                    GROW(work->cell_column, n, capacity);
                    work->cell_column[n++] = work->item_column[c];
                }
        if (n > start)
            qsort(work->cell_column + start, n - start, sizeof *work->cell_column, compare);
        for (size_t c = start; c < n; c++)
            where[work->cell_column[c]] = (uint32_t)(c - start);
        for (uint64_t a = work->first[s]; a < work->first[s + 1]; a++)
            for (uint64_t k = 0; k < work->place_first[a + 1] - work->place_first[a]; k++)
                work->place[work->place_first[a] + k] =
                    where[work->item_column[work->item_first[work->item[a]] + k]];
        for (size_t c = start; c < n; c++)
            where[work->cell_column[c]] = 0;
        work->cell_first[s + 1] = n;
    }
    memory_free(where);
}

void *lme_attach(const struct model *model, const struct shard *shard)
{
    struct lme_work *work = NEW(struct lme_work, 1);
    work->model = model;
    work->shard = shard;
    ENSURE(lme_shape_of(model, &work->shape) == OK);
    list_columns(work);
    list_fixed(work);
    list_training(work);
    list_cells(work);
    size_t longest = 0;
    for (size_t s = 0; s < shard->n_students; s++)
        longest = size_max(longest, shard->first[s + 1] - shard->first[s]);
    work->shown = NEW(double, longest);
    work->shown_outcome = NEW(uint8_t, longest);
    work->effect = NEW(double, shard->n_students);
    return work;
}

void lme_detach(void *memory)
{
    struct lme_work *work = memory;
    lme_solver_destroy(work->solver);
    void *const parts[] = {
        work->item_first,  work->item_column,  work->first,
        work->item,        work->outcome,      work->from,
        work->place_first, work->place,        work->x,
        work->cell_first,  work->effect,       work->residual,
        work->cell_column, work->weight,       work->slope,
        work->student,     work->cell_weight,  work->met,
        work->shown,       work->cell_product, work->shown_outcome,
    };
    for (size_t k = 0; k < COUNT(parts); k++)
        memory_free(parts[k]);
    memory_free(work);
}

void lme_training(const void *memory, bool *has_training, int64_t *n_attempts)
{
    const struct lme_work *work = memory;
    for (size_t s = 0; s < work->shard->n_students; s++)
        has_training[s] = work->first[s + 1] > work->first[s];
    *n_attempts = (int64_t)work->first[work->shard->n_students];
}

void *lme_state(void *memory, size_t *n_bytes)
{
    struct lme_work *work = memory;
    *n_bytes = work->shard->n_students * sizeof *work->effect;
    return work->effect;
}

/* Counts of training attempts by column, and the most of any cell. */
static void count(struct lme_work *work, struct lme_solver *solver)
{
    const size_t n_columns = work->shape.n_columns;
    int64_t *counts = NEW(int64_t, n_columns);
    uint32_t *cell = NEW(uint32_t, work->cell_first[work->shard->n_students]);
    for (size_t s = 0; s < work->shard->n_students; s++) {
        solver->n_students += work->first[s + 1] > work->first[s];
        for (uint64_t a = work->first[s]; a < work->first[s + 1]; a++)
            for (uint64_t k = work->place_first[a]; k < work->place_first[a + 1]; k++) {
                const uint64_t c = work->cell_first[s] + work->place[k];
                counts[work->cell_column[c]]++;
                if (++cell[c] > solver->most_cell)
                    solver->most_cell = cell[c];
            }
    }
    solver->n_training = (int64_t)work->first[work->shard->n_students];
    comm_sum_i64(solver->comm, &solver->n_training, 1);
    comm_sum_i64(solver->comm, &solver->n_students, 1);
    comm_sum_i64(solver->comm, counts, n_columns);
    comm_max_i64(solver->comm, &solver->most_cell, 1);
    for (size_t j = 0; j < n_columns; j++)
        if (counts[j] > solver->most_column)
            solver->most_column = counts[j];
    memory_free(cell);
    memory_free(counts);
}

enum status lme_solver_create(struct lme_work *work, const struct comm *comm)
{
    const struct lme_options *o = work->model->options;
    const size_t n_columns = work->shape.n_columns, n_items = work->model->n_items;
    const size_t n_students = work->shard->n_students, n = work->first[n_students];
    struct lme_solver *solver = NEW(struct lme_solver, 1);
    work->solver = solver;
    solver->comm = comm;
    int n_rows = 0, n_grid_columns = 0;
    TRY(grid_parse(o->grid, &n_rows, &n_grid_columns));
    TRY(grid_create(&solver->grid, comm, n_rows, n_grid_columns, n_columns));
    grid_matrix_create(&solver->matrix, &solver->grid, n_columns);
    count(work, solver);
    double **const vectors[] = {&solver->column_spread, &solver->u,      &solver->old,
                                &solver->step,          &solver->effect, &solver->pull,
                                &solver->diagonal};
    for (size_t k = 0; k < COUNT(vectors); k++)
        *vectors[k] = NEW(double, n_columns);
    solver->item_weight = NEW(double, n_items);
    solver->item_product = NEW(double, n_items);
    solver->sums = NEW(int64_t, (2 + MOST_FIXED) * n_columns + n_items);
    work->residual = NEW_SCRATCH(double, n);
    work->weight = NEW_SCRATCH(double, n);
    work->slope = NEW_SCRATCH(double, n);
    work->cell_weight = NEW_SCRATCH(double, work->cell_first[n_students]);
    work->cell_product = NEW_SCRATCH(double, work->cell_first[n_students]);
    work->student = NEW(double, N_STUDENT_NUMBERS *n_students);
    return OK;
}

void lme_solver_destroy(struct lme_solver *solver)
{
    if (solver == NULL)
        return;
    grid_matrix_destroy(&solver->matrix);
    grid_destroy(&solver->grid);
    void *const parts[] = {solver->column_spread, solver->u,           solver->old,
                           solver->step,          solver->effect,      solver->pull,
                           solver->diagonal,      solver->item_weight, solver->item_product,
                           solver->sums};
    for (size_t k = 0; k < COUNT(parts); k++)
        memory_free(parts[k]);
    memory_free(solver);
}
