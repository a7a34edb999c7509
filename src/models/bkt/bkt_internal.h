/* Shared by the files of Bayesian knowledge tracing. */
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

/* The rates of a skill, in the order of their columns; forget exists only if enabled. */
#define BKT_LEAST_RATE 1e-5
enum bkt_rate_kind { RATE_FIRST, RATE_LEARN, RATE_GUESS, RATE_SLIP, RATE_FORGET, N_RATES };
extern const char *const bkt_rate_names[N_RATES];

/* Where EM starts, and the centre of the prior. */
extern const double bkt_centres[N_RATES];

/* Columns of a skill's row: its rates (as log-odds), and the progress of its training. */
struct bkt_shape {
    size_t n_skills, n_rates; /* n_skills: whatever is traced, skills or items */
    size_t attempts, fit, settled;
    size_t skill_panel, common_panel, item_panel, try_panel;
    bool by_item, has_items, has_tries;
};
static inline const struct bkt_shape *bkt_shape(const struct model *model)
{
    return model->shape;
}

/* Outcomes in a trace. */
enum { SEEN_WRONG, SEEN_RIGHT, SEEN_NONE, N_SEEN_KINDS };

/* The skills of item i: skill[first[i]] .. skill[first[i + 1] - 1]. */
struct bkt_links {
    uint64_t *first;
    uint32_t *skill;
};

/* A student's attempts at one skill, up to the last training attempt. */
struct bkt_trace {
    uint32_t skill, length;
    uint64_t start; /* of its outcomes */
};

/* The traces of a shard; those of equal length are packed side by side. */
struct bkt_group {
    uint32_t n_steps, n_lanes;
    uint64_t offset; /* of its words */
    bool uniform;    /* full, and all of one skill */
    uint32_t skill[WIDTH];
};
struct bkt_traces {
    size_t n, n_steps; /* n_steps: sum of all lengths */
    struct bkt_trace *list;
    uint8_t *outcome; /* SEEN_... */
    uint32_t *row;    /* of guess and slip: a skill, or n_skills + item; NULL: the skill's */
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

/* Adds the expected counts of the packed traces, in whole units: sums[skill][N_CHAINS_SUMS]
 * and, if `row_chance` gives the probabilities of outcomes of every row ([row][SEEN_...][state
 * 1, state 0]), row_sums[row][SEEN_...], the steps in state 1. SEEN_NONE has no sum. */
void bkt_traces_expect(struct bkt_traces *traces, const real (*rates)[N_RATES],
                       const real (*row_chance)[N_SEEN_KINDS][2], bool forgets, double unit,
                       double (*sums)[N_CHAINS_SUMS], double (*row_sums)[N_SEEN_KINDS]);

/* The belief about one skill of a student during prediction. */
struct bkt_belief {
    uint64_t call; /* of `predict`; beliefs of earlier calls are void */
    int64_t depth;
    /* odds: P(not known) / P(known), in units that shrink with depth */
    double rate[N_RATES], odds;
};

struct bkt_work {
    const struct shard *shard;
    const struct bkt_shape *shape;
    struct bkt_links links;
    struct bkt_belief *beliefs; /* n_skills + 1: the last is for items without a skill */
    uint32_t no_skill;          /* the last one's number */
    uint64_t n_calls;

    /* Set in the first pass: */
    bool is_counted;
    struct bkt_traces traces;
    double unit;
    int64_t (*counts)[5];     /* of a skill over all ranks: COUNT_... */
    int64_t (*row_counts)[2]; /* of a row: wrong, right */
};
enum { COUNT_TRACES, COUNT_STEPS, COUNT_WRONG, COUNT_RIGHT, COUNT_ROWS };

/* A row of one of the panels; its rates are log-odds. */
static inline real *bkt_row(const struct params *params, real *flat, size_t panel, size_t row)
{
    return flat + params->panels[panel].offset + row * params->panels[panel].stride;
}
double bkt_chance(real log_odds);
/* The probability, kept away from 0 and 1 as in training: a file may hold anything. */
double bkt_rate(real log_odds);
real bkt_log_odds(double chance);

enum status bkt_learn(struct model *model, void *memory, struct pass *pass);

/* bkt_predict.c */
void bkt_predict(const struct model *model, void *work, size_t s, unsigned splits, real *p);
void bkt_deviation(const struct model *model, void *work, const uint32_t *students, size_t n,
                   unsigned splits, real *deviation);
void bkt_live_begin(const struct model *model, void *work, void *state);
void bkt_live_tell(const struct model *model, void *work, size_t n, void *const *state,
                   const struct live_attempt *attempts);
void bkt_live_ask(const struct model *model, void *work, const void *state,
                  const struct live_attempt *when, const uint32_t *items, size_t n, real *p);
void bkt_live_know(const struct model *model, void *work, const void *state, uint32_t k,
                   real *p);
bool bkt_knows_items(const struct model *model);

#endif
