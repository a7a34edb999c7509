/* tests: the likelihood of a trace with two hidden states as a sum over all its paths. */
#ifndef COHORT_BKT_ORACLE_H
#define COHORT_BKT_ORACLE_H

#include "models/bkt/bkt_internal.h"
#include <math.h>
#include <string.h>

/* All 2^n paths of one trace; `seen` holds one of SEEN_... per step. */
struct oracle {
    double p0, learn, forget;
    size_t n;
    int seen[12];               /* SEEN_... */
    double guess[12], slip[12]; /* per step */
    double chance;              /* P(all outcomes) */
    double known[12];           /* P(1 at t | all) */
    double learned, forgotten;
};

static inline void oracle_run(struct oracle *o)
{
    o->chance = o->learned = o->forgotten = 0;
    memset(o->known, 0, sizeof o->known);
    for (unsigned path = 0; path < 1u << o->n; path++) {
        double p = 1, n_learned = 0, n_forgotten = 0;
        for (size_t t = 0; t < o->n; t++) {
            const bool now = path >> t & 1, next = path >> (t + 1) & 1;
            if (t == 0)
                p *= now ? o->p0 : 1 - o->p0;
            if (o->seen[t] != SEEN_NONE) {
                const double right = now ? 1 - o->slip[t] : o->guess[t];
                p *= o->seen[t] == SEEN_RIGHT ? right : 1 - right;
            }
            if (t + 1 == o->n)
                continue;
            const double moves = now ? o->forget : o->learn;
            p *= now != next ? moves : 1 - moves;
            n_learned += !now && next;
            n_forgotten += now && !next;
        }
        o->chance += p;
        o->learned += p * n_learned;
        o->forgotten += p * n_forgotten;
        for (size_t t = 0; t < o->n; t++)
            o->known[t] += p * (path >> t & 1);
    }
    o->learned /= o->chance;
    o->forgotten /= o->chance;
    for (size_t t = 0; t < o->n; t++)
        o->known[t] /= o->chance;
}

/* P(correct at the step after the last). */
static inline double oracle_next(const struct oracle *o, double guess, double slip)
{
    struct oracle longer = *o;
    const size_t t = longer.n++;
    longer.guess[t] = guess;
    longer.slip[t] = slip;
    longer.seen[t] = SEEN_NONE;
    oracle_run(&longer);
    return longer.known[t] * (1 - slip) + (1 - longer.known[t]) * guess;
}

#endif
