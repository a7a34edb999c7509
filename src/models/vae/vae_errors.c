/* Standard errors of the items' parameters, from the training answers.
 *
 * The score of a student is the derivative of log P(answers) by the items' parameters, the
 * posterior mean of the derivative at theta:
 *
 *     score = sum_s v_s d log P(answers | theta_s)
 *
 * with weights v_s of importance sampling from the encoder's posterior. The information matrix
 * is the sum of the outer products of scores, plus the precision of the weak priors on its
 * diagonal; standard errors are the square roots of the diagonal of its inverse.
 *
 *     log a ~ N(0, s^2)    precision of a about 1 / (s a)^2
 *     b ~ N(0, s^2)        precision of b 1 / s^2
 *
 * One matrix of all parameters is used where it can be trusted. Its rank is at most the number
 * of students n, and errors from m parameters are too large by about sqrt(n / (n - m)), so
 * there must be PER_PARAMETER students for each. With fewer of them, or more parameters than
 * MOST, each item has a matrix of its own. That ignores what is common to all items, the place
 * and the unit of the scale, so that errors are a little too small. Sums are in fixed point:
 * the same bits at any number of ranks. */
#include "base/log.h"
#include "base/memory.h"
#include "kernels/irt.h"
#include "models/vae/vae_internal.h"
#include <math.h>
#include <string.h>

enum { N_DRAWS = 512, MOST = 2000, PER_PARAMETER = 10, UNIT_BITS = 32, SUM_BITS = 101 };

/* The free parameters, item by item: a_ik where q_ik is set, then b_i. */
struct free_list {
    size_t n;
    size_t *first;     /* n_items + 1 */
    size_t *place;     /* in the flat vector: of the standard error */
    double *precision; /* of the prior */
};

static double precision_of(double deviation)
{
    return deviation > 0 ? 1 / (deviation * deviation) : 0;
}

static void list_free(const struct model *model, const struct vae_shape *shape,
                      struct free_list *list)
{
    const struct vae_options *o = model->options;
    const struct panel *panel = &model->params.panels[shape->decoder];
    const size_t n_a = shape->column_q;
    list->first = NEW(size_t, model->n_items + 1);
    list->place = NEW(size_t, model->n_items * (n_a + 1));
    list->precision = NEW(double, model->n_items *(n_a + 1));
    list->n = 0;
    for (size_t i = 0; i < model->n_items; i++) {
        const size_t row = panel->offset + i * panel->stride;
        const real *value = model->params.value + row;
        const bool is_trained = value[shape->column_n] > 0;
        for (size_t k = 0; k < n_a; k++)
            if (value[shape->column_q + k] != 0) {
                list->precision[list->n] =
                    is_trained && value[k] != 0
                        ? precision_of(o->prior_a * fabs((double)value[k]))
                        : 0;
                list->place[list->n++] = row + shape->column_error + k;
            }
        list->precision[list->n] = is_trained ? precision_of(o->prior_b) : 0;
        list->place[list->n++] = row + shape->column_error + n_a;
        list->first[i + 1] = list->n;
    }
}

/* A student's score: a number for each free parameter of the items answered, however often. */
struct score {
    size_t n;
    struct part {
        size_t item, number; /* of the item and, among all, of the free parameter */
        double value;
    } * parts;
    size_t *place; /* of each free parameter: 1 + its place among the parts, or 0 */
};

static void score_create(struct score *score, const struct free_list *list)
{
    *score = (struct score){.parts = NEW(struct part, list->n), .place = NEW(size_t, list->n)};
}

static void score_free(struct score *score)
{
    memory_free(score->parts);
    memory_free(score->place);
}

static void score_clear(struct score *score)
{
    for (size_t k = 0; k < score->n; k++)
        score->place[score->parts[k].number] = 0;
    score->n = 0;
}

static void score_add(struct score *score, size_t item, size_t number, real value)
{
    if (score->place[number] == 0) {
        score->parts[score->n++] = (struct part){item, number, 0};
        score->place[number] = score->n;
    }
    score->parts[score->place[number] - 1].value += (double)value;
}

/* The score of student s. Draws are answered twice, before and after their weights are known,
 * so that the room needed does not grow with draws x answers. */
static void score_of(const struct model *model, struct vae_work *work, size_t s,
                     const struct free_list *list, struct score *score)
{
    const struct vae_shape *shape = work->shape;
    const size_t n_dims = shape->n_dims, n = (size_t)(work->first[s + 1] - work->first[s]);
    const uint32_t *unit = work->unit + work->first[s];
    const struct draw draw = {0};
    vae_encoder_read(model, work, unit, n, &work->posterior);
    vae_reserve(work, size_padded(n), N_DRAWS, 1);
    vae_draw_epsilon(work, &draw, 0, s, N_DRAWS);
    const size_t padded = vae_collect_items(model, work, unit, n);
    for (size_t d = 0; d < N_DRAWS; d++) {
        const real *epsilon = work->epsilon + d * n_dims;
        real *theta = work->theta + d * n_dims;
        vae_posterior_draw(shape, &work->posterior, epsilon, theta);
        work->log_weight[d] =
            (double)irt->respond(n_dims, theta, work->a, work->b, work->y, padded, work->e) +
            vae_log_ratio(&work->prior, &work->posterior, epsilon, theta);
    }
    (void)vae_normalize(work->log_weight, N_DRAWS);
    memset(work->da, 0, n_dims * padded * sizeof *work->da);
    memset(work->db, 0, padded * sizeof *work->db);
    for (size_t d = 0; d < N_DRAWS; d++) {
        const real *theta = work->theta + d * n_dims;
        (void)irt->respond(n_dims, theta, work->a, work->b, work->y, padded, work->e);
        irt->credit(n_dims, theta, (real)work->log_weight[d], work->e, padded, work->da,
                    work->db);
    }
    const struct panel *panel = &model->params.panels[shape->decoder];
    score_clear(score);
    for (size_t j = 0; j < n; j++) {
        const size_t i = unit[j] / 2;
        size_t at = list->first[i];
        for (size_t k = 0; k < shape->column_q; k++)
            if (model->params.value[panel->offset + i * panel->stride + shape->column_q + k] !=
                0)
                score_add(score, i, at++, work->da[k * padded + j]);
        score_add(score, i, at, work->db[j]);
    }
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
                matrix[k * n + k] = rest > 1e-6 * matrix[k * n + k] ? sqrt(rest) : INFINITY;
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
                         size_t n, const __int128 *information, size_t *n_missing)
{
    double *matrix = NEW(double, n *n), *diagonal = NEW(double, n);
    for (size_t i = 0; i < n * n; i++)
        matrix[i] = ldexp((double)information[i], -UNIT_BITS);
    for (size_t k = 0; k < n; k++)
        matrix[k * n + k] += list->precision[first + k];
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
    __int128 *cells;
    double most;          /* a term beyond it might leave the sum's range */
    int64_t out_of_range; /* number of such terms */
};

/* n_students: with training answers. */
static void information_create(struct information *information, const struct model *model,
                               const struct free_list *list, int64_t n_students)
{
    *information = (struct information){
        .together = list->n <= MOST && n_students >= PER_PARAMETER * (int64_t)list->n,
        .start = NEW(size_t, model->n_items),
        .most = ldexp(1 / (1 + (double)model->n_students), SUM_BITS)};
    for (size_t i = 0; i < model->n_items; i++) {
        const size_t n = list->first[i + 1] - list->first[i];
        information->start[i] = information->n_cells;
        information->n_cells += n * n;
    }
    if (information->together)
        information->n_cells = list->n * list->n;
    information->cells = NEW(__int128, information->n_cells);
}

static void information_add(struct information *information, const struct free_list *list,
                            const struct score *score)
{
    for (size_t x = 0; x < score->n; x++)
        for (size_t y = 0; y < score->n; y++) {
            const struct part *a = &score->parts[x], *b = &score->parts[y];
            const size_t first = list->first[a->item], n = list->first[a->item + 1] - first;
            if (!information->together && a->item != b->item)
                continue;
            const double term = ldexp(a->value * b->value, UNIT_BITS);
            if (!(fabs(term) <= information->most)) {
                information->out_of_range++;
                continue;
            }
            information->cells[information->together
                                   ? a->number * list->n + b->number
                                   : information->start[a->item] + (a->number - first) * n +
                                         b->number - first] += (__int128)rint(term);
        }
}

/* Collective: students with training answers, on all ranks. */
static int64_t count_students(const struct vae_work *work, const struct comm *comm)
{
    int64_t n = 0;
    for (size_t s = 0; s < work->shard->n_students; s++)
        n += work->first[s + 1] > work->first[s];
    comm_sum_i64(comm, &n, 1);
    return n;
}

enum status vae_examine(struct model *model, const struct shard *shard, const struct comm *comm)
{
    struct vae_work *work = vae_attach(model, shard, TO_TRAIN);
    struct free_list list;
    struct information information;
    list_free(model, work->shape, &list);
    information_create(&information, model, &list, count_students(work, comm));
    struct score score;
    score_create(&score, &list);
    size_t n_missing = 0;
    for (size_t s = 0; s < work->shard->n_students; s++) {
        score_of(model, work, s, &list, &score);
        information_add(&information, &list, &score);
    }
    comm_sum_i128(comm, information.cells, information.n_cells);
    comm_sum_i64(comm, &information.out_of_range, 1);
    if (information.out_of_range > 0) { /* of such a model nothing is known */
        memset(information.cells, 0, information.n_cells * sizeof *information.cells);
        memset(list.precision, 0, list.n * sizeof *list.precision);
    }
    if (information.together)
        write_errors(model, &list, 0, list.n, information.cells, &n_missing);
    for (size_t i = 0; !information.together && i < model->n_items; i++)
        write_errors(model, &list, list.first[i], list.first[i + 1] - list.first[i],
                     information.cells + information.start[i], &n_missing);
    if (n_missing > 0)
        log_say(
            "note: %zu of %zu standard errors are missing: too few answers to estimate them",
            n_missing, list.n);
    score_free(&score);
    vae_detach(work);
    void *const all[] = {information.cells, information.start, list.first, list.place,
                         list.precision};
    for (size_t k = 0; k < COUNT(all); k++)
        memory_free(all[k]);
    return OK;
}
