/* The same settings and data give the same bits with one version of cohort, not with all: now
 * and then a model learns or predicts by other arithmetic, and a run that was begun before and
 * is continued after is what neither version would have made of it alone.
 *
 * Whoever changes bits adds a line at the end of the table. The revision of a kind is 1 and one
 * more for each of its lines. */
#include "learn/numerics.h"
#include "base/memory.h"
#include <string.h>

static const struct {
    const char *kind;
    const char *setting; /* the change matters only where this is part of the settings */
    const char *change;
} changes[] = {
    /* sums of products came in the order of the CPU's BLAS kernel */
    {"rtrbm", "", "sums of products have an order of their own"},
    {"dkt", "", "sums of products have an order of their own"},
    {"vae", "", "sums of products have an order of their own"},
    /* the preconditioner was factored by LAPACK */
    {"ktm", "", "the preconditioner is factored by code of its own"},
    /* the trained row of a student knew later answers; validation decides on the best epoch */
    {"ktm", "student", "students are predicted from what was shown before"},
    /* the chance of not knowing a skill was kept above 1e-32 */
    {"bkt", "", "odds have no floor"},
    /* log L_kk had no bounds, and the work of a prediction had none */
    {"vae", "", "the posterior's width is bounded"},
    /* the source's rates made them diverge */
    {"rbm", "hidden_kind = gaussian", "gaussian units learn at other rates"},
    {"rbm", "hidden_kind = relu", "relu units learn at other rates"},
    /* frames were predicted by mean field */
    {"rtrbm", "dense = yes", "whole frames are predicted by Gibbs chains"},
    /* the effect of a session knew its student's later answers */
    {"lme", "", "levels of one student are not used in predictions"},
    {"ktm", "", "levels of one student are not used in predictions"},
};

int64_t numerics_revision(const char *kind)
{
    int64_t revision = 1;
    for (size_t c = 0; c < COUNT(changes); c++)
        revision += strcmp(changes[c].kind, kind) == 0;
    return revision;
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
