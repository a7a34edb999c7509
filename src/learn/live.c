/* Students whose attempts come one by one, for every kind of model.
 *
 * A kind whose state has a fixed size (dkt: the hidden units) has one per student:
 *
 *     student 0   [state]     tell: state <- step(state, attempt), many students at once
 *     student 1   [state]     ask:  chance(state, item)
 *
 * Other kinds (counts of every item, all earlier answers) have one state in their view. Then
 * each student's attempts are recorded, and told again when the view holds someone else:
 *
 *     student 0   item 7 right, item 3 wrong, ...          view: student 1, after 2 attempts
 *     student 1   item 2 right, item 7 right
 *
 * A kind may search for its numbers whenever it is asked (ktm), so asking is recorded too, and a
 * student told again has the same bits. A model made of others (blend) has one of these for each
 * part. */
#include "learn/live.h"
#include "base/memory.h"
#include <string.h>

/* An attempt in a record; `asked`: before it, something was asked. */
struct told {
    int64_t time;
    uint32_t item;
    uint8_t mark;
    bool asked;
};

struct student {
    void *state; /* of a fixed size, or NULL and: */
    struct told *told;
    double *covariate; /* n_columns for each */
    size_t n, room;
};

struct live {
    const struct model *model;
    void *work;
    size_t n_columns;
    struct student *students;
    size_t n, room, state_size, n_bytes;
    /* without a fixed size: whom the view holds, what time it was asked about, whether at all */
    size_t present;
    int64_t asked_time;
    bool asked;
    struct live **parts; /* of a model made of others */
    size_t n_parts;
    real *of_part;
    size_t part_room;
};

#define NOBODY SIZE_MAX

struct live *live_create(const struct model *model, void *work, const struct dataset *dataset)
{
    const struct model_live *kind = &model->kind->live;
    struct live *live = NEW(struct live, 1);
    live->model = model;
    live->work = work;
    live->n_columns = dataset->covariates.names.n;
    live->present = NOBODY;
    const struct model *part = NULL;
    void *part_work = NULL;
    while (kind->part != NULL && kind->part(model, work, live->n_parts, &part, &part_work)) {
        live->parts = memory_resize(live->parts, live->n_parts + 1, sizeof(struct live *));
        live->parts[live->n_parts++] = live_create(part, part_work, dataset);
    }
    if (kind->ready != NULL)
        kind->ready(model, work);
    if (kind->size != NULL)
        live->state_size = kind->size(model);
    return live;
}

void live_destroy(struct live *live)
{
    if (live == NULL)
        return;
    for (size_t m = 0; m < live->n_parts; m++)
        live_destroy(live->parts[m]);
    for (size_t s = 0; s < live->n; s++) {
        memory_free(live->students[s].state);
        memory_free(live->students[s].told);
        memory_free(live->students[s].covariate);
    }
    memory_free(live->parts);
    memory_free(live->of_part);
    memory_free(live->students);
    memory_free(live);
}

size_t live_add(struct live *live)
{
    for (size_t m = 0; m < live->n_parts; m++)
        live_add(live->parts[m]);
    GROW(live->students, live->n, live->room);
    live->students[live->n] = (struct student){0};
    if (live->state_size > 0) {
        live->students[live->n].state = NEW(char, live->state_size);
        live->n_bytes += live->state_size;
    }
    live_restart(live, live->n);
    return live->n++;
}

void live_restart(struct live *live, size_t s)
{
    for (size_t m = 0; m < live->n_parts; m++)
        live_restart(live->parts[m], s);
    struct student *student = &live->students[s];
    student->n = 0;
    if (live->present == s)
        live->present = NOBODY;
    if (student->state != NULL)
        live->model->kind->live.begin(live->model, live->work, student->state);
}

/* Records an attempt of a student without a state. */
static void record(struct live *live, struct student *student,
                   const struct live_attempt *attempt)
{
    const size_t columns = live->n_columns;
    if (student->n == student->room) {
        const size_t room = student->room > 0 ? 2 * student->room : 16;
        live->n_bytes +=
            (room - student->room) * (sizeof *student->told + columns * sizeof(double));
        student->room = room;
        student->told = memory_resize(student->told, room, sizeof *student->told);
        student->covariate =
            memory_resize(student->covariate, room * columns, sizeof *student->covariate);
    }
    student->told[student->n] =
        (struct told){attempt->time, attempt->item, attempt->mark, live->asked};
    if (columns > 0)
        memcpy(student->covariate + student->n * columns, attempt->covariate,
               columns * sizeof(double));
    student->n++;
}

size_t live_copy(struct live *live, size_t s)
{
    for (size_t m = 0; m < live->n_parts; m++)
        live_copy(live->parts[m], s);
    GROW(live->students, live->n, live->room);
    struct student *copy = &live->students[live->n];
    const struct student *from = &live->students[s];
    *copy = (struct student){0};
    if (from->state != NULL) {
        copy->state = NEW(char, live->state_size);
        memcpy(copy->state, from->state, live->state_size);
        live->n_bytes += live->state_size;
    }
    const bool asked = live->asked;
    for (size_t t = 0; t < from->n; t++) {
        const struct told *told = &from->told[t];
        const struct live_attempt attempt = {told->item, told->mark, told->time,
                                             from->covariate + t * live->n_columns};
        live->asked = told->asked;
        record(live, copy, &attempt);
    }
    live->asked = asked;
    return live->n++;
}

/* Makes the view hold student s after all attempts told. */
static void bring(struct live *live, size_t s)
{
    const struct model_live *kind = &live->model->kind->live;
    const struct student *student = &live->students[s];
    void *const none = NULL;
    if (live->present == s)
        return;
    kind->begin(live->model, live->work, NULL);
    for (size_t t = 0; t < student->n; t++) {
        const struct told *told = &student->told[t];
        const struct live_attempt attempt = {told->item, told->mark, told->time,
                                             student->covariate + t * live->n_columns};
        real p = 0;
        if (told->asked)
            kind->ask(live->model, live->work, NULL, &attempt, &told->item, 1, &p);
        kind->tell(live->model, live->work, 1, &none, &attempt);
    }
    live->present = s;
    live->asked = false;
    live->asked_time = INT64_MIN;
}

/* The same, but not if something was asked about a later time than that of `attempt`: counts
 * within windows of time have moved on. */
static void bring_at(struct live *live, size_t s, const struct live_attempt *attempt)
{
    if (live->asked && attempt->time < live->asked_time)
        live->present = NOBODY;
    bring(live, s);
}

static void ask_parts(struct live *live, size_t s, const struct live_attempt *when,
                      const uint32_t *items, size_t n, real *p)
{
    if (n > live->part_room) {
        memory_free(live->of_part);
        live->of_part = NEW_SCRATCH(real, live->n_parts * n);
        live->part_room = n;
    }
    for (size_t m = 0; m < live->n_parts; m++)
        live_ask(live->parts[m], s, when, items, n, live->of_part + m * n);
    for (size_t i = 0; i < n; i++)
        p[i] = live->model->kind->live.combine(live->model, live->of_part + i, n);
}

void live_ask(struct live *live, size_t s, const struct live_attempt *when,
              const uint32_t *items, size_t n, real *p)
{
    const struct student *student = &live->students[s];
    if (live->n_parts > 0) {
        ask_parts(live, s, when, items, n, p);
        return;
    }
    if (student->state == NULL) {
        bring_at(live, s, when);
        live->asked = true;
        live->asked_time = when->time;
    }
    live->model->kind->live.ask(live->model, live->work, student->state, when, items, n, p);
}

static void tell_one(struct live *live, size_t s, const struct live_attempt *attempt)
{
    const struct model_live *kind = &live->model->kind->live;
    const bool asked = live->present == s && live->asked;
    void *const none = NULL;
    real p = 0;
    bring_at(live, s, attempt);
    if (asked && !live->asked) /* it was told again since */
        kind->ask(live->model, live->work, NULL, attempt, &attempt->item, 1, &p);
    live->asked = asked;
    record(live, &live->students[s], attempt);
    kind->tell(live->model, live->work, 1, &none, attempt);
    live->asked = false;
    live->asked_time = INT64_MIN;
}

enum { TOGETHER = 48 };

size_t live_together(const struct live *live)
{
    bool fixed = live->state_size > 0 || live->n_parts > 0;
    for (size_t m = 0; m < live->n_parts; m++)
        fixed &= live_together(live->parts[m]) > 1;
    return fixed ? TOGETHER : 1;
}

void live_tell(struct live *live, size_t n, const size_t *students,
               const struct live_attempt *attempts)
{
    void *states[TOGETHER];
    for (size_t m = 0; m < live->n_parts; m++)
        live_tell(live->parts[m], n, students, attempts);
    for (size_t i = 0; live->n_parts == 0 && live->state_size == 0 && i < n; i++)
        tell_one(live, students[i], &attempts[i]);
    for (size_t i = 0; live->state_size > 0 && i < n; i += TOGETHER) {
        const size_t here = size_min(TOGETHER, n - i);
        for (size_t k = 0; k < here; k++)
            states[k] = live->students[students[i + k]].state;
        live->model->kind->live.tell(live->model, live->work, here, states, attempts + i);
    }
}

bool live_knows(const struct model *model)
{
    return model->kind->live.know != NULL;
}

void live_know(struct live *live, size_t s, uint32_t k, real *p)
{
    if (live->students[s].state == NULL)
        bring(live, s);
    live->model->kind->live.know(live->model, live->work, live->students[s].state, k, p);
}

size_t live_bytes(const struct live *live)
{
    size_t n = live->n_bytes + live->room * sizeof *live->students;
    for (size_t m = 0; m < live->n_parts; m++)
        n += live_bytes(live->parts[m]);
    return n;
}
