/* A class in the shape of the contest "What Do You Know?" (Grockit, 2011): a test preparation
 * site where many students answer little and a few answer thousands of questions.
 *
 *     tracks (9)    sections of exams; an item belongs to one track and has 1 to 4 of its tags
 *     activity      attempts per student: log-normal, mean 38, median about 12
 *     popularity    of the items in a track: proportional to 1 / (rank + 10)^0.7
 *     students      work mostly in one track (4 of 5 attempts), otherwise in a second one
 *     sessions      questions about a minute apart, then a pause of hours or days
 *
 * Outcomes follow a multidimensional item response model with a little learning,
 *
 *     logit P = a_i (ability_s + track_ability_s,track(i) + mean over tags of tag_ability_s,tag
 *                    + 0.1 log(1 + attempts before)) - b_i
 *
 * so a student's other answers tell more than the mean of the item. A fifth of the answers that
 * would be wrong are skipped or time out: unknown. Items are drawn by popularity with Walker's
 * alias method, in constant time. */
#include "base/memory.h"
#include "data_tools/simulate.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum part {
    ITEM_TRACK,
    ITEM_TAGS,
    DISCRIMINATION,
    DIFFICULTY,
    ACTIVITY,
    STUDENT_TRACK,
    ABILITY,
    TRACK_ABILITY,
    TAG_ABILITY,
    ATTEMPT,
    PAUSE
};
enum { N_TRACKS = 9, MOST_TAGS = 4, MOST_ATTEMPTS = 5000 };
#define ACTIVITY_SPREAD 1.3

/* Percentages of the tracks, for items and for students. */
static const int track_percent[N_TRACKS] = {22, 18, 14, 12, 10, 8, 7, 5, 4};

/* The items of a track and the alias table to draw one. */
struct track {
    size_t n;
    uint32_t *items, *other;
    double *keep;
};

struct class
{
    double *ability, *track_ability, *discrimination, *difficulty;
    uint8_t *track_of_item;
    uint32_t (*tags)[MOST_TAGS];
    uint8_t *n_tags;
    struct track tracks[N_TRACKS];
    size_t *last_seen_by; /* by item: the student it was last drawn for, plus 1 */
};

static size_t draw_track(uint64_t hundred)
{
    size_t g = 0;
    for (int sum = track_percent[0]; g < N_TRACKS - 1 && hundred >= (uint64_t)sum;)
        sum += track_percent[++g];
    return g;
}

/* Walker, 1977: n columns of equal height, each shared by at most two items. */
static void make_alias_table(struct track *track)
{
    const size_t n = track->n;
    double *height = NEW(double, n);
    size_t *small = NEW(size_t, n), *large = NEW(size_t, n);
    double sum = 0;
    for (size_t r = 0; r < n; r++) {
        height[r] = 1 / simulate_exp(0.7 * simulate_log((double)r + 10));
        sum += height[r];
    }
    size_t n_small = 0, n_large = 0;
    for (size_t r = 0; r < n; r++) {
        height[r] *= (double)n / sum;
        if (height[r] < 1)
            small[n_small++] = r;
        else
            large[n_large++] = r;
        track->keep[r] = 1;
        track->other[r] = (uint32_t)r;
    }
    while (n_small > 0 && n_large > 0) {
        const size_t low = small[--n_small], high = large[n_large - 1];
        track->keep[low] = height[low];
        track->other[low] = (uint32_t)high;
        height[high] -= 1 - height[low];
        if (height[high] < 1) {
            n_large--;
            small[n_small++] = high;
        }
    }
    memory_free(height);
    memory_free(small);
    memory_free(large);
}

static void make_items(struct simulation *simulation, struct class *class)
{
    const size_t n_items = simulation->n_items, n_tags = simulation->n_skills;
    struct builder *builder = simulation->builder;
    for (size_t g = 0; g < N_TRACKS; g++) {
        char name[32];
        const int n = snprintf(name, sizeof name, "track-%zu", g + 1);
        builder_group(builder, name, (size_t)n);
        class->tracks[g].items = NEW(uint32_t, n_items);
        class->tracks[g].other = NEW(uint32_t, n_items);
        class->tracks[g].keep = NEW(double, n_items);
    }
    for (size_t i = 0; i < n_items; i++) {
        const struct rng track = simulate_rng(simulation, ITEM_TRACK, i);
        const struct rng tags = simulate_rng(simulation, ITEM_TAGS, i);
        const struct rng strength = simulate_rng(simulation, DISCRIMINATION, i);
        const struct rng difficulty = simulate_rng(simulation, DIFFICULTY, i);
        /* One of the first items per track, so that none is empty. */
        const size_t g = i < N_TRACKS ? i : draw_track(rng_below(&track, 0, 100));
        class->track_of_item[i] = (uint8_t)g;
        class->tracks[g].items[class->tracks[g].n++] = (uint32_t)i;
        builder_item_group(builder, (uint32_t)i, (uint32_t)g);
        const size_t n_here = (n_tags - size_min(n_tags - 1, g) + N_TRACKS - 1) / N_TRACKS;
        class->n_tags[i] = (uint8_t)(1 + rng_below(&tags, 0, MOST_TAGS));
        for (uint32_t j = 0; j < class->n_tags[i]; j++) {
            const size_t tag = (g + N_TRACKS * rng_below(&tags, j + 1, n_here)) % n_tags;
            class->tags[i][j] = (uint32_t)tag;
            builder_item_skill(builder, (uint32_t)i, (uint32_t)tag);
        }
        class->discrimination[i] = simulate_exp(0.25 * rng_normal(&strength, 0));
        class->difficulty[i] = 1.1 * rng_normal(&difficulty, 0) - 0.35;
    }
    for (size_t g = 0; g < N_TRACKS; g++)
        make_alias_table(&class->tracks[g]);
}

static double unit(uint32_t word)
{
    return ((double)word + 0.5) * 0x1p-32;
}

/* Draws an item of the track by popularity, if possible one the student has not seen. */
static uint32_t draw_item(struct class *class, const struct track *track, size_t student,
                          const struct rng *rng, uint32_t index)
{
    enum { N_TRIES = 4 };
    uint32_t i = 0;
    for (uint32_t try = 0; try < N_TRIES; try++) {
        uint32_t words[4];
        rng_words(rng, N_TRIES * index + try, words);
        const size_t r = (size_t)((uint64_t)words[0] * track->n >> 32);
        i = track->items[unit(words[1]) < track->keep[r] ? r : track->other[r]];
        if (class->last_seen_by[i] != student + 1)
            break;
    }
    class->last_seen_by[i] = student + 1;
    return i;
}

static double logit_of(const struct simulation *simulation, const struct class *class, size_t s,
                       uint32_t i, uint32_t n_before)
{
    double tag_ability = 0;
    for (size_t j = 0; j < class->n_tags[i]; j++) {
        struct rng rng = simulate_rng(simulation, TAG_ABILITY, s);
        rng.when = class->tags[i][j];
        tag_ability += 0.7 * rng_normal(&rng, 0) / class->n_tags[i];
    }
    const double theta = class->ability[s] +
                         class->track_ability[s * N_TRACKS + class->track_of_item[i]] +
                         tag_ability + 0.1 * simulate_log(1 + (double)n_before);
    return class->discrimination[i] * theta - class->difficulty[i];
}

/* The logarithm of the median number of attempts after the first. For a log-normal number,
 *
 *     mean = median e^(ACTIVITY_SPREAD^2 / 2),
 *
 * where ACTIVITY_SPREAD is the standard deviation of its logarithm. */
static double middle_of(const struct simulation *simulation)
{
    const int64_t mean = simulation->flags->n_attempts;
    return mean == 0 ? 2.78
                     : simulate_log(fmax((double)mean - 1, 1e-9)) -
                           ACTIVITY_SPREAD * ACTIVITY_SPREAD / 2;
}

static void make_student(struct simulation *simulation, struct class *class, size_t s)
{
    const struct rng activity = simulate_rng(simulation, ACTIVITY, s);
    const struct rng tracks = simulate_rng(simulation, STUDENT_TRACK, s);
    const struct rng ability = simulate_rng(simulation, ABILITY, s);
    const struct rng track_ability = simulate_rng(simulation, TRACK_ABILITY, s);
    const struct rng attempt = simulate_rng(simulation, ATTEMPT, s);
    const struct rng pause = simulate_rng(simulation, PAUSE, s);
    const struct rng item = {.seed = attempt.seed,
                             .purpose = attempt.purpose,
                             .part = ATTEMPT,
                             .when = 1,
                             .who = attempt.who};
    class->ability[s] = 0.8 * rng_normal(&ability, 0);
    for (uint32_t g = 0; g < N_TRACKS; g++)
        class->track_ability[s * N_TRACKS + g] = 0.5 * rng_normal(&track_ability, g);
    const size_t home = draw_track(rng_below(&tracks, 0, 100));
    const size_t second = draw_track(rng_below(&tracks, 1, 100));
    const double wanted =
        1 + simulate_exp(middle_of(simulation) + ACTIVITY_SPREAD * rng_normal(&activity, 0));
    const uint32_t n = (uint32_t)fmin(wanted, MOST_ATTEMPTS);
    /* Two years from the autumn of 2009. */
    int64_t time = 1257033600 + (int64_t)rng_below(&activity, 1, 2 * 365 * 86400);
    for (uint32_t t = 0; t < n; t++) {
        uint32_t words[4];
        rng_words(&attempt, t, words);
        const struct track *track = &class->tracks[unit(words[0]) < 0.8 ? home : second];
        const uint32_t i = draw_item(class, track, s, &item, t);
        const double p = simulate_sigmoid(logit_of(simulation, class, s, i, t));
        const bool correct = unit(words[1]) < p;
        const bool gave_up = !correct && unit(words[2]) < 0.2;
        const enum outcome outcome = gave_up ? UNKNOWN : correct ? CORRECT : INCORRECT;
        builder_add(simulation->builder, (uint32_t)s, i, mark_make(outcome, TRAIN, false, true),
                    time);
        const bool goes_on = unit(words[3]) < 0.95;
        const double z = rng_normal(&pause, t);
        time += 1 + (int64_t)simulate_exp(goes_on ? 4.2 + 0.6 * z : 11 + 1.2 * z);
    }
}

enum status simulate_grockit(struct simulation *simulation)
{
    const size_t n_students = simulation->n_students, n_items = simulation->n_items;
    struct class class = {
        .ability = simulate_truth(simulation, "ability", n_students, 0, true),
        .track_ability =
            simulate_truth(simulation, "track_ability", n_students, N_TRACKS, true),
        .discrimination = simulate_truth(simulation, "discrimination", n_items, 0, false),
        .difficulty = simulate_truth(simulation, "difficulty", n_items, 0, false),
        .track_of_item = NEW(uint8_t, n_items),
        .tags = (uint32_t(*)[MOST_TAGS])NEW(uint32_t, n_items * MOST_TAGS),
        .n_tags = NEW(uint8_t, n_items),
        .last_seen_by = NEW(size_t, n_items),
    };
    simulate_names(simulation);
    make_items(simulation, &class);
    for (size_t s = 0; s < n_students; s++)
        make_student(simulation, &class, s);
    for (size_t g = 0; g < N_TRACKS; g++) {
        memory_free(class.tracks[g].items);
        memory_free(class.tracks[g].other);
        memory_free(class.tracks[g].keep);
    }
    memory_free(class.track_of_item);
    memory_free(class.tags);
    memory_free(class.n_tags);
    memory_free(class.last_seen_by);
    return OK;
}
