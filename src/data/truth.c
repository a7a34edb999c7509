/* The truth of a simulated class, in the data set file beside the answers:
 *
 *     /truth/NAME      double   parameters, of any shape
 *     truth_digest     attribute of the file
 *
 *     truth_digest = XXH3(for each table in the order of the names: name, shape, numbers)
 *
 * No model sees the truth, so the data set's digest does not cover it: a class has the same
 * digest with its truth and without. Nothing reads it before training either. Who reads it checks
 * its digest first: `cohort verify` and `cohort inspect --truth`. Data sets of earlier versions
 * have no truth_digest. */
#include "data/truth.h"
#include "base/fail.h"
#include "base/memory.h"
#include "data/dataset_internal.h"
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static uint64_t add_table(XXH3_state_t *state, const char *name, int rank,
                          const uint64_t *shape)
{
    const uint64_t facts[] = {strlen(name), (uint64_t)rank};
    uint64_t n = 1;
    for (int d = 0; d < rank; d++)
        n *= shape[d];
    XXH3_128bits_update(state, facts, sizeof facts);
    XXH3_128bits_update(state, name, strlen(name));
    XXH3_128bits_update(state, shape, (size_t)rank * sizeof *shape);
    return n;
}

static void add_numbers(XXH3_state_t *state, const double *values, uint64_t n)
{
    if (n > 0)
        XXH3_128bits_update(state, values, n * sizeof *values);
}

static int compare(const void *a, const void *b)
{
    const struct truth *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

enum status truth_write(hid_t file, const struct dataset_content *content)
{
    const size_t n = content->n_truths;
    if (n == 0)
        return OK;
    const struct truth **sorted = NEW(const struct truth *, n);
    for (size_t i = 0; i < n; i++)
        sorted[i] = &content->truths[i];
    qsort(sorted, n, sizeof *sorted, compare);
    XXH3_state_t *state = dataset_digest_begin();
    enum status status = h5_group(file, "/truth");
    for (size_t i = 0; status == OK && i < n; i++) {
        const struct truth *truth = sorted[i];
        char *path = memory_text("/truth/%s", truth->name);
        status = h5_write(file, path, H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, truth->rank,
                          truth->shape, truth->values);
        memory_free(path);
        add_numbers(state, truth->values,
                    add_table(state, truth->name, truth->rank, truth->shape));
    }
    memory_free(sorted);
    char digest[33];
    dataset_digest_end(state, digest);
    return status == OK ? h5_write_text(file, "truth_digest", digest) : status;
}

struct reader {
    hid_t file;
    XXH3_state_t *state;
    size_t n;
};

static enum status add_stored(const char *name, void *arg)
{
    struct reader *reader = arg;
    char *path = memory_text("/truth/%s", name);
    int rank = 0;
    uint64_t shape[4] = {0};
    enum status status = h5_shape(reader->file, path, &rank, shape);
    if (status == OK) {
        const uint64_t n = add_table(reader->state, name, rank, shape);
        double *values = NEW_SCRATCH(double, n);
        status = h5_read(reader->file, path, H5T_NATIVE_DOUBLE, n, values);
        if (status == OK)
            add_numbers(reader->state, values, n);
        memory_free(values);
        reader->n++;
    }
    memory_free(path);
    return status;
}

enum status truth_check(hid_t file, bool *known)
{
    struct reader reader = {.file = file, .state = dataset_digest_begin()};
    char *stored = h5_text(file, "truth_digest"), digest[33];
    enum status status = h5_each(file, "/truth", add_stored, &reader);
    dataset_digest_end(reader.state, digest);
    *known = stored != NULL || reader.n == 0;
    if (status == OK && stored != NULL && strcmp(stored, digest) != 0)
        status = fail(BAD_DATA, "/truth does not match its stored digest: the file is damaged "
                                "or was changed; simulate or import it again");
    memory_free(stored);
    return status;
}
