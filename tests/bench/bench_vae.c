/* The speed of training the ML2P-VAE, and what limits it: answers per second of whole blocks
 * (gradient and input to exact sums, no optimizer). They are compared with their parts,
 * measured alone in the same rounds: the decoder's kernels, the encoder, the random numbers;
 * and with the bare exponentials that the decoder needs. One rank, 2 000 students of 30
 * answers, 3 abilities, full posterior, blocks of 50. */
#include "../unit/tiny.h"
#include "bench.h"
#include "kernels/irt.h"
#include "kernels/vec.h"
#include "models/vae/vae_internal.h"
#include <math.h>
#include <stdio.h>
#include <time.h>

enum { N_STUDENTS = 2000, N_ITEMS = 30, BLOCK = 50, ROUNDS = 7, N_DIMS = 3 };

static struct comm world;

/* Seconds of this thread, which exclude other load on the machine. */
static double cpu_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void make_class(struct tiny *class)
{
    tiny_begin(class, N_ITEMS, false);
    for (uint32_t s = 0; s < N_STUDENTS; s++) {
        const struct rng rng = {.seed = 1, .purpose = RNG_SIMULATE, .who = s};
        tiny_student(class);
        for (uint32_t i = 0; i < N_ITEMS; i++)
            tiny_attempt(class, i,
                         mark_make((enum outcome)rng_below(&rng, i, 2), TRAIN, true, true));
    }
    tiny_finish(class, &world);
}

static void whole(const struct model *model, struct vae_work *work, struct tally *tally)
{
    const struct draw draw = {.seed = 1};
    for (uint32_t s = 0; s < N_STUDENTS; s += BLOCK) {
        uint32_t students[BLOCK];
        for (uint32_t i = 0; i < BLOCK; i++)
            students[i] = s + i;
        tally_clear(tally);
        vae_accumulate(model, work, students, BLOCK, &draw, tally);
    }
}

/* The last block's rows repeated, as many as for all students. */
static void encoder(const struct model *model, struct vae_work *work, struct tally *tally)
{
    for (uint32_t s = 0; s < N_STUDENTS; s += BLOCK) {
        tally_clear(tally);
        vae_encoder_forward(model, work);
        vae_encoder_backward(model, work, tally);
    }
}

static void decoder(struct vae_work *work, size_t n_samples)
{
    const size_t padded = size_padded(N_ITEMS);
    for (size_t s = 0; s < N_STUDENTS; s++)
        for (size_t d = 0; d < n_samples; d++) {
            real slope[N_DIMS];
            irt->respond(N_DIMS, work->theta, work->a, work->b, work->y, padded, work->e);
            irt->slope(N_DIMS, work->a, work->e, padded, slope);
            irt->credit(N_DIMS, work->theta, 1, work->e, padded, work->da, work->db);
        }
}

static void exponentials(struct vae_work *work, size_t n_samples)
{
    const size_t padded = size_padded(N_ITEMS);
    for (size_t s = 0; s < N_STUDENTS * n_samples; s++) {
        for (size_t j = 0; j < padded; j++)
            work->e[j] = -1;
        vec->exp(work->e, padded);
    }
}

static void numbers(struct vae_work *work, size_t n_samples)
{
    const struct draw draw = {.seed = 1};
    for (size_t s = 0; s < N_STUDENTS; s++)
        vae_draw_epsilon(work, &draw, 0, s, n_samples);
}

int main(int argc, char **argv)
{
    comm_start(&world, &argc, &argv);
    h5_start();
    static const size_t samples[] = {1, 16, 64};
    struct tiny class;
    make_class(&class);
    printf("%-8s  %22s  %12s  %12s  %12s  %12s  %16s\n", "samples", "million answers/second",
           "decoder", "encoder", "random", "the rest", "bare exponentials");
    for (size_t k = 0; k < COUNT(samples); k++) {
        char *options = memory_text("dimensions=%d, posterior=full, prefixes=0, samples=%zu",
                                    N_DIMS, samples[k]);
        struct tiny_model tiny;
        tiny_model_open(&tiny, "vae", options, &class.dataset);
        int64_t counts[2 * N_ITEMS];
        for (size_t i = 0; i < COUNT(counts); i++)
            counts[i] = 100;
        const struct item_counts item_counts = {N_ITEMS, counts, counts + N_ITEMS};
        tiny.model->kind->init(tiny.model, 1, &item_counts);
        struct vae_work *work = tiny.model->kind->attach(tiny.model, &class.shard, TO_TRAIN);
        struct tally tally;
        tally_create(&tally, tiny.model->params.n, true, 32, NULL);
        double best[5];
        for (int part = 0; part < 5; part++)
            best[part] = INFINITY;
        for (int round = 0; round < bench_rounds(ROUNDS); round++)
            for (int part = 0; part < 5; part++) {
                const double start = cpu_clock();
                switch (part) {
                case 0:
                    whole(tiny.model, work, &tally);
                    break;
                case 1:
                    decoder(work, samples[k]);
                    break;
                case 2:
                    encoder(tiny.model, work, &tally);
                    break;
                case 3:
                    numbers(work, samples[k]);
                    break;
                default:
                    exponentials(work, samples[k]);
                }
                best[part] = fmin(best[part], cpu_clock() - start);
            }
        const double rest = best[0] - best[1] - best[2] - best[3];
        printf("%-8zu  %22.2f  %10.0f %%  %10.0f %%  %10.0f %%  %10.0f %%  %14.0f %%\n",
               samples[k], N_STUDENTS * N_ITEMS / best[0] / 1e6, 100 * best[1] / best[0],
               100 * best[2] / best[0], 100 * best[3] / best[0], 100 * rest / best[0],
               100 * best[4] / best[0]);
        tally_destroy(&tally);
        tiny.model->kind->detach(work);
        tiny_model_close(&tiny);
        memory_free(options);
    }
    tiny_close(&class);
    comm_finish(&world);
    return 0;
}
