/* Shared by all benchmarks: a short mode, which only shows that they still run. */
#ifndef COHORT_BENCH_H
#define COHORT_BENCH_H

#include <stdbool.h>
#include <stdlib.h>

/* Set by `tests/bench/run_benches.sh --short`; its figures mean nothing. */
static inline bool bench_is_short(void)
{
    return getenv("BENCH_SHORT") != NULL;
}

static inline int bench_rounds(int rounds)
{
    return bench_is_short() ? 1 : rounds;
}

#endif
