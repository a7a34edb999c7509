/* The file knows factors by the numbers of their covariates: /covariates/2/names are the levels
 * of the third. */
#include "data/covariates.h"
#include "base/memory.h"
#include <string.h>

void covariates_add(struct covariates *covariates, const char *name, const struct names *levels)
{
    const size_t k = covariates->names.n;
    names_add(&covariates->names, name, strlen(name));
    covariates->levels = memory_resize(covariates->levels, k + 1, sizeof *covariates->levels);
    covariates->levels[k] = (struct names){0};
    if (levels != NULL)
        names_copy(&covariates->levels[k], levels);
}

void covariates_free(struct covariates *covariates)
{
    for (size_t k = 0; covariates->levels != NULL && k < covariates->names.n; k++)
        names_free(&covariates->levels[k]);
    memory_free(covariates->levels);
    names_free(&covariates->names);
    *covariates = (struct covariates){0};
}

size_t covariates_find(const struct covariates *covariates, const char *name)
{
    for (size_t k = 0; k < covariates->names.n; k++)
        if (strcmp(names_get(&covariates->names, k), name) == 0)
            return k;
    return COVARIATES_NONE;
}

static void level_group(char group[32], size_t k)
{
    snprintf(group, 32, "/covariates/%zu", k);
}

enum status covariates_write(hid_t file, const struct covariates *covariates)
{
    if (covariates->names.n == 0)
        return OK;
    TRY(names_write(file, "/covariates", &covariates->names));
    for (size_t k = 0; k < covariates->names.n; k++) {
        char group[32];
        level_group(group, k);
        if (covariates_n_levels(covariates, k) > 0)
            TRY(names_write(file, group, &covariates->levels[k]));
    }
    return OK;
}

enum status covariates_read(hid_t file, struct covariates *covariates)
{
    if (!h5_exists(file, "/covariates"))
        return OK;
    TRY(names_read(file, "/covariates", &covariates->names));
    covariates->levels = NEW(struct names, covariates->names.n);
    for (size_t k = 0; k < covariates->names.n; k++) {
        char group[32];
        level_group(group, k);
        if (h5_exists(file, group))
            TRY(names_read(file, group, &covariates->levels[k]));
    }
    return OK;
}
