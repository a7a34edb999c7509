/* The speed of training knowledge tracing machines: attempts in a pass over the data (a
 * gradient, a product with the curvature, a loss), on all ranks and on one. The first pass
 * computes the features and the others reuse them. Also how fast one rank predicts validation
 * attempts, with students' rows (rasch, fm) or without.
 * ranks: 2
 *
 * The class is grockit-shaped: 131 072 students, 6 046 items, about 5 million attempts. Every
 * figure is the best of a few interleaved epochs of about six passes. */
#include "base/comm.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/h5.h"
#include "base/log.h"
#include "base/memory.h"
#include "bench.h"
#include "models/ktm/ktm_internal.h"
#include "runs/scoring.h"
#include "runs/stepper.h"
#include <math.h>
#include <stdlib.h>

enum { ROUNDS = 3 };

static void must(enum status status)
{
    if (status != OK)
        fail_abort(status, "%s", fail_sentence());
}

static void open_stepper(const struct comm *comm, const char *data, const char *preset,
                         struct settings *settings, struct stepper *stepper)
{
    struct config *config = config_create();
    char *text = memory_text("[data]\nfile = %s\n[model]\nkind = ktm\npreset = %s\n"
                             "products = 4\n[run]\ndirectory = none\n",
                             data, preset);
    must(config_read_text(config, text, "bench"));
    must(settings_create(settings, config, NULL));
    must(stepper_create(stepper, comm, settings));
    memory_free(text);
}

/* Seconds per pass in one epoch. */
static double time_pass(struct stepper *stepper, int64_t epoch)
{
    const int64_t before = ktm_passes(stepper->work);
    comm_barrier(stepper->comm);
    const double start = log_clock();
    must(stepper_step(stepper, epoch, 0));
    comm_barrier(stepper->comm);
    return (log_clock() - start) / (double)(ktm_passes(stepper->work) - before);
}

/* Validation attempts predicted per second. */
static double predictions_a_second(struct stepper *stepper)
{
    struct predictions predictions;
    const double start = log_clock();
    must(scoring_predict(stepper->model, stepper->work, &stepper->shard, 1u << VALID,
                         &predictions));
    const double rate = (double)predictions.n / (log_clock() - start);
    scoring_free(&predictions);
    return rate;
}

int main(int argc, char **argv)
{
    static const char *const presets[] = {"rasch", "pfa", "bestlr", "fm"};
    struct comm world;
    comm_start(&world, &argc, &argv);
    h5_start();
    const char *data = getenv("BENCH_CLASS"); /* made by tests/bench/run_benches.sh */
    if (data == NULL || !file_exists(data))
        fail_abort(BAD_USER, "BENCH_CLASS names no data set; run `make bench`");
    const struct comm self = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};
    for (size_t p = 0; p < COUNT(presets); p++) {
        struct settings settings[2];
        struct stepper all, alone;
        open_stepper(&world, data, presets[p], &settings[0], &all);
        open_stepper(&self, data, presets[p], &settings[1], &alone);
        double together = INFINITY, one = INFINITY, rate = 0;
        for (int64_t round = 0; round < bench_rounds(ROUNDS); round++) {
            together = fmin(together, time_pass(&all, round));
            if (world.rank == 0) {
                one = fmin(one, time_pass(&alone, round));
                rate = fmax(rate, predictions_a_second(&alone));
            }
            comm_barrier(&world);
        }
        const double n = (double)all.n_training;
        log_say("%-7s %6.1f million attempts x passes per second on %d ranks, %.1f on one: "
                "efficiency %.0f %%; one predicts %.2f million attempts per second",
                presets[p], n / together / 1e6, world.size, n / one / 1e6,
                100 * one / (together * world.size), rate / 1e6);
        stepper_destroy(&all);
        stepper_destroy(&alone);
        settings_destroy(&settings[0]);
        settings_destroy(&settings[1]);
    }
    comm_finish(&world);
    return 0;
}
