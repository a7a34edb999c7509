/* The same settings and data give the same bits with one version of cohort, but not with every
 * version: now and then a change of the arithmetic changes what a model learns or predicts. A
 * run started before such a change and continued after it has the bits of neither version.
 *
 * If you change bits, add a line at the end of the table. The revision of a kind is 1 plus the
 * number of its lines. */
#include "learn/numerics.h"
#include "base/memory.h"
#include <string.h>

#define HIDES "splits by attempt hide answers at items of one student"
static const struct {
    const char *kind;
    const char *setting; /* the change applies only if the settings contain this text */
    const char *change;
} changes[] = {
    /* before: the BLAS kernel of the CPU decided on the order */
    {"rtrbm", "", "matrix products are summed in a fixed order"},
    {"dkt", "", "matrix products are summed in a fixed order"},
    {"vae", "", "matrix products are summed in a fixed order"},
    /* before: LAPACK */
    {"ktm", "", "cohort's own code factors the preconditioner"},
    /* before: a student's trained row used later answers; validation picks the best epoch */
    {"ktm", "student", "predictions for a student use only earlier answers"},
    /* before: the probability of not knowing a skill was kept above 1e-32 */
    {"bkt", "", "odds have no lower limit"},
    /* before: log L_kk had no bounds, and so the work of a prediction had none */
    {"vae", "", "the posterior's standard deviation is bounded"},
    /* before: the published rates, which made them diverge */
    {"rbm", "hidden_kind = gaussian", "gaussian units learn at other rates"},
    {"rbm", "hidden_kind = relu", "relu units learn at other rates"},
    /* before: mean field */
    {"rtrbm", "dense = yes", "Gibbs chains predict whole frames"},
    /* before: the effect of a session used its student's later answers */
    {"lme", "", "levels of one student are not used in predictions"},
    {"ktm", "", "levels of one student are not used in predictions"},
    /* before: effects of students where nearly all answers are right */
    {"lme", "link = logit", "effects of students are checked by integration"},
    /* before: what a model learned of an item of one student told that student's later answers */
    {"rbm", "", HIDES},
    {"rtrbm", "", HIDES},
    {"dkt", "", HIDES},
    {"vae", "", HIDES},
    {"lme", "", HIDES},
    {"bkt", "", HIDES},
    {"ktm", "", HIDES},
    {"average", "", HIDES},
    /* before: it could be a rounding error, in units of which effects were too large */
    {"lme", "", "a standard deviation that a step takes to zero is exactly zero"},
    /* before: errors that grew after the first 1000 answers, and penalties of at least 0.01 */
    {"ktm", "student", "predictions for a student are closer to the most probable weights"},
};

int64_t numerics_revision(const char *kind)
{
    int64_t revision = 1;
    for (size_t c = 0; c < COUNT(changes); c++)
        revision += strcmp(changes[c].kind, kind) == 0;
    return revision;
}

bool numerics_is_newer(const char *kind, int64_t revision)
{
    return revision > numerics_revision(kind);
}

char *numerics_since(const char *kind, int64_t revision, const char *settings)
{
    char *list = NULL;
    int64_t current = 1;
    for (size_t c = 0; c < COUNT(changes); c++) {
        if (strcmp(changes[c].kind, kind) != 0 || ++current <= revision ||
            strstr(settings, changes[c].setting) == NULL)
            continue;
        char *longer =
            memory_text("%s%s%s", list ? list : "", list ? "; " : "", changes[c].change);
        memory_free(list);
        list = longer;
    }
    return list;
}
