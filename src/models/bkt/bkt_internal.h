/* What the files of Bayesian knowledge tracing share. */
#ifndef COHORT_BKT_INTERNAL_H
#define COHORT_BKT_INTERNAL_H

#include "kernels/hmm.h"
#include "learn/model.h"

struct bkt_options {
    int64_t restarts, explore;
    double prior, most_guess, most_slip, most_odds, tolerance;
    int trace, several;
    bool forget, items;
};
enum bkt_trace_kind { TRACE_AUTO, TRACE_SKILL, TRACE_ITEM };
enum bkt_several { SEVERAL_MEAN, SEVERAL_PRODUCT, SEVERAL_WEAKEST };

/* The rates of a skill, in the order of their columns; forget is there only if asked for. */
#define BKT_LEAST_RATE 1e-5
enum bkt_rate_kind { RATE_FIRST, RATE_LEARN, RATE_GUESS, RATE_SLIP, RATE_FORGET, N_RATES };
extern const char *const bkt_rate_names[N_RATES];

/* Where EM begins, and what the prior is centred on. */
extern const double bkt_centres[N_RATES];

/* Columns of a skill's row: its rates (as log-odds), and how its training stands. */
struct bkt_shape {
    size_t n_skills, n_rates; /* n_skills: what is traced, skills or items */
    size_t attempts, fit, settled;
    size_t skill_panel, common_panel, item_panel, try_panel;
    bool by_item, has_items, has_tries;
};
static inline const struct bkt_shape *bkt_shape(const struct model *model)
{
    return model->shape;
}

/* What outcomes are in a trace. */
enum { SEEN_WRONG, SEEN_RIGHT, SEEN_NONE, N_SEEN_KINDS };

/* The skills of item i: all of `skill` from first[i] to first[i + 1]. */
struct bkt_links {
    uint64_t *first;
    uint32_t *skill;
};

/* A student's attempts at one skill, up to the last that there is to learn from. */
struct bkt_trace {
    uint32_t skill, length;
    uint64_t start; /* of its outcomes */
};

/* The traces of a shard; those of like length are packed side by side. */
struct bkt_group {
    uint32_t n_steps, n_lanes;
    uint64_t offset; /* of its words */
    bool uniform;    /* full, and all of one skill */
    uint32_t skill[WIDTH];
};
struct bkt_traces {
    size_t n, n_steps; /* n_steps: all lengths */
    struct bkt_trace *list;
    uint8_t *outcome; /* SEEN_... */
    uint32_t *row;    /* whose guess and slip: a skill, or n_skills + item; NULL: the skill's */
    bool has_gaps;    /* any SEEN_NONE */

    size_t n_groups, n_packed, longest; /* n_packed: traces in groups */
    struct bkt_group *groups;
    uint16_t *right, *known; /* of each group and step */
    uint32_t *symbol;        /* [..][WIDTH] row * N_SEEN_KINDS + outcome, if there are rows */
    real *scratch, *chance;
    double *rounded;
};

void bkt_traces_create(struct bkt_traces *traces, const struct shard *shard,
                       const struct bkt_links *links, const struct bkt_shape *shape);
void bkt_traces_free(struct bkt_traces *traces);

/* Packs the traces of skills that are not settled (NULL: all). */
void bkt_traces_pack(struct bkt_traces *traces, const bool *settled);

/* sums[skill][N_CHAINS_SUMS] and, where `row_chance` gives every row's chances of what is seen
 * ([row][SEEN_...][state 1, state 0]), row_sums[row][SEEN_...] of steps in state 1: all in
 * whole units, to which those of the packed traces are added. (Of SEEN_NONE nothing is to be
 * had.) */
void bkt_traces_expect(struct bkt_traces *traces, const real (*rates)[N_RATES],
                       const real (*row_chance)[N_SEEN_KINDS][2], bool forgets, double unit,
                       double (*sums)[N_CHAINS_SUMS], double (*row_sums)[N_SEEN_KINDS]);

/* What a student is known to know of a skill, when attempts are predicted. */
struct bkt_belief {
    uint64_t call; /* of `predict`; an old one is nobody's */
    int64_t depth;
    double rate[N_RATES],
        odds; /* P(not known) / P(known), in units that get smaller by depth */
};

struct bkt_work {
    const struct shard *shard;
    const struct bkt_shape *shape;
    struct bkt_links links;
    struct bkt_belief *beliefs; /* n_skills + 1: the last is of items in no skill */
    uint64_t n_calls;

    /* From the first pass on: */
    bool is_counted;
    struct bkt_traces traces;
    double unit;
    int64_t (*counts)[5];     /* of a skill over all ranks: COUNT_... */
    int64_t (*row_counts)[2]; /* of a row: wrong, right */
};
enum { COUNT_TRACES, COUNT_STEPS, COUNT_WRONG, COUNT_RIGHT, COUNT_ROWS };

/* A row of one of the panels; rates in it are log-odds. */
static inline real *bkt_row(const struct params *params, real *flat, size_t panel, size_t row)
{
    return flat + params->panels[panel].offset + row * params->panels[panel].stride;
}
double bkt_chance(real log_odds);
double
bkt_rate(real log_odds); /* as far from 0 and 1 as training keeps it: a file may say more */
real bkt_log_odds(double chance);

enum status bkt_learn(struct model *model, void *memory, struct pass *pass);

#endif
