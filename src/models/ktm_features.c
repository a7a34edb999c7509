/* The language of features, and the features of attempts.
 *
 * model.features is a list of words NAME[:CHANGE]...; each is one kind of sparse feature with
 * rows of its own. A count belongs to all attempts of the student so far, to those at the same
 * item (_item) or at the same skill (_skill); and it acts by one row, or by a row for each item
 * or skill (by_item, by_skill), which is standard where it is counted so. An item of several
 * skills has an entry for each of them. Where the data have no skills an item is its own skill.
 *
 * Counts come from a walk along the student's attempts and are never stored. An attempt tells
 * later ones that it was made (attempts, elapsed), and, if its outcome is shown, how it went
 * (wins, fails). */
#include "fail.h"
#include "ktm_parts.h"
#include "log.h"
#include "memory.h"
#include <math.h>
#include <sleef.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    enum ktm_what what;
    enum ktm_of of;
    const char *help;
} words[] = {
    {"student", KTM_STUDENT, KTM_OF_ALL, "who it is; nothing for students not trained on"},
    {"item", KTM_ITEM, KTM_OF_ITEM, "the item"},
    {"skill", KTM_SKILL, KTM_OF_SKILL, "each skill of the item"},
    {"previous_item", KTM_PREVIOUS, KTM_OF_ITEM,
     "the item of the attempt before, with its outcome: incorrect, correct or not shown"},
    {"previous_skill", KTM_PREVIOUS, KTM_OF_SKILL, "the same for each of its skills"},
    {"attempts", KTM_ATTEMPTS, KTM_OF_ALL, "attempts before this one, whatever the outcome"},
    {"attempts_item", KTM_ATTEMPTS, KTM_OF_ITEM, "the same, at this item"},
    {"attempts_skill", KTM_ATTEMPTS, KTM_OF_SKILL, "the same, at each skill of the item"},
    {"wins", KTM_WINS, KTM_OF_ALL, "correct outcomes shown before"},
    {"wins_item", KTM_WINS, KTM_OF_ITEM, "the same, at this item"},
    {"wins_skill", KTM_WINS, KTM_OF_SKILL, "the same, at each skill of the item"},
    {"fails", KTM_FAILS, KTM_OF_ALL, "incorrect outcomes shown before"},
    {"fails_item", KTM_FAILS, KTM_OF_ITEM, "the same, at this item"},
    {"fails_skill", KTM_FAILS, KTM_OF_SKILL, "the same, at each skill of the item"},
    {"elapsed", KTM_TIME, KTM_OF_ALL, "time since the student's last attempt"},
    {"elapsed_item", KTM_TIME, KTM_OF_ITEM, "the same, at this item"},
    {"elapsed_skill", KTM_TIME, KTM_OF_SKILL, "the same, at each skill of the item"},
};

enum { MOST_ROWS = 100000000 };

enum change { RAW, LOG, BINS, SHARED, BY_ITEM, BY_SKILL, DECAY, L2, FACTORS_L2 };
static const struct {
    const char *name;
    bool has_number;
    const char *help;
} changes[] = {
    [RAW] = {"raw", false, "the count itself (standard for counts)"},
    [LOG] = {"log", false, "log(1 + count), or log(1 + time)"},
    [BINS] = {"bins", false, "time in bins that double, and one for never (standard for time)"},
    [SHARED] = {"shared", false,
                "one row for all (standard without _item or _skill, and for "
                "time)"},
    [BY_ITEM] = {"by_item", false, "a row for each item (standard for counts with _item)"},
    [BY_SKILL] = {"by_skill", false, "a row for each skill (standard for counts with _skill)"},
    [DECAY] = {"decay", true,
               "as in decay=0.8: a count shrinks to this share with each "
               "further attempt that it is about"},
    [L2] = {"l2", true, "as in l2=3: its own penalty on weights instead of model.l2"},
    [FACTORS_L2] = {"factors_l2", true, "the same for factors instead of model.l2_factors"},
};

void ktm_design_help(FILE *out, bool markdown)
{
    const char *line = markdown ? "| `%s` | %s |\n" : "  %-18s %s\n";
    fprintf(out, "\nFeatures of ktm (words of model.features):\n\n%s",
            markdown ? "| feature | what it is |\n|---|---|\n" : "");
    for (size_t w = 0; w < COUNT(words); w++)
        fprintf(out, line, words[w].name, words[w].help);
    fprintf(out, "\nWhat may follow a feature, as in wins_skill:log:l2=3:\n\n%s",
            markdown ? "| change | what it does |\n|---|---|\n" : "");
    for (size_t c = 0; c < COUNT(changes); c++) {
        char name[32];
        snprintf(name, sizeof name, ":%s%s", changes[c].name,
                 changes[c].has_number ? "=X" : "");
        fprintf(out, line, name, changes[c].help);
    }
}

static bool is_count(const struct ktm_feature *f)
{
    return f->what == KTM_ATTEMPTS || f->what == KTM_WINS || f->what == KTM_FAILS;
}

/* The sentence for a word that is none of the n known ones. */
static enum status unknown(const char *feature, const char *what, const char *word,
                           const char *const *names, size_t n)
{
    const char *nearest = config_nearest(word, names, n);
    return fail(BAD_USER,
                "model.features, '%s': there is no %s '%s'%s%s%s; `cohort help models` lists "
                "them",
                feature, what, word, nearest ? "; did you mean '" : "", nearest ? nearest : "",
                nearest ? "'?" : "");
}

static enum status parse_change(struct ktm_feature *f, const char *feature, char *text)
{
    const char *names[COUNT(changes)];
    char *number = strchr(text, '=');
    if (number != NULL)
        *number++ = '\0';
    size_t c = 0;
    for (; c < COUNT(changes) && strcmp(changes[c].name, text) != 0; c++)
        names[c] = changes[c].name;
    if (c == COUNT(changes))
        return unknown(feature, "change", text, names, COUNT(changes));
    char *end = NULL;
    const double value = number ? strtod(number, &end) : 0;
    if (changes[c].has_number != (number != NULL) ||
        (number && (end == number || *end != '\0' || !(value >= 0 && value <= 1e12))))
        return fail(BAD_USER, "model.features, '%s': '%s' %s", feature, text,
                    changes[c].has_number ? "needs a number that is not negative, as in l2=3"
                                          : "takes no number");
    const bool counts = is_count(f), time = f->what == KTM_TIME;
    const bool acts = counts || time || f->what == KTM_PREVIOUS;
    const bool fits = c == RAW || c == DECAY     ? counts
                      : c == BINS                ? time
                      : c == LOG                 ? counts || time
                      : c >= SHARED && c < DECAY ? acts
                                                 : true;
    if (!fits)
        return fail(BAD_USER, "model.features, '%s': ':%s' is not for this kind of feature",
                    feature, text);
    if (c <= BINS)
        f->value = c == RAW ? KTM_RAW : c == LOG ? KTM_LOG : KTM_BINNED;
    else if (c <= BY_SKILL)
        f->by = c == SHARED ? KTM_OF_ALL : c == BY_ITEM ? KTM_OF_ITEM : KTM_OF_SKILL;
    else
        *(c == DECAY ? &f->decay : c == L2 ? &f->l2 : &f->l2_factors) = value;
    if (f->decay > 1)
        return fail(BAD_USER, "model.features, '%s': decay must be at most 1", feature);
    return OK;
}

/* Whose rows a feature acts by unless something else is said. */
static enum ktm_of standard_by(enum ktm_what what, enum ktm_of of)
{
    return what == KTM_TIME || what == KTM_PREVIOUS ? KTM_OF_ALL : of;
}

static enum status parse_feature(struct ktm_feature *f, const struct model *model, char *text)
{
    const struct ktm_options *o = model->options;
    const char *names[COUNT(words)];
    char feature[256];
    snprintf(feature, sizeof feature, "%s", text);
    char *rest = NULL, *name = strtok_r(text, ":", &rest);
    size_t w = 0;
    for (; w < COUNT(words) && (name == NULL || strcmp(words[w].name, name) != 0); w++)
        names[w] = words[w].name;
    if (w == COUNT(words))
        return unknown(feature, "feature", name ? name : "", names, COUNT(words));
    *f = (struct ktm_feature){.what = words[w].what,
                              .of = words[w].of,
                              .by = standard_by(words[w].what, words[w].of),
                              .value = words[w].what == KTM_TIME ? KTM_BINNED : KTM_RAW,
                              .decay = 1,
                              .l2 = o->l2,
                              .l2_factors = o->l2_factors};
    for (char *change; (change = strtok_r(NULL, ":", &rest)) != NULL;)
        TRY(parse_change(f, feature, change));
    if (f->decay < 1 && f->value == KTM_LOG)
        return fail(BAD_USER,
                    "model.features, '%s': a count that fades is small already; leave out "
                    "log or decay",
                    feature);
    if (f->what == KTM_TIME && model->dataset != NULL && !model->dataset->has_time)
        return fail(BAD_USER,
                    "model.features, '%s': %s has no times; import it with --time, or leave "
                    "this feature out",
                    feature, model->dataset->path);
    if (model->n_skills == 0) { /* an item is its own skill */
        f->what = f->what == KTM_SKILL ? KTM_ITEM : f->what;
        f->of = f->of == KTM_OF_SKILL ? KTM_OF_ITEM : f->of;
        f->by = f->by == KTM_OF_SKILL ? KTM_OF_ITEM : f->by;
    }
    static const char *const what[] = {"student",  "item", "skill", "previous",
                                       "attempts", "wins", "fails", "elapsed"};
    static const char *const scope[] = {"", "_item", "_skill"};
    static const char *const value[] = {"", "_log", ""};
    char by[16] = "", decay[24] = "";
    if (f->by != standard_by(f->what, f->of))
        snprintf(by, sizeof by, "%s",
                 f->by == KTM_OF_ALL    ? "_shared"
                 : f->by == KTM_OF_ITEM ? "_by_item"
                                        : "_by_skill");
    if (f->decay < 1)
        snprintf(decay, sizeof decay, "_decay%g", f->decay);
    snprintf(f->name, sizeof f->name, "%s%s%s%s%s", what[f->what],
             f->what >= KTM_PREVIOUS ? scope[f->of] : "", value[f->value], by, decay);
    return OK;
}

static enum status add_feature(struct ktm_design *design, const struct ktm_feature *f,
                               const struct model *model, const char *text)
{
    for (size_t j = 0; j < design->n; j++)
        if (strcmp(design->list[j].name, f->name) == 0) {
            if (model->n_skills == 0 && strstr(text, "skill") != NULL)
                return OK; /* what is said of skills was said of items already */
            return fail(BAD_USER,
                        "model.features: '%s' is the same feature as one before it; leave one "
                        "of them out",
                        text);
        }
    if (design->n == KTM_MOST_FEATURES)
        return fail(BAD_USER, "model.features: there are more than %d", KTM_MOST_FEATURES);
    design->list[design->n++] = *f;
    return OK;
}

static enum status parse(struct ktm_design *design, const struct model *model, char *text)
{
    struct ktm_feature student = {0};
    char *rest = NULL;
    for (char *word = strtok_r(text, " \t,", &rest); word != NULL;
         word = strtok_r(NULL, " \t,", &rest)) {
        char whole[128];
        snprintf(whole, sizeof whole, "%s", word);
        struct ktm_feature f;
        TRY(parse_feature(&f, model, word));
        if (f.what == KTM_STUDENT && !design->has_students) {
            student = f;
            design->has_students = true;
        } else
            TRY(add_feature(design, &f, model, whole));
    }
    if (design->has_students)
        TRY(add_feature(design, &student, model, student.name));
    return design->n > 0 ? OK
                         : fail(BAD_USER, "model.features is empty: say for example "
                                          "model.features='item skill wins_skill:log'");
}

static enum status count_rows(struct ktm_feature *f, const struct model *model)
{
    f->n_rows = f->what == KTM_STUDENT  ? model->n_students
                : f->by == KTM_OF_ITEM  ? model->n_items
                : f->by == KTM_OF_SKILL ? model->n_skills
                                        : 1;
    f->n_each = f->value == KTM_BINNED    ? KTM_BINS
                : f->what != KTM_PREVIOUS ? 1
                : f->of == KTM_OF_ITEM    ? 3 * model->n_items
                                          : 3 * model->n_skills;
    f->n_rows *= f->n_each;
    if (f->n_rows <= MOST_ROWS)
        return OK;
    return fail(BAD_USER,
                "model.features, '%s': that would be %zu rows, more than %d; leave out "
                "by_item, or use skills",
                f->name, f->n_rows, MOST_ROWS);
}

enum status ktm_design_make(struct ktm_design *design, const struct model *model)
{
    const struct ktm_options *o = model->options;
    *design = (struct ktm_design){0};
    char *text = memory_text("%s", o->features);
    const enum status status = parse(design, model, text);
    memory_free(text);
    TRY(status);
    for (size_t j = 0; j < design->n; j++)
        TRY(count_rows(&design->list[j], model));
    /* Features of few rows come first: those that learning can treat all at once. */
    const size_t n_sorted = design->n - design->has_students;
    for (size_t j = 1; j < n_sorted; j++)
        for (size_t i = j; i > 0 && design->list[i].n_rows < design->list[i - 1].n_rows; i--) {
            const struct ktm_feature f = design->list[i];
            design->list[i] = design->list[i - 1];
            design->list[i - 1] = f;
        }
    design->n_rows = design->n_common = 1;
    for (size_t j = 0; j < design->n; j++) {
        struct ktm_feature *f = &design->list[j];
        f->first_row = design->n_rows;
        design->n_rows += f->n_rows;
        if (f->what != KTM_STUDENT)
            design->n_common = design->n_rows;
    }
    return OK;
}

static size_t n_past(const struct ktm_feature *f, const struct model *model)
{
    if (f->what < KTM_ATTEMPTS)
        return 0;
    return f->of == KTM_OF_ITEM ? model->n_items : f->of == KTM_OF_SKILL ? model->n_skills : 1;
}

void ktm_walk_create(struct ktm_walk *walk, const struct ktm_design *design,
                     const struct model *model, size_t longest)
{
    *walk = (struct ktm_walk){.design = design, .dataset = model->dataset};
    walk->most_skills = 1;
    for (size_t i = 0; i < model->n_items; i++)
        walk->most_skills = size_max(walk->most_skills, model->dataset->item_first[i + 1] -
                                                            model->dataset->item_first[i]);
    walk->place = NEW_SCRATCH(uint32_t, longest);
    walk->first = NEW_SCRATCH(uint32_t, longest + 1);
    for (size_t j = 0; j < design->n; j++)
        walk->past[j] = NEW(struct ktm_past, n_past(&design->list[j], model));
}

void ktm_walk_free(struct ktm_walk *walk)
{
    for (size_t j = 0; j < KTM_MOST_FEATURES; j++)
        memory_free(walk->past[j]);
    memory_free(walk->place);
    memory_free(walk->first);
    memory_free(walk->row);
    memory_free(walk->x);
}

/* log(1 + n); whole numbers come again and again. */
static real log_of(double n)
{
    enum { KNOWN = 1024 };
    static real known[KNOWN];
    if (n < KNOWN && n == (double)(size_t)n) {
        real *value = &known[(size_t)n];
        if (*value == 0 && n > 0)
            *value = (real)Sleef_cinz_log1pd1_u10purec(n);
        return *value;
    }
    return (real)Sleef_cinz_log1pd1_u10purec(n);
}

static inline void emit(struct ktm_walk *walk, size_t *n, size_t row, real x)
{
    walk->row[*n] = (uint32_t)row;
    walk->x[*n] = x;
    ++*n;
}

/* The entries of one feature with the value kept for an item or skill (or all), acting by the
 * asked item or one skill. */
static void emit_value(struct ktm_walk *walk, const struct ktm_feature *f,
                       const struct ktm_past *past, int64_t time, size_t by, size_t *n)
{
    const bool met = past->walk == walk->number;
    if (f->what != KTM_TIME) {
        if (met && past->value > 0)
            emit(walk, n, f->first_row + by,
                 f->value == KTM_LOG ? log_of(past->value) : (real)past->value);
        return;
    }
    const double gap = met ? fmax(0, (double)time - past->value) : 0;
    if (f->value == KTM_LOG) {
        if (met && gap > 0)
            emit(walk, n, f->first_row + by, log_of(gap));
        return;
    }
    int exponent = 0;
    frexp(1 + gap, &exponent);
    const size_t bin = met ? size_min((size_t)exponent, KTM_BINS - 1) : 0;
    emit(walk, n, f->first_row + by * f->n_each + bin, 1);
}

static void emit_previous(struct ktm_walk *walk, const struct ktm_feature *f, size_t by,
                          size_t *n)
{
    const struct dataset *d = walk->dataset;
    const size_t first_row = f->first_row + by * f->n_each + walk->last_seen;
    if (walk->last_item < 0)
        return;
    if (f->of == KTM_OF_ITEM) {
        emit(walk, n, first_row + 3 * (size_t)walk->last_item, 1);
        return;
    }
    for (uint64_t k = d->item_first[walk->last_item]; k < d->item_first[walk->last_item + 1];
         k++)
        emit(walk, n, first_row + 3 * d->item_skills[k], 1);
}

static void emit_feature(struct ktm_walk *walk, size_t j, uint32_t item, int64_t time,
                         const uint32_t *skills, size_t n_skills, size_t student_row, size_t *n)
{
    const struct ktm_feature *f = &walk->design->list[j];
    const struct ktm_past *past = walk->past[j];
    if (f->what == KTM_STUDENT) {
        if (student_row > 0)
            emit(walk, n, student_row, 1);
    } else if (f->what == KTM_ITEM) {
        emit(walk, n, f->first_row + item, 1);
    } else if (f->what == KTM_SKILL) {
        for (size_t k = 0; k < n_skills; k++)
            emit(walk, n, f->first_row + skills[k], 1);
    } else if (f->what == KTM_PREVIOUS) {
        if (f->by != KTM_OF_SKILL)
            emit_previous(walk, f, f->by == KTM_OF_ITEM ? item : 0, n);
        else
            for (size_t k = 0; k < n_skills; k++)
                emit_previous(walk, f, skills[k], n);
    } else if (f->of == KTM_OF_SKILL || f->by == KTM_OF_SKILL) {
        for (size_t k = 0; k < n_skills; k++) {
            const size_t from = f->of == KTM_OF_SKILL  ? skills[k]
                                : f->of == KTM_OF_ITEM ? item
                                                       : 0;
            const size_t by = f->by == KTM_OF_SKILL  ? skills[k]
                              : f->by == KTM_OF_ITEM ? item
                                                     : 0;
            emit_value(walk, f, &past[from], time, by, n);
        }
    } else {
        emit_value(walk, f, &past[f->of == KTM_OF_ITEM ? item : 0], time,
                   f->by == KTM_OF_ITEM ? item : 0, n);
    }
}

/* What attempt t tells those after it. */
static void remember(struct ktm_walk *walk, const struct ktm_feature *f, struct ktm_past *past,
                     uint8_t mark, int64_t time)
{
    const bool met = past->walk == walk->number;
    if ((f->what == KTM_WINS || f->what == KTM_FAILS) && !mark_is_shown(mark))
        return;
    const bool counts =
        f->what == KTM_ATTEMPTS || (f->what == KTM_WINS) == (mark_outcome(mark) == CORRECT);
    past->value = f->what == KTM_TIME ? (double)time
                                      : (met ? f->decay * past->value : 0) + (counts ? 1 : 0);
    past->walk = walk->number;
}

static void remember_all(struct ktm_walk *walk, uint32_t item, const uint32_t *skills,
                         size_t n_skills, uint8_t mark, int64_t time)
{
    walk->last_item = item;
    walk->last_seen = mark_is_shown(mark) ? (uint32_t)mark_outcome(mark) : 2;
    for (size_t j = 0; j < walk->design->n; j++) {
        const struct ktm_feature *f = &walk->design->list[j];
        if (f->what < KTM_ATTEMPTS)
            continue;
        if (f->of != KTM_OF_SKILL)
            remember(walk, f, &walk->past[j][f->of == KTM_OF_ITEM ? item : 0], mark, time);
        else
            for (size_t k = 0; k < n_skills; k++)
                remember(walk, f, &walk->past[j][skills[k]], mark, time);
    }
}

void ktm_walk_student(struct ktm_walk *walk, const struct shard *shard, size_t s,
                      unsigned splits, bool known, size_t student_row)
{
    const struct dataset *dataset = walk->dataset;
    const uint64_t start = shard->first[s], end = shard->first[s + 1];
    size_t n = 0, n_entries = 0;
    walk->number++;
    walk->last_item = -1;
    walk->last_seen = 0;
    walk->first[0] = 0;
    for (uint64_t t = start; t < end; t++) {
        const uint32_t item = shard->item[t];
        const uint8_t mark = shard->mark[t];
        const int64_t time = shard->time ? shard->time[t] : 0;
        const uint32_t *skills = dataset->item_skills + dataset->item_first[item];
        const size_t n_skills = dataset->item_first[item + 1] - dataset->item_first[item];
        if ((splits >> mark_split(mark) & 1) && !(known && mark_outcome(mark) == UNKNOWN)) {
            const size_t most =
                n_entries + walk->design->n * walk->most_skills * walk->most_skills;
            if (most > walk->entry_room) {
                walk->entry_room = 2 * most;
                walk->row = memory_resize(walk->row, walk->entry_room, sizeof *walk->row);
                walk->x = memory_resize(walk->x, walk->entry_room, sizeof *walk->x);
            }
            for (size_t j = 0; j < walk->design->n; j++)
                emit_feature(walk, j, item, time, skills, n_skills, student_row, &n_entries);
            walk->place[n++] = (uint32_t)(t - start);
            walk->first[n] = (uint32_t)n_entries;
        }
        remember_all(walk, item, skills, n_skills, mark, time);
    }
    walk->attempts = (struct sparse){n, walk->first, walk->row, walk->x};
}
