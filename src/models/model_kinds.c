/* The list of models. A new one is a folder here and a line below. */
#include "learn/model.h"

#define FOR_ALL_KINDS(DO)                                                                      \
    DO(rbm)                                                                                    \
    DO(rtrbm)                                                                                  \
    DO(dkt)                                                                                    \
    DO(vae)                                                                                    \
    DO(lme)                                                                                    \
    DO(bkt)                                                                                    \
    DO(average)                                                                                \
    DO(ktm)                                                                                    \
    DO(blend)

#define DECLARE(name) extern const struct model_kind name##_kind;
#define LIST(name) &name##_kind,

FOR_ALL_KINDS(DECLARE)
const struct model_kind *const model_kinds[] = {FOR_ALL_KINDS(LIST)};
const size_t n_model_kinds = COUNT(model_kinds);
