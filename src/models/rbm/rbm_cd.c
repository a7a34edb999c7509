/* Contrastive divergence for the RBM; symbols as in rbm.c.
 *
 * One student at a time:
 *
 *     up      sum the rows of the answers, then sample the hidden units
 *     down    sample a reconstruction of the answers
 *     up      sum the rows of the reconstruction
 *     add     data minus reconstruction to the tally
 *
 * Hidden units are sampled in every Gibbs step except the last, which uses their mean.
 *
 * Gaussian and relu units are unbounded. If the weights of a unit are w, its mean after n
 * answers is about n w. The gradient of the weights then grows with n^2 w, where that of a
 * binary unit grows with n, and a learning rate that suits binary units diverges. The means of
 * unbounded units are therefore divided by n copies, the student's number of visible copies:
 *
 *     dW_ij = sum over students of (data - model of n_i h_j) / (n copies),   dB, db, dD alike
 *
 * This weights the students, but it is zero wherever every student's gradient is zero. The
 * largest curvature of a student's contribution is then about 1 for any n. Visible biases are
 * not scaled.
 *
 * Statistics are integers from the start: a hidden mean times 2^bits, rounded. With binary
 * hidden units a sum over the mini-batch is at most
 *
 *     (students) x (most answers to one item by one student) x (copies)
 *
 * so `bits` can be chosen such that 32-bit sums never overflow. Data whose repeats would leave
 * too few bits, and unbounded hidden units, use 64-bit sums. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "models/rbm/rbm_internal.h"
#include <math.h>
#include <sleef.h>
#include <string.h>

enum {
    LEAST_BITS = 12,
    MOST_BITS = 22,
    WIDE_BITS = 16,
    HIDDEN_LIMIT = 1024,
    AHEAD = 3,
    MOST_COUNTS = 1 << 24
};

/* The visible units of a student: every training answer, or the last answer to each item. */
static size_t list_units(const struct rbm_options *o, struct rbm_work *work, size_t s,
                         uint32_t *unit)
{
    const struct shard *shard = work->shard;
    size_t n = 0;
    for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
        if (!mark_trains(shard->mark[t]))
            continue;
        const uint32_t item = shard->item[t];
        const uint32_t code = 2 * item + (mark_outcome(shard->mark[t]) == CORRECT);
        if (o->repeats == REPEATS_LAST && work->last[item] >= 0) {
            unit[work->last[item]] = code;
            continue;
        }
        work->last[item] = (int64_t)n;
        unit[n++] = code;
    }
    for (size_t a = 0; a < n; a++)
        work->last[unit[a] >> 1] = -1;
    return n;
}

/* The items a student saw, each once, in order of first appearance; not those that nothing may
 * be learned from. */
static size_t list_seen(struct rbm_work *work, size_t s, uint32_t *seen)
{
    const struct shard *shard = work->shard;
    size_t n = 0;
    for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++)
        if (work->last[shard->item[t]] < 0 && !(shard->mark[t] & MARK_OWN)) {
            work->last[shard->item[t]] = 0;
            seen[n++] = shard->item[t];
        }
    for (size_t a = 0; a < n; a++)
        work->last[seen[a]] = -1;
    return n;
}

static void start_chains(struct rbm_work *work, int copies)
{
    const uint64_t n = work->first[work->shard->n_students];
    work->chain = NEW(uint8_t, n);
    for (uint64_t a = 0; a < n; a++)
        work->chain[a] = (uint8_t)((work->unit[a] & 1) * (uint32_t)copies);
}

void *rbm_attach(const struct model *model, const struct shard *shard, enum model_use use)
{
    const struct rbm_options *o = model->options;
    struct rbm_work *work = NEW(struct rbm_work, 1);
    work->shard = shard;
    work->shape = rbm_shape(model);
    work->last = NEW(int64_t, model->n_items);
    for (size_t i = 0; i < model->n_items; i++)
        work->last[i] = -1;
    if (use == TO_TRAIN) {
        work->first = NEW(uint64_t, shard->n_students + 1);
        work->unit = NEW_SCRATCH(uint32_t, shard->n_attempts);
    }
    if (o->conditional) {
        work->seen_first = NEW(uint64_t, shard->n_students + 1);
        work->seen = NEW_SCRATCH(uint32_t, shard->n_attempts);
    }
    size_t longest = 0;
    for (size_t s = 0; s < shard->n_students; s++) {
        if (use == TO_TRAIN) {
            const size_t n = list_units(o, work, s, work->unit + work->first[s]);
            work->first[s + 1] = work->first[s] + n;
            longest = size_max(longest, n);
        }
        if (o->conditional)
            work->seen_first[s + 1] =
                work->seen_first[s] + list_seen(work, s, work->seen + work->seen_first[s]);
    }
    if (o->persistent && use == TO_TRAIN)
        start_chains(work, work->shape->rows.copies);

    const size_t stride = size_max(work->shape->stride, work->shape->rows.stride);
    real **const vectors[] = {&work->base, &work->x,         &work->h,      &work->f,
                              &work->g,    &work->mean_data, &work->f_data, &work->mean};
    for (size_t v = 0; v < COUNT(vectors); v++)
        *vectors[v] = NEW(real, stride);
    int32_t **const whole[] = {&work->q_data, &work->q_model, &work->q_hidden};
    for (size_t v = 0; v < COUNT(whole); v++)
        *whole[v] = NEW(int32_t, stride);
    work->scratch = NEW(int32_t, stride * ((size_t)work->shape->rows.copies + 2));
    work->logit = NEW(real, size_padded(longest));
    work->count = NEW(uint8_t, size_padded(longest));
    work->u = NEW(real, 2 * stride + size_padded(longest) + 4 * WIDTH);
    work->factor_statistics = NEW(real, work->shape->n_factors * work->shape->stride);
    return work;
}

void rbm_detach(void *memory)
{
    struct rbm_work *work = memory;
    void *const all[] = {
        work->first,     work->unit,     work->chain,   work->seen_first,
        work->seen,      work->shown,    work->met,     work->last,
        work->base,      work->x,        work->h,       work->f,
        work->g,         work->logit,    work->u,       work->f_data,
        work->mean_data, work->mean,     work->count,   work->q_data,
        work->q_model,   work->q_hidden, work->scratch, work->factor_statistics};
    for (size_t i = 0; i < COUNT(all); i++)
        memory_free(all[i]);
    memory_free(work);
}

void rbm_training(const void *memory, bool *has_training, int64_t *n_attempts)
{
    const struct rbm_work *work = memory;
    for (size_t s = 0; s < work->shard->n_students; s++)
        has_training[s] = work->first[s + 1] > work->first[s];
    *n_attempts = (int64_t)work->first[work->shard->n_students];
}

/* The most answers to one item that any `most_students` students can give together. If
 * at_least[r] students answered the item more than r times, it is
 *
 *     sum over r of min(most_students, at_least[r]) */
static double most_answers(const struct model *model, const struct rbm_work *work,
                           const struct comm *comm, size_t most_students)
{
    const size_t n_items = model->n_items;
    int64_t *met = NEW(int64_t, n_items), *at_least = NULL, most = 1;
    /* first pass: the largest number of repeats; second pass: the counts */
    for (int pass = 0; pass < 2; pass++) {
        for (size_t s = 0; s < work->shard->n_students; s++) {
            for (uint64_t a = work->first[s]; a < work->first[s + 1]; a++) {
                const size_t item = work->unit[a] >> 1;
                if (pass == 1)
                    at_least[item * (size_t)most + (size_t)met[item]]++;
                met[item]++;
                most = pass == 0 && met[item] > most ? met[item] : most;
            }
            for (uint64_t a = work->first[s]; a < work->first[s + 1]; a++)
                met[work->unit[a] >> 1] = 0;
        }
        if (pass == 0)
            comm_max_i64(comm, &most, 1);
        if (n_items * (size_t)most > MOST_COUNTS)
            break;
        if (pass == 0)
            at_least = NEW(int64_t, n_items * (size_t)most);
    }
    double bound = (double)most * (double)most_students;
    if (at_least != NULL) {
        comm_sum_i64(comm, at_least, n_items * (size_t)most);
        bound = 1;
        for (size_t i = 0; i < n_items; i++) {
            double sum = 0;
            for (size_t r = 0; r < (size_t)most; r++)
                sum += fmin((double)most_students, (double)at_least[i * (size_t)most + r]);
            bound = fmax(bound, sum);
        }
    }
    memory_free(met);
    memory_free(at_least);
    return bound;
}

/* The most runs of answers of any student; each run adds to the hidden biases. */
static double most_runs(const struct model *model, const struct rbm_work *work,
                        const struct comm *comm)
{
    const struct rbm_options *o = model->options;
    int64_t most = 1;
    for (size_t s = 0; o->window > 0 && s < work->shard->n_students; s++) {
        const int64_t n = (int64_t)(work->first[s + 1] - work->first[s]);
        const int64_t n_runs = n / o->window + (n % o->window != 0);
        most = n_runs > most ? n_runs : most;
    }
    comm_max_i64(comm, &most, 1);
    return (double)most;
}

void rbm_measure(const struct model *model, const void *memory, const struct comm *comm,
                 size_t most_students, bool *wide, int *bits)
{
    const struct rbm_work *work = memory;
    const double answers = most_answers(model, work, comm, most_students);
    const double runs = most_runs(model, work, comm) * (double)most_students;
    const double bound = fmax(answers * work->shape->rows.copies, runs);
    const int room = 30 - (int)ceil(log2(bound));
    *wide = work->shape->hidden_kind != HIDDEN_BINARY || work->shape->n_factors > 0 ||
            model->params.panels[PANEL_COMMON].n_rows > 0 || room < LEAST_BITS;
    *bits = *wide ? WIDE_BITS : room < MOST_BITS ? room : MOST_BITS;
}

/* The input of the hidden units before any answer: biases and, if conditional, items seen. */
static void start_base(const struct model *model, struct rbm_work *work, size_t s)
{
    const size_t stride = work->shape->stride;
    memcpy(work->base, params_rows(&model->params, PANEL_HIDDEN), stride * sizeof(real));
    if (work->seen == NULL)
        return;
    const real *seen = params_rows(&model->params, PANEL_SEEN);
    for (uint64_t a = work->seen_first[s]; a < work->seen_first[s + 1]; a++)
        for (size_t j = 0; j < stride; j++)
            work->base[j] += seen[work->seen[a] * stride + j];
}

static int64_t count_copies(const uint8_t *count, size_t n)
{
    int64_t sum = 0;
    for (size_t a = 0; a < n; a++)
        sum += count[a];
    return sum;
}

/* f = the sum of the rows of a student's answers. */
static void sum_answers(const struct model *model, struct rbm_work *work, const uint32_t *unit,
                        size_t n, real *f)
{
    const struct row_shape *shape = &work->shape->rows;
    memset(f, 0, shape->stride * sizeof *f);
    rbm_rows->gather(shape, params_rows(&model->params, PANEL_VISIBLE), unit, n, f);
    if (model->params.panels[PANEL_COMMON].n_rows == 0)
        return;
    int64_t n_right = 0;
    for (size_t a = 0; a < n; a++)
        n_right += unit[a] & 1;
    rbm_add_common(work->shape, model, n_right * shape->copies,
                   ((int64_t)n - n_right) * shape->copies, f);
}

/* The same for a reconstruction in which count[a] copies of unit a are correct. */
static void sum_copies(const struct model *model, struct rbm_work *work, const uint32_t *unit,
                       const uint8_t *count, size_t n, real *f)
{
    const struct row_shape *shape = &work->shape->rows;
    memset(f, 0, shape->stride * sizeof *f);
    rbm_rows->mix(shape, params_rows(&model->params, PANEL_VISIBLE), unit, count, n, f);
    if (model->params.panels[PANEL_COMMON].n_rows == 0)
        return;
    const int64_t n_right = count_copies(count, n);
    rbm_add_common(work->shape, model, n_right, (int64_t)n * shape->copies - n_right, f);
}

/* h = a sample of the hidden units with input x and mean `mean`. Only binary units use u. */
static void sample_hidden(const struct rbm_shape *shape, const real *x, const real *mean,
                          const real *u, const struct rng *rng, real *h)
{
    if (shape->hidden_kind == HIDDEN_BINARY) {
        for (size_t j = 0; j < shape->stride; j++) /* the padding has mean zero */
            h[j] = u[j] < mean[j] ? 1 : 0;
        return;
    }
    for (size_t j = 0; j < shape->m; j++) {
        const double noise = rng_normal(rng, (uint32_t)j);
        if (shape->hidden_kind == HIDDEN_GAUSSIAN) {
            h[j] = x[j] + (real)noise;
        } else {
            const double spread = sqrt(1 / (1 + Sleef_cinz_expd1_u10purec(-(double)x[j])));
            const double value = (double)x[j] + spread * noise;
            h[j] = value > 0 ? (real)value : 0;
        }
    }
}

/* Runs the Gibbs chain of a student from work->x and work->mean. Leaves the last values of both
 * there, and the last reconstruction in work->count. */
static void run_chain(const struct model *model, struct rbm_work *work, size_t s, size_t run,
                      const uint32_t *unit, size_t n, const struct draw *draw)
{
    const struct rbm_shape *shape = work->shape;
    const size_t n_hidden_numbers = shape->hidden_kind == HIDDEN_BINARY ? shape->stride : 0;
    const int64_t steps = rbm_cd_steps(model->options, draw->epoch);
    for (int64_t step = 0; step < steps; step++) {
        struct rng rng = {.seed = draw->seed,
                          .purpose = RNG_VISIBLE,
                          .part = (uint32_t)((int64_t)run * steps + step),
                          .when = draw->epoch,
                          .who = (uint32_t)(work->shard->first_student + s)};
        vec->uniform(&rng, work->u, n_hidden_numbers + n);
        rng.purpose = RNG_HIDDEN;
        sample_hidden(shape, work->x, work->mean, work->u, &rng, work->h);
        rbm_lower(shape, model, work->h, work->g);
        rbm_visible_input(shape, model, unit, n, work->g, work->logit);
        vec->binomial(work->logit, work->u + n_hidden_numbers, shape->rows.copies, work->count,
                      size_padded(n));
        sum_copies(model, work, unit, work->count, n, work->f);
        rbm_lift(shape, model, work->f, work->base, work->x);
        rbm_mean(shape, work->x, work->mean);
    }
}

static void add_vector(struct tally *tally, size_t at, const int32_t *q, size_t n)
{
    if (tally->wide)
        for (size_t i = 0; i < n; i++)
            ((int64_t *)tally->values)[at + i] += q[i];
    else
        for (size_t i = 0; i < n; i++)
            ((int32_t *)tally->values)[at + i] += q[i];
}

/* Statistics of the hidden biases and of `seen`: the difference of the hidden means. */
static void add_hidden_statistics(const struct model *model, struct rbm_work *work, size_t s,
                                  struct tally *tally)
{
    const struct params *p = &model->params;
    const size_t stride = work->shape->stride;
    for (size_t j = 0; j < stride; j++)
        work->h[j] = work->mean_data[j] - work->mean[j];
    vec->quantize(work->h, HIDDEN_LIMIT, tally->bits, work->q_hidden, stride);
    add_vector(tally, p->panels[PANEL_HIDDEN].offset, work->q_hidden, stride);
    for (uint64_t a = work->seen ? work->seen_first[s] : 0;
         work->seen && a < work->seen_first[s + 1]; a++)
        add_vector(tally, p->panels[PANEL_SEEN].offset + work->seen[a] * stride, work->q_hidden,
                   stride);
}

/* Statistics of the common rows, summed over all units of the student. */
static void add_common_statistics(const struct model *model, struct rbm_work *work,
                                  const uint32_t *unit, size_t n, struct tally *tally)
{
    const struct panel *panel = &model->params.panels[PANEL_COMMON];
    if (panel->n_rows == 0)
        return;
    const int64_t all = (int64_t)n * work->shape->rows.copies;
    const int64_t in_model = count_copies(work->count, n);
    int64_t in_data = 0, *at = (int64_t *)tally->values + panel->offset;
    for (size_t a = 0; a < n; a++)
        in_data += (unit[a] & 1) * work->shape->rows.copies;
    for (size_t row = 0; row < panel->n_rows; row++, at += panel->stride) {
        const bool right = row + 1 == panel->n_rows;
        for (size_t j = 0; j < work->shape->dims; j++)
            at[j] += (right ? in_data : all - in_data) * work->q_data[j] -
                     (right ? in_model : all - in_model) * work->q_model[j];
    }
}

/* q = the hidden means lowered to the rows, in fixed point. Factors are unbounded, so a product
 * with them may be out of range even where the means are not. */
static void quantize_lowered(const struct model *model, struct rbm_work *work, const real *mean,
                             struct tally *tally, int32_t *q)
{
    rbm_lower(work->shape, model, mean, work->g);
    for (size_t c = 0; c < work->shape->n_factors; c++)
        tally->out_of_range += !(fabs((double)work->g[c]) < HIDDEN_LIMIT);
    vec->quantize(work->g, HIDDEN_LIMIT, tally->bits, q, work->shape->rows.stride);
}

/* For unbounded units: counts means out of range (NaN counts as such), and divides the means by
 * the student's number of visible copies. */
static void scale_means(struct rbm_work *work, size_t n, struct tally *tally)
{
    const struct rbm_shape *shape = work->shape;
    const real share = 1 / (real)(n * (size_t)shape->rows.copies);
    for (size_t j = 0; j < shape->m; j++) {
        tally->out_of_range += !(fabs((double)work->mean_data[j]) < HIDDEN_LIMIT &&
                                 fabs((double)work->mean[j]) < HIDDEN_LIMIT);
        work->mean_data[j] *= share;
        work->mean[j] *= share;
    }
}

/* Adds run number `run` of a student's answers: n units starting at index `first`. */
static void add_run(const struct model *model, struct rbm_work *work, size_t s, size_t run,
                    uint64_t first, size_t n, const struct draw *draw, struct tally *tally)
{
    const struct rbm_shape *shape = work->shape;
    const uint32_t *unit = work->unit + first;

    sum_answers(model, work, unit, n, work->f_data);
    rbm_lift(shape, model, work->f_data, work->base, work->x);
    rbm_mean(shape, work->x, work->mean_data);

    if (work->chain != NULL) {
        sum_copies(model, work, unit, work->chain + first, n, work->f);
        rbm_lift(shape, model, work->f, work->base, work->x);
        rbm_mean(shape, work->x, work->mean);
    } else {
        memcpy(work->mean, work->mean_data, shape->stride * sizeof(real));
    }
    run_chain(model, work, s, run, unit, n, draw);
    if (work->chain != NULL)
        memcpy(work->chain + first, work->count, n);

    if (shape->hidden_kind != HIDDEN_BINARY)
        scale_means(work, n, tally);
    quantize_lowered(model, work, work->mean_data, tally, work->q_data);
    quantize_lowered(model, work, work->mean, tally, work->q_model);
    rbm_rows->tally(
        &shape->rows,
        (char *)tally->values + model->params.panels[PANEL_VISIBLE].offset *
                                    (tally->wide ? sizeof(int64_t) : sizeof(int32_t)),
        tally->wide, unit, work->count, n, work->q_data, work->q_model, work->scratch);
    add_hidden_statistics(model, work, s, tally);
    add_common_statistics(model, work, unit, n, tally);

    for (size_t c = 0; c < shape->n_factors; c++) /* dB = f_data h_data^T - f_model h_model^T */
        for (size_t j = 0; j < shape->m; j++)
            work->factor_statistics[c * shape->stride + j] +=
                work->f_data[c] * work->mean_data[j] - work->f[c] * work->mean[j];

    int64_t wrong = 0;
    for (size_t a = 0; a < n; a++)
        wrong += unit[a] & 1 ? shape->rows.copies - work->count[a] : work->count[a];
    tally->loss += wrong * (((int64_t)1 << LOSS_BITS) / shape->rows.copies);
    tally->n_scored += (int64_t)n;
}

static void add_student(const struct model *model, struct rbm_work *work, size_t s,
                        const struct draw *draw, struct tally *tally)
{
    const struct rbm_options *o = model->options;
    const uint64_t first = work->first[s], n = work->first[s + 1] - first;
    const uint64_t window = o->window > 0 ? (uint64_t)o->window : n;
    start_base(model, work, s);
    for (uint64_t run = 0; run * window < n; run++)
        add_run(model, work, s, run, first + run * window, size_min(window, n - run * window),
                draw, tally);
}

/* Students come in random order, so their units are prefetched a few students ahead. */
static void fetch_units(const struct rbm_work *work, size_t s)
{
    const char *end = (const char *)(work->unit + work->first[s + 1]);
    for (const char *line = (const char *)(work->unit + work->first[s]); line < end; line += 64)
        __builtin_prefetch(line);
}

void rbm_accumulate(const struct model *model, void *memory, const uint32_t *students, size_t n,
                    const struct draw *draw, struct tally *tally)
{
    struct rbm_work *work = memory;
    const size_t n_factor_numbers = work->shape->n_factors * work->shape->stride;
    memset(work->factor_statistics, 0, n_factor_numbers * sizeof(real));
    for (size_t i = 0; i < n; i++)
        __builtin_prefetch(&work->first[students[i]]);
    for (size_t i = 0; i < n && i < AHEAD; i++)
        fetch_units(work, students[i]);
    for (size_t i = 0; i < n; i++) {
        if (i + AHEAD < n)
            fetch_units(work, students[i + AHEAD]);
        add_student(model, work, students[i], draw, tally);
    }
    if (n_factor_numbers > 0)
        tally_add(tally, model->params.panels[PANEL_FACTORS].offset, work->factor_statistics,
                  n_factor_numbers);
}

void *rbm_state(void *memory, size_t *n_bytes)
{
    struct rbm_work *work = memory;
    *n_bytes = work->chain ? work->first[work->shard->n_students] : 0;
    return work->chain;
}
