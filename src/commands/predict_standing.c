/* cohort predict --next and --mastery: where students stand.
 *
 *     --next            student, item, probability, basis       all items, as of now
 *     --next=skills     student, skill, probability             all skills, as of now
 *     --mastery         student, skill, attempts, mastery       all skills, as of now
 *     --mastery=each    student, item, time, outcome, skill,    the skills of each attempt's
 *                       attempts, mastery                       item, after the attempt
 *
 * An item that the model was not trained on has the mean chance over its stand-ins
 * (runs/stand_ins.c); basis tells which these are.
 *
 * Rows are computed when they are written, student by student, so memory does not grow with their
 * number (HDF5 holds one array at a time). */
#include "base/log.h"
#include "base/memory.h"
#include "commands/predict_internal.h"
#include "data/origin.h"
#include "runs/standing.h"
#include <math.h>

/* The rows of this rank. As of now: `n_each` for each student. After each attempt: the skills of
 * the attempts listed. */
struct part {
    const struct inference *inference;
    struct standing *standing;
    struct predict_students students;
    struct origin origin;
    struct names items;         /* of the model, then unseen ones */
    const struct names *things; /* items or skills */
    size_t n_each;
    uint32_t *student; /* of the shard */
    size_t n_students;
    /* of the rows computed last: */
    size_t *current, *group; /* group: its first student */
    real *p;
    /* each: */
    uint64_t *attempt;
    uint32_t *skill, *of; /* of: student of the shard */
    size_t n_rows;
    bool each, by_skill, masters;
};

static void get_student(const void *arg, size_t r, struct output_cell *cell)
{
    const struct part *part = arg;
    const size_t s = part->each ? part->of[r] : part->student[r / part->n_each];
    predict_student_cell(&part->students, part->inference->shard.first_student + s, cell);
}

/* The item or skill of a row. */
static void get_thing(const void *arg, size_t r, struct output_cell *cell)
{
    const struct part *part = arg;
    cell->whole = part->each ? part->skill[r] : (int64_t)(r % part->n_each);
    cell->text = names_get(part->things, (size_t)cell->whole);
}

static void get_item(const void *arg, size_t r, struct output_cell *cell)
{
    const struct part *part = arg;
    predict_item_cell(part->inference, part->attempt[r], cell);
}

static void get_time(const void *arg, size_t r, struct output_cell *cell)
{
    const struct part *part = arg;
    predict_time_cell(part->inference, &part->origin, part->attempt[r], cell);
}

static void get_outcome(const void *arg, size_t r, struct output_cell *cell)
{
    const struct part *part = arg;
    predict_outcome_cell(part->inference, part->attempt[r], cell);
}

/* Makes the standing that of row r. As of now, students go side by side in groups. */
static void go(const struct part *part, size_t r)
{
    if (part->each) {
        standing_go(part->standing, part->of[r], part->attempt[r] + 1);
        return;
    }
    const size_t i = r / part->n_each, together = part->standing->n_slots;
    const size_t first = i / together * together;
    if (*part->group != first)
        standing_gather(part->standing, part->student + first,
                        size_min(together, part->n_students - first));
    *part->group = first;
    standing_pick(part->standing, i - first);
}

static void get_attempts(const void *arg, size_t r, struct output_cell *cell)
{
    const struct part *part = arg;
    go(part, r);
    cell->whole =
        standing_attempts(part->standing, part->each ? part->skill[r] : r % part->n_each);
}

/* The chance at an item, which the model may not know; with the digits of --follow. */
static double chance_at(const struct part *part, size_t item)
{
    const struct stand_ins *stand_ins = &part->inference->stand_ins;
    const size_t n_items = part->inference->dataset.n_items;
    if (item < n_items)
        return (double)part->p[item];
    const uint32_t *others = stand_ins->item + (item - n_items) * stand_ins->n_passes;
    double sum = 0;
    for (size_t pass = 0; pass < stand_ins->n_passes; pass++)
        sum += (double)(float)part->p[others[pass]];
    return (double)(float)(sum / (double)stand_ins->n_passes);
}

static void get_chance(const void *arg, size_t r, struct output_cell *cell)
{
    const struct part *part = arg;
    go(part, r);
    const size_t k = part->each ? part->skill[r] : r % part->n_each;
    if (part->each || (part->masters && live_knows(part->inference->model))) {
        cell->real = standing_mastery(part->standing, k);
    } else {
        if (*part->current != r / part->n_each)
            standing_items(part->standing, part->p);
        *part->current = r / part->n_each;
        cell->real =
            part->by_skill ? standing_mean(part->standing, part->p, k) : chance_at(part, k);
    }
    cell->empty = isnan(cell->real);
}

static void get_basis(const void *arg, size_t r, struct output_cell *cell)
{
    const struct part *part = arg;
    const size_t k = r % part->n_each, n_items = part->inference->dataset.n_items;
    cell->whole =
        (int64_t)(k < n_items ? BASIS_ITEM : part->inference->stand_ins.basis[k - n_items]);
    cell->text = stand_ins_bases[cell->whole];
}

static const struct output_column all_columns[] = {
    {"student", OUTPUT_U32, get_student}, {"item", OUTPUT_U32, get_item},
    {"time", OUTPUT_I64, get_time},       {"outcome", OUTPUT_I8, get_outcome},
    {"skill", OUTPUT_U32, get_thing},     {"attempts", OUTPUT_U32, get_attempts},
    {"mastery", OUTPUT_F32, get_chance},  {"probability", OUTPUT_F32, get_chance},
    {"basis", OUTPUT_I8, get_basis},
};
enum { STUDENT, ITEM, TIME, OUTCOME, SKILL, ATTEMPTS, MASTERY, PROBABILITY, BASIS };

static size_t choose_columns(const struct part *part, bool h5,
                             struct output_column chosen[COUNT(all_columns)])
{
    static const uint8_t each[] = {STUDENT, ITEM, TIME, OUTCOME, SKILL, ATTEMPTS, MASTERY};
    static const uint8_t now[] = {STUDENT, SKILL, ATTEMPTS, MASTERY};
    static const uint8_t next[] = {STUDENT, SKILL, PROBABILITY, BASIS};
    const uint8_t *const list = part->each ? each : part->masters ? now : next;
    const size_t n_list = part->each       ? COUNT(each)
                          : part->masters  ? COUNT(now)
                          : part->by_skill ? COUNT(next) - 1
                                           : COUNT(next);
    size_t n = 0;
    for (size_t c = 0; c < n_list; c++)
        if (list[c] != TIME || !h5 || part->inference->shard.time != NULL)
            chosen[n++] = all_columns[list[c]];
    if (!part->by_skill)
        chosen[1].name = "item";
    return n;
}

static bool is_in(const struct shard *shard, uint64_t t, unsigned splits)
{
    return splits >> mark_split(shard->mark[t]) & 1;
}

/* Students with attempts of these splits; all, if all splits are wanted. */
static void list_students(struct part *part, const struct predict_values *values)
{
    const struct shard *shard = &part->inference->shard;
    part->student = NEW_SCRATCH(uint32_t, shard->n_students);
    for (size_t s = 0; s < shard->n_students; s++) {
        bool wanted = values->split == PREDICT_ALL;
        for (uint64_t t = shard->first[s]; t < shard->first[s + 1] && !wanted; t++)
            wanted = is_in(shard, t, predict_set(values));
        if (wanted)
            part->student[part->n_students++] = (uint32_t)s;
    }
    part->n_rows = part->n_students * part->n_each;
}

static void list_attempts(struct part *part, const struct predict_values *values)
{
    const struct shard *shard = &part->inference->shard;
    const bool by_item = part->standing->by_item;
    for (int pass = 0; pass < 2; pass++) {
        size_t n = 0;
        for (size_t s = 0; s < shard->n_students; s++)
            for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++) {
                const uint32_t *skills = &shard->item[t];
                size_t n_skills = 1;
                if (!by_item)
                    n_skills = stand_ins_skills(&part->inference->stand_ins, shard, t, &skills);
                if (!is_in(shard, t, predict_set(values)))
                    continue;
                for (size_t k = 0; k < n_skills; k++, n++) {
                    if (pass == 0)
                        continue;
                    part->of[n] = (uint32_t)s;
                    part->attempt[n] = t;
                    part->skill[n] = skills[k];
                }
            }
        part->n_rows = n;
        if (pass == 1)
            return;
        part->of = NEW_SCRATCH(uint32_t, n);
        part->attempt = NEW_SCRATCH(uint64_t, n);
        part->skill = NEW_SCRATCH(uint32_t, n);
    }
}

static enum status write_part(struct part *part, const struct predict_values *values)
{
    const struct inference *inference = part->inference;
    TRY(predict_check_rows(inference, values, part->n_rows));
    TRY(comm_agree(inference->comm,
                   predict_read_students(inference, values->output, &part->students)));
    TRY(origin_read(&inference->shard, &part->origin));
    const struct output_names names[] = {{"/items", &part->items}, {"/skills", part->things}};
    struct output_column chosen[COUNT(all_columns)];
    const struct output_table table = {
        .columns = chosen,
        .n_columns = choose_columns(part, output_table_is_h5(values->output), chosen),
        .n_rows = part->n_rows,
        .arg = part,
        .names = names,
        .n_names = part->by_skill ? 2 : 1};
    return predict_write(inference, values->output, &part->students, &table);
}

enum status predict_standing(const struct inference *inference,
                             const struct predict_values *values)
{
    struct standing standing;
    size_t current = SIZE_MAX, group = SIZE_MAX;
    struct part part = {.inference = inference,
                        .standing = &standing,
                        .current = &current,
                        .group = &group,
                        .each = values->mastery == MASTERY_EACH,
                        .masters = values->mastery != MASTERY_NONE,
                        .by_skill = values->next != NEXT_ITEMS};
    enum status status = standing_open(&standing, inference);
    if (status == OK) {
        const struct dataset *dataset = &inference->dataset;
        const bool items = !part.by_skill || standing.by_item;
        predict_note_withheld(inference);
        names_copy(&part.items, &dataset->items);
        names_copy(&part.items, &dataset->unseen.items);
        part.things = !part.by_skill ? &part.items : items ? &dataset->items : &dataset->skills;
        if (values->next == NEXT_SKILLS && dataset->unseen.items.n > 0)
            log_say("note: --next=skills has the %zu skills that the model was trained on, as "
                    "means over its own items; new skills are skipped until `cohort update` "
                    "has learned them",
                    dataset->n_skills);
        part.n_each = part.things->n;
        part.p = NEW(real, dataset->n_items);
        if (part.by_skill && standing.by_item)
            log_say("note: %s has no skills, so every item counts as a skill", dataset->path);
        const size_t n_new = dataset->unseen.n_skills;
        if (part.by_skill && !standing.by_item && n_new > 0)
            log_say(
                "note: %zu skill%s of %s %s not in the model's training data, so %s no rows",
                n_new, n_new == 1 ? "" : "s", dataset->path, n_new == 1 ? "is" : "are",
                n_new == 1 ? "it has" : "they have");
        if (part.each)
            list_attempts(&part, values);
        else
            list_students(&part, values);
        status = write_part(&part, values);
    }
    standing_close(&standing);
    names_free(&part.students.names);
    names_free(&part.items);
    origin_free(&part.origin);
    void *const parts[] = {part.student, part.p, part.attempt, part.skill, part.of};
    for (size_t k = 0; k < COUNT(parts); k++)
        memory_free(parts[k]);
    return status;
}
