/* In the file a factor is a group named by the number of its covariate: /covariates/2/names are
 * the levels of the third covariate, and /covariates/2/own marks those levels that at most one
 * student trained. */
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
    for (size_t k = 0; covariates->own != NULL && k < covariates->names.n; k++)
        memory_free(covariates->own[k]);
    memory_free(covariates->own);
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

void covariates_reserve_own(struct covariates *covariates)
{
    covariates->own = NEW(uint8_t *, covariates->names.n);
    for (size_t k = 0; k < covariates->names.n; k++)
        if (covariates_n_levels(covariates, k) > 0)
            covariates->own[k] = NEW(uint8_t, covariates_n_levels(covariates, k));
}

static void level_group(char group[40], size_t k)
{
    snprintf(group, 32, "/covariates/%zu", k);
}

enum status covariates_write(hid_t file, const struct covariates *covariates)
{
    if (covariates->names.n == 0)
        return OK;
    TRY(names_write(file, "/covariates", &covariates->names));
    for (size_t k = 0; k < covariates->names.n; k++) {
        char group[40];
        level_group(group, k);
        const uint64_t n = covariates_n_levels(covariates, k);
        if (n == 0)
            continue;
        TRY(names_write(file, group, &covariates->levels[k]));
        strcat(group, "/own");
        if (covariates_own(covariates, k) != NULL)
            TRY(h5_write(file, group, H5T_STD_U8LE, H5T_NATIVE_UINT8, 1, &n,
                         covariates->own[k]));
    }
    return OK;
}

enum status covariates_read(hid_t file, struct covariates *covariates)
{
    if (!h5_exists(file, "/covariates"))
        return OK;
    TRY(names_read(file, "/covariates", &covariates->names));
    covariates->levels = NEW(struct names, covariates->names.n);
    char group[40];
    for (size_t k = 0; k < covariates->names.n; k++) {
        level_group(group, k);
        if (h5_exists(file, group))
            TRY(names_read(file, group, &covariates->levels[k]));
    }
    for (size_t k = 0; k < covariates->names.n; k++) {
        const size_t n = covariates_n_levels(covariates, k);
        level_group(group, k);
        strcat(group, "/own");
        if (n == 0 || !h5_exists(file, group))
            continue;
        if (covariates->own == NULL)
            covariates_reserve_own(covariates);
        TRY(h5_read(file, group, H5T_NATIVE_UINT8, n, covariates->own[k]));
    }
    return OK;
}
