/* Scores of predictions, with the same bits on any number of ranks and for any distribution of
 * the predictions over them. Nothing is summed in floating point: the terms of each attempt
 * (deviance, loss, squared error) are rounded to multiples of 2^-52 and summed in 128-bit
 * integers, which 2^44 attempts of the worst loss (34.6 nats) do not overflow. Logarithms are
 * SLEEF's scalar ones, the same on every CPU.
 *
 * AUC is the probability that of a correct and an incorrect answer the correct one has the
 * higher prediction:
 *
 *           pairs with p(correct) > p(incorrect) + 1/2 pairs with equal p
 *     AUC = -------------------------------------------------------------
 *                                   all pairs
 *
 * The attempts are sorted by probability over all ranks; each rank has a range of them. Going
 * up, c correct and i incorrect answers of equal probability add
 *
 *     c (2 N + i)      N: incorrect answers of lower probability
 *
 * to twice the pairs. Lower ones in the same range count at once, those of lower ranks at the
 * end.
 *
 * Everything is computed with a weight per student, in columns: a column of ones gives the
 * score, columns of Poisson(1) weights give the replicates of a bootstrap over students.
 * Integer weights keep the sums exact, and neither the sort nor the logarithms are repeated. 64
 * replicates are computed at a time, so that the weights of a student fill one cache line.
 * Cost: n logarithms and a sort, then n additions of small integers per replicate. A roster
 * maps students to rows of the table of weights. Each rank needs two: one for its own attempts,
 * one for the attempts in its range. */
#include "learn/metrics.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "learn/parallel_sort.h"
#include <jansson.h>
#include <math.h>
#include <sleef.h>
#include <string.h>

typedef __int128 wide;

enum {
    SUM_N,
    SUM_CORRECT,
    SUM_ACCURATE,
    SUM_CBD,
    SUM_LOG_LOSS,
    SUM_SQUARE,
    SUM_BINS, /* probability - outcome, in each calibration bin */
    /* terms of single attempts end here */
    N_TERMS = SUM_BINS + N_CALIBRATION_BINS,
    SUM_PAIRS = N_TERMS, /* twice the pairs in the right order */
    N_SUMS
};
enum { N_COLUMNS = 64 };

#define FIXED_ONE 0x1p52

const char *const metrics_names[N_METRICS] = {"cbd",      "log_loss", "auc",
                                              "accuracy", "rmse",     "calibration_error"};

double *metrics_value(struct score *score, int metric)
{
    double *const values[N_METRICS] = {&score->cbd,  &score->log_loss,
                                       &score->auc,  &score->accuracy,
                                       &score->rmse, &score->calibration_error};
    ENSURE(metric >= 0 && metric < N_METRICS);
    return values[metric];
}

bool metrics_up(int metric)
{
    return metric == METRIC_AUC || metric == METRIC_ACCURACY;
}

json_t *score_json(const struct score *score)
{
    json_t *object = json_object();
    struct score copy = *score;
    json_object_set_new(object, "n", json_integer(score->n));
    for (int m = 0; m < N_METRICS; m++) {
        const double value = *metrics_value(&copy, m);
        json_object_set_new(object, metrics_names[m],
                            isfinite(value) ? json_real(value) : json_null());
    }
    if (isfinite(score->r2))
        json_object_set_new(object, "r2", json_real(score->r2));
    return object;
}

static int64_t fixed(double term)
{
    return llrint(term * FIXED_ONE);
}

/* NaN if n is 0. */
static double mean(wide sum, wide n)
{
    return n > 0 ? (double)sum / (double)n : NAN;
}

static double fixed_mean(wide sum, wide n)
{
    return mean(sum, n) / FIXED_ONE;
}

static int calibration_bin(float probability)
{
    const int bin = (int)((double)probability * N_CALIBRATION_BINS);
    return bin < N_CALIBRATION_BINS ? bin : N_CALIBRATION_BINS - 1;
}

static double clamp(double p, double least)
{
    return p < least ? least : p > 1 - least ? 1 - least : p;
}

static double nats(double p, bool correct)
{
    return -Sleef_cinz_logd1_u10purec(correct ? p : 1 - p);
}

static void terms_add(const struct prediction *attempt, wide terms[N_TERMS])
{
    const double p = attempt->probability, y = attempt->correct;
    const double within = clamp(p, 1e-15), capped = clamp(p, 0.01);
    const double loss = nats(within, attempt->correct);
    const double deviance = capped == within ? loss : nats(capped, attempt->correct);
    terms[SUM_N]++;
    terms[SUM_CORRECT] += attempt->correct;
    terms[SUM_ACCURATE] += (p >= 0.5) == attempt->correct;
    terms[SUM_CBD] += fixed(deviance / M_LN10);
    terms[SUM_LOG_LOSS] += fixed(loss);
    terms[SUM_SQUARE] += fixed((p - y) * (p - y));
    terms[SUM_BINS + calibration_bin(attempt->probability)] += fixed(p - y);
}

/* The students of some attempts, and the index of each attempt's student among them. */
struct roster {
    size_t n;
    uint32_t *student; /* n, ascending */
    uint32_t *place;   /* index into `student`, for each attempt */
};

/* `students`: the student of each attempt. */
static void roster_fill(struct roster *roster, const uint32_t *students, size_t n_attempts)
{
    size_t n_numbers = 0;
    for (size_t t = 0; t < n_attempts; t++)
        n_numbers = size_max(n_numbers, (size_t)students[t] + 1);
    uint32_t *place_of = NEW(uint32_t, n_numbers);
    for (size_t t = 0; t < n_attempts; t++)
        place_of[students[t]] = 1;
    roster->n = 0;
    for (size_t s = 0; s < n_numbers; s++)
        roster->n += place_of[s];
    roster->student = NEW_SCRATCH(uint32_t, roster->n);
    uint32_t n_placed = 0;
    for (size_t s = 0; s < n_numbers; s++)
        if (place_of[s]) {
            roster->student[n_placed] = (uint32_t)s;
            place_of[s] = n_placed++;
        }
    roster->place = NEW_SCRATCH(uint32_t, n_attempts);
    for (size_t t = 0; t < n_attempts; t++)
        roster->place[t] = place_of[students[t]];
    memory_free(place_of);
}

static void roster_fill_own(struct roster *roster, const struct prediction *predictions,
                            size_t n)
{
    uint32_t *students = NEW_SCRATCH(uint32_t, n);
    for (size_t t = 0; t < n; t++)
        students[t] = predictions[t].student;
    roster_fill(roster, students, n);
    memory_free(students);
}

/* One entry for all attempts: weights depend on the column only. */
static void roster_fill_one(struct roster *roster, size_t n_attempts)
{
    *roster = (struct roster){
        .n = 1, .student = NEW(uint32_t, 1), .place = NEW(uint32_t, n_attempts)};
}

static void roster_free(struct roster *roster)
{
    memory_free(roster->student);
    memory_free(roster->place);
}

/* The number of distinct students on all ranks: each student number is sent to the rank that
 * counts its range. */
static int64_t students_count(const struct comm *comm, const struct roster *roster)
{
    int64_t n_numbers = roster->n > 0 ? roster->student[roster->n - 1] + INT64_C(1) : 0;
    comm_max_i64(comm, &n_numbers, 1);
    const size_t n_ranks = (size_t)comm->size, rank = (size_t)comm->rank;
    size_t *n_to = NEW(size_t, n_ranks);
    for (size_t s = 0, r = 0; s < roster->n; s++) {
        while (roster->student[s] >= size_cut((size_t)n_numbers, r + 1, n_ranks))
            r++;
        n_to[r] += sizeof *roster->student;
    }
    size_t n_got = 0;
    uint32_t *got = comm_exchange(comm, roster->student, n_to, &n_got);
    const size_t first = size_cut((size_t)n_numbers, rank, n_ranks);
    bool *seen = NEW(bool, size_cut((size_t)n_numbers, rank + 1, n_ranks) - first);
    int64_t n = 0;
    for (size_t j = 0; j < n_got / sizeof *got; j++) {
        n += !seen[got[j] - first];
        seen[got[j] - first] = true;
    }
    comm_sum_i64(comm, &n, 1);
    memory_free(n_to);
    memory_free(got);
    memory_free(seen);
    return n;
}

/* The weights of a roster's students in n columns. `rng` NULL: ones. Otherwise Poisson(1), by
 * inversion: the number of steps of the distribution function up to a uniform 32-bit word. One
 * Philox call gives four words, the weights of four replicates: replicate r uses word r % 4 of
 * time r / 4. */
static void weights_fill(uint8_t *weights, const struct roster *roster, const struct rng *rng,
                         size_t first_column, size_t n_columns)
{
    static const uint32_t steps[] = {1580030169, 3160060337, 3950075422, 4213413783,
                                     4279248374, 4292415292, 4294609778, 4294923276,
                                     4294962463, 4294966817, 4294967253, 4294967292};
    if (rng == NULL) {
        memset(weights, 1, roster->n * n_columns);
        return;
    }
    for (size_t s = 0; s < roster->n; s++) {
        struct rng name = *rng;
        name.who = roster->student[s];
        uint32_t words[4] = {0};
        for (size_t c = 0; c < n_columns; c++) {
            if (c % 4 == 0) {
                name.when = (uint32_t)((first_column + c) / 4);
                rng_words(&name, 0, words);
            }
            unsigned weight = 0; /* without branches, which chance would mispredict */
            for (size_t k = 0; k < COUNT(steps); k++)
                weight += words[c % 4] >= steps[k];
            weights[s * n_columns + c] = (uint8_t)weight;
        }
    }
}

/* For each column, twice the pairs within the range of a rank, and its answers by outcome. */
struct pairs {
    wide pairs[N_COLUMNS];
    int64_t answers[2][N_COLUMNS];
};

/* Answers by outcome, and pairs, in RUN consecutive attempts: few enough for small integers,
 * for which the compiler uses vector instructions (weights are at most 12; 12 RUN fits 16
 * bits). */
enum { RUN = 4096 };
struct run {
    uint16_t answers[2][N_COLUMNS];
    uint32_t pairs[N_COLUMNS];
};

static void run_count(struct run *run, const uint32_t *key, const uint32_t *place, size_t n,
                      const uint8_t *weights, size_t n_columns)
{
    memset(run, 0, sizeof *run);
    for (size_t t = 0; t < n; t++) {
        const uint8_t *weight = weights + place[t] * n_columns;
        uint16_t *restrict answers = run->answers[key[t] & 1];
        for (size_t c = 0; c < n_columns; c++)
            answers[c] = (uint16_t)(answers[c] + weight[c]);
        if (key[t] & 1)
            for (size_t c = 0; c < n_columns; c++)
                run->pairs[c] += (uint32_t)weight[c] * run->answers[0][c];
    }
}

/* The products c i of all groups of equal probability with both outcomes. A group is found at
 * the boundary between its incorrect answers, which come first, and its correct ones. */
static void ties_count(wide ties[N_COLUMNS], const struct parallel_sort *part,
                       const uint32_t *place, const uint8_t *weights, size_t n_columns)
{
    const uint32_t *key = part->key;
    for (size_t middle = 1; middle < part->n; middle++) {
        if (key[middle] == key[middle - 1] || key[middle] >> 1 != key[middle - 1] >> 1)
            continue;
        int64_t group[2][N_COLUMNS] = {{0}};
        size_t first = middle, end = middle;
        for (; first > 0 && key[first - 1] == key[middle - 1]; first--)
            for (size_t c = 0; c < n_columns; c++)
                group[0][c] += weights[place[first - 1] * n_columns + c];
        for (; end < part->n && key[end] == key[middle]; end++)
            for (size_t c = 0; c < n_columns; c++)
                group[1][c] += weights[place[end] * n_columns + c];
        for (size_t c = 0; c < n_columns; c++)
            ties[c] += (wide)group[0][c] * group[1][c];
    }
}

/* Counts ties as pairs in the right order (the incorrect come first), then subtracts half. */
static void pairs_count(struct pairs *out, const struct parallel_sort *part,
                        const uint32_t *place, const uint8_t *weights, size_t n_columns)
{
    memset(out, 0, sizeof *out);
    for (size_t first = 0; first < part->n; first += RUN) {
        struct run run;
        run_count(&run, part->key + first, place + first, size_min(RUN, part->n - first),
                  weights, n_columns);
        for (size_t c = 0; c < n_columns; c++) {
            out->pairs[c] += 2 * (run.pairs[c] + (wide)run.answers[1][c] * out->answers[0][c]);
            out->answers[0][c] += run.answers[0][c];
            out->answers[1][c] += run.answers[1][c];
        }
    }
    wide ties[N_COLUMNS] = {0};
    ties_count(ties, part, place, weights, n_columns);
    for (size_t c = 0; c < n_columns; c++)
        out->pairs[c] -= ties[c];
}

static void terms_weigh(wide sums[][N_SUMS], const wide (*terms)[N_TERMS], size_t n_places,
                        const uint8_t *weights, size_t n_columns)
{
    wide total[N_TERMS][N_COLUMNS];
    memset(total, 0, sizeof total);
    for (size_t s = 0; s < n_places; s++)
        for (size_t k = 0; k < N_TERMS; k++)
            if (terms[s][k] != 0)
                for (size_t c = 0; c < n_columns; c++)
                    total[k][c] += weights[s * n_columns + c] * terms[s][k];
    for (size_t c = 0; c < n_columns; c++)
        for (size_t k = 0; k < N_TERMS; k++)
            sums[c][k] = total[k][c];
}

/* Collective: the sums of all ranks for n columns of weights. */
static void sums_fill(const struct comm *comm, const struct prediction *predictions, size_t n,
                      const struct rng *rng, wide (*sums)[N_SUMS], size_t n_columns)
{
    struct parallel_sort part;
    parallel_sort_fill(&part, comm, predictions, n);
    struct roster own, sorted;
    if (rng != NULL) {
        roster_fill_own(&own, predictions, n);
        roster_fill(&sorted, part.student, part.n);
    } else {
        roster_fill_one(&own, n);
        roster_fill_one(&sorted, part.n);
    }
    wide(*terms)[N_TERMS] = memory_zeroed(own.n, sizeof *terms);
    for (size_t t = 0; t < n; t++)
        terms_add(&predictions[t], terms[own.place[t]]);

    uint8_t *weights =
        NEW_SCRATCH(uint8_t, size_max(own.n, sorted.n) * size_min(n_columns, N_COLUMNS));
    struct pairs *pairs = NEW_SCRATCH(struct pairs, 1);
    int64_t(*answers)[2] = memory_scratch(n_columns, sizeof *answers);
    for (size_t first = 0; first < n_columns; first += N_COLUMNS) {
        const size_t n_here = size_min(N_COLUMNS, n_columns - first);
        weights_fill(weights, &own, rng, first, n_here);
        terms_weigh(sums + first, (const wide(*)[N_TERMS])terms, own.n, weights, n_here);
        weights_fill(weights, &sorted, rng, first, n_here);
        pairs_count(pairs, &part, sorted.place, weights, n_here);
        for (size_t c = 0; c < n_here; c++) {
            sums[first + c][SUM_PAIRS] = pairs->pairs[c];
            for (int y = 0; y < 2; y++)
                answers[first + c][y] = pairs->answers[y][c];
        }
    }

    const size_t rank = (size_t)comm->rank, n_ranks = (size_t)comm->size;
    int64_t *incorrect = NEW(int64_t, n_ranks * n_columns);
    for (size_t c = 0; c < n_columns; c++)
        incorrect[rank * n_columns + c] = answers[c][0];
    comm_sum_i64(comm, incorrect, n_ranks * n_columns);
    for (size_t c = 0; c < n_columns; c++)
        for (size_t r = 0; r < rank; r++)
            sums[c][SUM_PAIRS] += 2 * (wide)answers[c][1] * incorrect[r * n_columns + c];
    comm_sum_i128(comm, sums[0], n_columns * N_SUMS);

    memory_free(incorrect);
    memory_free(answers);
    memory_free(pairs);
    memory_free(weights);
    memory_free(terms);
    roster_free(&own);
    roster_free(&sorted);
    parallel_sort_free(&part);
}

static void score_from(struct score *score, const wide sums[N_SUMS])
{
    const wide n = sums[SUM_N];
    wide gap = 0;
    for (size_t b = 0; b < N_CALIBRATION_BINS; b++)
        gap += sums[SUM_BINS + b] < 0 ? -sums[SUM_BINS + b] : sums[SUM_BINS + b];
    const wide n_pairs = sums[SUM_CORRECT] * (n - sums[SUM_CORRECT]);
    score->correct = mean(sums[SUM_CORRECT], n);
    score->cbd = fixed_mean(sums[SUM_CBD], n);
    score->log_loss = fixed_mean(sums[SUM_LOG_LOSS], n);
    score->auc = mean(sums[SUM_PAIRS], 2 * n_pairs);
    score->r2 = NAN;
    score->accuracy = mean(sums[SUM_ACCURATE], n);
    score->rmse = sqrt(fixed_mean(sums[SUM_SQUARE], n));
    score->calibration_error = fixed_mean(gap, n);
}

static void counts_fill(const struct comm *comm, const struct prediction *predictions, size_t n,
                        struct score *score)
{
    struct roster own;
    roster_fill_own(&own, predictions, n);
    *score = (struct score){.n = (int64_t)n, .n_students = students_count(comm, &own)};
    comm_sum_i64(comm, &score->n, 1);
    roster_free(&own);
}

void metrics_score(const struct comm *comm, const struct prediction *predictions, size_t n,
                   struct score *score)
{
    wide sums[1][N_SUMS];
    sums_fill(comm, predictions, n, NULL, sums, 1);
    counts_fill(comm, predictions, n, score);
    score_from(score, sums[0]);
}

void metrics_calibration(const struct comm *comm, const struct prediction *predictions,
                         size_t n, struct calibration_bin bins[N_CALIBRATION_BINS])
{
    struct {
        wide n, correct, probability;
    } sums[N_CALIBRATION_BINS] = {{0}};
    for (size_t t = 0; t < n; t++) {
        const int b = calibration_bin(predictions[t].probability);
        sums[b].n++;
        sums[b].correct += predictions[t].correct;
        sums[b].probability += fixed(predictions[t].probability);
    }
    comm_sum_i128(comm, &sums[0].n, 3 * N_CALIBRATION_BINS);
    for (size_t b = 0; b < N_CALIBRATION_BINS; b++)
        bins[b] =
            (struct calibration_bin){.n = (int64_t)sums[b].n,
                                     .probability = fixed_mean(sums[b].probability, sums[b].n),
                                     .correct = mean(sums[b].correct, sums[b].n)};
}

void metrics_resample(const struct comm *comm, const struct prediction *predictions, size_t n,
                      size_t n_replicates, uint64_t seed, struct score *scores)
{
    const struct rng rng = {.seed = seed, .purpose = RNG_RESAMPLE};
    wide(*sums)[N_SUMS] = memory_scratch(n_replicates, sizeof *sums);
    struct score all;
    counts_fill(comm, predictions, n, &all);
    if (metrics_has_interval(all.n_students))
        sums_fill(comm, predictions, n, &rng, sums, n_replicates);
    else
        memset(sums, 0, n_replicates * sizeof *sums);
    for (size_t r = 0; r < n_replicates; r++) {
        scores[r] = (struct score){.n = (int64_t)sums[r][SUM_N]};
        score_from(&scores[r], sums[r]);
    }
    memory_free(sums);
}
