/* A student's own weight and factors at prediction: the most probable ones given the answers
 * shown before, for trained and for new students alike. The values found in training depend on
 * later answers too, so they are not used.
 *
 * The score of an attempt is linear in the student's own numbers b = (w, v), with the bias and
 * all other rows fixed:
 *
 *     f = c + w + v . S = c + b . x,   x = (1, S),   S = sum of the other features' factors
 *
 * so the most probable b is a logistic regression with 1 + k unknowns and the penalty of
 * training (1 / variance of a normal prior):
 *
 *     F(b) = sum over shown answers of log-loss(f) + 1/2 sum l2 b^2
 *
 * F is convex. It is minimised by Newton's method, starting from the solution before the last
 * answer. Gradient and Hessian are already known there, and the new answer adds its own, so the
 * first step reads no other answer. Then come passes over all shown answers, mostly one or two,
 * until a step moves no score by more than SMALL. The remaining error is of the order of its
 * square.
 *
 * Far from the solution a full step may go too far. If it moves no score of an answer by more
 * than M, the curvature along it grows no faster than exp(M share). A step shortened to log(1 +
 * M) / M therefore never passes the minimum, and F falls with every step. M is bounded by |w| +
 * |v| times the longest S.
 *
 * With a penalty of 0 and answers that are all the same, w would grow without end. And a factor
 * that no answer depends on is kept at 0 by its penalty alone, while rounding moves it by about
 * 1e-13 / l2. So smaller penalties count as LEAST_L2 for the weight and as LEAST_L2_FACTORS for
 * the factors.
 *
 * An answer costs O(n (1 + k)^2 + (1 + k)^3), where n is the number of answers shown. So that
 * this does not grow with a student's length, only the last KTM_EXACT answers are treated
 * exactly. The log-losses of all older ones are expanded to second order around one point, the
 * anchor:
 *
 *     old answers                          last KTM_EXACT answers
 *     slope + curve (b - anchor)           look at each one in every pass
 *
 * If no score has moved by more than D since, the gradient of an old answer is off by less than
 * D^2 / 2 exp(D) times its curvature sigma', because |sigma''| <= sigma'. Without factors w is
 * therefore off by about D^2 / 2 exp(D) at most, whatever the answers are. With factors the error
 * of the score of an answer like those shown (root mean square) is at most sqrt(1 + k) times
 * this. When D, bounded like M, exceeds NEAR, the old answers are expanded around b again; so the
 * errors are 0.0013 and sqrt(1 + k) times 0.0013, and a quarter of that in a probability.
 *
 * Expanding reads all old answers. It is rare, because b moves slowly when n is large, and
 * limited, so that the time of n answers is O(n) for any answers: every old answer pays for
 * reading KTM_EXACT of them once. If that is not enough, the anchor stays until it is, and D is
 * the distance moved meanwhile. */
#include "base/memory.h"
#include "kernels/logistic_sums.h"
#include "models/ktm/ktm_internal.h"
#include <math.h>
#include <sleef.h>
#include <string.h>

enum { MOST_PASSES = 60, EIGHT = 8 };
#define SMALL 1e-3
#define NEAR 0.05
#define LEAST_L2 1e-12
#define LEAST_L2_FACTORS 1e-6

/* Answers in columns. */
struct answers {
    double *x; /* columns of S, `room` numbers each */
    double *offset;
    double *outcome;
};

struct ktm_student {
    size_t k;
    size_t n, n_new;     /* answers shown, and those since b was found */
    size_t room;         /* how many of the last answers are treated exactly */
    struct answers last; /* answer i is at i % room */
    struct answers *old; /* blocks of `room` answers */
    size_t n_old, n_blocks, block_room;
    size_t paid;       /* old answers that may be read */
    double *penalty;   /* 1 + k numbers, as in all vectors of b */
    double *b;         /* the most probable values */
    double *slope;     /* gradient of F at b */
    double *curve;     /* lower triangle of the Hessian of F near b */
    double *anchor;    /* where the old answers are expanded */
    double *old_slope; /* their gradient there, without penalties */
    double *old_curve; /* and their Hessian (lower triangle) */
    double *factor;    /* Cholesky factor of curve */
    double *step, *column;
    double *one; /* x of an answer */
    double *residual, *weight, *scratch;
    double longest; /* length of S over all shown answers */
};

static void create_answers(struct answers *answers, size_t k, size_t room)
{
    answers->x = NEW(double, k *room);
    answers->offset = NEW(double, room);
    answers->outcome = NEW(double, room);
}

static void free_answers(struct answers *answers)
{
    memory_free(answers->x);
    memory_free(answers->offset);
    memory_free(answers->outcome);
}

struct ktm_student *ktm_student_create(size_t k, double l2, double l2_factors, size_t most)
{
    struct ktm_student *s = NEW(struct ktm_student, 1);
    const size_t m = 1 + k;
    s->k = k;
    s->room = (size_min(most, KTM_EXACT) + EIGHT - 1) / EIGHT * EIGHT;
    create_answers(&s->last, k, s->room);
    double **const numbers[] = {&s->penalty,   &s->b,    &s->slope,  &s->anchor,
                                &s->old_slope, &s->step, &s->column, &s->one};
    for (size_t j = 0; j < COUNT(numbers); j++)
        *numbers[j] = NEW(double, m);
    double **const squares[] = {&s->curve, &s->old_curve, &s->factor};
    for (size_t j = 0; j < COUNT(squares); j++)
        *squares[j] = NEW(double, m *m);
    double **const of_answers[] = {&s->residual, &s->weight, &s->scratch};
    for (size_t j = 0; j < COUNT(of_answers); j++)
        *of_answers[j] = NEW(double, s->room);
    s->penalty[0] = fmax(l2, LEAST_L2);
    for (size_t c = 1; c < m; c++)
        s->penalty[c] = fmax(l2_factors, LEAST_L2_FACTORS);
    return s;
}

void ktm_student_free(struct ktm_student *s)
{
    if (s == NULL)
        return;
    for (size_t j = 0; j < s->n_blocks; j++)
        free_answers(&s->old[j]);
    free_answers(&s->last);
    void *const parts[] = {s->penalty,   s->b,        s->slope,  s->anchor,  s->old_slope,
                           s->step,      s->one,      s->column, s->curve,   s->factor,
                           s->old_curve, s->residual, s->weight, s->scratch, s->old};
    for (size_t j = 0; j < COUNT(parts); j++)
        memory_free(parts[j]);
    memory_free(s);
}

void ktm_student_begin(struct ktm_student *s)
{
    const size_t m = 1 + s->k;
    s->n = s->n_new = s->n_old = s->paid = 0;
    s->longest = 0;
    memset(s->b, 0, m * sizeof *s->b);
    memset(s->slope, 0, m * sizeof *s->slope);
    memset(s->old_slope, 0, m * sizeof *s->old_slope);
    memset(s->curve, 0, m * m * sizeof *s->curve);
    memset(s->old_curve, 0, m * m * sizeof *s->old_curve);
    for (size_t a = 0; a < m; a++)
        s->curve[a * m + a] = s->penalty[a];
}

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t c = 0; c < n; c++)
        sum += a[c] * b[c];
    return sum;
}

static double sigmoid(double x)
{
    return 1 / (1 + Sleef_cinz_expd1_u10purec(-x));
}

/* Adds the slope r and curvature d of an answer with x = s->one. */
static void add(struct ktm_student *s, double r, double d, double *slope, double *curve)
{
    const size_t m = 1 + s->k;
    for (size_t a = 0; a < m; a++) {
        slope[a] += r * s->one[a];
        for (size_t b = 0; b <= a; b++)
            curve[a * m + b] += d * s->one[a] * s->one[b];
    }
}

/* Stores answer s->one; clears what another student left in the next places. */
static void put(struct ktm_student *s, struct answers *answers, size_t place, bool first,
                double offset, double outcome)
{
    for (size_t c = 0; c < s->k; c++) {
        double *x = &answers->x[c * s->room + place];
        if (place % EIGHT == 0 && first)
            memset(x, 0, EIGHT * sizeof *x);
        *x = s->one[1 + c];
    }
    answers->offset[place] = offset;
    answers->outcome[place] = outcome;
}

/* Moves the answer in a place to the old ones, to make room for a newer one. */
static void leave(struct ktm_student *s, size_t place)
{
    const size_t block = s->n_old / s->room;
    if (block == s->n_blocks) {
        GROW(s->old, s->n_blocks, s->block_room);
        create_answers(&s->old[s->n_blocks++], s->k, s->room);
    }
    if (s->n_old == 0)
        memcpy(s->anchor, s->b, (1 + s->k) * sizeof *s->b);
    s->one[0] = 1;
    for (size_t c = 0; c < s->k; c++)
        s->one[1 + c] = s->last.x[c * s->room + place];
    const double offset = s->last.offset[place], outcome = s->last.outcome[place];
    put(s, &s->old[block], s->n_old % s->room, true, offset, outcome);
    const double p = sigmoid(offset + dot(s->one, s->anchor, 1 + s->k));
    add(s, p - outcome, p * (1 - p), s->old_slope, s->old_curve);
    s->n_old++;
    s->paid += s->room;
}

/* Gradient and Hessian at a point, of the first n answers alone. */
static void look_at(struct ktm_student *s, const struct answers *answers, size_t n,
                    const double *point, double *slope, double *curve)
{
    const struct logistic_rows rows = {answers->x, s->room, s->k,
                                       (n + EIGHT - 1) / EIGHT * EIGHT};
    logistic_sums->look(&rows, answers->offset, answers->outcome, point, s->residual,
                        s->weight);
    for (size_t i = n; i < rows.n; i++)
        s->residual[i] = s->weight[i] = 0;
    logistic_sums->sums(&rows, s->residual, s->weight, s->scratch, slope, curve);
}

/* An upper bound on how far any score has moved since the old answers were expanded. */
static double strayed(const struct ktm_student *s)
{
    double square = 0;
    for (size_t c = 1; c <= s->k; c++)
        square += (s->b[c] - s->anchor[c]) * (s->b[c] - s->anchor[c]);
    return fabs(s->b[0] - s->anchor[0]) + s->longest * sqrt(square);
}

/* Expands the old answers around b. */
static void expand(struct ktm_student *s)
{
    const size_t m = 1 + s->k;
    s->paid -= s->n_old;
    memcpy(s->anchor, s->b, m * sizeof *s->b);
    memset(s->old_slope, 0, m * sizeof *s->old_slope);
    memset(s->old_curve, 0, m * m * sizeof *s->old_curve);
    for (size_t done = 0; done < s->n_old; done += s->room) {
        look_at(s, &s->old[done / s->room], size_min(s->n_old - done, s->room), s->anchor,
                s->slope, s->curve);
        for (size_t a = 0; a < m; a++) {
            s->old_slope[a] += s->slope[a];
            for (size_t c = 0; c <= a; c++)
                s->old_curve[a * m + c] += s->curve[a * m + c];
        }
    }
}

/* Gradient and Hessian of F at b. */
static void look(struct ktm_student *s)
{
    const size_t m = 1 + s->k;
    if (s->paid >= s->n_old && s->n_old > 0 && strayed(s) > NEAR)
        expand(s);
    look_at(s, &s->last, size_min(s->n, s->room), s->b, s->slope, s->curve);
    for (size_t a = 0; a < m; a++) {
        s->slope[a] += s->old_slope[a] + s->penalty[a] * s->b[a];
        s->curve[a * m + a] += s->penalty[a];
        for (size_t c = 0; c <= a && s->n_old > 0; c++) {
            const double old = s->old_curve[a * m + c];
            s->curve[a * m + c] += old;
            s->slope[a] += old * (s->b[c] - s->anchor[c]);
            if (c < a)
                s->slope[c] += old * (s->b[a] - s->anchor[a]);
        }
    }
}

/* One Newton step, with the Cholesky factor of the Hessian (whose diagonal is stored inverted).
 * Returns an upper bound on how far the full step moves any score. Up to rounding no pivot is
 * below its penalty. */
static double move(struct ktm_student *s)
{
    const size_t m = 1 + s->k;
    double *l = s->factor, *column = s->column, *step = s->step;
    memcpy(l, s->curve, m * m * sizeof *l);
    for (size_t a = 0; a < m; a++)
        step[a] = -s->slope[a];
    for (size_t p = 0; p < m; p++) {
        const double scale = 1 / sqrt(fmax(l[p * m + p], s->penalty[p]));
        l[p * m + p] = scale;
        step[p] *= scale;
        for (size_t a = p + 1; a < m; a++) {
            column[a] = l[a * m + p] *= scale;
            step[a] -= column[a] * step[p];
            for (size_t b = p + 1; b <= a; b++)
                l[a * m + b] -= column[a] * column[b];
        }
    }
    for (size_t a = m; a-- > 0;) {
        step[a] *= l[a * m + a];
        for (size_t b = 0; b < a; b++)
            step[b] -= l[a * m + b] * step[a];
    }
    const double most = fabs(step[0]) + s->longest * sqrt(dot(step + 1, step + 1, s->k));
    const double share = most > 0.5 ? Sleef_cinz_log1pd1_u10purec(most) / most : 1;
    for (size_t a = 0; a < m; a++)
        s->b[a] += share * step[a];
    return most;
}

/* Finds b again if answers were shown since. */
static void solve(struct ktm_student *s)
{
    if (s->n_new == 0)
        return;
    s->n_new = 0;
    move(s);
    for (int pass = 0; pass < MOST_PASSES; pass++) {
        look(s);
        if (!(move(s) > SMALL))
            break;
    }
    memset(s->slope, 0, (1 + s->k) * sizeof *s->slope);
}

double ktm_student_score(struct ktm_student *s, const real *sum)
{
    solve(s);
    double score = s->b[0];
    for (size_t c = 0; c < s->k; c++)
        score += s->b[1 + c] * (double)sum[c];
    return score;
}

void ktm_student_show(struct ktm_student *s, double offset, const real *sum, bool correct)
{
    const size_t place = s->n % s->room;
    if (s->n >= s->room) {
        if (s->n_new >= s->room / 10)
            solve(s);
        leave(s, place);
    }
    s->one[0] = 1;
    for (size_t c = 0; c < s->k; c++)
        s->one[1 + c] = (double)sum[c];
    put(s, &s->last, place, s->n < s->room, offset, correct);
    s->longest = fmax(s->longest, sqrt(dot(s->one + 1, s->one + 1, s->k)));
    const double p = sigmoid(offset + dot(s->one, s->b, 1 + s->k));
    add(s, p - correct, p * (1 - p), s->slope, s->curve);
    s->n++;
    s->n_new++;
}
