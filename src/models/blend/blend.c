/* A blend of trained models. Member m predicts p_m(t), and the blend predicts
 *
 *     method = convex     p = sum_m w_m p_m,  w_m >= 0,  sum_m w_m = 1
 *     method = logistic   p = sigma(c + sum_m w_m logit p_m)
 *
 * `weights` holds w (members) and, for logistic, `intercept` holds c. The blend has copies of
 * the members' tensors (tensor W of member 2 is called 2_W), so one checkpoint is enough to
 * predict. The members' settings are the JSON text model.members: a list of objects with the
 * keys and values of [model] as strings. A member works on its part of the blend's flat vector,
 * which has the layout of the member's own. `cohort blend` makes blends (src/runs/blending.c).
 * They are not trained further. */
#include "base/fail.h"
#include "base/memory.h"
#include "learn/model.h"
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CONVEX, LOGISTIC };
static const char *const methods[] = {"convex", "logistic", NULL};
enum { MOST_MEMBERS = 16 };

struct member {
    struct model *model;
    struct config *config; /* owns the strings of its options */
    size_t offset;         /* of its parameters in the blend's */
};

struct options {
    int method;
    const char *members;
};

/* The members, from the settings. */
struct shape {
    size_t n;
    struct member list[MOST_MEMBERS];
};

static const struct option table[] = {
    {"method", OPTION_CHOICE, offsetof(struct options, method), "convex", 0, 0, methods,
     "convex: weighted mean of probabilities; logistic: weighted sum of logits plus an "
     "intercept"},
    {"members", OPTION_TEXT, offsetof(struct options, members), "[]", 0, 0, NULL,
     "the [model] settings of the members, as a JSON list"},
};

static enum status open_member(struct member *member, const json_t *settings, size_t m)
{
    member->config = config_create();
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)settings, key, value)
    {
        if (!json_is_string(value))
            return fail(BAD_DATA, "model.members: '%s' of member %zu is not a string", key, m);
        char *line = memory_text("model.%s=%s", key, json_string_value(value));
        enum status status = config_set(member->config, line, "model.members");
        memory_free(line);
        TRY(status);
    }
    const struct model_kind *kind = NULL;
    TRY(model_choose(member->config, &kind));
    if (kind->made_by != NULL)
        return fail(BAD_USER,
                    "model.members: member %zu is a %s, which cannot be part of a blend; "
                    "blend its own members instead",
                    m, kind->name);
    member->model = model_create(kind);
    struct model_names names;
    const struct option_group groups[] = {
        {"model", model_name_options, COUNT(model_name_options), &names},
        {"model", kind->options, kind->n_options, member->model->options},
    };
    return config_resolve_some(member->config, groups, COUNT(groups));
}

/* Adds the member's panels and tensors to the blend, in the same layout. */
static void adopt(struct model *model, struct member *member, size_t m)
{
    struct params *own = &member->model->params;
    member->offset = model->params.n;
    const size_t first = model->params.n_panels;
    for (size_t p = 0; p < own->n_panels; p++)
        params_panel_of(&model->params, own->panels[p].of, own->panels[p].n_rows,
                        own->panels[p].stride);
    for (size_t t = 0; t < own->n_tensors; t++) {
        struct tensor tensor = own->tensors[t];
        snprintf(tensor.name, sizeof tensor.name, "%zu_%.56s", m, own->tensors[t].name);
        tensor.panel += first;
        (own->is_logit[t]      ? params_logits
         : own->is_examined[t] ? params_examined
                               : params_tensor)(&model->params, &tensor);
    }
    memory_free(own->value);
    own->value = NULL;
}

static enum status declare_members(struct model *model, const json_t *list)
{
    const struct options *o = model->options;
    struct shape *shape = model->shape;
    const size_t n = json_array_size(list);
    if (n < 1 || n > MOST_MEMBERS)
        return fail(BAD_USER,
                    "model.members has %zu members, but 1 to %d are supported; make blends "
                    "with `cohort blend RUN...`",
                    n, MOST_MEMBERS);
    struct params *params = &model->params;
    const size_t panel = params_panel(params, 1, n);
    params_tensor(
        params,
        &(struct tensor){
            .name = "weights", .panel = panel, .n_columns = n, .rank = 1, .shape = {n}});
    if (o->method == LOGISTIC) {
        const size_t intercept = params_panel(params, 1, 1);
        params_tensor(params, &(struct tensor){.name = "intercept",
                                               .panel = intercept,
                                               .n_columns = 1,
                                               .rank = 1,
                                               .shape = {1}});
    }
    for (size_t m = 0; m < n; m++) {
        struct member *member = &shape->list[shape->n++];
        TRY(open_member(member, json_array_get(list, m), m + 1));
        member->model->covariates = model->covariates;
        member->model->most_params = model->most_params;
        TRY(model_declare(member->model, model->dataset, model->n_students, model->n_items,
                          model->n_skills));
        if (params->n_tensors + member->model->params.n_tensors > MOST_TENSORS)
            return fail(BAD_USER,
                        "the members have more than %d tensors in total; blend "
                        "fewer models",
                        MOST_TENSORS);
        adopt(model, member, m + 1);
    }
    return OK;
}

static enum status declare(struct model *model)
{
    const struct options *o = model->options;
    json_error_t error;
    json_t *list = json_loads(o->members, 0, &error);
    if (!json_is_array(list)) {
        json_decref(list);
        return fail(BAD_USER, "model.members is not a JSON list: %s", error.text);
    }
    enum status status = declare_members(model, list);
    json_decref(list);
    return status;
}

static unsigned uses(const struct model *model)
{
    const struct shape *shape = model->shape;
    unsigned all = 0;
    for (size_t m = 0; m < shape->n; m++)
        all |= model_uses(shape->list[m].model);
    return all;
}

static void release(struct model *model)
{
    struct shape *shape = model->shape;
    for (size_t m = 0; m < shape->n; m++) {
        if (shape->list[m].model != NULL)
            shape->list[m].model->params.value = NULL; /* owned by the blend */
        model_destroy(shape->list[m].model);
        config_destroy(shape->list[m].config);
    }
}

static void init(struct model *model, uint64_t seed, const struct item_counts *counts)
{
    const struct shape *shape = model->shape;
    for (size_t m = 0; m < shape->n; m++) {
        struct model *member = shape->list[m].model;
        member->params.value = model->params.value + shape->list[m].offset;
        member->kind->init(member, seed, counts);
        model->params.value[m] = (real)(1.0 / (double)shape->n);
    }
}

struct work {
    const struct shape *shape;
    const struct shard *shard;
    void *members[MOST_MEMBERS];
    real *p; /* n members x longest student */
    size_t longest;
};

static void *attach(const struct model *model, const struct shard *shard, enum model_use use)
{
    const struct shape *shape = model->shape;
    struct work *work = NEW(struct work, 1);
    work->shape = shape;
    work->shard = shard;
    for (size_t s = 0; s < shard->n_students; s++)
        work->longest = size_max(work->longest, shard->first[s + 1] - shard->first[s]);
    work->p = NEW(real, shape->n * work->longest);
    for (size_t m = 0; m < shape->n; m++) {
        struct model *member = shape->list[m].model;
        member->params.value = model->params.value + shape->list[m].offset;
        work->members[m] = member->kind->attach(member, shard, use);
    }
    return work;
}

static void detach(void *arg)
{
    struct work *work = arg;
    for (size_t m = 0; m < work->shape->n; m++)
        work->shape->list[m].model->kind->detach(work->members[m]);
    memory_free(work->p);
    memory_free(work);
}

static double logit(double p)
{
    const double least = 1e-6;
    const double inside = fmin(fmax(p, least), 1 - least);
    return log(inside / (1 - inside));
}

/* The blend of the members' predictions of one attempt, which are `stride` numbers apart. */
static real combine(const struct model *model, const real *of_member, size_t stride)
{
    const struct options *o = model->options;
    const struct shape *shape = model->shape;
    const real *weights = model->params.value;
    double sum = o->method == LOGISTIC ? (double)*params_rows(&model->params, 1) : 0;
    for (size_t m = 0; m < shape->n; m++) {
        const double own = (double)of_member[m * stride];
        sum += (double)weights[m] * (o->method == LOGISTIC ? logit(own) : own);
    }
    if (o->method == LOGISTIC)
        sum = 1 / (1 + exp(-sum));
    return (real)fmin(fmax(sum, 0), 1);
}

static void predict(const struct model *model, void *arg, size_t s, unsigned splits, real *p)
{
    struct work *work = arg;
    const struct shape *shape = work->shape;
    const struct shard *shard = work->shard;
    const uint64_t start = shard->first[s], end = shard->first[s + 1];
    for (size_t m = 0; m < shape->n; m++)
        shape->list[m].model->kind->predict(shape->list[m].model, work->members[m], s, splits,
                                            work->p + m * work->longest);
    for (uint64_t t = start; t < end; t++)
        if (splits >> mark_split(shard->mark[t]) & 1)
            p[t - start] = combine(model, work->p + (t - start), work->longest);
}

/* Fills p with a function of the members' chances. */
static void combine_many(const struct model *model, struct work *work, const uint32_t *students,
                         size_t n, unsigned splits,
                         real (*function)(const struct model *, const real *, size_t), real *p)
{
    const struct shape *shape = work->shape;
    const struct shard *shard = work->shard;
    real *of_members = NEW_SCRATCH(real, shape->n * shard->n_attempts);
    for (size_t m = 0; m < shape->n; m++)
        model_predict(shape->list[m].model, work->members[m], shard, students, n, splits,
                      of_members + m * shard->n_attempts);
    for (size_t i = 0; i < n; i++)
        for (uint64_t t = shard->first[students[i]]; t < shard->first[students[i] + 1]; t++)
            if (splits >> mark_split(shard->mark[t]) & 1)
                p[t] = function(model, of_members + t, shard->n_attempts);
    memory_free(of_members);
}

static void predict_many(const struct model *model, void *work, const uint32_t *students,
                         size_t n, unsigned splits, real *p)
{
    combine_many(model, work, students, n, splits, combine, p);
}

/* How far the members' chances are apart: their standard deviation, weighted as in the blend
 * (by the sizes of weights, of which a logistic blend may have negative ones). */
static real disagreement(const struct model *model, const real *of_member, size_t stride)
{
    const struct shape *shape = model->shape;
    double all = 0, mean = 0, sum = 0;
    for (size_t m = 0; m < shape->n; m++) {
        const double weight = fabs((double)model->params.value[m]);
        all += weight;
        mean += weight * (double)of_member[m * stride];
    }
    if (!(all > 0))
        return 0;
    mean /= all;
    for (size_t m = 0; m < shape->n; m++) {
        const double away = (double)of_member[m * stride] - mean;
        sum += fabs((double)model->params.value[m]) * away * away;
    }
    return (real)sqrt(sum / all);
}

static void deviation(const struct model *model, void *work, const uint32_t *students, size_t n,
                      unsigned splits, real *deviations)
{
    combine_many(model, work, students, n, splits, disagreement, deviations);
}

static bool live_part(const struct model *model, void *arg, size_t m, const struct model **part,
                      void **part_work)
{
    const struct shape *shape = model->shape;
    if (m >= shape->n)
        return false;
    *part = shape->list[m].model;
    *part_work = ((struct work *)arg)->members[m];
    return true;
}

static void members_table(const struct model *model, size_t k, struct table *people)
{
    (void)k;
    const struct shape *shape = model->shape;
    table_create(people, "members", "member", shape->n, "weight parameters");
    people->caption = "The models in the blend and the weights of their predictions.";
    for (size_t m = 0; m < shape->n; m++) {
        const struct model *member = shape->list[m].model;
        char name[64];
        snprintf(name, sizeof name, "%zu %s", m + 1, member->kind->name);
        names_add(&people->row_names, name, strlen(name));
        table_row(people, m)[0] = (double)model->params.value[m];
        table_row(people, m)[1] = (double)params_count(&member->params);
    }
}

extern const struct model_kind blend_kind;
const struct model_kind blend_kind = {
    .name = "blend",
    .title = "weighted combination of trained models",
    .source = "Wolpert 1992; Breiman 1996",
    .loss = "log-loss of the validation attempts, in nats per answer",
    .options = table,
    .n_options = COUNT(table),
    .options_size = sizeof(struct options),
    .shape_size = sizeof(struct shape),
    .made_by = "cohort blend RUN... -o DIRECTORY",
    .declare = declare,
    .init = init,
    .attach = attach,
    .detach = detach,
    .predict = predict,
    .setup = {.uses = uses, .release = release},
    .speed = {.predict_many = predict_many},
    .view = {.n_tables = 1, .table = members_table, .deviation = deviation},
    .live = {.part = live_part, .combine = combine},
};
