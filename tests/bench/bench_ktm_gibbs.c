/* The factorization machine of ktm compared with a Bayesian one, trained by Gibbs sampling, on
 * the same features of the same attempts, each on one core: time, CBD and AUC of the test
 * answers.
 *
 * The Bayesian machine is in gibbs.h. Each word of model.features is a group of its priors,
 * which suits it better than one group for all. Its prediction is the mean of Phi(f) over all
 * iterations, as in libFM, or over those after the tenth; the better one is shown. It has no
 * settings to choose and needs no validation part. The same chain then continues, to show where
 * it ends.
 *
 * Features. On ASSISTments 2009 all test students are new, so a row per student would be
 * useless. Both machines use the item and the logarithms of the counts of earlier right and
 * wrong answers, in total and for this item; then also the previous row (explained in
 * jobs/ktm_fm_assist2009.ini). All training students are used. On Eedi, single answers of known
 * students are withheld: student and item, the preset itself.
 *
 * ktm stops when a step is expected to lower the loss by less than a thousandth. Its penalties
 * minimise the log-loss of the validation part: l2 in 1, 2, 4 and l2_factors in 3, 5, 7, 10 (on
 * ASSISTments after training on train1 without valid1; on Eedi also l2 = 0.5, l2_factors = 15,
 * and scale in 0.1, 0.3). Both machines start from random values: figures are means over three
 * seeds, for CBD with minimum and maximum. Times are processor times, since the machine may
 * have other work, and exclude reading the data.
 *
 * First the sampler must recover a known model: answers drawn from a machine with 2 factors. If
 * its posterior is right, 90 % of the true scores lie within 1.645 standard deviations of its
 * mean. */
#include "base/comm.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/h5.h"
#include "base/log.h"
#include "base/memory.h"
#include "bench.h"
#include "gibbs.h"
#include "learn/metrics.h"
#include "models/ktm/ktm_internal.h"
#include "runs/scoring.h"
#include "runs/stepper.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FACTORS = 8, ITERATIONS = 50, BURN_IN = 10, LONG = 500, SEEDS = 3 };

static void must(enum status status)
{
    if (status != OK)
        fail_abort(status, "%s", fail_sentence());
}

/* ---- features and scores */

/* ktm's own features of the attempts of a split. */
static void design_of_ktm(struct design *d, const struct stepper *stepper, enum split split)
{
    struct ktm_work *work = stepper->work;
    const struct shard *shard = &stepper->shard;
    const struct ktm_design *features = work->design;
    design_begin(d, shard->n_attempts, features->n_rows);
    d->n_groups = features->n;
    for (size_t j = 0; j < features->n; j++)
        d->group_first[j] = features->list[j].first_row;
    d->group_first[d->n_groups] = features->n_rows;
    for (size_t s = 0; s < shard->n_students; s++) {
        ktm_walk_student(&work->walk, shard, s, 1u << split, true, features->n_common + s);
        const struct fm_features *a = &work->walk.attempts;
        for (size_t t = 0; t < a->n; t++) {
            for (size_t e = a->first[t]; e < a->first[t + 1]; e++)
                design_add(d, a->row[e], (double)a->x[e]);
            design_end_attempt(
                d, mark_outcome(shard->mark[shard->first[s] + work->walk.place[t]]) == CORRECT);
        }
    }
}

/* CBD and AUC of the probabilities sum / n. */
static struct score score_of(const struct comm *comm, const struct design *d, const double *sum,
                             double n)
{
    struct prediction *list = NEW(struct prediction, d->n);
    for (size_t i = 0; i < d->n; i++)
        list[i] = (struct prediction){
            .probability = (float)(sum[i] / n), .group = -1, .correct = d->correct[i]};
    struct score score;
    metrics_score(comm, list, d->n, &score);
    memory_free(list);
    return score;
}

/* ---- recovery of a known model */

enum { STUDENTS = 400, ITEMS = 150, ASKED = 60, KNOWN = 2 };

struct truth_machine {
    double bias, w[STUDENTS + ITEMS], v[STUDENTS + ITEMS][KNOWN];
};

static double true_score(const struct truth_machine *truth, size_t student, size_t item)
{
    double f = truth->bias + truth->w[student] + truth->w[item];
    for (size_t c = 0; c < KNOWN; c++)
        f += truth->v[student][c] * truth->v[item][c];
    return f;
}

static void simulate(struct design *d, const struct truth_machine *truth, double *score)
{
    design_begin(d, STUDENTS * ASKED, STUDENTS + ITEMS);
    d->n_groups = 2;
    d->group_first[1] = STUDENTS;
    d->group_first[2] = STUDENTS + ITEMS;
    for (size_t s = 0; s < STUDENTS; s++)
        for (size_t a = 0; a < ASKED; a++) {
            const size_t item = STUDENTS + (size_t)(uniform() * ITEMS);
            score[d->n] = true_score(truth, s, item);
            design_add(d, s, 1);
            design_add(d, item, 1);
            design_end_attempt(d, score[d->n] + normal() > 0);
        }
}

static void find_the_known(const struct comm *comm)
{
    static struct truth_machine truth = {.bias = 0.3};
    static const double spread[] = {0.8, 1.2};
    enum { N = STUDENTS * ASKED };
    const int n_rounds = bench_is_short() ? 12 : 600, warm = n_rounds / 3;
    for (size_t j = 0; j < STUDENTS + ITEMS; j++) {
        truth.w[j] = spread[j >= STUDENTS] * normal();
        for (size_t c = 0; c < KNOWN; c++)
            truth.v[j][c] = 0.8 * normal();
    }
    struct design train, test;
    double *known = NEW(double, N), *score = NEW(double, N), *sum = NEW(double, N),
           *squares = NEW(double, N), *chance = NEW(double, N);
    simulate(&train, &truth, known);
    simulate(&test, &truth, known);
    design_by_columns(&train);
    struct score scores[2];
    double deviation[2] = {0, 0}, drift = 0;
    for (size_t with = 0; with < 2; with++) {
        struct gibbs g;
        gibbs_create(&g, &train, with * KNOWN);
        memset(sum, 0, N * sizeof *sum);
        memset(squares, 0, N * sizeof *squares);
        memset(chance, 0, N * sizeof *chance);
        for (int round = 0; round < n_rounds; round++) {
            gibbs_iterate(&g);
            if (round < warm)
                continue;
            gibbs_scores(&g, &test, score);
            for (size_t i = 0; i < N; i++) {
                sum[i] += score[i];
                squares[i] += score[i] * score[i];
                chance[i] += phi(score[i]);
            }
            for (size_t group = 0; group < 2 && with; group++)
                deviation[group] += 1 / sqrt(g.priors[group].precision) / (n_rounds - warm);
        }
        scores[with] = score_of(comm, &test, chance, n_rounds - warm);
        drift = fmax(drift, gibbs_drift(&g));
        gibbs_free(&g);
    }
    double within = 0, xy = 0, xx = 0, yy = 0, x = 0, y = 0;
    for (size_t i = 0; i < N; i++) {
        const double mean = sum[i] / (n_rounds - warm);
        const double variance = squares[i] / (n_rounds - warm) - mean * mean;
        within += fabs(mean - known[i]) < 1.645 * sqrt(variance);
        x += mean / N;
        y += known[i] / N;
        xx += mean * mean / N;
        yy += known[i] * known[i] / N;
        xy += mean * known[i] / N;
    }
    for (size_t i = 0; i < N; i++)
        chance[i] = phi(known[i]);
    log_say(
        "the sampler, %d simulated answers, %d factors: CBD %.4f (without factors %.4f, the "
        "truth %.4f), correlation of scores %.3f, within 1.645 standard deviations %.1f %%; "
        "standard deviations of students %.2f (%.2f), of items %.2f (%.2f); cache error "
        "at most %.0e",
        N, KNOWN, scores[1].cbd, scores[0].cbd, score_of(comm, &test, chance, 1).cbd,
        (xy - x * y) / sqrt((xx - x * x) * (yy - y * y)), 100 * within / N, deviation[0],
        spread[0], deviation[1], spread[1], drift);
    double *const all[] = {known, score, sum, squares, chance};
    for (size_t a = 0; a < COUNT(all); a++)
        memory_free(all[a]);
    design_free(&train);
    design_free(&test);
}

/* ---- both machines on real answers */

static void open_stepper(const struct comm *comm, const char *data, const char *options,
                         struct settings *settings, struct stepper *stepper)
{
    struct config *config = config_create();
    char *text = memory_text("[data]\nfile = %s\n[model]\nkind = ktm\npreset = fm\n%s\n[run]\n"
                             "directory = none\n",
                             data, options);
    must(config_read_text(config, text, "bench"));
    must(settings_create(settings, config, NULL));
    must(stepper_create(stepper, comm, settings));
    memory_free(text);
}

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Results over several seeds. */
struct tried {
    double seconds, predicting, passes, auc;    /* means */
    double cbd, least, most, until, cbd_of_all; /* least, most: of the CBD */
};

static void try_add(struct tried *tried, const struct score *score, double seconds)
{
    const bool is_first = tried->seconds == 0;
    tried->seconds += seconds / SEEDS;
    tried->cbd += score->cbd / SEEDS;
    tried->auc += score->auc / SEEDS;
    tried->least = is_first ? score->cbd : fmin(tried->least, score->cbd);
    tried->most = is_first ? score->cbd : fmax(tried->most, score->cbd);
}

/* A chain of n iterations. The probabilities of the test answers are added to `all`, and those
 * after `burn_in` to `late`. Returns the seconds spent on them. */
static double go_on(struct gibbs *g, const struct design *test, int n, int burn_in, double *all,
                    double *late)
{
    double *f = NEW(double, test->n), predicting = 0;
    for (int round = 0; round < n; round++) {
        gibbs_iterate(g);
        const double start = processor_seconds();
        gibbs_scores(g, test, f);
        for (size_t i = 0; i < test->n; i++) {
            const double chance = phi(f[i]);
            all[i] += chance;
            late[i] += round >= burn_in ? chance : 0;
        }
        predicting += processor_seconds() - start;
    }
    memory_free(f);
    return predicting;
}

static void sample(const struct comm *comm, const struct stepper *stepper, struct tried *tried)
{
    struct design train, test;
    design_of_ktm(&train, stepper, TRAIN);
    design_of_ktm(&test, stepper, TEST);
    design_by_columns(&train);
    *tried = (struct tried){0};
    for (uint64_t seed = SEEDS; seed > 0; seed--) {
        double *all = NEW(double, test.n), *late = NEW(double, test.n);
        struct gibbs g;
        counter = seed << 32;
        const double start = processor_seconds();
        gibbs_create(&g, &train, FACTORS);
        tried->predicting += go_on(&g, &test, ITERATIONS, BURN_IN, all, late) / SEEDS;
        const double seconds = processor_seconds() - start;
        const struct score whole = score_of(comm, &test, all, ITERATIONS),
                           part = score_of(comm, &test, late, ITERATIONS - BURN_IN);
        try_add(tried, part.cbd < whole.cbd ? &part : &whole, seconds);
        tried->cbd_of_all += whole.cbd / SEEDS;
        if (seed == 1) {
            log_say(
                "  Gibbs sampling %6.2f s: %d iterations, %.2f s of it predicting, %.1f "
                "million attempts x iterations per second; CBD %.5f (%.5f to %.5f; over all "
                "iterations %.5f), AUC %.4f",
                tried->seconds, ITERATIONS, tried->predicting,
                (double)train.n * ITERATIONS / (tried->seconds - tried->predicting) / 1e6,
                tried->cbd, tried->least, tried->most, tried->cbd_of_all, tried->auc);
            memset(late, 0, test.n * sizeof *late);
            go_on(&g, &test, LONG - ITERATIONS, 0, all, late);
            const struct score end = score_of(comm, &test, late, LONG - ITERATIONS);
            log_say("  the last chain %6.2f s: %d iterations; CBD %.5f, AUC %.4f",
                    processor_seconds() - start, LONG, end.cbd, end.auc);
        }
        gibbs_free(&g);
        memory_free(all);
        memory_free(late);
    }
    design_free(&train);
    design_free(&test);
}

static struct score test_score(const struct stepper *stepper)
{
    struct predictions predictions;
    struct score score;
    must(scoring_predict(stepper->model, stepper->work, &stepper->shard, 1u << TEST,
                         &predictions));
    scoring_keep(&predictions, &stepper->shard, false);
    metrics_score(stepper->comm, predictions.list, predictions.n, &score);
    scoring_free(&predictions);
    return score;
}

/* Train ktm from one seed to convergence; `until` is the time at which the test CBD first
 * reached `goal`. */
static void train(struct stepper *stepper, double goal, struct tried *tried)
{
    struct score score = {0};
    double seconds = 0, until = NAN;
    for (int64_t epoch = 0; epoch < stepper->settings->train.epochs && !stepper->converged;
         epoch++) {
        const double start = processor_seconds();
        must(stepper_step(stepper, epoch, 0));
        seconds += processor_seconds() - start;
        score = test_score(stepper);
        until = isnan(until) && score.cbd <= goal ? seconds : until;
    }
    try_add(tried, &score, seconds);
    tried->until += until / SEEDS;
    tried->passes += (double)ktm_passes(stepper->work) / SEEDS;
}

static void compare(const struct comm *comm, const char *name, const char *data,
                    const char *options)
{
    if (data == NULL || !file_exists(data)) {
        log_say("%s: skipped, no data", name);
        return;
    }
    struct tried theirs = {0}, ours = {0};
    double n = 0;
    for (int seed = 1; seed <= SEEDS; seed++) {
        struct settings settings;
        struct stepper stepper;
        char *seeded = memory_text("%s\ntolerance = 1e-3\n[train]\nseed = %d", options, seed);
        open_stepper(comm, data, seeded, &settings, &stepper);
        n = (double)stepper.n_training;
        if (seed == 1) {
            log_say("%s, %.0f attempts, %d factors:", name, n, FACTORS);
            sample(comm, &stepper, &theirs);
        }
        train(&stepper, theirs.cbd, &ours);
        stepper_destroy(&stepper);
        settings_destroy(&settings);
        memory_free(seeded);
    }
    log_say(
        "  ktm            %6.2f s: %.0f passes, %.1f million attempts x passes per second; CBD "
        "%.5f (%.5f to %.5f), AUC %.4f; reached the CBD of %d iterations after %.2f s",
        ours.seconds, ours.passes, n * ours.passes / ours.seconds / 1e6, ours.cbd, ours.least,
        ours.most, ours.auc, ITERATIONS, ours.until);
}

int main(int argc, char **argv)
{
    struct comm world;
    comm_start(&world, &argc, &argv);
    h5_start();
    find_the_known(&world);
    compare(&world, "assist2009, item and counts", getenv("BENCH_A09"),
            "features = item wins:log fails:log wins_item:log fails_item:log\nl2 = 2\n"
            "l2_factors = 10");
    compare(&world, "assist2009, also the row before", getenv("BENCH_A09"),
            "features = item previous_item wins:log fails:log wins_item:log fails_item:log\n"
            "l2 = 1\nl2_factors = 7");
    compare(&world, "eedi, student and item", getenv("BENCH_EEDI"),
            "l2 = 1\nl2_factors = 10\nscale = 0.3");
    comm_finish(&world);
    return 0;
}
