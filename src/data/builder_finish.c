/* The second half of the builder (see builder.c): each pile is sorted by student and time while
 * it is in the cache, appended to the final arrays, and freed. Items, skills and groups are
 * numbered in the order of their names, so their numbers do not depend on the order of the rows
 * either. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "data/builder_internal.h"
#include <stdlib.h>
#include <string.h>

/* numbers[r] is the old number of new number r; rank is the inverse. */
struct order {
    uint32_t *numbers, *rank;
};

static struct order order_create(const struct names *names, bool keep)
{
    struct order order = {NEW(uint32_t, names->n), NEW(uint32_t, names->n)};
    for (size_t i = 0; i < names->n; i++)
        order.numbers[i] = (uint32_t)i;
    if (!keep)
        name_index_sort(names, order.numbers);
    for (size_t r = 0; r < names->n; r++)
        order.rank[order.numbers[r]] = (uint32_t)r;
    return order;
}

static void order_free(struct order *order)
{
    memory_free(order->numbers);
    memory_free(order->rank);
}

static struct names names_in_order(const struct names *names, const uint32_t *numbers, size_t n)
{
    struct names sorted = {0};
    for (size_t r = 0; r < n; r++) {
        const char *name = names_get(names, numbers[r]);
        names_add(&sorted, name, strlen(name));
    }
    return sorted;
}

/* Replaces names by titles. Where two share a title, each is called "title (name)". */
static void entitle(struct names *names, const uint32_t *titles, const struct name_index *index)
{
    if (index->names.n == 0)
        return;
    uint32_t *n_users = NEW(uint32_t, index->names.n);
    for (size_t i = 0; i < names->n; i++)
        if (titles[i] != INDEX_NONE)
            n_users[titles[i]]++;
    struct names entitled = {0};
    for (size_t i = 0; i < names->n; i++) {
        const char *name = names_get(names, i);
        const char *title =
            titles[i] == INDEX_NONE ? name : names_get(&index->names, titles[i]);
        char *both = titles[i] != INDEX_NONE && n_users[titles[i]] > 1
                         ? memory_text("%s (%s)", title, name)
                         : memory_text("%s", title);
        names_add(&entitled, both, strlen(both));
        memory_free(both);
    }
    memory_free(n_users);
    names_free(names);
    *names = entitled;
}

static int compare_pairs(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void finish_items(struct builder *builder, struct dataset *head, struct order *items)
{
    const bool keep = builder->plan.keep_order;
    *items = order_create(&builder->items.names, keep);
    struct order skills = order_create(&builder->skills.names, keep);
    struct order groups = order_create(&builder->groups.names, keep);
    const size_t n = head->n_items = builder->items.names.n;
    head->n_skills = builder->skills.names.n;
    head->n_groups = builder->groups.names.n;
    head->items = names_in_order(&builder->items.names, items->numbers, n);
    head->skills = names_in_order(&builder->skills.names, skills.numbers, head->n_skills);
    head->groups = names_in_order(&builder->groups.names, groups.numbers, head->n_groups);

    uint32_t *titles = NEW(uint32_t, size_max(n, head->n_skills));
    for (size_t i = 0; i < n; i++)
        titles[i] = builder->item[items->numbers[i]].title;
    entitle(&head->items, titles, &builder->item_titles);
    for (size_t k = 0; k < head->n_skills; k++)
        titles[k] = builder->skill_title[skills.numbers[k]];
    entitle(&head->skills, titles, &builder->skill_titles);
    memory_free(titles);

    head->item_group = NEW(int32_t, n);
    for (size_t i = 0; i < n; i++) {
        const int32_t group = builder->item[items->numbers[i]].group;
        head->item_group[i] = group < 0 ? -1 : (int32_t)groups.rank[group];
    }
    uint64_t *pairs = NEW(uint64_t, builder->n_pairs);
    size_t n_pairs = 0;
    for (size_t slot = 0; slot < builder->n_pair_slots; slot++) {
        if (builder->pairs[slot] == 0)
            continue;
        const uint64_t pair = builder->pairs[slot] - 1;
        pairs[n_pairs++] =
            (uint64_t)items->rank[pair >> 32] << 32 | skills.rank[(uint32_t)pair];
    }
    qsort(pairs, n_pairs, sizeof *pairs, compare_pairs);
    head->item_first = NEW(uint64_t, n + 1);
    head->item_skills = NEW(uint32_t, n_pairs);
    for (size_t p = 0; p < n_pairs; p++) {
        head->item_first[(pairs[p] >> 32) + 1]++;
        head->item_skills[p] = (uint32_t)pairs[p];
    }
    for (size_t i = 0; i < n; i++)
        head->item_first[i + 1] += head->item_first[i];
    memory_free(pairs);
    order_free(&skills);
    order_free(&groups);
}

/* A row of the pile being sorted. */
struct row {
    int64_t time;
    uint64_t place;
    uint32_t item, source_row;
    uint8_t mark, variant;
};

/* Stable merge sort between two arrays: attempts at the same time stay in the order of the
 * rows. Most students are sorted already. */
static void sort_by_time(struct row *rows, struct row *spare, size_t n)
{
    size_t in_order = 1;
    while (in_order < n && rows[in_order - 1].time <= rows[in_order].time)
        in_order++;
    if (in_order >= n)
        return;
    struct row *from = rows, *to = spare;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t start = 0; start < n; start += 2 * width) {
            const size_t middle = size_min(start + width, n);
            const size_t end = size_min(start + 2 * width, n);
            size_t left = start, right = middle;
            for (size_t r = start; r < end; r++) {
                const bool take_left =
                    left < middle && (right >= end || from[left].time <= from[right].time);
                to[r] = from[take_left ? left++ : right++];
            }
        }
        struct row *swap = from;
        from = to;
        to = swap;
    }
    if (from != rows)
        memcpy(rows, from, n * sizeof *rows);
}

static int64_t divide_down(int64_t time, int64_t divisor)
{
    return time / divisor - (time % divisor < 0);
}

/* Most sources have whole seconds, and their microseconds take no memory. */
static void keep_rest(struct builder_result *result, size_t n_rows, uint64_t t, int64_t rest)
{
    if (rest > 0 && result->microsecond == NULL)
        result->microsecond = NEW(uint32_t, n_rows);
    if (rest > 0)
        result->microsecond[t] = (uint32_t)rest;
}

/* The last attempt at an item: in which run of rows, and what is merged into it. */
struct last_attempt {
    uint64_t run;      /* 0: none yet */
    uint64_t variants; /* bit v: a row with variant v */
    enum outcome outcome;
    /* The attempts before it: */
    uint64_t skills; /* variants of the first one that had skills; 0: none had */
    bool differ;     /* another one had other skills */
    bool some_lack;  /* one had none */
};

/* State shared by all piles. */
struct finish {
    const struct builder *builder;
    struct builder_result *result;
    const struct order *items;
    uint32_t *rank; /* place of each student, by number */
    uint32_t *item; /* final arrays */
    int64_t *time;  /* NULL if not kept */
    double *covariate;
    struct last_attempt *last; /* by item; NULL: nothing is merged or counted */
    bool
        by_time; /* a run of rows has equal times; otherwise adjacent rows have one item and one
                     part of the split */
    uint64_t n, n_runs;
};

/* The attempt at the item is complete: compares its skills with those of the earlier ones. */
static void compare_skills(struct last_attempt *last)
{
    const uint64_t no_skills = 1, skills = last->variants & ~no_skills;
    if (last->run == 0)
        return;
    last->some_lack |= skills == 0;
    if (last->skills == 0)
        last->skills = skills;
    last->differ |= skills != 0 && skills != last->skills;
}

static void count_reskilled(struct finish *finish)
{
    struct builder_result *result = finish->result;
    for (size_t i = 0; i < result->content.head.n_items; i++) {
        struct last_attempt *last = &finish->last[i];
        compare_skills(last);
        result->n_reskilled += last->differ;
        result->n_half_skilled += !last->differ && last->some_lack && last->skills != 0;
    }
}

/* Whether the row is merged into the last attempt at its item; counts it. */
static bool is_merged(struct finish *finish, const struct row *row)
{
    struct last_attempt *last = &finish->last[row->item];
    struct builder_result *result = finish->result;
    const enum builder_merge merge = finish->builder->plan.merge;
    const enum outcome outcome = mark_outcome(row->mark);
    const uint64_t bit = (uint64_t)1 << row->variant;
    if (last->run == finish->n_runs) {
        const bool agrees = last->outcome == outcome,
                   other_skills =
                       row->variant < BUILDER_MOST_VARIANTS && (last->variants & bit) == 0;
        if ((merge == MERGE_ALL && (agrees || finish->by_time)) ||
            (merge == MERGE_SKILLS && agrees && other_skills)) {
            last->variants |= bit;
            result->n_merged++;
            result->n_merged_skills += other_skills;
            result->n_merged_other += !agrees;
            return true;
        }
        result->n_repeats += finish->builder->plan.count_repeats && agrees && !other_skills;
    }
    compare_skills(last);
    last->run = finish->n_runs;
    last->variants = bit;
    last->outcome = outcome;
    return false;
}

/* Appends one student's sorted rows to the final arrays. */
static void append(struct finish *finish, const struct row *rows, size_t n_rows)
{
    const struct builder_plan *plan = &finish->builder->plan;
    int64_t last_stored = 0;
    for (size_t r = 0; r < n_rows; r++) {
        const bool is_first = r == 0,
                   is_new_time = is_first || rows[r].time != rows[r - 1].time;
        const int64_t stored = divide_down(rows[r].time, plan->time_divisor);
        finish->n_runs += is_first || (finish->by_time ? is_new_time
                                                       : rows[r].item != rows[r - 1].item ||
                                                             mark_split(rows[r].mark) !=
                                                                 mark_split(rows[r - 1].mark));
        if (finish->last != NULL && is_merged(finish, &rows[r]))
            continue;
        const bool step = is_first || plan->step == STEP_EVERY ||
                          (plan->step == STEP_TIME && is_new_time) ||
                          (plan->step == STEP_SESSION && stored - last_stored > plan->pause) ||
                          (plan->step == STEP_GIVEN && (rows[r].mark & MARK_STEP));
        const uint64_t t = finish->n++;
        finish->item[t] = finish->items->rank[rows[r].item];
        finish->result->mark[t] =
            mark_make(mark_outcome(rows[r].mark), mark_split(rows[r].mark), false, step);
        if (finish->result->row != NULL)
            finish->result->row[t] = rows[r].source_row;
        if (finish->time != NULL) {
            finish->time[t] = stored;
            keep_rest(finish->result, finish->builder->n_rows, t,
                      (rows[r].time - stored * plan->time_divisor) * plan->time_rest);
        }
        for (size_t k = 0; k < plan->n_covariates; k++)
            finish->covariate[t * plan->n_covariates + k] =
                finish->builder->covariates[rows[r].place + k];
        last_stored = stored;
    }
}

/* Sorts one pile, whose students have the places first_place .. last_place, and frees it. */
static void finish_pile(struct finish *finish, struct pile *pile, size_t first_place,
                        size_t last_place)
{
    const size_t row_size = finish->builder->row_size, n_students = last_place - first_place;
    struct row *rows = NEW_SCRATCH(struct row, pile->n_rows);
    struct row *spare = NEW_SCRATCH(struct row, pile->n_rows);
    size_t *end = NEW(size_t, n_students + 1); /* of each student, in rows */
    for (const struct block *block = pile->first; block != NULL; block = block->next)
        for (size_t at = 0; at < block->n_bytes; at += row_size) {
            const struct packed_row *row = (const struct packed_row *)(block->rows + at);
            end[finish->rank[row->student] - first_place + 1]++;
        }
    for (size_t s = 0; s < n_students; s++)
        end[s + 1] += end[s];
    /* As rows are placed, end[s] moves from the first row of student s past the last. */
    for (const struct block *block = pile->first; block != NULL; block = block->next)
        for (size_t at = 0; at < block->n_bytes; at += row_size) {
            const struct packed_row *row = (const struct packed_row *)(block->rows + at);
            const int64_t time = finish->builder->plan.has_time ? row->time : 0;
            rows[end[finish->rank[row->student] - first_place]++] =
                (struct row){time,      finish->builder->plan.n_covariates > 0 ? row->place : 0,
                             row->item, row->row,
                             row->mark, row->variant};
        }
    builder_free_pile(pile);
    for (size_t s = 0; s < n_students; s++) {
        const size_t first = s > 0 ? end[s - 1] : 0, n = end[s] - first;
        finish->result->n_next += n - (n > 0);
        for (size_t r = 1; r < n; r++)
            finish->result->n_falls += rows[first + r].time < rows[first + r - 1].time;
        sort_by_time(rows + first, spare + first, n);
        append(finish, rows + first, n);
        finish->result->content.head.first[first_place + s + 1] = finish->n;
    }
    memory_free(rows);
    memory_free(spare);
    memory_free(end);
}

struct keyed {
    uint64_t key;
    const char *name;
    uint32_t number;
};

static int compare_keyed(const void *a, const void *b)
{
    const struct keyed *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* The students who have attempts, in their final order. */
static void finish_students(const struct builder *builder, struct builder_result *result)
{
    const struct names *names = builder_student_names(builder);
    bool *has_rows = NEW(bool, names->n);
    for (size_t p = 0; p < N_PILES; p++)
        for (const struct block *block = builder->piles[p].first; block != NULL;
             block = block->next)
            for (size_t at = 0; at < block->n_bytes; at += builder->row_size)
                has_rows[((const struct packed_row *)(block->rows + at))->student] = true;
    struct keyed *keyed = NEW(struct keyed, names->n);
    size_t n = 0;
    for (size_t s = 0; s < names->n; s++)
        if (has_rows[s])
            keyed[n++] = (struct keyed){builder->keys[s], names_get(names, s), (uint32_t)s};
    qsort(keyed, n, sizeof *keyed, compare_keyed);
    result->student_number = NEW(uint32_t, n);
    for (size_t s = 0; s < n; s++)
        result->student_number[s] = keyed[s].number;
    memory_free(keyed);
    memory_free(has_rows);
    result->n_idle_students = names->n - n;
    result->content.head.n_students = n;
    result->content.students = names_in_order(names, result->student_number, n);
}

void builder_finish(struct builder *builder, struct builder_result *result)
{
    builder_flush(builder);
    for (size_t p = 0; p < N_PILES; p++)
        if (builder->piles[p].last != NULL)
            builder->piles[p].last->n_bytes =
                (size_t)(builder->piles[p].next - builder->piles[p].last->rows);
    *result = (struct builder_result){
        .n_regrouped = builder->n_regrouped,
        .n_retitled = builder->n_retitled,
        .forgot_times = builder->forgets_times,
        .n_converted = builder->students.n_converted + builder->items.n_converted +
                       builder->skills.n_converted + builder->groups.n_converted,
        .n_united = builder->students.n_united + builder->items.n_united +
                    builder->skills.n_united + builder->groups.n_united};
    struct dataset *head = &result->content.head;
    struct order items;
    finish_students(builder, result);
    finish_items(builder, head, &items);
    head->has_time = builder->plan.has_time && !builder->plan.drop_time;
    head->first = NEW(uint64_t, head->n_students + 1);

    /* memory_resize does not touch the pages: see builder.c. */
    const size_t n_rows = builder->n_rows;
    result->mark = memory_resize(NULL, n_rows, sizeof(uint8_t));
    if (builder->plan.has_rows && !builder->row_overflows)
        result->row = memory_resize(NULL, n_rows, sizeof(uint32_t));
    struct finish finish = {
        .builder = builder,
        .result = result,
        .items = &items,
        .rank = NEW_SCRATCH(uint32_t, builder->students.names.n),
        .item = memory_resize(NULL, n_rows, sizeof(uint32_t)),
        .time = head->has_time ? memory_resize(NULL, n_rows, sizeof(int64_t)) : NULL,
        .covariate = memory_resize(NULL, n_rows * builder->plan.n_covariates, sizeof(double)),
        .last = builder->plan.merge != MERGE_NONE || builder->plan.count_repeats ||
                        builder->has_variants
                    ? NEW(struct last_attempt, head->n_items)
                    : NULL,
        .by_time = builder->plan.has_time && !builder->forgets_times,
    };
    for (size_t s = 0; s < head->n_students; s++)
        finish.rank[result->student_number[s]] = (uint32_t)s;
    size_t place = 0;
    for (size_t p = 0; p < N_PILES; p++) {
        const size_t first_place = place;
        while (place < head->n_students && builder->pile_of[result->student_number[place]] == p)
            place++;
        finish_pile(&finish, &builder->piles[p], first_place, place);
    }
    ENSURE(place == head->n_students);
    if (finish.last != NULL)
        count_reskilled(&finish);
    head->n_attempts = finish.n;
    result->content.item = finish.item;
    result->content.mark = result->mark;
    result->content.time = finish.time;
    result->content.covariate = finish.covariate;
    memory_free(finish.rank);
    memory_free(finish.last);
    order_free(&items);
}

double *builder_rows_of_students(const struct builder_result *result, const double *values,
                                 size_t width)
{
    const size_t n = result->content.head.n_students;
    double *rows = NEW(double, n *width);
    for (size_t s = 0; s < n; s++)
        memcpy(rows + s * width, values + result->student_number[s] * width,
               width * sizeof *rows);
    return rows;
}

void builder_result_free(struct builder_result *result)
{
    struct dataset_content *content = &result->content;
    struct dataset *head = &content->head;
    memory_free(head->first);
    memory_free(head->item_first);
    memory_free(head->item_skills);
    memory_free(head->item_group);
    memory_free(head->target);
    names_free(&head->items);
    names_free(&head->skills);
    names_free(&head->groups);
    covariates_free(&head->covariates);
    names_free(&content->students);
    memory_free((void *)content->item);
    memory_free((void *)content->time);
    memory_free((void *)content->covariate);
    memory_free(result->mark);
    memory_free(result->student_number);
    memory_free(result->row);
    memory_free(result->microsecond);
    *result = (struct builder_result){0};
}

void builder_shuffle_outcomes(struct builder_result *result, uint64_t seed)
{
    const uint64_t n = result->content.head.n_attempts;
    uint64_t n_left = 0, n_correct_left = 0;
    for (uint64_t t = 0; t < n; t++) {
        n_left += mark_outcome(result->mark[t]) != UNKNOWN;
        n_correct_left += mark_outcome(result->mark[t]) == CORRECT;
    }
    /* Drawing without replacement from the outcomes that are left is a random permutation. */
    for (uint64_t t = 0; t < n; t++) {
        uint8_t *mark = &result->mark[t];
        if (mark_outcome(*mark) == UNKNOWN)
            continue;
        const struct rng rng = {.seed = seed,
                                .purpose = RNG_SIMULATE,
                                .part = 0xffffff,
                                .when = (uint32_t)(t >> 32)};
        const bool correct = rng_below(&rng, (uint32_t)t, n_left) < n_correct_left;
        *mark = (uint8_t)((*mark & ~3u) | (correct ? CORRECT : INCORRECT));
        n_left--;
        n_correct_left -= correct;
    }
}
