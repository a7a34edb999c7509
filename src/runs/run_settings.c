/* A run starts from the data alone, or from another run: as a refit or as an update of it. */
#include "runs/run_settings.h"
#include "base/fail.h"
#include "base/file.h"
#include "runs/refit.h"
#include "runs/update.h"

/* Collective: settings of a run of its own. A continued one has them all. */
static enum status create(const struct comm *comm, struct settings *settings,
                          struct config *config)
{
    const char *file = config_get(config, "data", "file");
    struct data_shape shape;
    *settings = (struct settings){.config = config};
    const bool complete = config_get(config, "optimizer", "warm_up") != NULL &&
                          config_get(config, "train", "valid_every") != NULL;
    int64_t there = comm->rank == 0 && file != NULL && file_exists(file);
    comm_max_i64(comm, &there, 1);
    if (!there || complete) /* data that are not there yet: a job may be submitted before */
        return settings_create(settings, config, NULL);
    TRY(data_shape_read(&shape, file, comm));
    return settings_create(settings, config, &shape);
}

static bool is_set(const struct config *config, const char *key)
{
    const char *value = config_get(config, "train", key);
    return value != NULL && value[0] != '\0';
}

enum status run_settings(const struct comm *comm, struct settings *settings,
                         struct config *config)
{
    if (is_set(config, "refit") && is_set(config, "update")) {
        *settings = (struct settings){.config = config};
        return fail(BAD_USER,
                    "refit= and update= are both set; use one of them: a refit learns "
                    "from the same data, an update from new data");
    }
    if (is_set(config, "refit"))
        return refit_settings(comm, settings, config);
    return is_set(config, "update") ? update_settings(comm, settings, config)
                                    : create(comm, settings, config);
}
