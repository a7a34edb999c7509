/* The parts of a step, for the model of bench_scale.sh, which runs this on 1, 2 and 4 ranks:
 *
 *     scale DATA.h5 section.key=value...
 *
 * prints one line of numbers: ranks, lanes, parameters, bytes per statistic, attempts per step,
 * then microseconds per step: the total, its blocks, clearing the tally, and the rest (sum,
 * optimizer, sharing), the parts in core seconds. Then, between ranks 0 and 1, half the
 * round-trip time of 8 bytes and of 1 MB. Each step counts with the best of several rounds, so
 * that other load on the machine matters little. */
#include "base/comm.h"
#include "base/fail.h"
#include "base/h5.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/memory.h"
#include "bench.h"
#include "runs/stepper.h"
#include <math.h>
#include <stdio.h>
#include <time.h>

enum { LEAST_ROUNDS = 3, MOST_STEPS = 6 };

static void must(enum status status)
{
    if (status != OK)
        fail_abort(status, "%s", fail_sentence());
}

/* Seconds of this core, which exclude other load on the machine. */
static double core_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Update the best seconds of a step: the total in wall time; blocks, clearing and the rest in
 * core time. */
static void time_step(struct stepper *stepper, size_t step, size_t n_steps, double best[4])
{
    const struct draw draw = {.seed = 1};
    comm_barrier(stepper->comm);
    const double start = log_clock(), began = core_clock();
    tally_clear(&stepper->tally);
    const double cleared = core_clock();
    for (size_t l = 0; l < stepper->lanes.n_own; l++) {
        size_t n = 0;
        const uint32_t *students = lanes_block(&stepper->lanes, l, step, &n);
        stepper->model->kind->accumulate(stepper->model, stepper->work, students, n, &draw,
                                         &stepper->tally);
    }
    const double done = core_clock();
    exact_sum(&stepper->slices, &stepper->tally);
    optimizer_step(&stepper->optimizer, &stepper->tally, (int64_t)step, (int64_t)n_steps);
    best[0] = fmin(best[0], log_clock() - start);
    best[1] = fmin(best[1], done - cleared);
    best[2] = fmin(best[2], cleared - began);
    best[3] = fmin(best[3], core_clock() - done);
}

/* Half the round-trip time. */
static double ping(const struct comm *comm, size_t n_bytes)
{
    char *bytes = NEW(char, n_bytes);
    double best = INFINITY;
    for (int round = 0; round < 500; round++) {
        comm_barrier(comm);
        const double start = log_clock();
        if (comm->rank < 2)
            for (int way = 0; way < 2; way++) {
                if (comm->rank == way)
                    MPI_Send(bytes, (int)n_bytes, MPI_BYTE, 1 - way, 0, comm->mpi);
                else
                    MPI_Recv(bytes, (int)n_bytes, MPI_BYTE, way, 0, comm->mpi,
                             MPI_STATUS_IGNORE);
            }
        best = fmin(best, (log_clock() - start) / 2);
    }
    memory_free(bytes);
    return best;
}

int main(int argc, char **argv)
{
    machine_settle(argv);
    struct comm world;
    comm_start(&world, &argc, &argv);
    h5_start();
    ENSURE(argc > 1);
    struct config *config = config_create();
    struct settings settings;
    struct stepper stepper;
    char *data = memory_text("data=%s", argv[1]);
    must(config_set(config, data, "bench"));
    must(config_set(config, "run=none", "bench"));
    must(config_read_words(config, (const char *const *)argv + 2, (size_t)argc - 2));
    must(settings_create(&settings, config, NULL));
    must(stepper_create(&stepper, &world, &settings));
    stepper_begin_epoch(&stepper, 0);
    const size_t n_steps = size_min(stepper.lanes.n_steps, MOST_STEPS);
    double each[MOST_STEPS][4], best[4] = {0};
    for (size_t step = 0; step < n_steps; step++)
        for (int part = 0; part < 4; part++)
            each[step][part] = INFINITY;
    const double start = log_clock();
    double spent = 0;
    for (int round = 0; round < bench_rounds(LEAST_ROUNDS) || (spent < 5 && !bench_is_short());
         round++) {
        for (size_t step = 0; step < n_steps; step++)
            time_step(&stepper, step, n_steps, each[step]);
        spent = log_clock() - start;
        comm_max_double(&world, &spent, 1);
    }
    for (size_t step = 0; step < n_steps; step++)
        for (int part = 0; part < 4; part++)
            best[part] += each[step][part] * 1e6 / (double)n_steps;
    comm_max_double(&world, best, 4);
    const double small = world.size > 1 ? ping(&world, 8) : 0;
    const double large = world.size > 1 ? ping(&world, 1 << 20) : 0;
    if (world.rank == 0)
        printf("%d %zu %zu %d %.0f %.1f %.1f %.1f %.1f %.2f %.2f\n", world.size,
               stepper.lanes.n_lanes, stepper.model->params.n, stepper.tally.wide ? 8 : 4,
               (double)stepper.n_training / (double)stepper.lanes.n_steps, best[0], best[1],
               best[2], best[3], small * 1e6, large * 1e6);
    stepper_destroy(&stepper);
    settings_destroy(&settings);
    memory_free(data);
    comm_finish(&world);
    return 0;
}
