/* The training attempts as the solver needs them: by unit, a level of the eliminated factor. If
 * that is the student, a rank already has the attempts of its units. If it is the item, items
 * are split into ranges with about the same number of attempts, and every attempt goes to the
 * rank of its item. The attempts of an item are ordered by student and time, so the bits do not
 * depend on which rank held which students.
 *
 * The outer product of a unit is over its distinct columns (cells), since in some data a
 * student answers an item more than once. */
#include "base/fail.h"
#include "base/memory.h"
#include "models/lme/lme_internal.h"
#include <math.h>
#include <sleef.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define NO_LEVEL UINT32_MAX

/* Training attempts, each with its fixed effects and its levels of the factors of attempts. */
struct rows {
    size_t n, n_x, n_levels;
    uint32_t *student, *item; /* of the data set */
    uint8_t *outcome;
    double *x;       /* n x n_x */
    uint32_t *level; /* n x n_levels; NO_LEVEL: none */
};

static void rows_create(struct rows *rows, const struct lme_shape *shape, size_t n)
{
    *rows = (struct rows){.n = n, .n_x = shape->n_fixed - 1};
    for (size_t f = 0; f < shape->n_factors; f++)
        rows->n_levels += shape->factors[f].kind == FACTOR_COVARIATE;
    rows->student = NEW_SCRATCH(uint32_t, n);
    rows->item = NEW_SCRATCH(uint32_t, n);
    rows->outcome = NEW_SCRATCH(uint8_t, n);
    rows->x = NEW_SCRATCH(double, n * rows->n_x);
    rows->level = NEW_SCRATCH(uint32_t, n * rows->n_levels);
}

static void rows_free(struct rows *rows)
{
    memory_free(rows->student);
    memory_free(rows->item);
    memory_free(rows->outcome);
    memory_free(rows->x);
    memory_free(rows->level);
}

/* Those of this shard. */
static void rows_take(struct rows *rows, const struct lme_work *work)
{
    const struct shard *shard = work->shard;
    size_t n = 0;
    for (uint64_t t = 0; t < shard->n_attempts; t++)
        n += mark_trains(shard->mark[t]);
    rows_create(rows, work->shape, n);
    size_t a = 0;
    for (size_t s = 0; s < shard->n_students; s++)
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
            if (!mark_trains(shard->mark[t]))
                continue;
            rows->student[a] = (uint32_t)(shard->first_student + s);
            rows->item[a] = shard->item[t];
            rows->outcome[a] = mark_outcome(shard->mark[t]) == CORRECT;
            for (size_t k = 0; k < rows->n_x; k++)
                rows->x[a * rows->n_x + k] = work->x[t * rows->n_x + k];
            size_t l = a * rows->n_levels;
            for (size_t f = 0; f < work->shape->n_factors; f++)
                if (work->shape->factors[f].kind == FACTOR_COVARIATE) {
                    const double level =
                        lme_covariates(shard, t)[work->shape->factors[f].covariate];
                    rows->level[l++] = isnan(level) ? NO_LEVEL : (uint32_t)level;
                }
            a++;
        }
}

/* By item; rows of one item keep their order. */
static void rows_sort(struct rows *rows, const struct lme_shape *shape, size_t n_items)
{
    struct rows sorted;
    rows_create(&sorted, shape, rows->n);
    uint64_t *next = NEW(uint64_t, n_items + 1);
    for (size_t a = 0; a < rows->n; a++)
        next[rows->item[a] + 1]++;
    for (size_t i = 0; i < n_items; i++)
        next[i + 1] += next[i];
    for (size_t a = 0; a < rows->n; a++) {
        const uint64_t to = next[rows->item[a]]++;
        sorted.student[to] = rows->student[a];
        sorted.item[to] = rows->item[a];
        sorted.outcome[to] = rows->outcome[a];
        for (size_t k = 0; k < rows->n_x; k++)
            sorted.x[to * rows->n_x + k] = rows->x[a * rows->n_x + k];
        for (size_t l = 0; l < rows->n_levels; l++)
            sorted.level[to * rows->n_levels + l] = rows->level[a * rows->n_levels + l];
    }
    memory_free(next);
    rows_free(rows);
    *rows = sorted;
}

/* The first item of each rank's range, n_ranks + 1 numbers. */
static uint32_t *cut_items(const struct rows *rows, const struct comm *comm, size_t n_items)
{
    const size_t n_ranks = (size_t)comm->size;
    int64_t *counts = NEW(int64_t, n_items), all = 0, before = 0;
    uint32_t *start = NEW(uint32_t, n_ranks + 1);
    for (size_t a = 0; a < rows->n; a++)
        counts[rows->item[a]]++;
    comm_sum_i64(comm, counts, n_items);
    for (size_t i = 0; i < n_items; i++)
        all += counts[i];
    size_t rank = 1;
    for (uint32_t i = 0; i < n_items; before += counts[i++])
        while (rank < n_ranks && before >= (int64_t)size_cut((size_t)all, rank, n_ranks))
            start[rank++] = i;
    while (rank <= n_ranks)
        start[rank++] = (uint32_t)n_items;
    memory_free(counts);
    return start;
}

/* Collective: sends one array of the rows, each row to the rank it belongs to. */
static void *send(const struct comm *comm, void *array, size_t size, const size_t *n_to,
                  size_t *n_rows)
{
    size_t *n_bytes = NEW(size_t, (size_t)comm->size), n_got = 0;
    for (int rank = 0; rank < comm->size; rank++)
        n_bytes[rank] = size * n_to[rank];
    void *got = comm_exchange(comm, array, n_bytes, &n_got);
    if (size > 0)
        *n_rows = n_got / size;
    memory_free(n_bytes);
    memory_free(array);
    return got;
}

/* Collective: sends every row to the rank of its item. */
static void rows_deal(struct rows *rows, struct lme_work *work, const struct comm *comm)
{
    const size_t n_items = work->model->n_items;
    rows_sort(rows, work->shape, n_items);
    uint32_t *start = cut_items(rows, comm, n_items);
    size_t *n_to = NEW(size_t, (size_t)comm->size);
    for (size_t a = 0, rank = 0; a < rows->n; a++) {
        while (rows->item[a] >= start[rank + 1])
            rank++;
        n_to[rank]++;
    }
    work->first_unit = start[comm->rank];
    work->n_units = start[comm->rank + 1] - start[comm->rank];
    size_t *n = &rows->n;
    rows->student = send(comm, rows->student, sizeof *rows->student, n_to, n);
    rows->item = send(comm, rows->item, sizeof *rows->item, n_to, n);
    rows->outcome = send(comm, rows->outcome, sizeof *rows->outcome, n_to, n);
    rows->x = send(comm, rows->x, rows->n_x * sizeof *rows->x, n_to, n);
    rows->level = send(comm, rows->level, rows->n_levels * sizeof *rows->level, n_to, n);
    rows_sort(rows, work->shape, n_items);
    memory_free(n_to);
    memory_free(start);
}

static int compare(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* The columns of row a, ascending; returns their number. */
static size_t columns_of(const struct lme_work *work, const struct rows *rows, size_t a,
                         uint32_t *list)
{
    const struct dataset *dataset = work->shard->dataset;
    const uint32_t i = rows->item[a];
    size_t n = 0, covariate = 0;
    for (size_t f = 0; f < work->shape->n_factors; f++) {
        const struct lme_factor *factor = &work->shape->factors[f];
        const uint32_t first = (uint32_t)factor->first;
        if (f == work->shape->unit)
            continue;
        if (factor->kind == FACTOR_STUDENT)
            list[n++] = first + rows->student[a];
        if (factor->kind == FACTOR_ITEM)
            list[n++] = first + i;
        if (factor->kind == FACTOR_GROUP && dataset->item_group[i] >= 0)
            list[n++] = first + (uint32_t)dataset->item_group[i];
        for (uint64_t k = dataset->item_first[i];
             factor->kind == FACTOR_SKILL && k < dataset->item_first[i + 1]; k++)
            list[n++] = first + dataset->item_skills[k];
        if (factor->kind == FACTOR_COVARIATE) {
            const uint32_t level = rows->level[a * rows->n_levels + covariate++];
            if (level != NO_LEVEL)
                list[n++] = first + level;
        }
    }
    qsort(list, n, sizeof *list, compare);
    return n;
}

/* Hash table of kinds by their columns: slots hold 1 + kind. */
struct finder {
    uint32_t *slots;
    size_t n_slots; /* a power of 2 */
    size_t kinds_room, columns_room;
};

static uint32_t *find_slot(const struct finder *finder, const struct lme_work *work,
                           const uint32_t *list, size_t n)
{
    size_t at = XXH3_64bits(list, n * sizeof *list) & (finder->n_slots - 1);
    for (;; at = (at + 1) & (finder->n_slots - 1)) {
        const uint32_t slot = finder->slots[at];
        if (slot == 0)
            return &finder->slots[at];
        const uint64_t start = work->kind_first[slot - 1], end = work->kind_first[slot];
        if (end - start == n && memcmp(work->kind_column + start, list, n * sizeof *list) == 0)
            return &finder->slots[at];
    }
}

static void widen(struct finder *finder, const struct lme_work *work)
{
    memory_free(finder->slots);
    finder->n_slots = finder->n_slots > 0 ? 2 * finder->n_slots : 1024;
    finder->slots = NEW(uint32_t, finder->n_slots);
    for (uint32_t k = 0; k < work->n_kinds; k++)
        *find_slot(finder, work, work->kind_column + work->kind_first[k],
                   work->kind_first[k + 1] - work->kind_first[k]) = k + 1;
}

static uint32_t find_kind(struct finder *finder, struct lme_work *work, const uint32_t *list,
                          size_t n)
{
    if (2 * work->n_kinds >= finder->n_slots)
        widen(finder, work);
    uint32_t *slot = find_slot(finder, work, list, n);
    if (*slot == 0) {
        size_t n_columns = work->n_kinds > 0 ? work->kind_first[work->n_kinds] : 0;
        for (size_t c = 0; c < n; c++) {
            GROW(work->kind_column, n_columns, finder->columns_room);
            work->kind_column[n_columns++] = list[c];
        }
        *slot = (uint32_t)++work->n_kinds;
        if (work->n_kinds >= finder->kinds_room) {
            finder->kinds_room = 2 * work->n_kinds + 16;
            work->kind_first =
                memory_resize(work->kind_first, finder->kinds_room, sizeof *work->kind_first);
            work->kind_first[0] = 0;
        }
        work->kind_first[work->n_kinds] = n_columns;
    }
    return *slot - 1;
}

static void list_attempts(struct lme_work *work, struct rows *rows)
{
    const struct dataset *dataset = work->shard->dataset;
    const bool by_item = work->shape->factors[work->shape->unit].kind == FACTOR_ITEM;
    size_t longest = work->shape->n_factors;
    for (size_t i = 0; i < dataset->n_items; i++)
        longest = size_max(longest, work->shape->n_factors + dataset->item_first[i + 1] -
                                        dataset->item_first[i]);
    uint32_t *list = NEW(uint32_t, longest);
    struct finder finder = {.columns_room = 16};
    work->kind_column = NEW(uint32_t, finder.columns_room);
    work->first = NEW(uint64_t, work->n_units + 1);
    work->kind = NEW(uint32_t, rows->n);
    work->place_first = NEW(uint64_t, rows->n + 1);
    work->kind_first = NEW(uint64_t, 1);
    for (size_t a = 0; a < rows->n; a++) {
        const size_t n = columns_of(work, rows, a, list);
        work->kind[a] = find_kind(&finder, work, list, n);
        work->place_first[a + 1] = work->place_first[a] + n;
        work->first[(by_item ? rows->item[a] : rows->student[a]) - work->first_unit + 1]++;
    }
    for (size_t s = 0; s < work->n_units; s++)
        work->first[s + 1] += work->first[s];
    memory_free(finder.slots);
    memory_free(list);
    work->outcome = rows->outcome;
    work->trained_x = rows->x;
    rows->outcome = NULL;
    rows->x = NULL;
}

/* The cells of every unit, and the cells of its attempts. */
static void list_cells(struct lme_work *work)
{
    uint32_t *where = NEW(uint32_t, work->shape->n_columns); /* 1 + place, 0: none yet */
    size_t capacity = 0, n = 0;
    work->cell_first = NEW(uint64_t, work->n_units + 1);
    work->place = NEW(uint32_t, work->place_first[work->first[work->n_units]]);
    for (size_t s = 0; s < work->n_units; s++) {
        const size_t start = n;
        for (uint64_t a = work->first[s]; a < work->first[s + 1]; a++)
            for (uint64_t c = work->kind_first[work->kind[a]];
                 c < work->kind_first[work->kind[a] + 1]; c++)
                if (where[work->kind_column[c]] == 0) {
                    where[work->kind_column[c]] = 1;
                    GROW(work->cell_column, n, capacity);
                    work->cell_column[n++] = work->kind_column[c];
                }
        if (n > start)
            qsort(work->cell_column + start, n - start, sizeof *work->cell_column, compare);
        for (size_t c = start; c < n; c++)
            where[work->cell_column[c]] = (uint32_t)(c - start);
        for (uint64_t a = work->first[s]; a < work->first[s + 1]; a++)
            for (uint64_t k = 0; k < work->place_first[a + 1] - work->place_first[a]; k++)
                work->place[work->place_first[a] + k] =
                    where[work->kind_column[work->kind_first[work->kind[a]] + k]];
        for (size_t c = start; c < n; c++)
            where[work->cell_column[c]] = 0;
        work->cell_first[s + 1] = n;
    }
    memory_free(where);
}

/* Training attempts by column, and the most in any cell. */
static void count(struct lme_work *work, struct lme_solver *solver)
{
    const size_t n_columns = work->shape->n_columns;
    int64_t *counts = NEW(int64_t, n_columns);
    uint32_t *cell = NEW(uint32_t, work->cell_first[work->n_units]);
    for (size_t s = 0; s < work->n_units; s++)
        for (uint64_t a = work->first[s]; a < work->first[s + 1]; a++)
            for (uint64_t k = work->place_first[a]; k < work->place_first[a + 1]; k++) {
                const uint64_t c = work->cell_first[s] + work->place[k];
                counts[work->cell_column[c]]++;
                if (++cell[c] > solver->most_cell)
                    solver->most_cell = cell[c];
            }
    solver->n_training = (int64_t)work->first[work->n_units];
    comm_sum_i64(solver->comm, &solver->n_training, 1);
    comm_sum_i64(solver->comm, counts, n_columns);
    comm_max_i64(solver->comm, &solver->most_cell, 1);
    for (size_t j = 0; j < n_columns; j++)
        if (counts[j] > solver->most_column)
            solver->most_column = counts[j];
    memory_free(cell);
    memory_free(counts);
}

void lme_grid(const struct model *model, int n_ranks, int *n_rows, int *n_columns)
{
    const struct lme_options *o = model->options;
    ENSURE(scalapack_parse(o->grid, n_rows, n_columns) == OK);
    scalapack_choose(lme_shape(model)->n_columns, n_ranks, n_rows, n_columns);
}

enum status lme_solver_create(struct lme_work *work, const struct comm *comm)
{
    const size_t n_columns = work->shape->n_columns;
    struct lme_solver *solver = NEW(struct lme_solver, 1);
    work->solver = solver;
    solver->comm = comm;
    int n_rows = 0, n_grid_columns = 0;
    lme_grid(work->model, comm->size, &n_rows, &n_grid_columns);
    TRY(scalapack_grid_create(&solver->grid, comm, n_rows, n_grid_columns, n_columns));
    scalapack_matrix_create(&solver->matrix, &solver->grid, n_columns);

    struct rows rows;
    rows_take(&rows, work);
    work->first_unit = work->shard->first_student;
    work->n_units = work->shard->n_students;
    if (work->shape->factors[work->shape->unit].kind == FACTOR_ITEM)
        rows_deal(&rows, work, comm);
    list_attempts(work, &rows);
    rows_free(&rows);
    list_cells(work);
    count(work, solver);
    lme_scale_fit(work);

    double **const vectors[] = {&solver->column_spread, &solver->u,      &solver->old,
                                &solver->step,          &solver->effect, &solver->pull,
                                &solver->diagonal};
    for (size_t k = 0; k < COUNT(vectors); k++)
        *vectors[k] = NEW(double, n_columns);
    const size_t n = work->first[work->n_units], n_cells = work->cell_first[work->n_units];
    solver->sums = NEW(int64_t, 2 * n_columns);
    work->residual = NEW_SCRATCH(double, n);
    work->weight = NEW_SCRATCH(double, n);
    work->slope = NEW_SCRATCH(double, n);
    work->cell_weight = NEW_SCRATCH(double, n_cells);
    work->cell_product = NEW_SCRATCH(double, n_cells);
    work->kind_weight = NEW_SCRATCH(double, work->n_kinds);
    work->kind_product = NEW_SCRATCH(double, work->n_kinds);
    work->unit = NEW(double, N_UNIT_NUMBERS * work->n_units);
    return OK;
}

void lme_solver_set(struct lme_work *work, const double *outer)
{
    struct lme_solver *solver = work->solver;
    const struct lme_shape *shape = work->shape;
    memcpy(solver->fixed, outer, shape->n_fixed * sizeof *solver->fixed);
    memcpy(solver->spread, outer + shape->n_fixed, shape->n_factors * sizeof *solver->spread);
    solver->dispersion = 1;
    if (!shape->logit) {
        const double residual = Sleef_cinz_expd1_u10purec(outer[shape->n_outer - 1]);
        solver->spread[shape->n_spread - 1] = residual;
        solver->dispersion = residual * residual;
    }
    solver->unit_spread = solver->spread[shape->unit];
    for (size_t f = 0; f < shape->n_factors; f++)
        for (size_t j = 0; f != shape->unit && j < shape->factors[f].n; j++)
            solver->column_spread[shape->factors[f].first + j] = solver->spread[f];
}

void lme_solver_destroy(struct lme_work *work)
{
    struct lme_solver *solver = work->solver;
    if (solver == NULL)
        return;
    scalapack_matrix_destroy(&solver->matrix);
    scalapack_grid_destroy(&solver->grid);
    void *const parts[] = {
        solver->column_spread, solver->u,         solver->old,        solver->step,
        solver->effect,        solver->pull,      solver->diagonal,   solver->sums,
        work->first,           work->outcome,     work->trained_x,    work->kind,
        work->place_first,     work->place,       work->kind_first,   work->kind_column,
        work->cell_first,      work->cell_column, work->residual,     work->weight,
        work->slope,           work->cell_weight, work->cell_product, work->kind_weight,
        work->kind_product,    work->unit,
    };
    for (size_t k = 0; k < COUNT(parts); k++)
        memory_free(parts[k]);
    memory_free(solver);
    work->solver = NULL;
}
