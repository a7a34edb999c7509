/* A knowledge tracing machine with rows for items and students as a Rasch model,
 *
 *     logit P(correct) = theta - b
 *
 * at a student's first attempt, where all counts are zero, and without levels and numbers. -b
 * is the bias plus the weights of the item and its skills; theta is the student's weight. */
#include "base/memory.h"
#include "models/ktm/ktm_internal.h"
#include <math.h>

/* NULL: it has this view. */
static const char *why_not(const struct model *model, const struct ktm_design *design)
{
    bool has_items = false, has_bins = false;
    for (size_t j = 0; j < design->n; j++) {
        has_items |= design->list[j].what == KTM_ITEM;
        has_bins |= design->list[j].value == KTM_BINNED;
    }
    if (!has_items || !design->has_students)
        return "its model.features does not name both item and student, so they have no "
               "weights of their own";
    if (((const struct ktm_options *)model->options)->factors > 0)
        return "its features interact (model.factors), so the weight of an item depends on "
               "the student";
    return has_bins ? "its binned times have a weight at the first attempt too" : NULL;
}

/* The weight of feature f at the first attempt at item i. */
static double weigh(const struct model *model, const struct ktm_feature *f, size_t i)
{
    const real *w = ktm_point(model).w + f->first_row;
    const struct dataset *d = model->dataset;
    double sum = f->what == KTM_ITEM ? (double)w[i] : 0;
    if (f->what == KTM_SKILL)
        for (uint64_t k = d->item_first[i]; k < d->item_first[i + 1]; k++)
            sum += (double)w[d->item_skills[k]];
    return sum;
}

void ktm_rasch(const struct model *model, void *memory, struct rasch *rasch)
{
    const struct ktm_work *work = memory;
    const struct ktm_design *design = work->design;
    rasch->why_not = why_not(model, design);
    if (rasch->why_not != NULL)
        return;
    bool has_skills = false, has_columns = false, has_counts = false;
    const size_t first_row = design->list[design->n - 1].first_row + work->shard->first_student;
    rasch->b = NEW(double, model->n_items);
    rasch->theta = NEW(double, work->shard->n_students);
    for (size_t j = 0; j < design->n; j++) {
        has_skills |= design->list[j].what == KTM_SKILL;
        has_columns |= design->list[j].what == KTM_LEVEL || design->list[j].what == KTM_NUMBER;
        has_counts |= design->list[j].what >= KTM_PREVIOUS;
    }
    for (size_t i = 0; i < model->n_items; i++) {
        double sum = (double)ktm_point(model).w[0];
        for (size_t j = 0; j < design->n; j++)
            sum += weigh(model, &design->list[j], i);
        rasch->b[i] = -sum;
    }
    for (size_t s = 0; s < work->shard->n_students; s++)
        rasch->theta[s] = ktm_count_training(work->shard, s) > 0
                              ? (double)ktm_point(model).w[first_row + s]
                              : NAN;
    snprintf(rasch->b_is, sizeof rasch->b_is,
             "minus the sum of the bias and the weight%s of the item%s%s%s",
             has_skills ? "s" : "", has_skills ? " and its skills" : "",
             has_counts ? " at a first attempt" : "",
             has_columns ? " with empty factors and covariates" : "");
    snprintf(rasch->theta_is, sizeof rasch->theta_is,
             "the weight of a student with training attempts");
}
