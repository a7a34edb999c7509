/* The inside of a model, as far as its kind lets it be seen (learn/model_optional.h):
 *
 *     view.loadings            items in the plane of hidden units     report_plane.c
 *     view.hidden_is_chance    hidden probabilities of students       report_hidden.c
 *     view.relates_items       influence between skills               report_influence.c */
#include "report/report_inside.h"
#include "base/fail.h"

enum status report_inside_measure(struct report_inside *inside,
                                  const struct inference *inference,
                                  const struct report_plan *plan)
{
    report_plane_measure(&inside->plane, inference);
    TRY(report_influence_measure(&inside->influence, inference));
    return plan->compares ? OK : report_hidden_measure(&inside->hidden, inference);
}

void report_inside_free(struct report_inside *inside)
{
    report_plane_free(&inside->plane);
    report_hidden_free(&inside->hidden);
    report_influence_free(&inside->influence);
}

bool report_inside_is_there(const struct report_inside *inside)
{
    return inside->plane.n > 0 || inside->hidden.n_students > 0 || inside->influence.n > 0;
}

void report_inside_show(FILE *out, const struct report_inside *inside)
{
    report_hidden_show(out, &inside->hidden);
    report_plane_show(out, &inside->plane);
    report_influence_show(out, &inside->influence);
}
