/* Functions shared by all models. */
#include "learn/model.h"
#include "base/fail.h"
#include "base/manual.h"
#include "base/memory.h"
#include <ctype.h>
#include <string.h>

const struct option model_name_options[2] = {
    {"kind", OPTION_TEXT, offsetof(struct model_names, kind), NULL, 0, 0, NULL,
     "kind of model; `cohort help models` describes them"},
    {"preset", OPTION_TEXT, offsetof(struct model_names, preset), "", 0, 0, NULL,
     "named set of settings of this kind; settings given elsewhere override it"},
};

const struct model_kind *model_find(const char *name)
{
    for (size_t k = 0; k < n_model_kinds; k++)
        if (strcmp(model_kinds[k]->name, name) == 0)
            return model_kinds[k];
    return NULL;
}

static enum status unknown(const char *what, const char *name, const char *const *names,
                           size_t n)
{
    char list[512] = "";
    for (size_t i = 0; i < n; i++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i > 0 ? ", " : "",
                 names[i]);
    const char *nearest = config_nearest(name, names, n);
    return fail(BAD_USER, "unknown %s '%s'; %s%s%s%s%s", what, name,
                n > 0 ? "choices: " : "this kind has none", list,
                nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

static bool has_key(const struct model_kind *kind, const char *key)
{
    for (size_t o = 0; o < kind->n_options; o++)
        if (strcmp(kind->options[o].key, key) == 0)
            return true;
    for (size_t o = 0; o < COUNT(model_name_options); o++)
        if (strcmp(model_name_options[o].key, key) == 0)
            return true;
    return false;
}

/* Perhaps it was set under a name with a slip: model.knid, or kind in [modle]. */
static enum status no_kind(const struct config *config)
{
    static const char *const section = "model", *const key = "kind";
    for (size_t e = 0; e < config_count(config); e++) {
        const struct config_entry entry = config_entry(config, e);
        const bool in_model = strcmp(entry.section, section) == 0;
        if (in_model ? config_nearest(entry.key, &key, 1) != NULL
                     : strcmp(entry.key, key) == 0 &&
                           config_nearest(entry.section, &section, 1) != NULL)
            return fail(
                BAD_USER,
                "%s: unknown setting %s.%s; the nearest is model.kind, which is not set",
                entry.origin, entry.section, entry.key);
    }
    for (size_t e = 0; e < config_count(config); e++) {
        const struct config_entry entry = config_entry(config, e);
        if (strcmp(entry.section, section) != 0 &&
            config_nearest(entry.section, &section, 1) != NULL)
            return fail(BAD_USER, "%s: unknown section [%s]; the nearest is [model]",
                        entry.origin, entry.section);
    }
    return fail(BAD_USER, "model.kind is not set; set it, for example model.kind=rbm, or start "
                          "from a file of settings, such as rbm.ini");
}

/* The kinds with a setting, as "rbm, dkt". */
static void list_owners(const char *key, char *list, size_t size)
{
    list[0] = '\0';
    for (size_t k = 0; k < n_model_kinds; k++)
        if (has_key(model_kinds[k], key))
            snprintf(list + strlen(list), size - strlen(list), "%s%s",
                     list[0] != '\0' ? ", " : "", model_kinds[k]->name);
}

/* Whether a kind has the setting, or one that differs by a slip of the keyboard. */
static bool has_near(const struct model_kind *kind, const char *key, const char **near)
{
    for (size_t o = 0; o < kind->n_options; o++)
        if (config_distance(key, kind->options[o].key) <= 1) {
            *near = kind->options[o].key;
            return true;
        }
    return false;
}

/* A setting with a slip that the kind does not have, spelled right, but another has. */
static enum status check_slip(const struct config_entry *entry, const struct model_kind *kind)
{
    const char *near = NULL;
    char list[256];
    if (has_near(kind, entry->key, &near))
        return OK; /* config_resolve names it */
    for (size_t k = 0; near == NULL && k < n_model_kinds; k++)
        has_near(model_kinds[k], entry->key, &near);
    if (near == NULL)
        return OK;
    list_owners(near, list, sizeof list);
    return fail(BAD_USER,
                "%s: unknown setting model.%s; the nearest is model.%s, which %s models do not "
                "have (only: %s); `cohort help %s` lists theirs",
                entry->origin, entry->key, near, kind->name, list, kind->name);
}

enum status model_check_keys(const struct config *config, const struct model_kind *kind)
{
    for (size_t e = 0; e < config_count(config); e++) {
        const struct config_entry entry = config_entry(config, e);
        if (strcmp(entry.section, "model") != 0 || has_key(kind, entry.key))
            continue;
        char list[256];
        list_owners(entry.key, list, sizeof list);
        if (list[0] != '\0')
            return fail(BAD_USER,
                        "%s: %s models have no setting model.%s (only: %s); `cohort help %s` "
                        "lists theirs",
                        entry.origin, kind->name, entry.key, list, kind->name);
        TRY(check_slip(&entry, kind));
    }
    return OK;
}

enum status model_choose(struct config *config, const struct model_kind **kind)
{
    const char *names[64];
    const char *name = config_get(config, "model", "kind");
    if (name == NULL)
        return no_kind(config);
    *kind = model_find(name);
    if (*kind == NULL) {
        for (size_t k = 0; k < n_model_kinds; k++)
            names[k] = model_kinds[k]->name;
        return unknown("model.kind", name, names, n_model_kinds);
    }
    const char *preset = config_get(config, "model", "preset");
    if (preset == NULL || preset[0] == '\0')
        return OK;
    for (size_t p = 0; p < (*kind)->n_presets; p++) {
        names[p] = (*kind)->presets[p].name;
        if (strcmp(names[p], preset) == 0)
            return config_suggest(config, (*kind)->presets[p].text, "preset");
    }
    return unknown("model.preset", preset, names, (*kind)->n_presets);
}

struct model *model_create(const struct model_kind *kind)
{
    struct model *model = NEW(struct model, 1);
    model->kind = kind;
    model->options = memory_zeroed(1, kind->options_size);
    model->shape = memory_zeroed(1, kind->shape_size);
    return model;
}

enum status model_declare(struct model *model, const struct dataset *dataset, size_t n_students,
                          size_t n_items, size_t n_skills)
{
    model->dataset = dataset;
    if (model->covariates == NULL)
        model->covariates = &dataset->covariates;
    model->n_students = n_students;
    model->n_items = n_items;
    model->n_skills = n_skills;
    TRY(model->kind->declare(model));
    if (model->most_params > 0 && params_count(&model->params) > model->most_params)
        return fail(
            BAD_DATA,
            "the settings and names in the checkpoint require %zu parameters, but its file is "
            "only large enough for %llu: the checkpoint was modified; train the model again",
            params_count(&model->params), (unsigned long long)model->most_params);
    params_allocate(&model->params);
    return OK;
}

void model_destroy(struct model *model)
{
    if (model == NULL)
        return;
    if (model->kind->setup.release != NULL)
        model->kind->setup.release(model);
    params_free(&model->params);
    memory_free(model->shape);
    memory_free(model->options);
    memory_free(model);
}

void model_predict(const struct model *model, void *work, const struct shard *shard,
                   const uint32_t *students, size_t n, unsigned splits, real *p)
{
    if (model->kind->speed.predict_many != NULL)
        model->kind->speed.predict_many(model, work, students, n, splits, p);
    else
        for (size_t i = 0; i < n; i++)
            model->kind->predict(model, work, students[i], splits,
                                 p + shard->first[students[i]]);
}

/* "model.hidden = 15; optimizer.rate = 0.001": the lines of a preset. Caller frees. */
static char *settings_line(const char *text)
{
    char *line = memory_text("sets");
    char section[64] = "";
    for (bool first = true; *text != '\0';) {
        const int n = (int)strcspn(text, "\n");
        if (text[0] == '[') {
            snprintf(section, sizeof section, "%.*s.", (int)strcspn(text + 1, "]"), text + 1);
        } else if (n > 0) {
            char *longer = memory_text("%s%s %s%.*s", line, first ? "" : ";", section, n, text);
            memory_free(line);
            line = longer;
            first = false;
        }
        text += n + (text[n] == '\n');
    }
    return line;
}

static void print_presets(struct manual *manual, const struct model_kind *kind)
{
    char title[128];
    snprintf(title, sizeof title, "Presets of %s (model.preset = NAME)", kind->name);
    manual_subheading(manual, title);
    for (size_t p = 0; p < kind->n_presets; p++) {
        char *settings = settings_line(kind->presets[p].text);
        manual_item(manual, kind->presets[p].name, kind->presets[p].help, settings);
        memory_free(settings);
    }
}

void model_help(struct manual *manual, const struct model_kind *kind)
{
    const struct option_group group = {"model", kind->options, kind->n_options, NULL};
    char heading[64];
    snprintf(heading, sizeof heading, "%s", kind->name);
    for (char *c = heading; *c != '\0'; c++)
        *c = (char)toupper((unsigned char)*c);
    manual_heading(manual, heading);
    manual_paragraph(manual, "`model.kind = %s`: %s. Source: %s. Loss: %s.", kind->name,
                     kind->title, kind->source, kind->loss);
    if (kind->made_by != NULL)
        manual_paragraph(manual, "`%s` makes it; `cohort train` does not train it.",
                         kind->made_by);
    else if (kind->n_options > 0)
        manual_paragraph(manual, "Some settings follow from the data unless they are given: "
                                 "`cohort train ... --explain` prints which. The defaults "
                                 "below are those of all others, and with a preset.");
    if (kind->n_options > 0)
        config_help(manual, &group, 1);
    if (kind->defaults != NULL) {
        char title[128];
        snprintf(title, sizeof title, "Defaults of %s in other sections", kind->name);
        manual_subheading(manual, title);
        manual_lines(manual, kind->defaults);
    }
    if (kind->n_presets > 0)
        print_presets(manual, kind);
    if (kind->more_help != NULL)
        kind->more_help(manual);
}

enum status model_column(const struct model *model, size_t k, size_t *found)
{
    const char *name = names_get(&model->covariates->names, k);
    const bool is_factor = covariates_n_levels(model->covariates, k) > 0;
    *found = k;
    if (model->dataset == NULL)
        return OK;
    const struct covariates *own = &model->dataset->covariates;
    *found = covariates_find(own, name);
    if (*found != COVARIATES_NONE && (covariates_n_levels(own, *found) > 0) == is_factor)
        return OK;
    return fail(BAD_USER,
                "%s: its attempts have no column '%s', which the model uses; import the data "
                "with --%s %s=COLUMN",
                model->dataset->path, name, is_factor ? "factors" : "covariates", name);
}

void model_name_levels(const struct model *model, const char *factor, struct table *table)
{
    const struct covariates *known = model->covariates;
    const struct names *levels = &known->levels[covariates_find(known, factor)];
    for (size_t l = 0; l < levels->n; l++) {
        char *name = memory_text("%s %s", factor, names_get(levels, l));
        names_add(&table->row_names, name, strlen(name));
        memory_free(name);
    }
}
