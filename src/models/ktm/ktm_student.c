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
 * An answer costs O(n (1 + k)^2 + (1 + k)^3), where n is the number of answers shown. So that
 * this does not grow with a student's length, only the last KTM_EXACT answers are treated
 * exactly. An older one leaves behind its gradient and Hessian at the solution of that time. If
 * its score has moved by D since, the error of its gradient is below D^2 / 20 (|sigma''| <
 * 0.0963, and half of it counts). */
#include "base/memory.h"
#include "kernels/logistic_sums.h"
#include "models/ktm/ktm_internal.h"
#include <math.h>
#include <sleef.h>
#include <string.h>

enum { MOST_PASSES = 60, EIGHT = 8 };
#define SMALL 1e-3
/* Without any penalty the first answer would decide everything. */
#define LEAST_PENALTY 0.01

struct ktm_student {
    size_t k;
    size_t n, n_new;   /* answers shown, and those since b was found */
    size_t room;       /* how many of the last answers are kept here */
    double *penalty;   /* 1 + k numbers, as in all vectors of b */
    double *b;         /* the most probable values */
    double *slope;     /* gradient of F at b */
    double *curve;     /* lower triangle of the Hessian of F near b */
    double *old_slope; /* of removed answers, at b = 0 */
    double *old_curve; /* (lower triangle) */
    double *factor;    /* Cholesky factor of curve */
    double *step, *column;
    double *one;    /* x of an answer */
    double *x;      /* columns of S, `room` numbers each; answer i is at i % room */
    double *offset; /* c */
    double *outcome;
    double *residual, *weight, *scratch;
    double longest; /* length of S over all shown answers */
};

struct ktm_student *ktm_student_create(size_t k, double l2, double l2_factors, size_t most)
{
    struct ktm_student *s = NEW(struct ktm_student, 1);
    const size_t m = 1 + k;
    s->k = k;
    s->room = (size_min(most, KTM_EXACT) + EIGHT - 1) / EIGHT * EIGHT;
    double **const numbers[] = {&s->penalty, &s->b,      &s->slope, &s->old_slope,
                                &s->step,    &s->column, &s->one};
    for (size_t j = 0; j < COUNT(numbers); j++)
        *numbers[j] = NEW(double, m);
    double **const squares[] = {&s->curve, &s->old_curve, &s->factor};
    for (size_t j = 0; j < COUNT(squares); j++)
        *squares[j] = NEW(double, m *m);
    double **const answers[] = {&s->offset, &s->outcome, &s->residual, &s->weight, &s->scratch};
    for (size_t j = 0; j < COUNT(answers); j++)
        *answers[j] = NEW(double, s->room);
    s->x = NEW(double, k * s->room);
    s->penalty[0] = fmax(l2, LEAST_PENALTY);
    for (size_t c = 1; c < m; c++)
        s->penalty[c] = fmax(l2_factors, LEAST_PENALTY);
    return s;
}

void ktm_student_free(struct ktm_student *s)
{
    if (s == NULL)
        return;
    void *const parts[] = {s->penalty,  s->b,      s->slope,   s->old_slope, s->step,   s->one,
                           s->column,   s->curve,  s->factor,  s->old_curve, s->offset, s->x,
                           s->residual, s->weight, s->scratch, s->outcome};
    for (size_t j = 0; j < COUNT(parts); j++)
        memory_free(parts[j]);
    memory_free(s);
}

void ktm_student_begin(struct ktm_student *s)
{
    const size_t m = 1 + s->k;
    s->n = s->n_new = 0;
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

/* Removes the answer in a place to make room for a newer one. */
static void leave(struct ktm_student *s, size_t place)
{
    s->one[0] = 1;
    for (size_t c = 0; c < s->k; c++)
        s->one[1 + c] = s->x[c * s->room + place];
    const double own = dot(s->one, s->b, 1 + s->k);
    const double p = sigmoid(s->offset[place] + own), d = p * (1 - p);
    add(s, p - s->outcome[place] - d * own, d, s->old_slope, s->old_curve);
}

/* Gradient and Hessian of F at b. */
static void look(struct ktm_student *s)
{
    const size_t m = 1 + s->k, n = size_min(s->n, s->room);
    const struct logistic_rows rows = {s->x, s->room, s->k, (n + EIGHT - 1) / EIGHT * EIGHT};
    logistic_sums->look(&rows, s->offset, s->outcome, s->b, s->residual, s->weight);
    for (size_t i = n; i < rows.n; i++)
        s->residual[i] = s->weight[i] = 0;
    logistic_sums->sums(&rows, s->residual, s->weight, s->scratch, s->slope, s->curve);
    for (size_t a = 0; a < m; a++) {
        s->slope[a] += s->old_slope[a] + s->penalty[a] * s->b[a];
        s->curve[a * m + a] += s->penalty[a];
        for (size_t c = 0; c <= a && s->n > s->room; c++) {
            const double old = s->old_curve[a * m + c];
            s->curve[a * m + c] += old;
            s->slope[a] += old * s->b[c];
            if (c < a)
                s->slope[c] += old * s->b[a];
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
    for (size_t c = 0; c < s->k; c++) {
        double *x = &s->x[c * s->room + place];
        if (place % EIGHT == 0 && s->n < s->room) /* clear leftovers of another student */
            memset(x, 0, EIGHT * sizeof *x);
        s->one[1 + c] = *x = (double)sum[c];
    }
    s->longest = fmax(s->longest, sqrt(dot(s->one + 1, s->one + 1, s->k)));
    s->offset[place] = offset;
    s->outcome[place] = correct;
    const double p = sigmoid(offset + dot(s->one, s->b, 1 + s->k));
    add(s, p - s->outcome[place], p * (1 - p), s->slope, s->curve);
    s->n++;
    s->n_new++;
}
