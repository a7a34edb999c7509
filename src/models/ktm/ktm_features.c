/* The language of features.
 *
 * model.features is a list of words NAME[:MODIFIER]...; each is one kind of sparse feature with
 * its own rows. A count is over all earlier attempts of the student, over those at the same
 * item (_item), or over those at the same skill (_skill). It acts through one row, or through
 * one row per item or skill (by_item, by_skill), which is the default for counts over an item
 * or a skill. An item with several skills has one entry per skill. If the data have no skills,
 * an item is its own skill. Any other word is a column of the attempts (see covariates.h): one
 * row per level of a factor, matched with other data by name, or one row for a number.
 * ktm_walk.c makes the features of attempts. */
#include "base/fail.h"
#include "base/manual.h"
#include "base/memory.h"
#include "models/ktm/ktm_internal.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    enum ktm_what what;
    enum ktm_of of;
    const char *help;
} words[] = {
    {"student", KTM_STUDENT, KTM_OF_ALL,
     "the student: one row per student, learned in training; predictions use an estimate "
     "from the student's earlier shown outcomes instead, also for new students: the most "
     "probable values under the same L2 penalties (at least 1e-12, for factors 1e-6). They are "
     "exact up to 1000 outcomes. Beyond that older ones are approximated, which usually "
     "changes a probability by less than 0.001"},
    {"item", KTM_ITEM, KTM_OF_ITEM, "the item"},
    {"skill", KTM_SKILL, KTM_OF_SKILL, "each skill of the item"},
    {"previous_item", KTM_PREVIOUS, KTM_OF_ITEM,
     "the item of the previous attempt and its outcome: incorrect, correct or not shown"},
    {"previous_skill", KTM_PREVIOUS, KTM_OF_SKILL,
     "each skill of the previous attempt's item, with the outcome"},
    {"attempts", KTM_ATTEMPTS, KTM_OF_ALL, "number of earlier attempts, whatever the outcome"},
    {"attempts_item", KTM_ATTEMPTS, KTM_OF_ITEM, "earlier attempts at this item"},
    {"attempts_skill", KTM_ATTEMPTS, KTM_OF_SKILL,
     "earlier attempts at each skill of the item"},
    {"wins", KTM_WINS, KTM_OF_ALL,
     "number of earlier correct answers, where the outcome is shown (see cohort-evaluate(1))"},
    {"wins_item", KTM_WINS, KTM_OF_ITEM, "earlier correct answers at this item, as in wins"},
    {"wins_skill", KTM_WINS, KTM_OF_SKILL,
     "earlier correct answers at each skill of the item, as in wins"},
    {"fails", KTM_FAILS, KTM_OF_ALL,
     "number of earlier incorrect answers, where the outcome is shown"},
    {"fails_item", KTM_FAILS, KTM_OF_ITEM,
     "earlier incorrect answers at this item, as in fails"},
    {"fails_skill", KTM_FAILS, KTM_OF_SKILL,
     "earlier incorrect answers at each skill of the item, as in fails"},
    {"elapsed", KTM_TIME, KTM_OF_ALL, "time since the student's previous attempt"},
    {"elapsed_item", KTM_TIME, KTM_OF_ITEM, "time since the previous attempt at this item"},
    {"elapsed_skill", KTM_TIME, KTM_OF_SKILL,
     "time since the previous attempt at each skill of the item"},
};

enum { MOST_ROWS = 100000000 };

enum change { RAW, LOG, BINS, SHARED, BY_ITEM, BY_SKILL, DECAY, WITHIN, L2, FACTORS_L2 };
static const struct {
    const char *name;
    const char *needs; /* the number it needs, NULL: none */
    double least, most;
    const char *help;
} changes[] = {
    [RAW] = {"raw", NULL, 0, 0, "the count or number itself (default for counts and numbers)"},
    [LOG] = {"log", NULL, 0, 0,
             "log(1 + count), or log(1 + time), which is 0 without an earlier attempt; for a "
             "number x below 0, -log(1 - x)"},
    [BINS] = {"bins", NULL, 0, 0,
              "time in bins that double in width, and one bin for never (default for time)"},
    [SHARED] = {"shared", NULL, 0, 0,
                "one row for all (default without _item or _skill, and for time)"},
    [BY_ITEM] = {"by_item", NULL, 0, 0, "one row per item (default for counts with _item)"},
    [BY_SKILL] = {"by_skill", NULL, 0, 0, "one row per skill (default for counts with _skill)"},
    [DECAY] = {"decay", "a number from 0 to 1, for example decay=0.8", 0, 1,
               "multiply the count by X at each further attempt (with _item or _skill: at "
               "that item or skill), for example decay=0.8"},
    [WITHIN] = {"within", "a whole number of seconds, at least 1, for example within=86400", 1,
                1e10,
                "count only attempts less than X seconds ago, for example within=86400; a "
                "count may appear with several windows"},
    [L2] = {"l2", "a number of at least 0, for example l2=3", 0, 1e12,
            "L2 penalty on the weights of this feature, instead of model.l2"},
    [FACTORS_L2] = {"factors_l2", "a number of at least 0, for example factors_l2=3", 0, 1e12,
                    "L2 penalty on the factors of this feature, instead of model.l2_factors"},
};

void ktm_design_help(struct manual *manual)
{
    manual_subheading(manual, "Features of ktm (words of model.features)");
    for (size_t w = 0; w < COUNT(words); w++)
        manual_item(manual, words[w].name, words[w].help, NULL);
    manual_item(manual, "NAME",
                "a column named by `import --factors` (a row for each level, none for levels "
                "that were not trained on) or `import --covariates` (the number itself); the "
                "words above take precedence",
                NULL);
    manual_subheading(manual, "Modifiers of a feature, as in wins_skill:log:l2=3");
    for (size_t c = 0; c < COUNT(changes); c++) {
        char name[32];
        snprintf(name, sizeof name, ":%s%s", changes[c].name, changes[c].needs ? "=X" : "");
        manual_item(manual, name, changes[c].help, NULL);
    }
}

bool ktm_feature_is_count(const struct ktm_feature *f)
{
    return f->what == KTM_ATTEMPTS || f->what == KTM_WINS || f->what == KTM_FAILS;
}

/* The error for an unknown word. */
static enum status unknown(const char *feature, const char *what, const char *word,
                           const char *const *names, size_t n)
{
    const char *nearest = config_nearest(word, names, n);
    return fail(BAD_USER,
                "model.features, '%s': unknown %s '%s'%s%s%s (`cohort help models` lists "
                "them)",
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
        return unknown(feature, "modifier", text, names, COUNT(changes));
    char *end = NULL;
    const double value = number ? strtod(number, &end) : 0;
    if ((changes[c].needs != NULL) != (number != NULL) ||
        (number && (end == number || *end != '\0' ||
                    !(value >= changes[c].least && value <= changes[c].most) ||
                    (c == WITHIN && value != floor(value)))))
        return fail(BAD_USER, "model.features, '%s': '%s' %s %s", feature, text,
                    changes[c].needs ? "needs" : "takes",
                    changes[c].needs ? changes[c].needs : "no number");
    const bool counts = ktm_feature_is_count(f), time = f->what == KTM_TIME;
    const bool number_itself = f->what == KTM_NUMBER;
    const bool acts = counts || time || f->what == KTM_PREVIOUS;
    const bool fits = c == DECAY || c == WITHIN  ? counts
                      : c == RAW                 ? counts || number_itself
                      : c == BINS                ? time
                      : c == LOG                 ? counts || time || number_itself
                      : c >= SHARED && c < DECAY ? acts
                                                 : true;
    if (!fits)
        return fail(BAD_USER,
                    "model.features, '%s': ':%s' does not apply to this kind of "
                    "feature",
                    feature, text);
    if (c <= BINS)
        f->value = c == RAW ? KTM_RAW : c == LOG ? KTM_LOG : KTM_BINNED;
    else if (c <= BY_SKILL)
        f->by = c == SHARED ? KTM_OF_ALL : c == BY_ITEM ? KTM_OF_ITEM : KTM_OF_SKILL;
    else if (c == WITHIN)
        f->within = (uint64_t)value;
    else
        *(c == DECAY ? &f->decay : c == L2 ? &f->l2 : &f->l2_factors) = value;
    return OK;
}

/* What the rows of a feature belong to by default. */
static enum ktm_of standard_by(enum ktm_what what, enum ktm_of of)
{
    return what == KTM_TIME || what == KTM_PREVIOUS ? KTM_OF_ALL : of;
}

/* Finds `name` among the words, then among the columns. */
static enum status find_word(struct ktm_feature *f, const struct model *model,
                             const char *feature, const char *name)
{
    const struct names *columns = &model->covariates->names;
    for (size_t w = 0; w < COUNT(words); w++)
        if (strcmp(words[w].name, name) == 0) {
            f->what = words[w].what;
            f->of = words[w].of;
            return OK;
        }
    const size_t k = covariates_find(model->covariates, name);
    if (k != COVARIATES_NONE) {
        f->n_levels = covariates_n_levels(model->covariates, k);
        f->what = f->n_levels > 0 ? KTM_LEVEL : KTM_NUMBER;
        f->own = covariates_own(model->covariates, k);
        return model_column(model, k, &f->column);
    }
    const char **names = NEW(const char *, COUNT(words) + columns->n);
    for (size_t w = 0; w < COUNT(words); w++)
        names[w] = words[w].name;
    for (size_t c = 0; c < columns->n; c++)
        names[COUNT(words) + c] = names_get(columns, c);
    const enum status status =
        unknown(feature, "feature", name, names, COUNT(words) + columns->n);
    memory_free(names);
    return status;
}

static enum status parse_feature(struct ktm_feature *f, const struct model *model, char *text)
{
    const struct ktm_options *o = model->options;
    char feature[256];
    snprintf(feature, sizeof feature, "%s", text);
    char *rest = NULL, *name = strtok_r(text, ":", &rest);
    *f = (struct ktm_feature){.decay = 1, .l2 = o->l2, .l2_factors = o->l2_factors};
    TRY(find_word(f, model, feature, name ? name : ""));
    f->by = standard_by(f->what, f->of);
    f->value = f->what == KTM_TIME ? KTM_BINNED : KTM_RAW;
    for (char *change; (change = strtok_r(NULL, ":", &rest)) != NULL;)
        TRY(parse_change(f, feature, change));
    if (f->decay < 1 && f->value == KTM_LOG)
        return fail(BAD_USER,
                    "model.features, '%s': use either log or decay, not both: a decaying count "
                    "stays small and needs no log",
                    feature);
    if (f->decay < 1 && f->within > 0)
        return fail(BAD_USER,
                    "model.features, '%s': use either decay or within, not both: a count "
                    "decays or has a window",
                    feature);
    if ((f->what == KTM_TIME || f->within > 0) && model->dataset != NULL &&
        !model->dataset->has_time)
        return fail(BAD_USER,
                    "model.features, '%s': %s has no times; import it with --time, or remove "
                    "%s",
                    feature, model->dataset->path, f->within > 0 ? "within" : "this feature");
    if (model->n_skills == 0) { /* an item is its own skill */
        f->said_of_skills = f->of == KTM_OF_SKILL || f->by == KTM_OF_SKILL;
        f->what = f->what == KTM_SKILL ? KTM_ITEM : f->what;
        f->of = f->of == KTM_OF_SKILL ? KTM_OF_ITEM : f->of;
        f->by = f->by == KTM_OF_SKILL ? KTM_OF_ITEM : f->by;
    }
    if (f->what == KTM_LEVEL || f->what == KTM_NUMBER) {
        snprintf(f->name, sizeof f->name, "%s_%.40s",
                 f->what == KTM_LEVEL  ? "factor"
                 : f->value == KTM_LOG ? "log"
                                       : "number",
                 name);
        return OK;
    }
    static const char *const what[] = {
        [KTM_STUDENT] = "student",   [KTM_ITEM] = "item",         [KTM_SKILL] = "skill",
        [KTM_PREVIOUS] = "previous", [KTM_ATTEMPTS] = "attempts", [KTM_WINS] = "wins",
        [KTM_FAILS] = "fails",       [KTM_TIME] = "elapsed"};
    static const char *const scope[] = {"", "_item", "_skill"};
    static const char *const value[] = {"", "_log", ""};
    char by[16] = "", recent[24] = "";
    if (f->by != standard_by(f->what, f->of))
        snprintf(by, sizeof by, "%s",
                 f->by == KTM_OF_ALL    ? "_shared"
                 : f->by == KTM_OF_ITEM ? "_by_item"
                                        : "_by_skill");
    if (f->decay < 1)
        snprintf(recent, sizeof recent, "_decay%g", f->decay);
    if (f->within > 0)
        snprintf(recent, sizeof recent, "_within%" PRIu64, f->within);
    snprintf(f->name, sizeof f->name, "%s%s%s%s%s", what[f->what],
             f->what >= KTM_PREVIOUS ? scope[f->of] : "", value[f->value], by, recent);
    return OK;
}

/* Factors are stored as NAME_factors, which must not be the weights of another column. */
static bool is_factors_of(const struct ktm_feature *a, const struct ktm_feature *b)
{
    const size_t n = strlen(b->name);
    return strncmp(a->name, b->name, n) == 0 && strcmp(a->name + n, "_factors") == 0;
}

static enum status add_feature(struct ktm_design *design, const struct ktm_feature *f,
                               const char *text)
{
    for (size_t j = 0; j < design->n; j++)
        if (strcmp(design->list[j].name, f->name) == 0) {
            if (f->said_of_skills || design->list[j].said_of_skills)
                return OK; /* without skills both words mean the item */
            return fail(BAD_USER,
                        "model.features: '%s' is the same feature as an earlier one; remove "
                        "one of them",
                        text);
        }
    for (size_t j = 0; j < design->n; j++)
        if (is_factors_of(f, &design->list[j]) || is_factors_of(&design->list[j], f))
            return fail(BAD_USER,
                        "model.features: '%s' and '%s' clash: the weights of one would have "
                        "the name of the factors of the other; import it under another name, "
                        "for example --factors other=COLUMN",
                        f->name, design->list[j].name);
    if (design->n == KTM_MOST_FEATURES)
        return fail(BAD_USER, "model.features names more than %d features", KTM_MOST_FEATURES);
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
            TRY(add_feature(design, &f, whole));
    }
    if (design->has_students)
        TRY(add_feature(design, &student, student.name));
    return design->n > 0 ? OK
                         : fail(BAD_USER, "model.features is empty; set it, for example "
                                          "model.features='item skill wins_skill:log'");
}

static enum status count_rows(struct ktm_feature *f, const struct model *model)
{
    f->n_rows = f->what == KTM_STUDENT  ? model->n_students
                : f->what == KTM_LEVEL  ? f->n_levels
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
                "model.features, '%s' would have %zu rows, but at most %d are supported; "
                "remove by_item, or use skills",
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
    /* Features with few rows come first, so that training can treat these together. */
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

unsigned ktm_design_uses(const struct model *model)
{
    const struct ktm_design *design = ktm_design(model);
    unsigned uses = 0;
    for (size_t j = 0; j < design->n; j++) {
        const struct ktm_feature *f = &design->list[j];
        if (f->what == KTM_SKILL || f->of == KTM_OF_SKILL || f->by == KTM_OF_SKILL)
            uses |= MODEL_SKILLS;
        if (f->what == KTM_TIME || f->within > 0)
            uses |= MODEL_TIMES;
    }
    return uses;
}
