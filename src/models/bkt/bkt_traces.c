/* Traces: a student's attempts at one skill, in order, and the expected counts over them.
 *
 * The chains are independent, so WIDTH of them run side by side. Those of a group have the same
 * length. They may belong to different skills, since each lane has its own rates. An outcome
 * takes one bit. The contribution of a trace is rounded to whole units once, and integers add
 * exactly, so the sums do not depend on how traces are grouped or on which rank holds them. */
#include "base/fail.h"
#include "base/memory.h"
#include "models/bkt/bkt_internal.h"
#include <string.h>

static uint8_t seen(uint8_t mark)
{
    return !mark_trains(mark)              ? SEEN_NONE
           : mark_outcome(mark) == CORRECT ? SEEN_RIGHT
                                           : SEEN_WRONG;
}

/* A student's traces during construction. */
struct making {
    uint64_t student; /* + 1; 0: none */
    uint32_t n_steps, length, at;
    size_t trace;
};

/* Appends the traces of student s to the list. */
static void find_traces(struct bkt_traces *traces, size_t *capacity, struct making *making,
                        const struct shard *shard, const struct bkt_links *links, size_t s,
                        uint32_t *met)
{
    size_t n_met = 0;
    for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
        const uint32_t item = shard->item[t];
        for (uint64_t j = links->first[item]; j < links->first[item + 1]; j++) {
            struct making *m = &making[links->skill[j]];
            if (m->student != s + 1) {
                *m = (struct making){.student = s + 1};
                met[n_met++] = links->skill[j];
            }
            m->n_steps++;
            if (mark_trains(shard->mark[t]))
                m->length = m->n_steps;
        }
    }
    for (size_t i = 0; i < n_met; i++) {
        struct making *m = &making[met[i]];
        if (m->length == 0)
            continue;
        GROW(traces->list, traces->n, *capacity);
        m->trace = traces->n;
        traces->list[traces->n++] = (struct bkt_trace){met[i], m->length, traces->n_steps};
        traces->n_steps += m->length;
    }
}

static void fill_traces(struct bkt_traces *traces, struct making *making,
                        const struct shard *shard, const struct bkt_links *links, size_t s,
                        size_t n_skills)
{
    for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
        const uint32_t item = shard->item[t];
        const uint64_t first = links->first[item], end = links->first[item + 1];
        for (uint64_t j = first; j < end; j++) {
            struct making *m = &making[links->skill[j]];
            if (m->at == m->length)
                continue;
            const uint64_t place = traces->list[m->trace].start + m->at++;
            traces->outcome[place] = seen(shard->mark[t]);
            traces->has_gaps |= traces->outcome[place] == SEEN_NONE;
            if (traces->row != NULL)
                traces->row[place] =
                    end - first == 1 ? (uint32_t)n_skills + item : links->skill[j];
        }
    }
}

static uint32_t key_of(const struct bkt_trace *trace, bool by_length)
{
    return by_length ? trace->length : trace->skill;
}

/* Counting sort; ties keep their order. */
static void sort_traces(struct bkt_traces *traces, bool by_length)
{
    size_t n_keys = 0;
    for (size_t i = 0; i < traces->n; i++)
        n_keys = size_max(n_keys, key_of(&traces->list[i], by_length) + (size_t)1);
    size_t *next = NEW(size_t, n_keys + 1);
    for (size_t i = 0; i < traces->n; i++)
        next[key_of(&traces->list[i], by_length) + 1]++;
    for (size_t key = 0; key < n_keys; key++)
        next[key + 1] += next[key];
    struct bkt_trace *sorted = NEW_SCRATCH(struct bkt_trace, traces->n);
    for (size_t i = 0; i < traces->n; i++)
        sorted[next[key_of(&traces->list[i], by_length)]++] = traces->list[i];
    memory_free(traces->list);
    memory_free(next);
    traces->list = sorted;
}

void bkt_traces_create(struct bkt_traces *traces, const struct shard *shard,
                       const struct bkt_links *links, const struct bkt_shape *shape)
{
    *traces = (struct bkt_traces){0};
    struct making *making = NEW(struct making, shape->n_skills);
    uint32_t *met = NEW(uint32_t, shape->n_skills);
    size_t capacity = 0, room = 0, from = 0;
    for (size_t s = 0; s < shard->n_students; s++) {
        find_traces(traces, &capacity, making, shard, links, s, met);
        if (traces->n_steps > room) {
            room = size_max(traces->n_steps, 2 * room);
            traces->outcome = memory_resize(traces->outcome, room, sizeof *traces->outcome);
            if (shape->has_items)
                traces->row = memory_resize(traces->row, room, sizeof *traces->row);
        }
        if (traces->n > from)
            fill_traces(traces, making, shard, links, s, shape->n_skills);
        from = traces->n;
    }
    memory_free(making);
    memory_free(met);
    sort_traces(traces, false);
    sort_traces(traces, true);
}

static void free_groups(struct bkt_traces *traces)
{
    void *const all[] = {traces->groups,  traces->right,  traces->known,  traces->symbol,
                         traces->scratch, traces->chance, traces->rounded};
    for (size_t i = 0; i < COUNT(all); i++)
        memory_free(all[i]);
}

void bkt_traces_free(struct bkt_traces *traces)
{
    free_groups(traces);
    memory_free(traces->list);
    memory_free(traces->outcome);
    memory_free(traces->row);
    *traces = (struct bkt_traces){0};
}

static void pack_lane(struct bkt_traces *traces, const struct bkt_group *group, uint32_t lane,
                      const struct bkt_trace *trace)
{
    for (uint32_t t = 0; t < trace->length; t++) {
        const uint8_t outcome = traces->outcome[trace->start + t];
        const size_t at = group->offset + t;
        traces->right[at] |= (uint16_t)((outcome == SEEN_RIGHT) << lane);
        if (traces->has_gaps)
            traces->known[at] |= (uint16_t)((outcome != SEEN_NONE) << lane);
        if (traces->row != NULL)
            traces->symbol[at * WIDTH + lane] =
                traces->row[trace->start + t] * N_SEEN_KINDS + outcome;
    }
}

void bkt_traces_pack(struct bkt_traces *traces, const bool *settled)
{
    free_groups(traces);
    traces->n_groups = traces->n_packed = traces->longest = 0;
    traces->groups = NULL;
    size_t capacity = 0, n_words = 0;
    const struct bkt_trace **packed = NEW(const struct bkt_trace *, traces->n);
    for (size_t i = 0; i < traces->n; i++) {
        const struct bkt_trace *trace = &traces->list[i];
        if (settled != NULL && settled[trace->skill])
            continue;
        struct bkt_group *last =
            traces->n_groups > 0 ? &traces->groups[traces->n_groups - 1] : NULL;
        if (last == NULL || last->n_lanes == WIDTH || last->n_steps != trace->length) {
            GROW(traces->groups, traces->n_groups, capacity);
            last = &traces->groups[traces->n_groups++];
            *last = (struct bkt_group){.n_steps = trace->length, .offset = n_words};
            n_words += trace->length;
            traces->longest = size_max(traces->longest, trace->length);
        }
        last->skill[last->n_lanes++] = trace->skill;
        packed[traces->n_packed++] = trace;
    }
    traces->right = NEW(uint16_t, n_words);
    traces->known = traces->has_gaps ? NEW(uint16_t, n_words) : NULL;
    traces->symbol = traces->row != NULL ? NEW(uint32_t, n_words * WIDTH) : NULL;
    traces->scratch = NEW(real, 3 * traces->longest * WIDTH);
    traces->chance = traces->row != NULL ? NEW(real, 2 * traces->longest * WIDTH) : NULL;
    traces->rounded =
        NEW(double, WIDTH *size_max(traces->row != NULL ? traces->longest : 0, N_CHAINS_SUMS));
    size_t from = 0;
    for (size_t g = 0; g < traces->n_groups; g++) {
        struct bkt_group *group = &traces->groups[g];
        for (uint32_t lane = 0; lane < group->n_lanes; lane++)
            pack_lane(traces, group, lane, packed[from++]);
        group->uniform = group->n_lanes == WIDTH;
        for (uint32_t lane = 1; lane < group->n_lanes; lane++)
            group->uniform &= group->skill[lane] == group->skill[0];
        for (uint32_t lane = group->n_lanes; lane < WIDTH; lane++) {
            group->skill[lane] = group->skill[0]; /* idle lane, computed all the same */
            for (uint32_t t = 0; traces->row != NULL && t < group->n_steps; t++)
                traces->symbol[(group->offset + t) * WIDTH + lane] = SEEN_NONE;
        }
    }
    memory_free(packed);
}

static void spread_rates(const struct bkt_group *group, const real (*rates)[N_RATES],
                         struct hmm_rates *spread)
{
    for (size_t lane = 0; lane < WIDTH; lane++) {
        const real *rate = rates[group->skill[lane]];
        spread->first[lane] = rate[RATE_FIRST];
        spread->learn[lane] = rate[RATE_LEARN];
        spread->forget[lane] = rate[RATE_FORGET];
        spread->guess[lane] = rate[RATE_GUESS];
        spread->slip[lane] = rate[RATE_SLIP];
    }
}

/* The probabilities of outcomes under the items' own guess and slip. */
static void look_up(struct bkt_traces *traces, const struct bkt_group *group,
                    const real (*row_chance)[N_SEEN_KINDS][2])
{
    const real(*of_symbol)[2] = row_chance[0];
    for (size_t t = 0; t < group->n_steps; t++) {
        real *to = traces->chance + 2 * t * WIDTH;
        const uint32_t *symbol = traces->symbol + (group->offset + t) * WIDTH;
        for (size_t lane = 0; lane < WIDTH; lane++) {
            to[lane] = of_symbol[symbol[lane]][0];
            to[WIDTH + lane] = of_symbol[symbol[lane]][1];
        }
    }
}

static void add_rows(struct bkt_traces *traces, const struct bkt_group *group, double unit,
                     double (*row_sums)[N_SEEN_KINDS])
{
    const size_t n = group->n_steps * WIDTH;
    const uint32_t *symbol = traces->symbol + group->offset * WIDTH;
    double *of_symbol = row_sums[0];
    hmm->round(traces->scratch, unit, traces->rounded, n);
    for (size_t i = 0; i < n; i++)
        of_symbol[symbol[i]] += traces->rounded[i];
}

/* Sums of full groups of one skill stay in their lanes until the skill changes. */
struct lane_sums {
    uint32_t skill;
    double of[N_CHAINS_SUMS * WIDTH];
};

static void flush(struct lane_sums *lanes, double (*sums)[N_CHAINS_SUMS])
{
    for (size_t i = 0; i < COUNT(lanes->of); i++)
        sums[lanes->skill][i / WIDTH] += lanes->of[i];
    memset(lanes->of, 0, sizeof lanes->of);
}

void bkt_traces_expect(struct bkt_traces *traces, const real (*rates)[N_RATES],
                       const real (*row_chance)[N_SEEN_KINDS][2], bool forgets, double unit,
                       double (*sums)[N_CHAINS_SUMS], double (*row_sums)[N_SEEN_KINDS])
{
    struct hmm_rates spread;
    struct lane_sums lanes = {0};
    real of_group[N_CHAINS_SUMS][WIDTH] __attribute__((aligned(64)));
    bool is_spread = false;
    for (size_t g = 0; g < traces->n_groups; g++) {
        const struct bkt_group *group = &traces->groups[g];
        const struct hmm_group chain = {
            .n_steps = group->n_steps,
            .right = traces->right + group->offset,
            .known = traces->has_gaps ? traces->known + group->offset : NULL,
            .chance = row_chance != NULL ? traces->chance : NULL};
        const bool goes_on = is_spread && group->uniform && group->skill[0] == lanes.skill;
        if (!goes_on)
            spread_rates(group, rates, &spread);
        if (row_chance != NULL)
            look_up(traces, group, row_chance);
        hmm->smooth(&chain, &spread, forgets, traces->scratch, of_group);
        if (row_chance != NULL)
            add_rows(traces, group, unit, row_sums);
        double *rounded = traces->rounded;
        hmm->round(of_group[0], unit, rounded, COUNT(of_group) * WIDTH);
        is_spread = group->uniform;
        if (group->uniform && group->skill[0] != lanes.skill) {
            flush(&lanes, sums);
            lanes.skill = group->skill[0];
        }
        if (group->uniform)
            for (size_t i = 0; i < COUNT(lanes.of); i++)
                lanes.of[i] += rounded[i];
        else
            for (size_t lane = 0; lane < group->n_lanes; lane++)
                for (size_t q = 0; q < N_CHAINS_SUMS; q++)
                    sums[group->skill[lane]][q] += rounded[q * WIDTH + lane];
    }
    flush(&lanes, sums);
}
