/* A random split must not depend on the order of the imported rows, so it is a function of the
 * seed and the student's name:
 *
 *     by-student    students in the order of split_key(seed, name): the first 80 % are train,
 *                   the next 10 % valid, the rest test
 *     folds         the same order, split into K folds of equal size
 *     by-attempt    a random number named by the student's key and the attempt's position
 *     by-time       not random: two moments split all attempts into the given shares
 *     by-last       not random: each student's last known attempt is test, the one before valid
 *     by-order      not random: students in the order of the files
 *
 * by-order is for files whose order is agreed upon ("the first 4000 students are for
 * training"). by-last and by-attempt hold out known outcomes only: unknown ones cannot be
 * scored. */
#include "data/split.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <xxhash.h>

const char *const split_names[N_SPLITS] = {"train", "valid", "test"};

bool split_find(const char *name, size_t length, enum split *split)
{
    static const struct {
        const char *name;
        enum split split;
    } known[] = {
        {"train", TRAIN}, {"training", TRAIN}, {"valid", VALID}, {"validation", VALID},
        {"val", VALID},   {"dev", VALID},      {"test", TEST},   {"testing", TEST},
    };
    for (size_t k = 0; k < COUNT(known); k++)
        if (strlen(known[k].name) == length && strncasecmp(known[k].name, name, length) == 0) {
            *split = known[k].split;
            return true;
        }
    return false;
}

static const struct {
    const char *name;
    enum split_way way;
    bool has_percents;
} ways[] = {
    {"none", SPLIT_NONE, false},        {"by-student", SPLIT_BY_STUDENT, true},
    {"by-order", SPLIT_BY_ORDER, true}, {"by-last", SPLIT_BY_LAST, false},
    {"by-time", SPLIT_BY_TIME, true},   {"by-attempt", SPLIT_BY_ATTEMPT, true},
    {"folds", SPLIT_FOLDS, false},
};

/* Percentages of the training files: training/validation, or the same with /0. */
static enum status parse_two(const char *text, const char *way, const char *values,
                             int p[N_SPLITS])
{
    int end = 0;
    p[TEST] = 0;
    if (values == NULL)
        values = "90/10";
    const int n = sscanf(values, "%d/%d%n/%d%n", &p[TRAIN], &p[VALID], &end, &p[TEST], &end);
    if (n < 2 || values[end] != '\0' || p[TRAIN] < 0 || p[VALID] < 0 || p[TEST] != 0 ||
        (int64_t)p[TRAIN] + p[VALID] != 100)
        return fail(BAD_USER,
                    "split %s: the test files are named, so two percentages train/valid that "
                    "add up to 100 are expected, as in %s=90/10",
                    text, way);
    return OK;
}

static enum status parse(const char *text, struct split_plan *plan)
{
    const size_t n_name = strcspn(text, "=");
    const char *values = text[n_name] == '=' ? text + n_name + 1 : NULL;
    int end = 0;
    for (size_t w = 0; w < COUNT(ways); w++) {
        if (strlen(ways[w].name) != n_name || strncmp(ways[w].name, text, n_name) != 0)
            continue;
        plan->way = ways[w].way;
        if (ways[w].has_percents) {
            int *p = plan->percent;
            if (plan->within_train)
                return parse_two(text, ways[w].name, values, p);
            if (values == NULL)
                values = "80/10/10";
            if (sscanf(values, "%d/%d/%d%n", &p[TRAIN], &p[VALID], &p[TEST], &end) != 3 ||
                values[end] != '\0' || p[TRAIN] < 0 || p[VALID] < 0 || p[TEST] < 0)
                return fail(BAD_USER,
                            "split %s: expected three percentages train/valid/test, as in "
                            "%s=80/10/10",
                            text, ways[w].name);
            if ((int64_t)p[TRAIN] + p[VALID] + p[TEST] != 100)
                return fail(
                    BAD_USER,
                    "split %s: the percentages add up to %lld; expected 100, as in %s=80/10/10",
                    text, (long long)p[TRAIN] + p[VALID] + p[TEST], ways[w].name);
            return OK;
        }
        if (plan->way == SPLIT_FOLDS && plan->within_train)
            return fail(BAD_USER,
                        "split %s: folds need attempts for test, which --test already names; "
                        "expected by-student=90/10 or the like",
                        text);
        if (plan->way == SPLIT_FOLDS) {
            plan->fold = 1;
            const int n = values == NULL ? 0
                                         : sscanf(values, "%d%n/%d%n", &plan->n_folds, &end,
                                                  &plan->fold, &end);
            if (n < 1 || values[end] != '\0' || plan->n_folds < 2 || plan->fold < 1 ||
                plan->fold > plan->n_folds)
                return fail(BAD_USER,
                            "split %s: expected folds=K or folds=K/F with K at least 2 and F "
                            "from 1 to K; fold F is test, the next one valid",
                            text);
            return OK;
        }
        if (values == NULL)
            return OK;
    }
    return fail(
        BAD_USER,
        "unknown split '%s'; expected none, by-student=80/10/10, by-order=80/10/10, by-last, "
        "by-time=80/10/10, by-attempt=80/10/10, folds=K or folds=K/F",
        text);
}

enum status split_parse(const char *text, struct split_plan *plan)
{
    plan->within_train = false;
    return parse(text, plan);
}

enum status split_parse_train(const char *text, struct split_plan *plan)
{
    plan->within_train = true;
    return parse(text, plan);
}

bool split_withholds(const struct split_plan *plan)
{
    return plan->way == SPLIT_BY_LAST || plan->way == SPLIT_BY_ATTEMPT;
}

uint64_t split_key(uint64_t seed, const char *name)
{
    const struct rng rng = {.seed = XXH3_64bits_withSeed(name, strlen(name), seed),
                            .purpose = RNG_SPLIT};
    return rng_bits(&rng, 0);
}

struct keyed {
    uint64_t key;
    const char *name;
    uint32_t student;
};

static int compare_keyed(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return strcmp(x->name, y->name);
}

void split_places(uint64_t seed, const struct names *students, uint32_t *places)
{
    struct keyed *keyed = NEW_SCRATCH(struct keyed, students->n);
    for (size_t s = 0; s < students->n; s++) {
        const char *name = names_get(students, s);
        keyed[s] = (struct keyed){split_key(seed, name), name, (uint32_t)s};
    }
    qsort(keyed, students->n, sizeof *keyed, compare_keyed);
    for (size_t place = 0; place < students->n; place++)
        places[keyed[place].student] = (uint32_t)place;
    memory_free(keyed);
}

static void set_split(uint8_t *mark, enum split split)
{
    *mark = (uint8_t)((*mark & ~(3u << 2)) | (unsigned)split << 2);
}

/* Where valid and test begin. A part with a positive percentage gets at least one student if
 * there are enough. */
static void cut_percents(const int percent[N_SPLITS], size_t n, size_t *valid, size_t *test)
{
    size_t n_part[N_SPLITS];
    for (int part = VALID; part <= TEST; part++) {
        n_part[part] = (n * (size_t)percent[part] + 50) / 100;
        if (percent[part] > 0 && n_part[part] == 0 && n >= N_SPLITS)
            n_part[part] = 1;
    }
    *test = n - size_min(n, n_part[TEST]);
    *valid = percent[TRAIN] == 0 ? 0 : *test - size_min(*test, n_part[VALID]);
}

static enum split split_of_place(const struct split_plan *plan, size_t place, size_t n)
{
    if (plan->way == SPLIT_FOLDS) {
        const int fold = (int)(place * (size_t)plan->n_folds / n);
        const int next = plan->fold % plan->n_folds;
        return fold == plan->fold - 1              ? TEST
               : fold == next && plan->n_folds > 2 ? VALID
                                                   : TRAIN;
    }
    size_t valid = 0, test = 0;
    cut_percents(plan->percent, n, &valid, &test);
    return place >= test ? TEST : place >= valid ? VALID : TRAIN;
}

/* places[s] = the number of students before student s in the files. */
static void order_places(const uint32_t *student_number, size_t n, uint32_t *places)
{
    uint32_t most = 0;
    for (size_t s = 0; s < n; s++)
        most = student_number[s] > most ? student_number[s] : most;
    uint32_t *before = NEW(uint32_t, (size_t)most + 2);
    for (size_t s = 0; s < n; s++)
        before[student_number[s] + 1] = 1;
    for (size_t i = 0; i <= most; i++)
        before[i + 1] += before[i];
    for (size_t s = 0; s < n; s++)
        places[s] = before[student_number[s]];
    memory_free(before);
}

/* Whether an attempt may be moved to another part. */
static bool is_free(const struct split_plan *plan, uint8_t mark)
{
    return !plan->within_train || mark_split(mark) == TRAIN;
}

/* Closes up the places of students who have attempts to split; returns their number. */
static size_t close_up(const struct split_plan *plan, const struct dataset *head,
                       const uint8_t *mark, uint32_t *places)
{
    const size_t n = head->n_students;
    uint32_t *before = NEW(uint32_t, n + 1);
    for (size_t s = 0; s < n; s++)
        for (uint64_t t = head->first[s]; t < head->first[s + 1]; t++)
            if (is_free(plan, mark[t]))
                before[places[s] + 1] = 1;
    for (size_t i = 0; i < n; i++)
        before[i + 1] += before[i];
    for (size_t s = 0; s < n; s++)
        places[s] = before[places[s]];
    const size_t n_free = before[n];
    memory_free(before);
    return n_free;
}

static void split_students(const struct split_plan *plan, const struct dataset_content *content,
                           uint8_t *mark)
{
    const struct dataset *head = &content->head;
    uint32_t *places = NEW(uint32_t, head->n_students);
    if (plan->way == SPLIT_BY_ORDER)
        order_places(plan->student_number, head->n_students, places);
    else
        split_places(plan->seed, &content->students, places);
    const size_t n = close_up(plan, head, mark, places);
    for (size_t s = 0; s < head->n_students; s++) {
        const enum split split = split_of_place(plan, places[s], n);
        for (uint64_t t = head->first[s]; t < head->first[s + 1]; t++)
            if (is_free(plan, mark[t]))
                set_split(&mark[t], split);
    }
    memory_free(places);
}

static void split_last(const struct split_plan *plan, const struct dataset_content *content,
                       uint8_t *mark)
{
    const struct dataset *head = &content->head;
    for (size_t s = 0; s < head->n_students; s++) {
        size_t n_known = 0;
        for (uint64_t t = head->first[s]; t < head->first[s + 1]; t++) {
            if (!is_free(plan, mark[t]))
                continue;
            n_known += mark_outcome(mark[t]) != UNKNOWN;
            set_split(&mark[t], TRAIN);
        }
        /* At least one known attempt stays in training. */
        enum split next = n_known < 2 ? TRAIN : plan->within_train ? VALID : TEST;
        for (uint64_t t = head->first[s + 1]; t > head->first[s] && next != TRAIN; t--)
            if (mark_outcome(mark[t - 1]) != UNKNOWN && is_free(plan, mark[t - 1])) {
                set_split(&mark[t - 1], next);
                next = next == TEST && n_known >= 3 ? VALID : TRAIN;
            }
    }
}

static void split_attempts(const struct split_plan *plan, const struct dataset_content *content,
                           uint8_t *mark)
{
    const struct dataset *head = &content->head;
    for (size_t s = 0; s < head->n_students; s++) {
        const struct rng rng = {.seed = split_key(plan->seed, names_get(&content->students, s)),
                                .purpose = RNG_SPLIT,
                                .part = 1};
        for (uint64_t t = head->first[s]; t < head->first[s + 1]; t++) {
            const double u = 100 * rng_uniform(&rng, (uint32_t)(t - head->first[s]));
            const int train = plan->percent[TRAIN], valid = plan->percent[VALID];
            const bool known = mark_outcome(mark[t]) != UNKNOWN;
            if (is_free(plan, mark[t]))
                set_split(&mark[t], !known || u < train ? TRAIN
                                    : u < train + valid ? VALID
                                                        : TEST);
        }
    }
}

/* The smallest time with more than `rank` of the n times at or below it: a histogram of 2^16
 * bins is refined within one bin until a bin is one time unit wide. */
static int64_t time_of_rank(const int64_t *time, uint64_t n, uint64_t rank)
{
    enum { N_BINS = 1 << 16 };
    uint64_t *counts = NEW(uint64_t, N_BINS);
    int64_t least = time[0], most = time[0];
    for (uint64_t t = 0; t < n; t++) {
        least = time[t] < least ? time[t] : least;
        most = time[t] > most ? time[t] : most;
    }
    while (least < most) {
        const uint64_t width = ((uint64_t)most - (uint64_t)least) / N_BINS + 1;
        memset(counts, 0, N_BINS * sizeof *counts);
        for (uint64_t t = 0; t < n; t++)
            if (time[t] >= least && time[t] <= most)
                counts[((uint64_t)time[t] - (uint64_t)least) / width]++;
        size_t bin = 0;
        while (rank >= counts[bin])
            rank -= counts[bin++];
        least = (int64_t)((uint64_t)least + bin * width);
        if ((uint64_t)most - (uint64_t)least >= width)
            most = (int64_t)((uint64_t)least + width - 1);
    }
    memory_free(counts);
    return least;
}

static enum status split_times(const struct split_plan *plan,
                               const struct dataset_content *content, uint8_t *mark)
{
    const uint64_t n_all = content->head.n_attempts;
    if (!content->head.has_time)
        return fail(BAD_USER,
                    "split by-time needs times, but these attempts have none; name the column "
                    "with --time, or use by-student or by-last");
    const int train = plan->percent[TRAIN], valid = plan->percent[VALID];
    int64_t *time = NEW_SCRATCH(int64_t, n_all);
    uint64_t n = 0;
    for (uint64_t t = 0; t < n_all; t++)
        if (is_free(plan, mark[t]))
            time[n++] = content->time[t];
    const uint64_t rank[] = {size_cut(n, (size_t)train, 100),
                             size_cut(n, (size_t)(train + valid), 100)};
    int64_t begin[COUNT(rank)] = {0};
    for (size_t r = 0; r < COUNT(rank); r++)
        begin[r] = rank[r] < n ? time_of_rank(time, n, rank[r]) : 0;
    memory_free(time);
    uint64_t n_train = 0;
    for (uint64_t t = 0; t < n_all; t++) {
        if (!is_free(plan, mark[t]))
            continue;
        const enum split split = rank[1] < n && content->time[t] >= begin[1]   ? TEST
                                 : rank[0] < n && content->time[t] >= begin[0] ? VALID
                                                                               : TRAIN;
        set_split(&mark[t], split);
        n_train += split == TRAIN;
    }
    if (n_train == 0 && train > 0)
        return fail(BAD_USER,
                    "split by-time leaves nothing for training: most attempts have the same "
                    "time; use by-student or by-attempt");
    return OK;
}

enum status split_apply(const struct split_plan *plan, const struct dataset_content *content,
                        uint8_t *mark)
{
    const uint64_t n = content->head.n_attempts;
    switch (plan->way) {
    case SPLIT_GIVEN:
        break;
    case SPLIT_NONE:
        for (uint64_t t = 0; t < n; t++)
            if (is_free(plan, mark[t]))
                set_split(&mark[t], TRAIN);
        break;
    case SPLIT_BY_STUDENT:
    case SPLIT_BY_ORDER:
        split_students(plan, content, mark);
        break;
    case SPLIT_FOLDS:
        if ((size_t)plan->n_folds > content->head.n_students)
            return fail(BAD_USER, "folds=%d: there are only %zu student%s; choose fewer folds",
                        plan->n_folds, content->head.n_students,
                        content->head.n_students == 1 ? "" : "s");
        split_students(plan, content, mark);
        break;
    case SPLIT_BY_LAST:
        split_last(plan, content, mark);
        break;
    case SPLIT_BY_ATTEMPT:
        split_attempts(plan, content, mark);
        break;
    case SPLIT_BY_TIME:
        TRY(split_times(plan, content, mark));
        break;
    }
    for (uint64_t t = 0; t < n; t++) {
        const bool shown = mark_outcome(mark[t]) != UNKNOWN &&
                           (mark_split(mark[t]) == TRAIN || !content->head.withheld);
        mark[t] = (uint8_t)((mark[t] & ~MARK_SHOWN) | (shown ? MARK_SHOWN : 0));
    }
    return OK;
}
