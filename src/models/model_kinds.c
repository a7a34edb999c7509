/* The list of models. A new one is a folder here and its name in both places below. */
#include "learn/model.h"

extern const struct model_kind bkt_kind, blend_kind, dkt_kind, ktm_kind, lme_kind, rbm_kind,
    rtrbm_kind, vae_kind;

const struct model_kind *const model_kinds[] = {
    &rbm_kind, &rtrbm_kind, &dkt_kind, &vae_kind, &lme_kind, &bkt_kind, &ktm_kind, &blend_kind,
};
const size_t n_model_kinds = COUNT(model_kinds);
