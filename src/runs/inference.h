/* A trained model and a data set, open together. */
#ifndef COHORT_INFERENCE_H
#define COHORT_INFERENCE_H

#include "base/base.h"
#include "base/comm.h"
#include "base/config.h"
#include "data/dataset.h"
#include "learn/model.h"
#include "runs/checkpoint.h"

/* Each rank holds the whole model and a contiguous part of the students. */
struct inference {
    const struct comm *comm;
    struct checkpoint checkpoint;
    struct config *config; /* the checkpoint's */
    struct model *model;
    char *training; /* the data file the model was trained on, NULL: unknown */
    char *origin;   /* the run it is a refit of, NULL: of none, or unknown */
    struct dataset dataset;
    struct shard shard;
    void *work;    /* the model's view of the shard, NULL: opened without data */
    bool own_data; /* the data set is the one the model was trained on */
};

/* Collective. `path` is a run or a checkpoint; `data` another data set, whose items must be
 * among the model's by name, or "" for the one the run was trained on, whose digest must then
 * be the checkpoint's. The data are marked as in training: the fold of a cross-validation, and
 * the validation attempts that a refit has learned. To be closed after a failure too. */
CHECKED enum status inference_open(struct inference *inference, const char *path,
                                   const char *data, const struct comm *comm);

/* Collective: the model alone. */
CHECKED enum status inference_open_model(struct inference *inference, const char *path,
                                         const struct comm *comm);
void inference_close(struct inference *inference);

/* Marks the validation attempts as a refit would. */
void inference_join(struct inference *inference);

/* A sentence if what is asked for are the validation attempts (a set of splits) and the model
 * has learned them. */
CHECKED enum status inference_check_splits(const struct inference *inference, unsigned splits);

/* Collective: outcomes of the training attempts of each item (caller frees `right`). False
 * where the data the model was trained on are not at hand. */
bool inference_counts(const struct inference *inference, struct item_counts *counts);

/* Names of students first .. first + n of the data set. Not collective. */
CHECKED enum status inference_students(const struct inference *inference, size_t first,
                                       size_t n, struct names *names);

/* The names of a table's rows, if they are items or skills; else NULL. */
const struct names *inference_row_names(const struct inference *inference,
                                        const struct table *table);

/* What a path is, found out from the file itself. A path that does not exist is the user's
 * mistake, one that is something else is bad data. Not collective. */
enum path_kind { PATH_DATA_SET, PATH_CHECKPOINT, PATH_RUN };
CHECKED enum status inference_recognize(const char *path, enum path_kind *kind);

#endif
