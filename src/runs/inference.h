/* A trained model and a data set, opened together. */
#ifndef COHORT_INFERENCE_H
#define COHORT_INFERENCE_H

#include "base/base.h"
#include "base/comm.h"
#include "base/config.h"
#include "data/dataset.h"
#include "learn/model.h"
#include "runs/checkpoint.h"
#include "runs/scoring.h"
#include "runs/stand_ins.h"

/* Each rank holds the whole model and a contiguous range of students. */
struct inference {
    const struct comm *comm;
    struct checkpoint checkpoint;
    struct config *config; /* the checkpoint's */
    struct model *model;
    char *training; /* data set the model was trained on; NULL: unknown */
    char *origin;   /* original run of a refit; NULL: not a refit, or unknown */
    struct dataset dataset;
    struct shard shard;
    void *work;                 /* the model's view of the shard; NULL: opened without data */
    bool own_data;              /* this is the data set the model was trained on */
    struct stand_ins stand_ins; /* of items the model was not trained on */
};

/* Collective. `path` is a run or a checkpoint. `data` is another data set, whose items must be
 * among the model's by name, or "" for the one the run was trained on, whose digest must match
 * the checkpoint. The data get the split used in training: the fold of a cross-validation, and
 * the validation attempts joined to training for a refit. Close after a failure too. */
CHECKED enum status inference_open(struct inference *inference, const char *path,
                                   const char *data, const struct comm *comm);

/* The same, but `data` may have items that the model was not trained on, for which others stand
 * in, and skills or groups of items that are not the model's, which are ignored. A note says so.
 */
CHECKED enum status inference_open_any(struct inference *inference, const char *path,
                                       const char *data, const struct comm *comm);

/* Collective: predicts the attempts in `splits`, as scoring_predict does: the mean over the
 * stand-ins of unseen items. */
CHECKED enum status inference_predict(const struct inference *inference, unsigned splits,
                                      struct predictions *predictions);

/* Collective: how uncertain each of these predictions is, as a standard deviation of the chance
 * (predictions->n numbers, caller frees). The differences between stand-ins count too. Fails if
 * the kind does not know. */
CHECKED enum status inference_deviate(const struct inference *inference, unsigned splits,
                                      const struct predictions *predictions, float **deviation);

/* Collective: opens the model without data. */
CHECKED enum status inference_open_model(struct inference *inference, const char *path,
                                         const struct comm *comm);
/* Collective: opens the model with an empty data set, which has the items, skills and covariates
 * of the training data. */
CHECKED enum status inference_open_items(struct inference *inference, const char *path,
                                         const struct comm *comm);
void inference_close(struct inference *inference);

/* Joins the validation attempts to training, as a refit does. */
void inference_join(struct inference *inference);

/* Fails if `splits` (a set of bits) is validation alone and the model was trained on it. */
CHECKED enum status inference_check_splits(const struct inference *inference, unsigned splits);

/* The lines of [train] that determine which attempts of the data set are held out; caller
 * frees. */
char *inference_held_out(const struct inference *inference);

/* Collective: counts outcomes of the training attempts per item (caller frees `right`). False
 * if the training data are not available. */
bool inference_counts(const struct inference *inference, struct item_counts *counts);

/* Names of students first .. first + n - 1 of the data set. Not collective. */
CHECKED enum status inference_students(const struct inference *inference, size_t first,
                                       size_t n, struct names *names);

/* The names of a table's rows if they are items or skills, else NULL. */
const struct names *inference_row_names(const struct inference *inference,
                                        const struct table *table);

/* What a path is, by the content of the file. BAD_USER if it does not exist, BAD_DATA if it is
 * something else. Not collective. */
enum path_kind { PATH_DATA_SET, PATH_CHECKPOINT, PATH_RUN };
CHECKED enum status inference_recognize(const char *path, enum path_kind *kind);

#endif
