/* Standard errors of the items' parameters, from the training answers.
 *
 * The score of a student is the derivative of log P(answers) by the items' parameters, which is
 * the posterior mean of the derivative at theta: sum_s v_s d log P(answers | theta_s), with the
 * weights v_s of importance sampling from the encoder's posterior. The information is the sum
 * of the scores' outer products, the errors are the roots of its inverse's diagonal. The matrix
 * takes all parameters together up to MOST; beyond that, each item by itself, which leaves out
 * that abilities are not known either and gives errors that are somewhat small. Sums are in
 * fixed point, so the bits do not depend on the number of ranks. */
#include "irt.h"
#include "log.h"
#include "memory.h"
#include "vae_parts.h"
#include <math.h>
#include <string.h>

enum { N_DRAWS = 512, MOST = 2000, UNIT_BITS = 32 };

/* The free parameters, item by item: a_ik where q_ik is set, then b_i. */
struct free_list {
    size_t n;
    size_t *first; /* n_items + 1 */
    size_t *place; /* in the flat vector: of the standard error */
};

static void list_free(const struct model *model, const struct vae_shape *shape,
                      struct free_list *list)
{
    const struct panel *panel = &model->params.panels[shape->decoder];
    const size_t n_a = shape->column_q;
    list->first = NEW(size_t, model->n_items + 1);
    list->place = NEW(size_t, model->n_items * (n_a + 1));
    list->n = 0;
    for (size_t i = 0; i < model->n_items; i++) {
        const size_t row = panel->offset + i * panel->stride;
        for (size_t k = 0; k < n_a; k++)
            if (model->params.value[row + shape->column_q + k] != 0)
                list->place[list->n++] = row + shape->column_error + k;
        list->place[list->n++] = row + shape->column_error + n_a;
        list->first[i + 1] = list->n;
    }
}

/* One number of a student's score. */
struct part {
    size_t item, number; /* of the item and, among all, of the free parameter */
    double value;
};

/* The score of student s; returns how many numbers it has. */
static size_t score_of(const struct model *model, struct vae_work *work, size_t s,
                       const struct free_list *list, struct part *score)
{
    const struct vae_shape *shape = &work->shape;
    const size_t n_dims = shape->n_dims, n = (size_t)(work->first[s + 1] - work->first[s]);
    const uint32_t *unit = work->unit + work->first[s];
    const struct draw draw = {0};
    vae_encoder_read(model, work, unit, n, &work->posterior);
    vae_reserve(work, size_padded(n), N_DRAWS);
    vae_draw_epsilon(work, &draw, 0, s, N_DRAWS);
    const size_t padded = vae_collect_items(model, work, unit, n);
    for (size_t d = 0; d < N_DRAWS; d++) {
        const real *epsilon = work->epsilon + d * n_dims;
        real *theta = work->theta + d * n_dims;
        vae_posterior_draw(shape, &work->posterior, epsilon, theta);
        work->log_weight[d] = (double)irt->respond(n_dims, theta, work->a, work->b, work->y,
                                                   padded, work->e + d * padded) +
                              vae_log_ratio(&work->prior, &work->posterior, epsilon, theta);
    }
    (void)vae_normalize(work->log_weight, N_DRAWS);
    memset(work->da, 0, n_dims * padded * sizeof *work->da);
    memset(work->db, 0, padded * sizeof *work->db);
    for (size_t d = 0; d < N_DRAWS; d++)
        irt->credit(n_dims, work->theta + d * n_dims, (real)work->log_weight[d],
                    work->e + d * padded, padded, work->da, work->db);
    const struct panel *panel = &model->params.panels[shape->decoder];
    size_t m = 0;
    for (size_t j = 0; j < n; j++) {
        const size_t i = unit[j] / 2;
        size_t at = list->first[i];
        for (size_t k = 0; k < shape->column_q; k++)
            if (model->params.value[panel->offset + i * panel->stride + shape->column_q + k] !=
                0)
                score[m++] = (struct part){i, at++, (double)work->da[k * padded + j]};
        score[m++] = (struct part){i, at, (double)work->db[j]};
    }
    return m;
}

/* The diagonal of the inverse of an n x n matrix, which is destroyed. A parameter of which
 * nothing is known beside those before it (an item never answered) is held fixed and gets 0:
 * its pivot is infinite. */
static void invert_diagonal(double *matrix, size_t n, double *diagonal)
{
    for (size_t k = 0; k < n; k++) /* Cholesky, in place */
        for (size_t j = 0; j <= k; j++) {
            double rest = matrix[k * n + j];
            for (size_t i = 0; i < j; i++)
                rest -= matrix[k * n + i] * matrix[j * n + i];
            if (j < k)
                matrix[k * n + j] = rest / matrix[j * n + j];
            else
                matrix[k * n + k] = rest > 1e-9 * matrix[k * n + k] ? sqrt(rest) : INFINITY;
        }
    double *column = NEW(double, n);
    for (size_t c = 0; c < n; c++) { /* |column c of the inverse root|^2 */
        double squares = 0;
        for (size_t k = c; k < n; k++) {
            double rest = k == c;
            for (size_t i = c; i < k; i++)
                rest -= matrix[k * n + i] * column[i];
            column[k] = rest / matrix[k * n + k];
            squares += column[k] * column[k];
        }
        diagonal[c] = squares;
    }
    memory_free(column);
}

/* Writes the errors of parameters first .. first + n from their block of the information. */
static void write_errors(struct model *model, const struct free_list *list, size_t first,
                         size_t n, const int64_t *information, size_t *n_missing)
{
    double *matrix = NEW(double, n *n), *diagonal = NEW(double, n);
    for (size_t i = 0; i < n * n; i++)
        matrix[i] = ldexp((double)information[i], -UNIT_BITS);
    invert_diagonal(matrix, n, diagonal);
    for (size_t k = 0; k < n; k++) {
        const bool known = diagonal[k] > 0;
        model->params.value[list->place[first + k]] = known ? (real)sqrt(diagonal[k]) : 0;
        *n_missing += !known;
    }
    memory_free(matrix);
    memory_free(diagonal);
}

/* The information: one matrix of all parameters, or one for each item, end to end. */
struct information {
    bool together;
    size_t n_cells, *start; /* of each item's matrix */
    int64_t *cells;
};

static void information_create(struct information *information, const struct model *model,
                               const struct free_list *list)
{
    *information =
        (struct information){.together = list->n <= MOST, .start = NEW(size_t, model->n_items)};
    for (size_t i = 0; i < model->n_items; i++) {
        const size_t n = list->first[i + 1] - list->first[i];
        information->start[i] = information->n_cells;
        information->n_cells += n * n;
    }
    if (information->together)
        information->n_cells = list->n * list->n;
    information->cells = NEW(int64_t, information->n_cells);
}

static void information_add(struct information *information, const struct free_list *list,
                            const struct part *score, size_t n)
{
    for (size_t x = 0; x < n; x++)
        for (size_t y = 0; y < n; y++) {
            const int64_t term =
                (int64_t)rint(ldexp(score[x].value * score[y].value, UNIT_BITS));
            const size_t i = score[x].item, first = list->first[i];
            if (information->together)
                information->cells[score[x].number * list->n + score[y].number] += term;
            else if (score[y].item == i)
                information->cells[information->start[i] +
                                   (score[x].number - first) * (list->first[i + 1] - first) +
                                   score[y].number - first] += term;
        }
}

enum status vae_examine(struct model *model, void *memory, const struct comm *comm)
{
    struct vae_work *work = memory;
    struct free_list list;
    struct information information;
    list_free(model, &work->shape, &list);
    information_create(&information, model, &list);
    size_t longest = 0, n_missing = 0;
    for (size_t s = 0; s < work->shard->n_students; s++)
        longest = size_max(longest, (size_t)(work->first[s + 1] - work->first[s]));
    struct part *score = NEW(struct part, longest * (work->shape.n_dims + 1));
    for (size_t s = 0; s < work->shard->n_students; s++)
        information_add(&information, &list, score, score_of(model, work, s, &list, score));
    comm_sum_i64(comm, information.cells, information.n_cells);
    if (information.together)
        write_errors(model, &list, 0, list.n, information.cells, &n_missing);
    for (size_t i = 0; !information.together && i < model->n_items; i++)
        write_errors(model, &list, list.first[i], list.first[i + 1] - list.first[i],
                     information.cells + information.start[i], &n_missing);
    if (n_missing > 0)
        log_say("note: %zu of %zu standard errors cannot be had: the answers say too little",
                n_missing, list.n);
    void *const all[] = {information.cells, information.start, score, list.first, list.place};
    for (size_t k = 0; k < COUNT(all); k++)
        memory_free(all[k]);
    return OK;
}
