/* The shape of a data set, in a few numbers that defaults follow from. */
#ifndef COHORT_DATA_SHAPE_H
#define COHORT_DATA_SHAPE_H

#include "base/base.h"
#include "base/comm.h"

enum { RECENT_ATTEMPTS = 15 };

/* Items and skills are counted; all else is estimated from a sample of the students. */
struct data_shape {
    double n_items, n_skills, skills_per_item;
    double n_students;  /* with training answers */
    double n_answers;   /* training attempts with a known outcome */
    double per_student; /* training answers per student that has any */
    double per_item;    /* training answers per item */
    double per_step;    /* attempts per step; 1 unless the data have steps of several */
    double repeats;     /* fraction of training answers to an item the student has met before */
    double recent;      /* the same for items among the student's last RECENT_ATTEMPTS */
    double practice; /* the same for skills (items, without skills): any of them met before */
    /* Nats per training answer, if the mean of the other answers to its item predicts it, of
     * those to its skills, or of the student's answers to its skills before it; 0 without
     * skills. */
    double item_loss, skill_loss, practice_loss;
    bool has_valid; /* a validation attempt with a known outcome, or of a known target */
    bool has_time;
};

/* Whether students come back to a skill often enough for a model to learn how practice helps. */
static inline bool data_shape_is_practised(const struct data_shape *shape)
{
    return shape->practice > 0.3;
}

/* Whether items also have enough answers to learn what pairs of them do to each other. */
static inline bool data_shape_has_pairs(const struct data_shape *shape)
{
    return data_shape_is_practised(shape) && shape->per_item >= 50;
}

/* Collective: reads the shape of a data set file. */
CHECKED enum status data_shape_read(struct data_shape *shape, const char *path,
                                    const struct comm *comm);

#endif
