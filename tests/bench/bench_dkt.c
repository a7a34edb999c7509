/* The speed of training deep knowledge tracing (lstm 200, mini-batches of 64 students),
 * compared with the machine's own sgemm in the same run. bench_dkt.sh runs it on 2 ranks, with
 * the data set as its argument.
 *
 * Only useful operations count: for each attempt that reads an earlier one, a product and a sum
 * per weight for the forward pass, the backward pass and the gradient; padding does not count.
 * Every figure is the best of several interleaved rounds. The last line is the number of
 * answers per second, for the script. */
#include "base/comm.h"
#include "base/fail.h"
#include "base/h5.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/memory.h"
#include "bench.h"
#include "data/sequence.h"
#include "kernels/matmul.h"
#include "runs/stepper.h"
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 4, HIDDEN = 200, GATES = 4 };

static void must(enum status status)
{
    if (status != OK)
        fail_abort(status, "%s", fail_sentence());
}

static void open_stepper(const struct comm *comm, const char *data, struct settings *settings,
                         struct stepper *stepper)
{
    struct config *config = config_create();
    char *text =
        memory_text("[data]\nfile = %s\n[model]\nkind = dkt\nhidden = %d\n[optimizer]\n"
                    "method = adam\n[train]\nbatch = 64\nblock = 32\n[run]\n"
                    "directory = none\n",
                    data, HIDDEN);
    enum status status = config_read_text(config, text, "bench");
    if (status == OK)
        status = settings_create(settings, config, NULL);
    if (status == OK)
        status = stepper_create(stepper, comm, settings);
    must(status);
    memory_free(text);
}

static double time_epoch(struct stepper *stepper, int64_t epoch)
{
    stepper_begin_epoch(stepper, epoch);
    comm_barrier(stepper->comm);
    const double start = log_clock();
    for (size_t step = 0; step < stepper->lanes.n_steps; step++)
        must(stepper_step(stepper, epoch, (int64_t)step));
    comm_barrier(stepper->comm);
    return log_clock() - start;
}

/* Forward products use a matrix that is wider than deep, backward products the reverse. */
static const struct matmul_table *timed;
static double matmul_seconds[2], matmul_operations[2];

static void add_timed(size_t n, const real *a, size_t a_stride, const struct packed *b, real *c,
                      size_t c_stride)
{
    const int back = b->depth > b->columns;
    const double start = log_clock();
    timed->add(n, a, a_stride, b, c, c_stride);
    matmul_seconds[back] += log_clock() - start;
    matmul_operations[back] += 2.0 * (double)n * HIDDEN * HIDDEN * GATES;
}

/* Operations per second of square products, summed over all ranks at once. */
static double sgemm_rate(const struct comm *comm)
{
    enum { N = 1024 };
    float *a = NEW(float, N *N), *b = NEW(float, N *N), *c = NEW(float, N *N);
    for (size_t i = 0; i < N * N; i++)
        a[i] = b[i] = (float)(i % 7);
    double best = INFINITY;
    for (int round = 0; round < bench_rounds(5); round++) {
        comm_barrier(comm);
        const double start = log_clock();
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, N, N, N, 1, a, N, b, N, 0, c, N);
        best = fmin(best, log_clock() - start);
    }
    memory_free(a);
    memory_free(b);
    memory_free(c);
    comm_max_double(comm, &best, 1);
    return comm->size * 2.0 * N * N * N / best;
}

/* The products of the weight gradient alone, in the shapes of this epoch's blocks. */
static double gradient_rate(const struct stepper *stepper, const uint32_t *length)
{
    const size_t width = size_padded(HIDDEN), columns = GATES * width;
    size_t most = 0, n_rows = 0;
    double seconds = 0;
    for (int pass = 0; pass < 2; pass++) { /* first find the largest block */
        float *a = pass ? NEW(float, most *width) : NULL;
        float *b = pass ? NEW(float, most *columns) : NULL;
        float *g = pass ? NEW(float, HIDDEN *columns) : NULL;
        for (size_t step = 0; step < stepper->lanes.n_steps; step++) {
            size_t n = 0, rows = 0;
            const uint32_t *students = lanes_block(&stepper->lanes, 0, step, &n);
            for (size_t i = 0; i < n; i++)
                rows += length[students[i]] - 1;
            most = size_max(most, rows);
            if (pass == 0 || rows == 0)
                continue;
            const double start = log_clock();
            matmul->outer(rows, HIDDEN, columns, 1, a, width, b, columns, g, columns);
            seconds += log_clock() - start;
            n_rows += rows;
        }
        memory_free(a);
        memory_free(b);
        memory_free(g);
    }
    return 2.0 * (double)n_rows * HIDDEN * HIDDEN * GATES / seconds;
}

int main(int argc, char **argv)
{
    struct comm world;
    machine_settle(argv);
    comm_start(&world, &argc, &argv);
    h5_start();
    if (argc != 2)
        fail_abort(BAD_USER,
                   "no data set given; `make bench` runs this program through bench_dkt.sh");
    struct settings settings;
    struct stepper stepper;
    open_stepper(&world, argv[1], &settings, &stepper);
    const uint32_t *length = settings.model->kind->speed.lengths(stepper.work);
    int64_t n_reading = 0;
    for (size_t s = 0; s < stepper.shard.n_students; s++)
        n_reading += length[s] > 0 ? (int64_t)length[s] - 1 : 0;
    comm_sum_i64(&world, &n_reading, 1);
    const double useful = 3 * 2.0 * (double)n_reading * HIDDEN * HIDDEN * GATES;
    double seconds = INFINITY, sgemm = 0, gradient = 0;
    for (int64_t round = 0; round < bench_rounds(ROUNDS); round++) {
        sgemm = fmax(sgemm, sgemm_rate(&world));
        seconds = fmin(seconds, time_epoch(&stepper, round));
        gradient = fmax(gradient, gradient_rate(&stepper, length));
    }
    timed = matmul;
    const struct matmul_table wrapped = {.add = add_timed, .outer = timed->outer};
    matmul = &wrapped;
    time_epoch(&stepper, ROUNDS);
    matmul = timed;
    const double rate = (double)stepper.n_training / seconds;
    log_say(
        "lstm %d, batch 64: an epoch of %lld answers in %.2f s on %d ranks, %.0f thousand per "
        "second; %.0f of %.0f billion operations per second of sgemm here: %.0f %%",
        HIDDEN, (long long)stepper.n_training, seconds, world.size, rate / 1e3,
        useful / seconds / 1e9, sgemm / 1e9, 100 * useful / seconds / sgemm);
    log_say("one rank, products alone: %.0f forward, %.0f backward, %.0f weight gradient",
            matmul_operations[0] / matmul_seconds[0] / 1e9,
            matmul_operations[1] / matmul_seconds[1] / 1e9, gradient / 1e9);
    if (world.rank == 0)
        printf("%.0f\n", rate);
    stepper_destroy(&stepper);
    settings_destroy(&settings);
    comm_finish(&world);
    return 0;
}
