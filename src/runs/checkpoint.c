/* The checkpoint file (format version 2) begins with 512 bytes of text that hold the XXH3
 * digest (128 bits) of the rest. HDF5 follows. It skips the text block by itself, so h5ls, h5py
 * and other tools open the file directly:
 *
 *     /                     attributes: format, version, model, numerics, config, data_digest,
 *                           epoch, ...
 *     /parameters/NAME      each tensor in its shape
 *     /optimizer/SLOT/NAME  momentum, or Adam's mean and square, of each tensor
 *     /state                uint8, per-student state (persistent chains), in student order
 *     /items, /skills, /groups, /covariates
 *                           as in a data set (data/dataset.c): names, and the skills and group
 *                           of each item; enough to find the items in other data sets
 *     /covariates/K/own     uint8, levels that no two students trained (own_levels.c)
 *
 * Version 1 had no numerics and no groups, and only the names of items and skills. It can still
 * be read; tests/golden has files of every version.
 *
 * The content does not depend on the number of ranks, the clock or the machine, so comparing
 * sha256 sums of two checkpoints tests the whole distributed program. Rank 0 builds the file in
 * memory and atomic_file.c writes it, because HDF5 on a full disk may hang or claim success. */
#include "runs/checkpoint.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/h5.h"
#include "base/log.h"
#include "base/memory.h"
#include "learn/numerics.h"
#include <math.h>
#include <string.h>
#include <xxhash.h>

enum { BLOCK = 512, FORMAT_VERSION = 2 };
static const char format_name[] = "cohort checkpoint";

static const struct {
    const char *name;
    size_t offset;
} progress_fields[] = {
    {"epoch", offsetof(struct progress, epoch)},
    {"step", offsetof(struct progress, step)},
    {"all_steps", offsetof(struct progress, all_steps)},
    {"best_epoch", offsetof(struct progress, best_epoch)},
    {"stale", offsetof(struct progress, stale)},
    {"n_scored", offsetof(struct progress, n_scored)},
    {"loss", offsetof(struct progress, loss)},
    {"finished", offsetof(struct progress, finished)},
    {"converged", offsetof(struct progress, converged)},
};

hid_t checkpoint_real(void)
{
    return sizeof(real) == sizeof(float) ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
}

static hid_t stored_type(void)
{
    return sizeof(real) == sizeof(float) ? H5T_IEEE_F32LE : H5T_IEEE_F64LE;
}

static enum status write_flat(hid_t file, const char *group, const struct params *params,
                              const real *flat)
{
    TRY(h5_group(file, group));
    for (size_t t = 0; t < params->n_tensors; t++) {
        const struct tensor *tensor = &params->tensors[t];
        real *dense = NEW_SCRATCH(real, params_size(params, tensor));
        params_take(params, tensor, flat, dense);
        char name[128];
        snprintf(name, sizeof name, "%s/%s", group, tensor->name);
        enum status status = h5_write(file, name, stored_type(), checkpoint_real(),
                                      tensor->rank, tensor->shape, dense);
        memory_free(dense);
        TRY(status);
    }
    return OK;
}

/* Whether the file has this tensor in this shape; other versions may have had other tensors. */
static bool has_tensor(hid_t file, const char *name, const struct tensor *tensor)
{
    int rank = 0;
    uint64_t shape[4] = {0};
    if (h5_shape(file, name, &rank, shape) != OK) {
        fail_clear();
        return false;
    }
    bool same = rank == tensor->rank;
    for (int d = 0; same && d < rank; d++)
        same = shape[d] == tensor->shape[d];
    return same;
}

static enum status other_shape(const struct checkpoint *checkpoint, const char *name)
{
    const char *slash = strrchr(checkpoint->path, '/');
    const int n = slash != NULL ? (int)(slash + 1 - checkpoint->path) : 0;
    return fail(
        BAD_DATA,
        "the array %s is missing or does not have the shape that this version of cohort "
        "expects; train the model again with `cohort train %.*sconfig.ini run=ANOTHER`",
        name, n, checkpoint->path);
}

static enum status read_flat(const struct checkpoint *checkpoint, const char *group,
                             const struct params *params, real *flat)
{
    hid_t file = checkpoint->file;
    for (size_t t = 0; t < params->n_tensors; t++) {
        const struct tensor *tensor = &params->tensors[t];
        const size_t n = params_size(params, tensor);
        char name[128];
        snprintf(name, sizeof name, "%s/%s", group, tensor->name);
        if (!has_tensor(file, name, tensor))
            return other_shape(checkpoint, name);
        real *dense = NEW_SCRATCH(real, n);
        enum status status = h5_read(file, name, checkpoint_real(), n, dense);
        for (size_t i = 0; status == OK && i < n; i++)
            if (!isfinite(dense[i]))
                status = fail(BAD_DATA,
                              "number %zu of %s is not finite: the run diverged or the file "
                              "was modified; train the model again, with a lower "
                              "optimizer.rate if it diverged",
                              i, name);
        if (status == OK)
            params_put(params, tensor, dense, flat);
        memory_free(dense);
        TRY(status);
    }
    return OK;
}

static enum status write_items(hid_t file, const struct item_table *items)
{
    const uint64_t n = items->items->n, n_first = n + 1;
    TRY(names_write(file, "/items", items->items));
    TRY(names_write(file, "/skills", items->skills));
    TRY(names_write(file, "/groups", items->groups));
    TRY(h5_write(file, "/items/skill_first", H5T_STD_U64LE, H5T_NATIVE_UINT64, 1, &n_first,
                 items->first));
    TRY(h5_write(file, "/items/skills", H5T_STD_U32LE, H5T_NATIVE_UINT32, 1, &items->first[n],
                 items->skill));
    return h5_write(file, "/items/group", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, &n, items->group);
}

static enum status write_content(hid_t file, const struct checkpoint_content *content)
{
    const struct model *model = content->model;
    TRY(h5_write_text(file, "format", format_name));
    TRY(h5_write_integer(file, "version", FORMAT_VERSION));
    TRY(h5_write_text(file, "model", model->kind->name));
    const int64_t numerics = content->progress->numerics;
    TRY(h5_write_integer(file, "numerics",
                         numerics > 0 ? numerics : numerics_revision(model->kind->name)));
    TRY(h5_write_text(file, "config", content->config));
    TRY(h5_write_text(file, "data_digest", content->data_digest));
    TRY(h5_write_integer(file, "students", (int64_t)model->n_students));
    for (size_t i = 0; i < COUNT(progress_fields); i++)
        TRY(h5_write_integer(
            file, progress_fields[i].name,
            *(const int64_t *)((const char *)content->progress + progress_fields[i].offset)));
    TRY(h5_write_number(file, "best", content->progress->best));
    TRY(write_flat(file, "/parameters", &model->params, model->params.value));
    TRY(h5_group(file, "/optimizer"));
    for (int k = 0; content->optimizer != NULL && k < content->optimizer->n_slots; k++) {
        char group[64];
        snprintf(group, sizeof group, "/optimizer/%s",
                 optimizer_slot_names[content->optimizer->options.method][k]);
        TRY(write_flat(file, group, &model->params, content->optimizer->slot[k]));
    }
    const uint64_t n_state = content->n_state;
    if (n_state > 0)
        TRY(h5_write(file, "/state", H5T_STD_U8LE, H5T_NATIVE_UINT8, 1, &n_state,
                     content->state));
    TRY(write_items(file, &content->items));
    return covariates_write(file, model->covariates);
}

static void digest_text(const char *bytes, size_t n_bytes, char digest[33])
{
    const XXH128_hash_t hash = XXH3_128bits(bytes + BLOCK, n_bytes - BLOCK);
    snprintf(digest, 33, "%016llx%016llx", (unsigned long long)hash.high64,
             (unsigned long long)hash.low64);
}

/* The text block at the start, padded with newlines. */
static void front_text(const char *bytes, size_t n_bytes, char block[BLOCK])
{
    char digest[33], text[BLOCK];
    digest_text(bytes, n_bytes, digest);
    const int n = snprintf(text, sizeof text, "%s\nxxh3-128 %s of the %zu bytes that follow\n",
                           format_name, digest, n_bytes - BLOCK);
    memset(block, '\n', BLOCK);
    memcpy(block, text, (size_t)n);
}

enum status checkpoint_bytes(const struct checkpoint_content *content, char **bytes,
                             size_t *n_bytes)
{
    hid_t file = h5_create_image(BLOCK);
    if (file < 0)
        return fail(BAD_IO, "HDF5 could not create a checkpoint in memory");
    enum status status = write_content(file, content);
    if (status == OK && (*bytes = h5_image(file, n_bytes)) == NULL)
        status = fail(BAD_IO, "HDF5 could not finish a checkpoint in memory");
    H5Fclose(file);
    if (status == OK)
        front_text(*bytes, *n_bytes, *bytes);
    return status;
}

static enum status damaged(const char *path, const char *what)
{
    return fail(BAD_DATA, "%s: %s", path, what);
}

static enum status check_digest(struct checkpoint *checkpoint, size_t n_bytes)
{
    static const char hdf5[] = "\x89HDF\r\n";
    char block[BLOCK];
    if (n_bytes > BLOCK && memcmp(checkpoint->bytes, hdf5, strlen(hdf5)) == 0)
        return damaged(checkpoint->path, "not a checkpoint but some other HDF5 file, such as a "
                                         "data set; expected a run directory or a checkpoint");
    if (n_bytes <= BLOCK || memcmp(checkpoint->bytes, format_name, strlen(format_name)) != 0)
        return damaged(checkpoint->path, "not a cohort checkpoint, or truncated");
    front_text(checkpoint->bytes, n_bytes, block);
    if (memcmp(block, checkpoint->bytes, BLOCK) != 0)
        return damaged(checkpoint->path,
                       "the checkpoint is damaged: its content does not match its digest");
    digest_text(checkpoint->bytes, n_bytes, checkpoint->digest);
    return OK;
}

static enum status check_items(const struct checkpoint *checkpoint, uint64_t n_skills)
{
    const uint64_t *first = checkpoint->item_first;
    const size_t n = checkpoint->items.n;
    bool sound = first[0] == 0 && first[n] == n_skills;
    for (size_t i = 0; i < n; i++)
        sound &= first[i] <= first[i + 1] && checkpoint->item_group[i] >= -1 &&
                 checkpoint->item_group[i] < (int64_t)checkpoint->groups.n;
    for (uint64_t j = 0; j < n_skills; j++)
        sound &= checkpoint->item_skills[j] < checkpoint->skills.n;
    return sound ? OK : damaged(checkpoint->path, "the skills or groups of items are damaged");
}

static enum status read_items(struct checkpoint *checkpoint, int64_t version)
{
    hid_t file = checkpoint->file;
    TRY(names_read(file, "/items", &checkpoint->items));
    TRY(names_read(file, "/skills", &checkpoint->skills));
    if (version < 2)
        return OK;
    TRY(names_read(file, "/groups", &checkpoint->groups));
    const size_t n = checkpoint->items.n;
    uint64_t n_skills = 0;
    TRY(h5_length(file, "/items/skills", &n_skills));
    checkpoint->item_first = NEW(uint64_t, n + 1);
    checkpoint->item_skills = NEW(uint32_t, n_skills);
    checkpoint->item_group = NEW(int32_t, n);
    TRY(h5_read(file, "/items/skill_first", H5T_NATIVE_UINT64, n + 1, checkpoint->item_first));
    TRY(h5_read(file, "/items/skills", H5T_NATIVE_UINT32, n_skills, checkpoint->item_skills));
    TRY(h5_read(file, "/items/group", H5T_NATIVE_INT32, n, checkpoint->item_group));
    return check_items(checkpoint, n_skills);
}

/* A digest detects accidental changes, not numbers that make no sense. */
static enum status check_numbers(const struct checkpoint *checkpoint)
{
    const int64_t most = (int64_t)1 << 40;
    const struct progress *progress = &checkpoint->progress;
    bool sound = checkpoint->n_students >= 0 && checkpoint->n_students < most &&
                 progress->loss > -((int64_t)1 << 62) && progress->loss < (int64_t)1 << 62;
    for (size_t i = 0; i < COUNT(progress_fields); i++) {
        const int64_t value =
            *(const int64_t *)((const char *)progress + progress_fields[i].offset);
        sound &= progress_fields[i].offset == offsetof(struct progress, loss) ||
                 (value >= 0 && value < most);
    }
    return sound ? OK
                 : damaged(checkpoint->path, "the checkpoint is damaged: its number of "
                                             "students, epochs or steps is impossible");
}

static enum status read_head(struct checkpoint *checkpoint)
{
    size_t n_bytes = 0;
    TRY(file_read(checkpoint->path, &checkpoint->bytes, &n_bytes));
    TRY(check_digest(checkpoint, n_bytes));
    checkpoint->file = h5_open_image(checkpoint->path, checkpoint->bytes, n_bytes);
    if (checkpoint->file < 0)
        return damaged(checkpoint->path, "HDF5 cannot read the checkpoint");
    hid_t file = checkpoint->file;
    int64_t version = 0;
    TRY(h5_integer(file, "version", &version));
    if (version > FORMAT_VERSION)
        return fail(
            BAD_USER,
            "%s: written by a newer version of cohort (format %lld; this program reads formats "
            "up to %d); use that version, or train the model again with this one",
            checkpoint->path, (long long)version, FORMAT_VERSION);
    if (version < 1)
        return damaged(checkpoint->path, "the attribute version is damaged");
    checkpoint->progress.numerics = 1;
    if (version > 1)
        TRY(h5_integer(file, "numerics", &checkpoint->progress.numerics));
    checkpoint->model = h5_text(file, "model");
    checkpoint->config = h5_text(file, "config");
    char *digest = h5_text(file, "data_digest");
    if (checkpoint->model == NULL || checkpoint->config == NULL || digest == NULL)
        return damaged(checkpoint->path, "attributes are missing from the checkpoint");
    snprintf(checkpoint->data_digest, sizeof checkpoint->data_digest, "%s", digest);
    memory_free(digest);
    TRY(h5_integer(file, "students", &checkpoint->n_students));
    for (size_t i = 0; i < COUNT(progress_fields); i++)
        TRY(h5_integer(file, progress_fields[i].name,
                       (int64_t *)((char *)&checkpoint->progress + progress_fields[i].offset)));
    TRY(h5_number(file, "best", &checkpoint->progress.best));
    TRY(check_numbers(checkpoint));
    checkpoint->n_bytes = n_bytes;
    TRY(read_items(checkpoint, version));
    return covariates_read(file, &checkpoint->covariates);
}

static void broadcast_block(const struct comm *comm, void **block, size_t n_bytes)
{
    uint64_t n = n_bytes;
    comm_broadcast(comm, &n, sizeof n, 0);
    if (comm->rank != 0)
        *block = memory_scratch(n, 1);
    comm_broadcast(comm, *block, n, 0);
}

static void broadcast_names(const struct comm *comm, struct names *names)
{
    comm_broadcast(comm, &names->n, sizeof names->n, 0);
    if (names->n == 0)
        return;
    broadcast_block(comm, (void **)&names->first, (names->n + 1) * sizeof *names->first);
    broadcast_block(comm, (void **)&names->bytes, names_size(names));
}

static void broadcast_items(const struct comm *comm, struct checkpoint *checkpoint)
{
    broadcast_names(comm, &checkpoint->items);
    broadcast_names(comm, &checkpoint->skills);
    broadcast_names(comm, &checkpoint->groups);
    int64_t has_table = checkpoint->item_first != NULL;
    comm_max_i64(comm, &has_table, 1);
    if (!has_table)
        return;
    const size_t n = checkpoint->items.n;
    broadcast_block(comm, (void **)&checkpoint->item_first,
                    (n + 1) * sizeof *checkpoint->item_first);
    broadcast_block(comm, (void **)&checkpoint->item_skills,
                    checkpoint->item_first[n] * sizeof *checkpoint->item_skills);
    broadcast_block(comm, (void **)&checkpoint->item_group, n * sizeof *checkpoint->item_group);
}

static void broadcast_covariates(const struct comm *comm, struct covariates *covariates)
{
    broadcast_names(comm, &covariates->names);
    if (comm->rank != 0)
        covariates->levels = NEW(struct names, covariates->names.n);
    for (size_t k = 0; k < covariates->names.n; k++)
        broadcast_names(comm, &covariates->levels[k]);
    bool known = covariates->own != NULL;
    comm_broadcast(comm, &known, sizeof known, 0);
    if (known && comm->rank != 0)
        covariates_reserve_own(covariates);
    for (size_t k = 0; known && k < covariates->names.n; k++)
        if (covariates_n_levels(covariates, k) > 0)
            comm_broadcast(comm, covariates->own[k], covariates_n_levels(covariates, k), 0);
}

/* Once per process: a command may open several checkpoints of a run. */
static void say_newer(const struct checkpoint *checkpoint)
{
    static bool said = false;
    if (said || log_muted() ||
        !numerics_is_newer(checkpoint->model, checkpoint->progress.numerics))
        return;
    said = true;
    log_warn("%s: the run was started by a newer version of cohort, whose arithmetic for %s "
             "differs from that of this version: results may differ; use the newer version",
             checkpoint->path, checkpoint->model);
}

enum status checkpoint_open(struct checkpoint *checkpoint, const char *path,
                            const struct comm *comm)
{
    *checkpoint = (struct checkpoint){.path = memory_text("%s", path), .file = -1};
    enum status status = comm->rank == 0 ? read_head(checkpoint) : OK;
    if (status != OK && strstr(fail_sentence(), path) == NULL)
        status = fail_context(status, "%s", path);
    status = comm_agree(comm, status);
    if (status != OK) {
        checkpoint_close(checkpoint);
        return status;
    }
    const bool first = comm->rank == 0;
    if (first)
        say_newer(checkpoint);
    comm_broadcast(comm, &checkpoint->progress, sizeof checkpoint->progress, 0);
    comm_broadcast(comm, &checkpoint->n_students, sizeof checkpoint->n_students, 0);
    comm_broadcast(comm, &checkpoint->n_bytes, sizeof checkpoint->n_bytes, 0);
    comm_broadcast(comm, checkpoint->data_digest, sizeof checkpoint->data_digest, 0);
    comm_broadcast(comm, checkpoint->digest, sizeof checkpoint->digest, 0);
    broadcast_block(comm, (void **)&checkpoint->model,
                    first ? strlen(checkpoint->model) + 1 : 0);
    broadcast_block(comm, (void **)&checkpoint->config,
                    first ? strlen(checkpoint->config) + 1 : 0);
    broadcast_items(comm, checkpoint);
    broadcast_covariates(comm, &checkpoint->covariates);
    return OK;
}

void checkpoint_close(struct checkpoint *checkpoint)
{
    if (checkpoint->file >= 0)
        H5Fclose(checkpoint->file);
    memory_free(checkpoint->path);
    memory_free(checkpoint->model);
    memory_free(checkpoint->config);
    memory_free(checkpoint->bytes);
    names_free(&checkpoint->items);
    names_free(&checkpoint->skills);
    names_free(&checkpoint->groups);
    memory_free(checkpoint->item_first);
    memory_free(checkpoint->item_skills);
    memory_free(checkpoint->item_group);
    covariates_free(&checkpoint->covariates);
    *checkpoint = (struct checkpoint){.file = -1};
}

struct item_table checkpoint_items(const struct checkpoint *checkpoint)
{
    return (struct item_table){.items = &checkpoint->items,
                               .skills = &checkpoint->skills,
                               .groups = &checkpoint->groups,
                               .first = checkpoint->item_first,
                               .skill = checkpoint->item_skills,
                               .group = checkpoint->item_group};
}

enum status checkpoint_follow(const struct checkpoint *checkpoint, struct dataset *dataset)
{
    const struct item_table items = checkpoint_items(checkpoint);
    return dataset_renumber(dataset, &items, &checkpoint->covariates);
}

enum status checkpoint_params(const struct checkpoint *checkpoint, const struct comm *comm,
                              struct model *model)
{
    enum status status = OK;
    if (comm->rank == 0)
        status = read_flat(checkpoint, "/parameters", &model->params, model->params.value);
    if (status != OK)
        status = fail_context(status, "%s", checkpoint->path);
    TRY(comm_agree(comm, status));
    comm_broadcast(comm, model->params.value, model->params.n * sizeof(real), 0);
    return OK;
}

enum status checkpoint_slots(const struct checkpoint *checkpoint, const struct comm *comm,
                             struct optimizer *optimizer)
{
    for (int k = 0; k < optimizer->n_slots; k++) {
        char group[64];
        snprintf(group, sizeof group, "/optimizer/%s",
                 optimizer_slot_names[optimizer->options.method][k]);
        enum status status = OK;
        if (comm->rank == 0)
            status = read_flat(checkpoint, group, optimizer->params, optimizer->slot[k]);
        if (status != OK)
            status = fail_context(status, "%s", checkpoint->path);
        TRY(comm_agree(comm, status));
        exact_slices_hand_out(optimizer->slices, optimizer->slot[k]);
    }
    return OK;
}

enum status checkpoint_state(const struct checkpoint *checkpoint, const struct comm *comm,
                             void *state, size_t n_bytes)
{
    int64_t n_all = (int64_t)n_bytes;
    comm_sum_i64(comm, &n_all, 1);
    if (n_all == 0)
        return OK;
    uint8_t *all = NULL;
    enum status status = OK;
    if (comm->rank == 0) {
        all = NEW_SCRATCH(uint8_t, (size_t)n_all);
        status = h5_read(checkpoint->file, "/state", H5T_NATIVE_UINT8, (uint64_t)n_all, all);
    }
    status = comm_agree(comm, status);
    if (status == OK)
        comm_scatter(comm, all, state, n_bytes);
    memory_free(all);
    return status;
}

/* Whether the data agree with the model on the item properties that it uses. Where unseen items
 * are allowed, the model's properties count, if the checkpoint has them. */
static enum status check_uses(const struct checkpoint *checkpoint, const struct model *model,
                              const struct dataset *dataset)
{
    const unsigned uses = model_uses(model);
    if (dataset->unseen.allowed && checkpoint->item_first != NULL)
        return OK;
    if ((uses & MODEL_SKILLS) != 0 && dataset->other_skills != NULL)
        return fail(BAD_USER, "%s", dataset->other_skills);
    if ((uses & MODEL_GROUPS) != 0 && dataset->other_groups != NULL)
        return fail(BAD_USER, "%s", dataset->other_groups);
    return OK;
}

enum status checkpoint_model(const struct checkpoint *checkpoint, const struct comm *comm,
                             struct config *config, struct dataset *dataset,
                             struct model **model)
{
    const struct model_kind *kind = NULL;
    *model = NULL;
    TRY(config_read_text(config, checkpoint->config, checkpoint->path));
    TRY(model_choose(config, &kind));
    if (dataset != NULL)
        TRY(checkpoint_follow(checkpoint, dataset));
    *model = model_create(kind);
    (*model)->covariates = &checkpoint->covariates;
    (*model)->most_params = checkpoint->n_bytes / sizeof(float);
    struct model_names names;
    const struct option_group groups[] = {
        {"model", model_name_options, COUNT(model_name_options), &names},
        {"model", kind->options, kind->n_options, (*model)->options},
    };
    enum status status = config_resolve_some(config, groups, COUNT(groups));
    if (status == OK)
        status = model_declare(*model, dataset, (size_t)checkpoint->n_students,
                               checkpoint->items.n, checkpoint->skills.n);
    if (status == OK)
        status = checkpoint_params(checkpoint, comm, *model);
    if (status == OK && dataset != NULL)
        status = check_uses(checkpoint, *model, dataset);
    if (status != OK) {
        model_destroy(*model);
        *model = NULL;
    }
    return status;
}
