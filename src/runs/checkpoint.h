/* A model and everything needed to continue its training, in one file. */
#ifndef COHORT_CHECKPOINT_H
#define COHORT_CHECKPOINT_H

#include "base/base.h"
#include "base/comm.h"
#include "data/dataset.h"
#include "learn/model.h"
#include "learn/optimizer.h"

/* The progress of a run. */
struct progress {
    int64_t epoch;          /* completed */
    int64_t step;           /* completed in the current epoch */
    int64_t all_steps;      /* completed since the start */
    int64_t best_epoch;     /* 0: none yet */
    int64_t stale;          /* epochs since the best */
    int64_t n_scored, loss; /* of the current epoch, see struct tally */
    int64_t finished, converged;
    int64_t numerics; /* that the run started with, see numerics.h; 0: this program's */
    double best;      /* score of the best epoch */
};

/* The content to write. Only rank 0's is used; optimizer slots must have been collected
 * there. */
struct checkpoint_content {
    const struct model *model;
    const char *config; /* resolved, without locations */
    const char *data_digest;
    struct item_table items;
    const struct progress *progress;
    const struct optimizer *optimizer;
    const void *state; /* per-student */
    size_t n_state;
};

/* The bytes of the file; equal content gives equal bytes. Caller frees. Not collective. */
CHECKED enum status checkpoint_bytes(const struct checkpoint_content *content, char **bytes,
                                     size_t *n_bytes);

/* An open checkpoint: every rank has everything except the tensors. */
struct checkpoint {
    char *path;
    char *model, *config;
    char data_digest[33], digest[33];
    int64_t n_students;
    uint64_t n_bytes; /* of the file */
    struct progress progress;
    struct names items, skills, groups;
    uint64_t *item_first; /* as in struct dataset; NULL: unknown (format version 1) */
    uint32_t *item_skills;
    int32_t *item_group;
    struct covariates covariates;
    char *bytes;  /* rank 0 */
    int64_t file; /* rank 0: HDF5 handle of the image */
};

/* Collective. Verifies the digest before HDF5 reads a byte; BAD_DATA if the file is damaged,
 * BAD_USER if a newer version of cohort wrote it. */
CHECKED enum status checkpoint_open(struct checkpoint *checkpoint, const char *path,
                                    const struct comm *comm);
void checkpoint_close(struct checkpoint *checkpoint);

/* The HDF5 type of `real` in memory. */
hid_t checkpoint_real(void);

struct item_table checkpoint_items(const struct checkpoint *checkpoint);

/* Renumbers the items of `dataset` as in the model; see dataset_renumber. */
CHECKED enum status checkpoint_follow(const struct checkpoint *checkpoint,
                                      struct dataset *dataset);

/* Collective: read the parameters into a declared model; the optimizer's slots; this rank's
 * n_bytes of per-student state. */
CHECKED enum status checkpoint_params(const struct checkpoint *checkpoint,
                                      const struct comm *comm, struct model *model);
CHECKED enum status checkpoint_slots(const struct checkpoint *checkpoint,
                                     const struct comm *comm, struct optimizer *optimizer);
CHECKED enum status checkpoint_state(const struct checkpoint *checkpoint,
                                     const struct comm *comm, void *state, size_t n_bytes);

/* Collective: the model of a checkpoint, ready to predict for `dataset`, whose items are
 * renumbered as in the model (NULL: only to inspect the model). BAD_USER if the data contradict
 * what the model uses. `config` receives the checkpoint's configuration and must outlive the
 * model. */
CHECKED enum status checkpoint_model(const struct checkpoint *checkpoint,
                                     const struct comm *comm, struct config *config,
                                     struct dataset *dataset, struct model **model);

#endif
