/* The speed of `cohort import csv` on one core, and its memory: a table of answers with
 * student, item, outcome, time and skill. First the rows of each student are together; then
 * rows of all students are mixed, which is hardest for caches. ROWS=10000000 sets the number of
 * rows. */
#include "base/comm.h"
#include "base/fail.h"
#include "base/h5.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/rng.h"
#include "bench.h"
#include "commands/commands.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double write_table(const char *path, size_t n_rows, bool mixed)
{
    FILE *file = fopen(path, "w");
    if (file == NULL)
        fail_abort(BAD_IO, "%s: cannot be written", path);
    fputs("user_id,item_id,correct,timestamp,skill_id\n", file);
    const size_t n_students = n_rows / 40 + 1;
    for (size_t r = 0; r < n_rows; r++) {
        const struct rng rng = {
            .seed = 1, .purpose = RNG_SIMULATE, .when = (uint32_t)(r >> 32)};
        uint32_t words[4];
        rng_words(&rng, (uint32_t)r, words);
        const size_t s = mixed ? words[0] % n_students : r / 40;
        const uint32_t i = words[1] % 6000;
        fprintf(file, "%zu,q%u,%d,%zu,%u\n", s, i, words[2] % 10 < 6, 1500000000 + r, i % 100);
    }
    const double n_bytes = (double)ftell(file);
    if (fclose(file) != 0)
        fail_abort(BAD_IO, "%s: cannot be written", path);
    return n_bytes / 1e6;
}

int main(int argc, char **argv)
{
    struct comm world;
    comm_start(&world, &argc, &argv);
    h5_start();
    log_mute(true);
    const char *asked = getenv("ROWS"), *directory = getenv("TMPDIR");
    const size_t n_rows = asked != NULL      ? strtoull(asked, NULL, 10)
                          : bench_is_short() ? 20000
                                             : 8000000;
    char *table =
        memory_text("%s/cohort-bench-%d.csv", directory ? directory : "/tmp", (int)getpid());
    char *output = memory_text("%s.h5", table);
    /* As from the command line, with defaults for everything else. */
    char *const words[] = {"import",   "csv",      "--time", "timestamp", "--skills",
                           "skill_id", "--output", output,   table,       NULL};
    enum status status = OK;
    for (int mixed = 0; mixed < 2 && status == OK; mixed++) {
        const double megabytes = write_table(table, n_rows, mixed);
        const size_t before = memory_peak();
        const double start = log_clock();
        const clock_t core_start = clock();
        char *own[COUNT(words)];
        memcpy(own, words, sizeof own);
        status = command_import.run(&world, COUNT(words) - 1, own);
        const double seconds = log_clock() - start;
        const double core_seconds = (double)(clock() - core_start) / CLOCKS_PER_SEC;
        printf(
            "import csv, %zu rows of %.0f MB, students %s: %.0f MB/s of core time, %.0f MB/s, "
            "data set written",
            n_rows, megabytes, mixed ? "mixed" : "together", megabytes / core_seconds,
            megabytes / seconds);
        if (mixed == 0)
            printf("; %.1f bytes of memory per row",
                   (double)(memory_peak() - before) / (double)n_rows);
        printf("\n");
        unlink(output);
    }
    unlink(table);
    if (status != OK)
        fprintf(stderr, "%s\n", fail_sentence());
    memory_free(table);
    memory_free(output);
    comm_finish(&world);
    return (int)status;
}
