/* The speed of Bayesian knowledge tracing: attempts times iterations per second on one core,
 * compared with a plain forward-backward pass (one trace at a time, in double precision, as
 * usually written). Also the time to convergence from data in memory, including building the
 * traces.
 *
 * The class is simulated: 50 000 students, 10 skills, 5 million attempts for training. If
 * BENCH_A09 names a data set (tests/bench/run_benches.sh imports ASSISTments 2009 if present),
 * that is measured too. Rates are the best of several interleaved rounds. */
#include "base/comm.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/h5.h"
#include "base/log.h"
#include "base/memory.h"
#include "bench.h"
#include "data_tools/simulate.h"
#include "models/bkt/bkt_internal.h"
#include "runs/stepper.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 9 };

static void must(enum status status)
{
    if (status != OK)
        fail_abort(status, "%s", fail_sentence());
}

static void open_stepper(const struct comm *comm, const char *data, const char *options,
                         struct settings *settings, struct stepper *stepper)
{
    struct config *config = config_create();
    char *text = memory_text("[data]\nfile = %s\n[model]\nkind = bkt\n%s\n[run]\ndirectory = "
                             "none\n",
                             data, options);
    must(config_read_text(config, text, "bench"));
    must(settings_create(settings, config, NULL));
    must(stepper_create(stepper, comm, settings));
    memory_free(text);
}

/* ---- the plain implementation */

static double plain_pass(const struct bkt_traces *traces, const double (*rates)[N_RATES],
                         double (*alpha)[2], double *scale, double *log_likelihood)
{
    double counted = 0;
    *log_likelihood = 0;
    for (size_t i = 0; i < traces->n; i++) {
        const struct bkt_trace *trace = &traces->list[i];
        const double *r = rates[trace->skill];
        const uint8_t *seen = traces->outcome + trace->start;
        const double emit[2][2] = {{1 - r[RATE_GUESS], r[RATE_GUESS]},
                                   {r[RATE_SLIP], 1 - r[RATE_SLIP]}};
        const double move[2][2] = {{1 - r[RATE_LEARN], r[RATE_LEARN]},
                                   {r[RATE_FORGET], 1 - r[RATE_FORGET]}};
        double now[2] = {1 - r[RATE_FIRST], r[RATE_FIRST]};
        for (size_t t = 0; t < trace->length; t++) {
            double sum = 0;
            for (int j = 0; j < 2; j++)
                sum += alpha[t][j] = now[j] * emit[j][seen[t]];
            scale[t] = sum;
            *log_likelihood += log(sum);
            for (int j = 0; j < 2; j++)
                alpha[t][j] /= sum;
            for (int j = 0; j < 2; j++)
                now[j] = alpha[t][0] * move[0][j] + alpha[t][1] * move[1][j];
        }
        double beta[2] = {1, 1};
        for (size_t t = trace->length; t-- > 0;) {
            counted += alpha[t][1] * beta[1];
            double before[2];
            for (int j = 0; j < 2; j++)
                before[j] = (move[j][0] * emit[0][seen[t]] * beta[0] +
                             move[j][1] * emit[1][seen[t]] * beta[1]) /
                            scale[t];
            if (t > 0)
                counted += alpha[t - 1][0] * move[0][1] * emit[1][seen[t]] * beta[1] / scale[t];
            memcpy(beta, before, sizeof beta);
        }
    }
    return counted;
}

/* ---- timing */

static void measure_rate(const struct comm *comm, const char *data, const char *name,
                         const char *options)
{
    struct settings settings;
    struct stepper stepper;
    char *all = memory_text("tolerance = 1e-12\n%s", options);
    open_stepper(comm, data, all, &settings, &stepper);
    must(stepper_step(&stepper, 0, 0));
    const struct bkt_work *work = stepper.work;
    const struct bkt_traces *traces = &work->traces;
    const size_t n_skills = work->shape->n_skills;
    double(*rates)[N_RATES] = memory_zeroed(n_skills, sizeof *rates);
    for (size_t k = 0; k < n_skills; k++)
        memcpy(rates[k], bkt_centres, sizeof *rates);
    double(*alpha)[2] = memory_zeroed(traces->longest, sizeof *alpha);
    double *scale = NEW(double, traces->longest);
    double ours = INFINITY, plain = INFINITY, checked = 0, log_likelihood = 0;
    /* few enough epochs for all skills to be active in each */
    for (int64_t round = 1; round < (bench_is_short() ? 2 : ROUNDS) && stepper.share == 1;
         round++) {
        double start = log_clock();
        must(stepper_step(&stepper, round, 0));
        if (stepper.share == 1)
            ours = fmin(ours, log_clock() - start);
        start = log_clock();
        checked += plain_pass(traces, rates, alpha, scale, &log_likelihood);
        plain = fmin(plain, log_clock() - start);
    }
    const double n = (double)traces->n_steps;
    double lanes = 0;
    for (size_t g = 0; g < traces->n_groups; g++)
        lanes += (double)traces->groups[g].n_steps * WIDTH;
    log_say("%-34s %5.0f million attempts x iterations per second on one core, %4.1f times the "
            "plain way (%.0f million); %.0f %% of the lanes filled%s",
            name, n / ours / 1e6, plain / ours, n / plain / 1e6, 100 * n / lanes,
            checked > 0 && log_likelihood < 0 ? "" : " (and something is wrong)");
    memory_free(rates);
    memory_free(alpha);
    memory_free(scale);
    memory_free(all);
    stepper_destroy(&stepper);
    settings_destroy(&settings);
}

static void measure_fit(const struct comm *comm, const char *data, const char *name,
                        const char *options)
{
    double best = INFINITY, loss = 0;
    int64_t epochs = 0, n = 0;
    for (int round = 0; round < bench_rounds(3); round++) {
        struct settings settings;
        struct stepper stepper;
        open_stepper(comm, data, options, &settings, &stepper);
        const double start = log_clock();
        for (epochs = 0; !stepper.converged; epochs++) {
            stepper.tally.loss = 0;
            must(stepper_step(&stepper, epochs, 0));
        }
        best = fmin(best, log_clock() - start);
        loss = ldexp((double)stepper.tally.loss, -LOSS_BITS);
        n = stepper.n_training;
        stepper_destroy(&stepper);
        settings_destroy(&settings);
    }
    log_say("%-34s %8lld attempts: %.3f s to convergence, %lld epochs, log-likelihood %.1f",
            name, (long long)n, best, (long long)epochs, -loss);
}

int main(int argc, char **argv)
{
    struct comm world;
    comm_start(&world, &argc, &argv);
    h5_start();
    const char *directory = getenv("BENCH_DIRECTORY"); /* made by tests/bench/run_benches.sh */
    char *class = memory_text("%s/bkt.h5", directory != NULL ? directory : ".");
    if (!file_exists(class)) {
        const struct simulate_flags flags = {.n_students = bench_is_short() ? 500 : 50000,
                                             .n_skills = 10,
                                             .seed = 1,
                                             .split = "none",
                                             .output = class};
        const void *kind = NULL;
        must(subcommands_find(&simulate_menu, "bkt", &kind));
        must(simulate_run(kind, &flags));
    }
    const char *a09 = getenv("BENCH_A09");
    measure_rate(&world, class, "simulated", "");
    measure_rate(&world, class, "simulated, forgetting", "forget = yes");
    measure_rate(&world, class, "simulated, items' guess and slip", "items = yes");
    measure_fit(&world, class, "simulated, no prior", "prior = 0");
    measure_fit(&world, class, "simulated, no prior, 10 starts", "prior = 0\nrestarts = 10");
    if (a09 != NULL && file_exists(a09)) {
        measure_rate(&world, a09, "assist2009", "");
        measure_fit(&world, a09, "assist2009, no prior", "prior = 0");
        measure_fit(&world, a09, "assist2009, no prior, forgetting", "prior = 0\nforget = yes");
        measure_fit(&world, a09, "assist2009, no prior, 10 starts", "prior = 0\nrestarts = 10");
    }
    memory_free(class);
    comm_finish(&world);
    return 0;
}
