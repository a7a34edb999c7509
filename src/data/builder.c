/* Rows arrive one at a time, with students mixed. The file needs students in a random order,
 * and each student's attempts together in time order. Students are sorted by a hash of seed and
 * name, so their order does not depend on the order of the rows:
 *
 *     row  --hash(seed, student)-->  pile 0    [rows]  --sort-->  students 0 ..
 *                                    pile 1    [rows]  --sort-->  the next students
 *                                    ...                          ...
 *                                    pile 255  [rows]  --sort-->  the last students
 *
 * The first byte of the hash selects one of 256 piles, so each pile is a slice of the final
 * order. builder_finish.c sorts the piles one by one.
 *
 * Memory per row, in bytes:
 *
 *     in a pile              student 4 + item 4 + marks 2 + row 4 + time 8 = 22     14 without
 *     in the final arrays    item 4 + mark 1 + row 4 + time 8 = 17                   9 times
 *     at the peak            about 22
 *
 * The peak is lower than the sum because piles are freed as the final arrays are filled, and a
 * page takes memory only when it is first written. Piles are chains of blocks, so growing never
 * copies. A student takes 9 bytes and the name twice. */
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "data/builder_internal.h"
#include <string.h>
#include <sys/mman.h>
#include <xxhash.h>

enum { BLOCK = 1 << 20 };

struct builder *builder_create(const struct builder_plan *plan)
{
    struct builder *builder = NEW(struct builder, 1);
    builder->plan = *plan;
    builder->row_size = plan->n_covariates > 0 ? sizeof(struct packed_row)
                        : plan->has_time       ? offsetof(struct packed_row, place)
                                               : offsetof(struct packed_row, time);
    if (plan->time_divisor == 0)
        builder->plan.time_divisor = 1;
    return builder;
}

/* Blocks come from the kernel and are returned to it at once: a heap would keep freed memory,
 * which the final arrays need. Pages take memory only when first written, so a block that is
 * never filled costs little. */
static struct block *block_create(void)
{
    struct block *block =
        mmap(NULL, BLOCK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED)
        fail_abort(BAD_IO, "out of memory for the rows of an import");
    return block;
}

void builder_free_pile(struct pile *pile)
{
    while (pile->first != NULL) {
        struct block *next = pile->first->next;
        munmap(pile->first, BLOCK);
        pile->first = next;
    }
}

void builder_destroy(struct builder *builder)
{
    if (builder == NULL)
        return;
    for (size_t p = 0; p < N_PILES; p++)
        builder_free_pile(&builder->piles[p]);
    struct name_index *const all[] = {&builder->students,    &builder->items,
                                      &builder->skills,      &builder->groups,
                                      &builder->item_titles, &builder->skill_titles};
    for (size_t a = 0; a < COUNT(all); a++)
        name_index_free(all[a]);
    memory_free(builder->keys);
    memory_free(builder->pile_of);
    memory_free(builder->item);
    memory_free(builder->skill_title);
    memory_free(builder->pairs);
    memory_free(builder->covariates);
    names_free(&builder->renamed);
    memory_free(builder);
}

const struct names *builder_student_names(const struct builder *builder)
{
    return builder->plan.rename != NULL ? &builder->renamed : &builder->students.names;
}

/* The order of students must not reveal their names, so it follows the stored ones. */
static uint32_t add_student(struct builder *builder, const char *name, size_t length)
{
    const size_t n_known = builder->students.names.n;
    const uint32_t s = name_index_add(&builder->students, name, length);
    if (s == n_known) {
        if (builder->plan.rename != NULL) {
            const char *own = names_get(&builder->students.names, s);
            char *other = builder->plan.rename(builder->plan.rename_arg, own, strlen(own));
            names_add(&builder->renamed, other, strlen(other));
            memory_free(other);
        }
        const char *known = names_get(builder_student_names(builder), s);
        const struct rng rng = {
            .seed = XXH3_64bits_withSeed(known, strlen(known), builder->plan.seed),
            .purpose = RNG_FILE_ORDER};
        GROW(builder->keys, n_known, builder->key_capacity);
        GROW(builder->pile_of, n_known, builder->pile_capacity);
        builder->keys[s] = rng_bits(&rng, 0);
        builder->pile_of[s] = (uint8_t)(builder->keys[s] >> 56);
    }
    return s;
}

uint32_t builder_student(struct builder *builder, const char *name, size_t length)
{
    builder_flush(builder); /* students are numbered in the order of their rows */
    return add_student(builder, name, length);
}

uint32_t builder_item(struct builder *builder, const char *name, size_t length)
{
    const size_t n_known = builder->items.names.n;
    const uint32_t i = name_index_add(&builder->items, name, length);
    if (i == n_known) {
        GROW(builder->item, n_known, builder->item_capacity);
        builder->item[i] = (struct item){.group = -1, .title = INDEX_NONE};
    }
    return i;
}

uint32_t builder_skill(struct builder *builder, const char *name, size_t length)
{
    const size_t n_known = builder->skills.names.n;
    const uint32_t k = name_index_add(&builder->skills, name, length);
    if (k == n_known) {
        GROW(builder->skill_title, n_known, builder->skill_capacity);
        builder->skill_title[k] = INDEX_NONE;
    }
    return k;
}

uint32_t builder_group(struct builder *builder, const char *name, size_t length)
{
    return name_index_add(&builder->groups, name, length);
}

uint32_t builder_find_item(const struct builder *builder, const char *name, size_t length)
{
    return name_index_find(&builder->items, name, length);
}

const struct names *builder_items(const struct builder *builder)
{
    return &builder->items.names;
}

/* The last title counts. */
static void set_title(struct builder *builder, uint32_t *place, uint32_t title)
{
    builder->n_retitled += *place != INDEX_NONE && *place != title;
    *place = title;
}

bool builder_title_item(struct builder *builder, const char *name, size_t length,
                        const char *title, size_t title_length)
{
    const uint32_t i = name_index_find(&builder->items, name, length);
    if (i == INDEX_NONE)
        return false;
    set_title(builder, &builder->item[i].title,
              name_index_add(&builder->item_titles, title, title_length));
    return true;
}

bool builder_title_skill(struct builder *builder, const char *name, size_t length,
                         const char *title, size_t title_length)
{
    const uint32_t k = name_index_find(&builder->skills, name, length);
    if (k == INDEX_NONE)
        return false;
    set_title(builder, &builder->skill_title[k],
              name_index_add(&builder->skill_titles, title, title_length));
    return true;
}

static void add_block(struct pile *pile, size_t row_size)
{
    struct block *block = block_create();
    if (pile->last != NULL)
        pile->last->n_bytes = (size_t)(pile->next - pile->last->rows);
    *(pile->last == NULL ? &pile->first : &pile->last->next) = block;
    pile->last = block;
    pile->next = block->rows;
    pile->end = block->rows + (BLOCK - sizeof *block) / row_size * row_size;
}

static void add_row(struct builder *builder, uint32_t student, uint32_t item, uint8_t mark,
                    uint8_t variant, uint32_t source_row, int64_t time, uint64_t place)
{
    struct pile *pile = &builder->piles[builder->pile_of[student]];
    if (pile->next == pile->end)
        add_block(pile, builder->row_size);
    const struct packed_row row = {student, item, mark, variant, source_row, time, place};
    if (builder->plan.n_covariates > 0)
        memcpy(pile->next, &row, sizeof row);
    else if (builder->plan.has_time)
        memcpy(pile->next, &row, offsetof(struct packed_row, place));
    else
        memcpy(pile->next, &row, offsetof(struct packed_row, time));
    pile->next += builder->row_size;
    pile->n_rows++;
    builder->n_rows++;
}

/* Where the latest covariates are. */
static uint64_t last_covariates(const struct builder *builder)
{
    ENSURE(builder->n_covariates >= builder->plan.n_covariates);
    return builder->n_covariates - builder->plan.n_covariates;
}

void builder_add(struct builder *builder, uint32_t student, uint32_t item, uint8_t mark,
                 int64_t time)
{
    builder_flush(builder);
    add_row(builder, student, item, mark, builder->variant, builder->row, time,
            last_covariates(builder));
}

void builder_variant(struct builder *builder, uint8_t variant)
{
    builder->variant = variant;
    builder->has_variants |= variant > 0;
}

void builder_forget_times(struct builder *builder)
{
    builder->plan.drop_time = builder->forgets_times = true;
}

void builder_row(struct builder *builder, uint64_t row)
{
    builder->row = (uint32_t)row;
    builder->row_overflows |= row > UINT32_MAX;
}

void builder_covariates(struct builder *builder, const double *values)
{
    for (size_t k = 0; k < builder->plan.n_covariates; k++) {
        GROW(builder->covariates, builder->n_covariates, builder->covariate_capacity);
        builder->covariates[builder->n_covariates++] = values[k];
    }
}

void builder_flush(struct builder *builder)
{
    const size_t n = builder->n_waiting;
    for (size_t r = 0; r < n; r++)
        name_index_prefetch(&builder->students, builder->waiting[r].name,
                            builder->waiting[r].length);
    for (size_t r = 0; r < n; r++) {
        const struct waiting_row *row = &builder->waiting[r];
        add_row(builder, add_student(builder, row->name, row->length), row->item, row->mark,
                row->variant, row->row, row->time, row->place);
    }
    builder->n_waiting = 0;
}

void builder_add_named(struct builder *builder, const char *name, size_t length, uint32_t item,
                       uint8_t mark, int64_t time)
{
    struct waiting_row *row = &builder->waiting[builder->n_waiting];
    if (length > sizeof row->name) {
        const uint32_t student = builder_student(builder, name, length);
        add_row(builder, student, item, mark, builder->variant, builder->row, time,
                last_covariates(builder));
        return;
    }
    memcpy(row->name, name, length);
    row->length = (uint32_t)length;
    row->item = item;
    row->mark = mark;
    row->row = builder->row;
    row->variant = builder->variant;
    row->time = time;
    row->place = last_covariates(builder);
    if (++builder->n_waiting == N_WAITING)
        builder_flush(builder);
}

static void grow_pairs(struct builder *builder)
{
    const uint64_t *old = builder->pairs;
    const size_t n_old = builder->n_pair_slots;
    builder->n_pair_slots = n_old ? 2 * n_old : 64;
    builder->pairs = NEW(uint64_t, builder->n_pair_slots);
    for (size_t o = 0; o < n_old; o++) {
        if (old[o] == 0)
            continue;
        size_t slot = XXH3_64bits(&old[o], sizeof old[o]) & (builder->n_pair_slots - 1);
        while (builder->pairs[slot] != 0)
            slot = (slot + 1) & (builder->n_pair_slots - 1);
        builder->pairs[slot] = old[o];
    }
    memory_free((void *)old);
}

void builder_item_skill(struct builder *builder, uint32_t item, uint32_t skill)
{
    if (2 * (builder->n_pairs + 1) > builder->n_pair_slots)
        grow_pairs(builder);
    const uint64_t pair = ((uint64_t)item << 32 | skill) + 1;
    size_t slot = XXH3_64bits(&pair, sizeof pair) & (builder->n_pair_slots - 1);
    while (builder->pairs[slot] != 0 && builder->pairs[slot] != pair)
        slot = (slot + 1) & (builder->n_pair_slots - 1);
    builder->n_pairs += builder->pairs[slot] == 0;
    builder->pairs[slot] = pair;
}

void builder_item_group(struct builder *builder, uint32_t item, uint32_t group)
{
    struct item *of = &builder->item[item];
    if (of->group == -1) {
        of->group = (int32_t)group;
    } else if (of->group != (int32_t)group && !of->regrouped) {
        of->regrouped = true;
        builder->n_regrouped++;
    }
}
