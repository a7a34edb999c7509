/* The speed of training the RBM, compared with other measurements in the same run: one rank
 * alone, plain floating-point sums, and the limits of the machine's memory and vector units.
 * ranks: 2
 *
 * The class is grockit-shaped: 131 072 students, 6 046 items, about 5 million attempts. Every
 * figure is the best of several interleaved rounds, so that other load on the machine does not
 * distort the ratios. */
#include "base/comm.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/h5.h"
#include "base/log.h"
#include "base/memory.h"
#include "bench.h"
#include "kernels/rbm_rows.h"
#include "runs/stepper.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 7 };

struct shape {
    const char *name;
    int hidden, batch;
};

/* ---- plain floating-point sums, as in a trainer without exact sums */

static float *plain;      /* statistics */
static double plain_unit; /* of the integers passed to the kernel */

static void plain_tally(const struct row_shape *shape, void *tally, bool wide,
                        const uint32_t *unit, const uint8_t *count, size_t n,
                        const int32_t *data, const int32_t *model, int32_t *scratch)
{
    (void)tally;
    (void)wide;
    const size_t stride = shape->stride;
    const int copies = shape->copies;
    float *all = (float *)scratch, *multiples = all + stride;
    for (size_t c = 0; c < stride; c++) {
        all[c] = (float)(copies * data[c]) * (float)plain_unit;
        for (int m = 0; m <= copies; m++)
            multiples[(size_t)m * stride + c] = (float)(m * model[c]) * (float)plain_unit;
    }
    for (size_t a = 0; a < n; a++) {
        float *row = plain + (size_t)(unit[a] >> 1) * 2 * stride;
        float *mine = row + (unit[a] & 1) * stride;
        const float *right = multiples + count[a] * stride;
        const float *wrong = multiples + (size_t)(copies - count[a]) * stride;
        for (size_t c = 0; c < stride; c++) {
            row[c] -= wrong[c];
            row[stride + c] -= right[c];
        }
        for (size_t c = 0; c < stride; c++)
            mine[c] += all[c];
    }
}

static void plain_step(struct stepper *stepper, real *speed, int64_t epoch, int64_t step)
{
    const struct draw draw = {.seed = 1, .epoch = (uint32_t)epoch};
    const size_t n = stepper->model->params.n;
    memset(plain, 0, n * sizeof *plain);
    for (size_t l = 0; l < stepper->lanes.n_own; l++) {
        size_t n_students = 0;
        const uint32_t *students = lanes_block(&stepper->lanes, l, (size_t)step, &n_students);
        stepper->model->kind->accumulate(stepper->model, stepper->work, students, n_students,
                                         &draw, &stepper->tally);
    }
    MPI_Allreduce(MPI_IN_PLACE, plain, (int)n, MPI_FLOAT, MPI_SUM, stepper->comm->mpi);
    real *w = stepper->model->params.value; /* private during plain rounds */
    for (size_t i = 0; i < n; i++) {
        speed[i] = (real)0.9 * speed[i] + (real)plain[i];
        w[i] += (real)2e-4 * speed[i] - (real)2e-5 * w[i];
    }
}

/* ---- the limits of the machine */

static double memory_rate(void)
{
    const size_t n = 1 << 24;
    float *a = NEW(float, n), *b = NEW(float, n), *c = NEW(float, n);
    double best = 0;
    for (int round = 0; round < bench_rounds(5); round++) {
        const double start = log_clock();
        for (size_t i = 0; i < n; i++)
            a[i] = b[i] + 3 * c[i];
        const double seconds = log_clock() - start;
        best = fmax(best, 12.0 * (double)n / seconds);
        b[round] = a[n / 2];
    }
    memory_free(a);
    memory_free(b);
    memory_free(c);
    return best;
}

/* Additions and products of real numbers in registers, per second. */
static double vector_rate(void)
{
    real x[16 * WIDTH];
    for (size_t i = 0; i < COUNT(x); i++)
        x[i] = (real)i * (real)1e-3;
    double best = 0;
    for (int round = 0; round < bench_rounds(5); round++) {
        const int n = 200000;
        const double start = log_clock();
        for (int k = 0; k < n; k++)
            for (size_t i = 0; i < COUNT(x); i++)
                x[i] = x[i] * (real)0.999 + (real)0.001;
        const double seconds = log_clock() - start;
        best = fmax(best, 2.0 * n * (double)COUNT(x) / seconds);
    }
    return x[3] < 2 ? best : 0;
}

/* ---- timing */

static void must(enum status status)
{
    if (status != OK)
        fail_abort(status, "%s", fail_sentence());
}

static void open_stepper(const struct comm *comm, const char *data, const struct shape *shape,
                         struct settings *settings, struct stepper *stepper)
{
    struct config *config = config_create();
    char *text =
        memory_text("[data]\nfile = %s\n[model]\nkind = rbm\npreset = binomial\nhidden = %d\n"
                    "[train]\nbatch = %d\n[run]\ndirectory = none\n",
                    data, shape->hidden, shape->batch);
    enum status status = config_read_text(config, text, "bench");
    if (status == OK)
        status = settings_create(settings, config, NULL);
    if (status == OK)
        status = stepper_create(stepper, comm, settings);
    must(status);
    memory_free(text);
}

static double time_epoch(struct stepper *stepper, int64_t epoch, real *speed)
{
    stepper_begin_epoch(stepper, epoch);
    comm_barrier(stepper->comm);
    const double start = log_clock();
    for (size_t step = 0; step < stepper->lanes.n_steps; step++)
        if (speed == NULL)
            must(stepper_step(stepper, epoch, (int64_t)step));
        else
            plain_step(stepper, speed, epoch, (int64_t)step);
    comm_barrier(stepper->comm);
    return log_clock() - start;
}

static void measure(const struct comm *world, const char *data, const struct shape *shape,
                    double memory, double vector)
{
    const struct comm self = {.mpi = MPI_COMM_SELF, .rank = 0, .size = 1};
    struct settings settings[2];
    struct stepper all, alone;
    open_stepper(world, data, shape, &settings[0], &all);
    open_stepper(&self, data, shape, &settings[1], &alone);
    plain = NEW(float, all.model->params.n);
    plain_unit = tally_unit(&all.tally);
    real *speed = NEW(real, all.model->params.n), *own = NEW(real, all.model->params.n);
    memcpy(own, all.model->params.value, all.model->params.n * sizeof *own);
    const struct rbm_rows_table *const exact_rows = rbm_rows;
    struct rbm_rows_table plain_rows = *rbm_rows;
    plain_rows.tally = plain_tally;
    double together = INFINITY, one = INFINITY, floating = INFINITY;
    for (int64_t round = 0; round < bench_rounds(ROUNDS); round++) {
        together = fmin(together, time_epoch(&all, round, NULL));
        real *const shared = all.model->params.value;
        all.model->params.value = own;
        rbm_rows = &plain_rows;
        floating = fmin(floating, time_epoch(&all, round, speed));
        rbm_rows = exact_rows;
        all.model->params.value = shared;
        if (world->rank == 0)
            one = fmin(one, time_epoch(&alone, round, NULL));
        comm_barrier(world);
    }
    const double n = (double)all.n_training, rate = n / together;
    const size_t stride = all.model->params.panels[0].stride;
    /* two rows of weights read, two of statistics read and written; products and sums of 3
     * passes */
    const double bytes = 2.0 * (double)stride * 12 + 8, operations = 11.0 * (double)stride;
    log_say("%-22s %6.1f million attempts per second on %d ranks (epoch %.3f s), %.1f on one: "
            "efficiency "
            "%.0f %%; exact sums cost %+.0f %% over floating-point ones; %.0f %% of the memory "
            "rate, "
            "%.0f %% of the vector rate",
            shape->name, rate / 1e6, world->size, together, n / one / 1e6,
            100 * one / (together * world->size), 100 * (together / floating - 1),
            100 * rate * bytes / (memory * world->size),
            100 * rate * operations / (vector * world->size));
    memory_free(plain);
    memory_free(speed);
    memory_free(own);
    stepper_destroy(&all);
    stepper_destroy(&alone);
    settings_destroy(&settings[0]);
    settings_destroy(&settings[1]);
}

int main(int argc, char **argv)
{
    static const struct shape shapes[] = {
        {"m = 15, batch 1000", 15, 1000},
        {"m = 15, batch 8000", 15, 8000},
        {"m = 100, batch 1000", 100, 1000},
    };
    struct comm world;
    comm_start(&world, &argc, &argv);
    h5_start();
    const char *data = getenv("BENCH_CLASS"); /* made by tests/bench/run_benches.sh */
    if (data == NULL || !file_exists(data))
        fail_abort(BAD_USER, "BENCH_CLASS names no data set; run `make bench`");
    comm_barrier(&world);
    double memory = memory_rate(), vector = vector_rate();
    log_say(
        "this machine, per core: memory %.1f GB/s, vectors %.1f billion operations per second",
        memory / 1e9, vector / 1e9);
    for (size_t s = 0; s < COUNT(shapes); s++)
        if (argc < 2 || strtoul(argv[1], NULL, 10) == s) /* an argument selects one by number */
            measure(&world, data, &shapes[s], memory, vector);
    comm_finish(&world);
    return 0;
}
