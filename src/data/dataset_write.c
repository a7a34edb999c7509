/* Writes the file that dataset.c describes from a content in memory. */
#include "base/atomic_file.h"
#include "base/fail.h"
#include "base/file.h"
#include "data/dataset_internal.h"
#include <errno.h>
#include <string.h>

const char dataset_format[] = "cohort data set";

static enum status write_content(hid_t file, const struct dataset_content *content)
{
    const struct dataset *head = &content->head;
    TRY(h5_write_text(file, "format", dataset_format));
    TRY(h5_write_integer(file, "version", DATASET_VERSION));
    TRY(h5_write_integer(file, "withheld", head->withheld));
    TRY(h5_write_integer(file, "has_time", head->has_time));
    TRY(h5_write_text(file, "source", head->source ? head->source : ""));
    TRY(h5_write_text(file, "digest", head->digest));
    static const char *const groups[] = {"/students", "/attempts", "/items", "/skills",
                                         "/groups"};
    for (size_t g = 0; g < COUNT(groups); g++)
        TRY(h5_group(file, groups[g]));

    const uint64_t n_attempts = head->n_attempts, n_items = head->n_items;
    const uint64_t n_students = head->n_students;
    const uint64_t n_first = n_students + 1, n_item_first = n_items + 1;
    const uint64_t n_item_skills = head->item_first[n_items];
    hid_t narrow = n_items <= UINT16_MAX ? H5T_STD_U16LE : H5T_STD_U32LE;
    TRY(h5_write(file, "/students/first", H5T_STD_U64LE, H5T_NATIVE_UINT64, 1, &n_first,
                 head->first));
    if (head->target != NULL)
        TRY(h5_write(file, "/students/target", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 1,
                     &n_students, head->target));
    TRY(h5_write(file, "/attempts/item", narrow, H5T_NATIVE_UINT32, 1, &n_attempts,
                 content->item));
    TRY(h5_write(file, "/attempts/mark", H5T_STD_U8LE, H5T_NATIVE_UINT8, 1, &n_attempts,
                 content->mark));
    if (head->has_time)
        TRY(h5_write(file, "/attempts/time", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, &n_attempts,
                     content->time));
    TRY(h5_write(file, "/items/skill_first", H5T_STD_U64LE, H5T_NATIVE_UINT64, 1, &n_item_first,
                 head->item_first));
    TRY(h5_write(file, "/items/skills", H5T_STD_U32LE, H5T_NATIVE_UINT32, 1, &n_item_skills,
                 head->item_skills));
    TRY(h5_write(file, "/items/group", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, &n_items,
                 head->item_group));
    TRY(names_write(file, "/students", &content->students));
    TRY(names_write(file, "/items", &head->items));
    TRY(names_write(file, "/skills", &head->skills));
    TRY(names_write(file, "/groups", &head->groups));
    if (head->covariates.names.n > 0) {
        const uint64_t n = n_attempts * head->covariates.names.n;
        TRY(h5_write(file, "/attempts/covariate", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 1, &n,
                     content->covariate));
        TRY(covariates_write(file, &head->covariates));
    }
    TRY(truth_write(file, content));
    TRY(dataset_digest_write(file, head));
    return origin_write(file, content);
}

/* A data set may replace another one, but not the answers it is made from or a checkpoint: such
 * a name is a mistake. */
static enum status check_old(const char *path)
{
    static const char begins[] = "\x89HDF";
    char bytes[8] = "";
    const size_t n = file_peek(path, bytes, sizeof bytes);
    return n == 0 || memcmp(bytes, begins, strlen(begins)) == 0
               ? OK
               : fail(BAD_USER,
                      "%s: this file exists and is not a data set; choose another file name, "
                      "or remove it first",
                      path);
}

enum status dataset_write(struct dataset_content *content, const char *path)
{
    struct atomic_file draft;
    TRY(check_old(path));
    TRY(atomic_file_begin(&draft, path));
    dataset_digest_make(content);
    hid_t file = h5_create(draft.name);
    enum status status = file < 0
                             ? fail(BAD_IO, "cannot write the data set: %s", strerror(errno))
                             : write_content(file, content);
    dataset_digest_free(&content->head);
    if (status == OK) {
        status = h5_close(file, path);
    } else {
        status = fail_context(status, "%s", path);
        if (file >= 0)
            h5_let_go(file);
    }
    if (status != OK) {
        atomic_file_abandon(&draft);
        return status;
    }
    return atomic_file_commit(&draft, path);
}
