/* The knowledge tracing machine: logistic regression and second-order factorization machines
 * over sparse features of an attempt (Rendle 2010; Vie and Kashima 2019; Gervet and others
 * 2020; Choffin and others 2019).
 *
 *     logit p = b + sum_j x_j w_j + sum_{j < l} x_j x_l v_j . v_l
 *
 * j runs over the features of the attempt: student, item, skills, counts of earlier attempts,
 * and columns of the data (see ktm_features.c). Without factors this is logistic regression,
 * and the known models are lists of features:
 *
 *     Rasch     student, item
 *     AFM       student, skill, attempts at the skill
 *     PFA       skill, wins and fails at it
 *     best-LR   PFA with the item, and with logarithms of the counts
 *     DAS3H     counts within time windows
 *
 *     tensor            shape      symbol
 *     bias              1          b
 *     FEATURE           rows       w, one number for each item, skill, student, ... (bins last)
 *     FEATURE_factors   rows, k    v
 *
 * The rows of all features are numbered consecutively. The bias is row 0, and students come
 * last: a rank needs only the rows of its own students in training, and none to predict
 * (ktm_student.c). A pass costs O(entries (1 + k)). */
#include "base/fail.h"
#include "base/memory.h"
#include "base/rng.h"
#include "kernels/rbm_rows.h"
#include "kernels/vec.h"
#include "models/ktm/ktm_internal.h"
#include <math.h>
#include <sleef.h>
#include <string.h>

#define AT(field) offsetof(struct ktm_options, field)
static const struct option settings[] = {
    {"features", OPTION_TEXT, AT(features),
     "item skill wins:log fails:log wins_skill:log fails_skill:log", 0, 0, NULL,
     "features that describe an attempt: words from the list of features below"},
    {"factors", OPTION_INTEGER, AT(factors), "0", 0, 1024, NULL,
     "factors per feature row for pairwise interactions (factorization machine); 0: logistic "
     "regression"},
    {"l2", OPTION_NUMBER, AT(l2), "1", 0, 1e12, NULL,
     "L2 penalty l2/2 w^2 on each weight, added to the sum of log-losses; l2 is 1 / variance "
     "of a normal prior"},
    {"l2_factors", OPTION_NUMBER, AT(l2_factors), "5", 0, 1e12, NULL,
     "L2 penalty on each factor, as l2"},
    {"scale", OPTION_NUMBER, AT(scale), "0.1", 0, 10, NULL,
     "standard deviation of the initial factors"},
    {"weights_first", OPTION_SWITCH, AT(weights_first), "no", 0, 0, NULL,
     "fit the weights alone until they converge, then the factors too; so validation can "
     "choose a model without factors"},
    {"products", OPTION_INTEGER, AT(products), "30", 1, 10000, NULL,
     "maximum number of conjugate gradient steps per epoch; an epoch is one step of Newton's "
     "method"},
    {"tolerance", OPTION_NUMBER, AT(tolerance), "1e-6", 0, 1, NULL,
     "training has converged when a Newton step is expected to lower the loss by less than "
     "this fraction"},
};

static const struct preset presets[] = {
    {"rasch", "Rasch model: student and item",
     "model.features = student item\nmodel.factors = 0\n"},
    {"afm", "additive factors model: student, skill, attempts at the skill",
     "model.features = student skill attempts_skill\nmodel.factors = 0\n"},
    {"pfa", "performance factors analysis: skill, correct and incorrect answers at it",
     "model.features = skill wins_skill fails_skill\nmodel.factors = 0\n"},
    {"bestlr", "best-LR: logistic regression on item, skill and logarithms of counts",
     "model.features = item skill wins:log fails:log wins_skill:log fails_skill:log\n"
     "model.factors = 0\n"},
    {"das3h",
     "student, item, skill, and how often and how well the skill was practised in the last "
     "hour, day, week, month and ever; for data with times",
     "model.features = student item skill attempts_skill:log wins_skill:log "
     "attempts_skill:within=3600:log wins_skill:within=3600:log "
     "attempts_skill:within=86400:log wins_skill:within=86400:log "
     "attempts_skill:within=604800:log wins_skill:within=604800:log "
     "attempts_skill:within=2592000:log wins_skill:within=2592000:log\n"
     "model.factors = 0\n"},
    {"fm", "factorization machine: student, item and skill, 8 factors",
     "model.features = student item skill\nmodel.factors = 8\nmodel.products = 10\n"
     "train.epochs = 50\ntrain.patience = 5\n"},
};

enum { PANEL_WEIGHTS, PANEL_BEFORE, PANEL_FACTORS };

/* What the rows of a feature belong to, one each; NULL: nothing with a name. */
static const char *rows_of(const struct ktm_feature *f)
{
    const bool named = f->what != KTM_STUDENT && f->what != KTM_LEVEL && f->n_each == 1;
    return named && f->by == KTM_OF_ITEM    ? "item"
           : named && f->by == KTM_OF_SKILL ? "skill"
                                            : NULL;
}

static enum status declare(struct model *model)
{
    const struct ktm_options *o = model->options;
    struct params *params = &model->params;
    struct ktm_design *design = model->shape;
    TRY(ktm_design_make(design, model));
    params_panel(params, 1, design->n_rows);
    if (o->factors > 0)
        params_panel(params, 1, (size_t)o->factors); /* row 0, the bias, has no factors */
    const struct tensor bias = {
        .name = "bias", .panel = PANEL_WEIGHTS, .n_columns = 1, .rank = 1, .shape = {1}};
    params_tensor(params, &bias);
    for (size_t j = 0; j < design->n; j++) {
        const struct ktm_feature *f = &design->list[j];
        struct tensor tensor = {.panel = PANEL_WEIGHTS,
                                .first_column = f->first_row,
                                .n_columns = f->n_rows,
                                .rank = 1,
                                .shape = {f->n_rows},
                                .decays = true};
        if (f->n_each > 1) {
            tensor.rank = 2;
            tensor.shape[0] = f->n_rows / f->n_each;
            tensor.shape[1] = f->n_each;
        }
        snprintf(tensor.name, sizeof tensor.name, "%s", f->name);
        params_tensor(params, &tensor);
        if (o->factors == 0)
            continue;
        tensor = (struct tensor){
            .panel = params_panel_of(params, rows_of(f), f->n_rows, (size_t)o->factors),
            .n_columns = (size_t)o->factors,
            .rank = 2,
            .shape = {f->n_rows, (uint64_t)o->factors},
            .decays = true};
        snprintf(tensor.name, sizeof tensor.name, "%s_factors", f->name);
        params_tensor(params, &tensor);
    }
    return OK;
}

struct fm_point ktm_point(const struct model *model)
{
    const struct ktm_options *o = model->options;
    const struct params *params = &model->params;
    const bool paired = o->factors > 0;
    return (struct fm_point){.w = params_rows(params, PANEL_WEIGHTS),
                             .v = paired ? params_rows(params, PANEL_BEFORE) : NULL,
                             .k = (size_t)o->factors,
                             .stride = paired ? params->panels[PANEL_BEFORE].stride : 0};
}

void ktm_scatter_factors(const struct model *model, uint64_t seed, real *flat)
{
    const struct ktm_options *o = model->options;
    for (size_t p = PANEL_FACTORS; p < model->params.n_panels; p++) {
        const struct rng rng = {.seed = seed, .purpose = RNG_INIT, .part = (uint32_t)p};
        const struct panel *panel = &model->params.panels[p];
        const size_t k = (size_t)o->factors;
        for (size_t r = 0; r < panel->n_rows; r++)
            for (size_t c = 0; c < k; c++)
                flat[panel->offset + r * panel->stride + c] =
                    (real)(o->scale * rng_normal(&rng, (uint32_t)(r * k + c)));
    }
}

/* The bias starts at the log-odds of all outcomes, weights at zero, factors at random or, if
 * they have to wait for the weights, at zero. */
static void init(struct model *model, uint64_t seed, const struct item_counts *counts)
{
    const struct ktm_options *o = model->options;
    double right = 0.5, wrong = 0.5;
    for (size_t i = 0; i < counts->n_items; i++) {
        right += (double)counts->right[i];
        wrong += (double)counts->wrong[i];
    }
    memset(model->params.value, 0, model->params.n * sizeof(real));
    ktm_point(model).w[0] = (real)Sleef_cinz_logd1_u10purec(right / wrong);
    if (!o->weights_first)
        ktm_scatter_factors(model, seed, model->params.value);
}

void ktm_reserve(const struct model *model, struct ktm_work *work, size_t n)
{
    if (n <= work->room && work->score != NULL)
        return;
    memory_free(work->score);
    memory_free(work->own_score);
    memory_free(work->sum);
    work->room = n;
    work->score = NEW(real, size_padded(n));
    work->own_score = NEW(real, size_padded(n));
    work->sum = NEW_SCRATCH(real, n * ktm_point(model).stride);
    ktm_walk_reserve(&work->walk, n);
}

static void *attach(const struct model *model, const struct shard *shard, enum model_use use)
{
    (void)use;
    struct ktm_work *work = NEW(struct ktm_work, 1);
    work->shard = shard;
    work->design = ktm_design(model);
    size_t longest = 0;
    for (size_t s = 0; s < shard->n_students; s++)
        longest = size_max(longest, shard->first[s + 1] - shard->first[s]);
    ktm_walk_create(&work->walk, work->design, model, longest);
    ktm_reserve(model, work, longest);
    if (work->design->has_students) {
        const struct ktm_feature *students = &work->design->list[work->design->n - 1];
        work->student = ktm_student_create(ktm_point(model).k, students->l2,
                                           students->l2_factors, KTM_EXACT);
    }
    return work;
}

static void detach(void *memory)
{
    struct ktm_work *work = memory;
    ktm_learner_free(work->learner);
    ktm_walk_free(&work->walk);
    ktm_student_free(work->student);
    memory_free(work->score);
    memory_free(work->own_score);
    memory_free(work->sum);
    memory_free(work);
}

int64_t ktm_count_training(const struct shard *shard, size_t s)
{
    int64_t n = 0;
    for (uint64_t t = shard->first[s]; t < shard->first[s + 1]; t++)
        n += mark_trains(shard->mark[t]);
    return n;
}

static void training(const void *memory, bool *has_training, int64_t *n_attempts)
{
    const struct shard *shard = ((const struct ktm_work *)memory)->shard;
    *n_attempts = 0;
    for (size_t s = 0; s < shard->n_students; s++) {
        const int64_t n = ktm_count_training(shard, s);
        has_training[s] = n > 0;
        *n_attempts += n;
    }
}

/* The number of attempts up to the last one requested. */
static size_t count_asked(const uint8_t *mark, size_t n, unsigned splits)
{
    while (n > 0 && !(splits >> mark_split(mark[n - 1]) & 1))
        n--;
    return n;
}

/* Adds the student's own part to the scores of the attempts of a split. It is found again at
 * each of them and at no others, so the result does not depend on what else is requested. */
static void follow(struct ktm_work *work, size_t s, enum split split, size_t stride)
{
    const uint8_t *mark = work->shard->mark + work->shard->first[s];
    const size_t n = count_asked(mark, work->walk.attempts.n, 1u << split);
    ktm_student_begin(work->student);
    for (size_t t = 0; t < n; t++) {
        const double offset = (double)work->score[t];
        const real *sum = work->sum + t * stride;
        if (mark_split(mark[t]) == split)
            work->own_score[t] = (real)(offset + ktm_student_score(work->student, sum));
        if (mark_is_shown(mark[t]) && t + 1 < n)
            ktm_student_show(work->student, offset, sum, mark_outcome(mark[t]) == CORRECT);
    }
}

static void predict(const struct model *model, void *memory, size_t s, unsigned splits, real *p)
{
    struct ktm_work *work = memory;
    const struct shard *shard = work->shard;
    const uint8_t *mark = shard->mark + shard->first[s];
    if (count_asked(mark, shard->first[s + 1] - shard->first[s], splits) == 0)
        return;
    const struct fm_point point = ktm_point(model);
    const bool follows = work->student != NULL;
    const unsigned walked = follows ? (1u << N_SPLITS) - 1 : splits;
    ktm_walk_student(&work->walk, shard, s, walked, false, 0);
    fm_kernels->score(&work->walk.attempts, &point, work->sum, work->score);
    for (unsigned split = 0; follows && split < N_SPLITS; split++)
        if (splits >> split & 1)
            follow(work, s, (enum split)split, point.stride);
    real *score = follows ? work->own_score : work->score;
    vec->sigmoid(score, size_padded(work->walk.attempts.n));
    for (size_t a = 0; a < work->walk.attempts.n; a++)
        if (splits >> mark_split(mark[work->walk.place[a]]) & 1)
            p[work->walk.place[a]] = score[a];
}

/* Tables: a summary of each feature, and the weights by item, by skill and by level;
 * and what counts add. */
static bool is_by(const struct ktm_feature *f, enum ktm_of by)
{
    return f->what != KTM_STUDENT && f->by == by && f->n_each == 1;
}

static void rows_table(const struct model *model, const struct ktm_design *design,
                       enum ktm_of by, struct table *table)
{
    char columns[KTM_MOST_FEATURES * 50] = "";
    const char *row = by == KTM_OF_ITEM ? "item" : "skill";
    size_t n_rows = 0, column = 0;
    for (size_t j = 0; j < design->n; j++)
        if (is_by(&design->list[j], by)) {
            snprintf(columns + strlen(columns), sizeof columns - strlen(columns), "%s%s",
                     n_rows > 0 ? " " : "",
                     strcmp(design->list[j].name, row) == 0 ? "weight" : design->list[j].name);
            n_rows = design->list[j].n_rows;
        }
    table_create(table, by == KTM_OF_ITEM ? "items" : "skills", row, n_rows, columns);
    table->caption = by == KTM_OF_ITEM ? "Weights of items on the logit scale: above zero "
                                         "raises the chance of a correct answer."
                                       : "Weights of skills on the logit scale: above zero "
                                         "raises the chance of a correct answer.";
    for (size_t j = 0; j < design->n; j++) {
        const struct ktm_feature *f = &design->list[j];
        if (!is_by(f, by))
            continue;
        for (size_t r = 0; r < n_rows; r++)
            table_row(table, r)[column] = (double)ktm_point(model).w[f->first_row + r];
        column++;
    }
}

static void features_table(const struct model *model, const struct ktm_design *design,
                           struct table *table)
{
    table_create(table, "features", "feature", design->n,
                 "rows l2 mean spread least most factors");
    table->caption = "The features of an attempt and their weights on the logit scale: "
                     "number of weights (rows), L2 penalty (l2), mean, standard deviation "
                     "(spread), smallest (least), largest (most), and root mean square "
                     "length of the factors.";
    const struct fm_point point = ktm_point(model);
    for (size_t j = 0; j < design->n; j++) {
        const struct ktm_feature *f = &design->list[j];
        names_add(&table->row_names, f->name, strlen(f->name));
        double sum = 0, squares = 0, least = INFINITY, most = -INFINITY, factors = 0;
        for (size_t r = f->first_row; r < f->first_row + f->n_rows; r++) {
            const double w = (double)point.w[r];
            sum += w;
            squares += w * w;
            least = fmin(least, w);
            most = fmax(most, w);
            for (size_t c = 0; c < point.k; c++)
                factors += (double)point.v[r * point.stride + c] *
                           (double)point.v[r * point.stride + c];
        }
        const double n = (double)f->n_rows, mean = sum / n;
        const double cells[] = {n,
                                f->l2,
                                mean,
                                sqrt(fmax(0, squares / n - mean * mean)),
                                least,
                                most,
                                point.k > 0 ? sqrt(factors / n) : NAN};
        memcpy(table_row(table, j), cells, sizeof cells);
    }
}

/* Levels of all factors of attempts, one factor after the other. */
static void levels_table(const struct model *model, const struct ktm_design *design,
                         struct table *table)
{
    size_t n = 0, row = 0;
    for (size_t j = 0; j < design->n; j++)
        n += design->list[j].what == KTM_LEVEL ? design->list[j].n_rows : 0;
    table_create(table, "levels", "level", n, "weight");
    table->caption = "Weights of the levels of each factor on the logit scale.";
    for (size_t j = 0; j < design->n; j++) {
        const struct ktm_feature *f = &design->list[j];
        if (f->what != KTM_LEVEL)
            continue;
        model_name_levels(model, f->name + strlen("factor_"), table);
        for (size_t l = 0; l < f->n_rows; l++, row++)
            table_row(table, row)[0] = (double)ktm_point(model).w[f->first_row + l];
    }
}

/* What counts add to the log-odds after n answers of a kind in a row, at one item with one skill:
 * the mean weight of each count times the count as the feature has it; and, in the first two
 * columns, the sums over all counts of which right answers, or wrong ones, are a part. */
static void counts_table(const struct model *model, const struct ktm_design *design,
                         struct table *table)
{
    enum { AFTER_RIGHT, AFTER_WRONG, FIRST };
    static const int rows[] = {1, 2, 3, 5, 10, 20};
    char columns[(KTM_MOST_FEATURES + 1) * 50] = "right wrong";
    size_t column = FIRST;
    for (size_t j = 0; j < design->n; j++)
        if (ktm_feature_is_count(&design->list[j])) {
            snprintf(columns + strlen(columns), sizeof columns - strlen(columns), " %s",
                     design->list[j].name);
            column++;
        }
    table_create(table, "counts", "count", column > FIRST ? COUNT(rows) : 0, columns);
    table->caption = "What earlier answers add to the log-odds of the next one, after so many "
                     "right or so many wrong ones in a row at an item with one skill; and the "
                     "part of each feature in that, as the mean over skills or items.";
    for (size_t r = 0; r < table->n_rows; r++) {
        char name[16];
        snprintf(name, sizeof name, "%d", rows[r]);
        names_add(&table->row_names, name, strlen(name));
    }
    column = FIRST;
    for (size_t j = 0; j < design->n; j++) {
        const struct ktm_feature *f = &design->list[j];
        double sum = 0, count = 0;
        if (!ktm_feature_is_count(f))
            continue;
        for (size_t r = 0; r < f->n_rows; r++)
            sum += (double)ktm_point(model).w[f->first_row + r];
        for (int n = 1, r = 0; r < (int)COUNT(rows); n++) {
            count = f->decay * count + 1;
            if (n != rows[r])
                continue;
            double *row = table_row(table, (size_t)r++);
            row[column] = sum / (double)f->n_rows *
                          (f->value == KTM_LOG ? Sleef_cinz_log1pd1_u10purec(count) : count);
            row[AFTER_RIGHT] += f->what != KTM_FAILS ? row[column] : 0;
            row[AFTER_WRONG] += f->what != KTM_WINS ? row[column] : 0;
        }
        column++;
    }
}

static void make_table(const struct model *model, size_t k, struct table *table)
{
    const struct ktm_design *design = ktm_design(model);
    if (k == 0)
        features_table(model, design, table);
    else if (k == 3)
        levels_table(model, design, table);
    else if (k == 4)
        counts_table(model, design, table);
    else
        rows_table(model, design, k == 1 ? KTM_OF_ITEM : KTM_OF_SKILL, table);
}

const struct model_kind ktm_kind = {
    .name = "ktm",
    .title = "knowledge tracing machine: logistic regression or a factorization machine over "
             "named features",
    .source =
        "Rendle 2010; Vie and Kashima 2019; Choffin and others 2019; Gervet and others 2020",
    .loss = "log-loss of the training answers, in nats per answer",
    .options = settings,
    .n_options = COUNT(settings),
    .options_size = sizeof(struct ktm_options),
    .shape_size = sizeof(struct ktm_design),
    .presets = presets,
    .n_presets = COUNT(presets),
    .more_help = ktm_design_help,
    .declare = declare,
    .init = init,
    .attach = attach,
    .detach = detach,
    .training = training,
    .predict = predict,
    .setup = {.uses = ktm_design_uses},
    .fit = {.learn = ktm_learn, .keeps_best = true},
    .view = {.n_tables = 5, .table = make_table, .rasch = ktm_rasch},
    .live = {.begin = ktm_live_begin, .tell = ktm_live_tell, .ask = ktm_live_ask},
};
