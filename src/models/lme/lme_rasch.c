/* The mixed model as a Rasch model,
 *
 *     logit P(correct) = theta - b
 *
 * -b is the intercept plus all effects of an item; theta is the student's effect. */
#include "base/memory.h"
#include "models/lme/lme_internal.h"
#include <string.h>

static bool has_items(const struct lme_shape *shape)
{
    for (size_t f = 0; f < shape->n_factors; f++)
        if (shape->factors[f].kind == FACTOR_ITEM)
            return true;
    return false;
}

void lme_rasch(const struct model *model, void *memory, struct rasch *rasch)
{
    struct lme_work *work = memory;
    const struct lme_shape *shape = work->shape;
    if (!shape->logit || !has_items(shape)) {
        rasch->why_not =
            shape->logit
                ? "its model.factors does not name item, so items have no difficulties of "
                  "their own"
                : "its effects are on the outcome itself (link = identity), not on the logit";
        return;
    }
    snprintf(rasch->b_is, sizeof rasch->b_is,
             "minus the sum of the intercept and the item's total");
    for (size_t k = 1; k < shape->n_fixed; k++) {
        const size_t n = strlen(rasch->b_is);
        snprintf(rasch->b_is + n, sizeof rasch->b_is - n, "%s %s = 0",
                 k == 1 ? " where" : " and", shape->fixed[k].name);
    }
    snprintf(rasch->theta_is, sizeof rasch->theta_is,
             "the student's effect given all shown answers");
    rasch->spread = (double)params_rows(&model->params, shape->spread_panel)[0];
    const size_t n_students = work->shard->n_students;
    const double intercept = (double)params_rows(&model->params, shape->fixed_panel)[0];
    const real *total = params_rows(&model->params, shape->total_panel);
    rasch->b = NEW(double, model->n_items);
    rasch->theta = NEW(double, n_students);
    rasch->error = NEW(double, n_students);
    for (size_t i = 0; i < model->n_items; i++)
        rasch->b[i] = -(intercept + (double)total[i]);
    for (size_t s = 0; s < n_students; s++) {
        real effect = 0;
        lme_hidden(model, work, s, &effect);
        rasch->theta[s] = (double)effect;
        rasch->error[s] = lme_effect_error(work);
    }
}
