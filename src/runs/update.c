/* An update. `train.update = RUN` continues training the model of a finished run on another data
 * set: the log of today, with new students, new answers and new items.
 *
 *     settings   those of the run. [train] and [optimizer] may be changed; the model may not
 *     items      those of the run, with their numbers, and behind them the new ones
 *                (data/dataset_extend.c)
 *     values     every tensor starts where the run ended. Rows of new items and skills start
 *                as in a new run, from the new data's means (warm_start.c)
 *     epochs     until validation stops improving, as in any run. Without validation attempts:
 *                as many as led to the run's best epoch
 *
 * An item without attempts in the new data keeps its row. The optimizer starts afresh. If the
 * new data have other skills or groups of an item, the model's stay; a note says so.
 *
 * Kinds that are solved for (bkt, lme, ktm) end at the same place wherever they start, so they
 * are fitted to the new data alone, and items that it lacks are unknown to the result. Skills
 * and groups are those of the new data; an item that has none there keeps the model's. For
 * these kinds the new data should be the whole log up to now. For the other kinds that is
 * better, too: what is no longer practised is forgotten.
 *
 * The checkpoint identifies what it came from in a section [update] of its configuration: the
 * digest of the original checkpoint, and those of the data sets trained on before. */
#include "runs/update.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "data/data_shape.h"
#include "data/name_index.h"
#include "runs/original_run.h"
#include "runs/overlap.h"
#include "runs/run_find.h"
#include "runs/warm_start.h"
#include <string.h>

char *update_text(const struct update *update)
{
    return memory_text("\n[update]\ndigest = %s\ndata = %s\n", update->digest, update->data);
}

/* The user may repeat settings of the model but not change them. */
static enum status check_model(const struct original_run *original, const struct config *given)
{
    for (size_t e = 0; e < config_count(given); e++) {
        struct config_entry entry;
        if (!config_setting(given, e, &entry) || strcmp(entry.section, "model") != 0)
            continue;
        const char *own = config_get(original->config, entry.section, entry.key);
        if (strcmp(own != NULL ? own : "", entry.value) == 0)
            continue;
        return fail(BAD_USER,
                    "model.%s = %s: an update keeps the model, and %s was trained with '%s = "
                    "%s'; omit it, or train a run of its own with it",
                    entry.key, entry.value, original->directory, entry.key,
                    own != NULL ? own : "");
    }
    return OK;
}

/* Folds would replace the split of the new data. */
static enum status check_folds(const struct config *given)
{
    static const char *const keys[] = {"folds", "fold"};
    for (size_t k = 0; k < COUNT(keys); k++) {
        const char *value = config_get(given, "train", keys[k]);
        if (value != NULL && strcmp(value, "0") != 0)
            return fail(
                BAD_USER,
                "train.%s = %s: an update is trained once, on the split of the new data; "
                "omit it, or cross-validate a run of its own with `cohort train`",
                keys[k], value);
    }
    return OK;
}

static enum status check_data(const struct config *given)
{
    const char *file = config_get(given, "data", "file");
    return file != NULL && file[0] != '\0'
               ? OK
               : fail(BAD_USER, "train.update needs new data: give data=NEW.h5");
}

/* Rank 0: a run that is there already must be an update of the same run. */
static enum status check_run(const struct original_run *original, const struct config *given)
{
    const char *directory = config_get(given, "run", "directory");
    if (directory == NULL || !file_is_in(directory, "config.ini") ||
        file_is_same(directory, original->directory))
        return OK;
    char *of = run_setting(directory, "train", "update");
    char *kind = run_setting(directory, "model", "kind");
    enum status status = OK;
    if (of == NULL || !file_is_same(of, original->directory))
        status = fail(BAD_USER,
                      "run=%s is another run (%s%s%s), not this update of %s; choose another "
                      "run=",
                      directory, kind != NULL ? kind : "without a model",
                      of != NULL ? ", an update of " : "", of != NULL ? of : "",
                      original->directory);
    memory_free(of);
    memory_free(kind);
    return status;
}

/* What the user did not set and the original run cannot know: folds are of its own data, and
 * without validation attempts nothing stops early. */
static enum status complete(const struct original_run *original, bool has_valid,
                            struct config *given)
{
    const struct progress *progress = &original->checkpoint.progress;
    const struct model_kind *kind = NULL;
    TRY(model_choose(original->config, &kind));
    TRY(config_set(given, "train.folds=0", original->directory));
    TRY(config_set(given, "train.fold=0", original->directory));
    if (has_valid || kind->fit.learn != NULL || config_get(given, "train", "epochs") != NULL)
        return OK;
    char line[64];
    snprintf(line, sizeof line, "train.epochs=%lld",
             (long long)(progress->best_epoch > 0 ? progress->best_epoch : progress->epoch));
    return config_set(given, line, original->directory);
}

/* Marks the settings as an update. */
static enum status take_over(const struct original_run *original, struct settings *settings)
{
    const struct checkpoint *checkpoint = &original->checkpoint;
    struct update *update = &settings->update;
    TRY(original_run_set_name(original, settings->config));
    settings->train.update = config_get(settings->config, "train", "update");
    const char *before = config_get(original->config, "update", "data");
    update->file = memory_text("%s", checkpoint->path);
    update->data = memory_text("%s%s%s", before != NULL ? before : "", before ? " " : "",
                               checkpoint->data_digest);
    memcpy(update->digest, checkpoint->digest, sizeof update->digest);
    return OK;
}

enum status update_settings(const struct comm *comm, struct settings *settings,
                            struct config *config)
{
    *settings = (struct settings){0};
    struct original_run original;
    struct data_shape shape;
    enum status status = original_run_open(&original, comm, "train.update",
                                           config_get(config, "train", "update"));
    if (status == OK)
        status = check_data(config);
    if (status == OK)
        status = comm_agree(comm, comm->rank == 0 ? check_run(&original, config) : OK);
    if (status == OK)
        status = check_model(&original, config);
    if (status == OK)
        status = check_folds(config);
    if (status == OK)
        status = data_shape_read(&shape, config_get(config, "data", "file"), comm);
    if (status == OK)
        status = complete(&original, shape.has_valid, config);
    if (status == OK)
        status = original_run_settings(&original, config, true, settings);
    if (status == OK)
        status = comm_agree(
            comm, comm->rank == 0 ? original_run_check_place(&original, settings) : OK);
    if (status == OK)
        status = take_over(&original, settings);
    original_run_close(&original);
    config_destroy(config);
    return status;
}

/* Whether the model goes on from the original values; otherwise it is solved for. */
static bool is_warm(const struct settings *settings)
{
    return settings->model->kind->fit.learn == NULL;
}

/* Collective: a model of skills would become one of items if the new data have none. */
static enum status check_skills(const struct settings *settings, const struct comm *comm,
                                const struct dataset *dataset,
                                const struct checkpoint *original)
{
    if (dataset->n_skills > 0 || original->skills.n == 0)
        return OK;
    struct config *config = config_create();
    struct model *model = NULL;
    enum status status = checkpoint_model(original, comm, config, NULL, &model);
    if (status == OK && (model_uses(model) & MODEL_SKILLS) != 0)
        status =
            fail(BAD_USER,
                 original->item_first != NULL
                     ? "%s: no item has skills, here or in %s, but the model uses skills; "
                       "import the data with --skills or --q-matrix"
                     : "%s: no item has skills, and %s was stored by an earlier version of "
                       "cohort, without those of its items; import the data with --skills",
                 dataset->path, settings->train.update);
    model_destroy(model);
    config_destroy(config);
    return status;
}

enum status update_open(const struct settings *settings, const struct comm *comm,
                        struct dataset *dataset, struct checkpoint *original)
{
    TRY(checkpoint_open(original, settings->update.file, comm));
    if (strcmp(original->digest, settings->update.digest) != 0)
        return fail(BAD_USER,
                    "%s: this checkpoint has changed since the update was planned; "
                    "run the command again",
                    original->path);
    const struct item_table items = checkpoint_items(original);
    dataset->unseen.allowed = true; /* the model's groups stay where the file has others */
    if (is_warm(settings))
        return dataset_extend(dataset, &items);
    TRY(dataset_complete(dataset, &items));
    return check_skills(settings, comm, dataset, original);
}

/* The number of names that are not among others. */
static size_t n_missing(const struct names *names, const struct names *others)
{
    struct name_index index = {0};
    size_t n = 0;
    name_index_add_all(&index, others);
    for (size_t i = 0; i < names->n; i++) {
        const char *name = names_get(names, i);
        n += name_index_find(&index, name, strlen(name)) == INDEX_NONE;
    }
    name_index_free(&index);
    return n;
}

static bool has_skills(const struct dataset *dataset, size_t i)
{
    return dataset->item_first[i] < dataset->item_first[i + 1];
}

static bool has_group(const struct dataset *dataset, size_t i)
{
    return dataset->item_group[i] >= 0;
}

/* Notes the items that got their skills (or groups) from the model. `file` is the data set as
 * it is stored, with the same numbers. */
static void say_completed(const struct settings *settings, const struct dataset *dataset,
                          const struct dataset *file, const char *what,
                          bool (*has)(const struct dataset *dataset, size_t i))
{
    size_t n = 0;
    for (size_t i = 0; i < dataset->n_items; i++)
        n += has(dataset, i) && !has(file, i);
    if (n > 0)
        log_say("note: items without %s in %s: %zu of %zu; those of %s are used", what,
                dataset->path, n, dataset->n_items, settings->train.update);
}

/* Notes new items without skills (or group), which neither the new data nor the model knows. */
static void say_bare(const struct dataset *dataset, const struct checkpoint *original,
                     const char *what, const char *option,
                     bool (*has)(const struct dataset *dataset, size_t i))
{
    struct name_index known = {0};
    name_index_add_all(&known, &original->items);
    size_t n = 0, n_new = 0, first = 0;
    for (size_t i = 0; i < dataset->n_items; i++) {
        const char *name = names_get(&dataset->items, i);
        if (name_index_find(&known, name, strlen(name)) != INDEX_NONE)
            continue;
        n_new++;
        if (!has(dataset, i) && n++ == 0)
            first = i;
    }
    name_index_free(&known);
    if (n > 0)
        log_say("note: new items without %s in %s: %zu of %zu, for example '%s'; the model, "
                "which uses %s, learns less about them: import the data with %s",
                what, dataset->path, n, n_new, names_get(&dataset->items, first), what, option);
}

/* Collective: notes other skills and groups than those of the original. A model that is fitted
 * anew has the file's own numbers, so a second look at the file compares. */
static enum status say_others(const struct settings *settings, const struct comm *comm,
                              const struct dataset *dataset, const struct checkpoint *original)
{
    const unsigned uses = model_uses(settings->model);
    const bool skills = (uses & MODEL_SKILLS) != 0, groups = (uses & MODEL_GROUPS) != 0;
    if (skills)
        say_bare(dataset, original, "skills", "--skills", has_skills);
    if (groups)
        say_bare(dataset, original, "groups", "--group", has_group);
    if (is_warm(settings)) {
        dataset_say_others(dataset, skills, groups, "the model's are used");
        return OK;
    }
    if (original->item_first == NULL)
        return OK;
    const struct item_table items = checkpoint_items(original);
    struct dataset file = {0};
    TRY(dataset_open(&file, dataset->path, comm));
    if (skills)
        say_completed(settings, dataset, &file, "skills", has_skills);
    if (groups)
        say_completed(settings, dataset, &file, "groups", has_group);
    const enum status status = dataset_extend(&file, &items);
    if (status == OK)
        dataset_say_others(&file, skills, groups,
                           "those of the new data are used, to which the model is fitted anew");
    dataset_close(&file);
    return status;
}

enum status update_start(const struct settings *settings, const struct comm *comm,
                         const struct dataset *dataset, const struct checkpoint *original)
{
    const struct model *model = settings->model;
    if (strcmp(dataset->digest, original->data_digest) == 0)
        log_warn("%s is the data set that %s was trained on: there is nothing new in it, and "
                 "the update learns the same attempts again",
                 dataset->path, settings->train.update);
    TRY(say_others(settings, comm, dataset, original));
    log_say(
        "update of %s: %sitems so far %zu, new %zu; skills so far %zu, new %zu; the new run "
        "is %s",
        settings->train.update, is_warm(settings) ? "" : "it is fitted to the new data alone; ",
        original->items.n, n_missing(&dataset->items, &original->items), original->skills.n,
        n_missing(&dataset->skills, &original->skills), settings->run.directory);
    if (is_warm(settings)) {
        TRY(warm_start(original, comm, settings->model));
    } else {
        const size_t n_gone = n_missing(&original->items, &dataset->items);
        if (n_gone > 0)
            log_warn("%zu items of %s have no attempts in %s, and %s forgets them; use data "
                     "with all attempts up to now",
                     n_gone, settings->train.update, dataset->path, model->kind->name);
    }
    return overlap_warn(comm, settings->train.update, original->data_digest, dataset);
}
