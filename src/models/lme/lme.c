/* Mixed-effects regression with crossed random effects, by Laplace's method.
 *
 *     eta_a = x_a . beta + b_student(a) + b_item(a) (+ b_group(a) + b_skills(a) + b_teacher(a))
 *
 *     link = logit:      P(correct) = sigma(eta)
 *     link = identity:   outcome ~ N(eta, sigma_e^2)
 *
 *     b = sigma_f u,   u ~ N(0, 1),   one sigma_f for each factor f
 *
 * The likelihood of (beta, sigma) is an integral over all random effects. Laplace's
 * approximation evaluates it at their mode, where H = I + Lambda Z^T W Z Lambda is the
 * curvature:
 *
 *     -2 log L = sum over attempts of -2 log P(outcome)  +  u^T u  +  log det H
 *
 * This is what lme4::glmer (nAGQ = 1) minimises. It is exact for link = identity (maximum
 * likelihood, not REML). A standard deviation may be zero: H is then the identity there, and
 * the deviance is a smooth, even function of sigma.
 *
 *     tensor                  shape      symbol
 *     fixed, fixed_error      fixed      beta, standard errors
 *     sd                      factors    |sigma| of student, each factor, and the residual
 *     item, item_error        items      b_item, its conditional standard deviation
 *     group, group_error      items      those of the item's group
 *     skill, skill_error      skills
 *     factor_NAME, ..._error  levels     those of a factor of attempts: a teacher, a session
 *     total                   items      sum of all effects of an item, used to predict
 *     search                  n, 2       the state of the search: numbers, rounding errors
 *
 * H is diagonal in the levels of any one factor. So the larger of the two factors students and
 * items is eliminated (its levels are the units). Each unit adds a small outer product to the
 * dense matrix over the columns, which are the levels of the other factors. The matrix is
 * distributed over a grid of ranks (scalapack.h). A Newton step costs
 *
 *     sum over units of (distinct columns)^2  +  columns^3 / 3
 *
 * Training is a search over beta and sigma with exact derivatives. An epoch is one point of it,
 * and the last epoch is the result. Where nearly all answers are right, the approximation fails
 * and invents effects of students; the search notices it and continues without (lme_check.c).
 *
 * A student's effect is not a parameter: it is the mode given what was shown before. */
#include "base/fail.h"
#include "base/memory.h"
#include "models/lme/lme_internal.h"
#include <math.h>
#include <sleef.h>
#include <string.h>

static const char *const factor_names[] = {"student", "item", "group", "skill"};
static const char *const fixed_names[] = {"intercept", "position", "practice"};
static const char *const links[] = {"logit", "identity", NULL};
static const char *const eliminates[] = {"auto", "student", "item", NULL};

#define AT(field) offsetof(struct lme_options, field)
static const struct option option_table[] = {
    {"link", OPTION_CHOICE, AT(link), "logit", 0, 0, links,
     "logit: logistic mixed model; identity: linear mixed model of the outcomes 0 and 1"},
    {"factors", OPTION_TEXT, AT(factors), "item", 0, 0, NULL,
     "factors with random effects besides the student: item, group (of the item), skill, and "
     "factors named by `import --factors`; separate several by spaces"},
    {"fixed", OPTION_TEXT, AT(fixed), "", 0, 0, NULL,
     "fixed effects besides the intercept: position (log of 1 + earlier attempts), practice "
     "(log of 1 + earlier attempts at this item), and covariates named by `import "
     "--covariates`; separate several by spaces"},
    {"eliminate", OPTION_CHOICE, AT(eliminate), "auto", 0, 0, eliminates,
     "which random effects to eliminate before building the dense matrix; auto: students or "
     "items, whichever are more numerous"},
    {"grid", OPTION_TEXT, AT(grid), "auto", 0, 0, NULL,
     "grid of ranks that holds the dense matrix, as RxC: results are bit-identical for the "
     "same grid at any number of ranks; auto: one rank below order 2000, otherwise all"},
    {"tolerance", OPTION_NUMBER, AT(tolerance), "1e-6", 1e-12, 1, NULL,
     "training has converged when a step is expected to lower the deviance by less than this"},
};

/* The next of the words separated by spaces; false at the end. A word that is too long is cut,
 * and will not be found. */
static bool next_word(const char **text, char word[48])
{
    *text += strspn(*text, " ");
    const size_t length = strcspn(*text, " ");
    snprintf(word, 48, "%.*s", (int)length, *text);
    *text += length;
    return length > 0;
}

/* The names that come from the data, to append to the built-in words: ", a, b". */
static void list_covariates(const struct covariates *covariates, bool factors, char list[256])
{
    list[0] = '\0';
    for (size_t k = 0; k < covariates->names.n; k++)
        if ((covariates_n_levels(covariates, k) > 0) == factors)
            snprintf(list + strlen(list), 256 - strlen(list), ", %s",
                     names_get(&covariates->names, k));
}

/* The covariate called `name`, which must be a factor or a number, in the current data; without
 * data, in the model. */
static enum status find_covariate(const struct model *model, const char *name, bool is_factor,
                                  size_t *found)
{
    const struct covariates *known = model->covariates;
    const size_t k = covariates_find(known, name);
    char list[256];
    list_covariates(known, is_factor, list);
    if (k == COVARIATES_NONE || (covariates_n_levels(known, k) > 0) != is_factor)
        return fail(
            BAD_USER,
            "model.%s: '%s' is not a %s of the data; choices: %s%s (add %s with import --%s)",
            is_factor ? "factors" : "fixed", name, is_factor ? "factor" : "covariate",
            is_factor ? "item, group, skill" : "position, practice", list,
            is_factor ? "factors" : "covariates", is_factor ? "factors" : "covariates");
    return model_column(model, k, found);
}

/* One word of model.factors. */
static enum status find_factor(const struct model *model, struct lme_factor *factor)
{
    if (strcmp(factor->name, "student") == 0)
        return fail(BAD_USER, "model.factors names student, but students always have random "
                              "effects; remove it, for example model.factors=item");
    factor->kind = FACTOR_ITEM;
    while (factor->kind < FACTOR_COVARIATE &&
           strcmp(factor_names[factor->kind], factor->name) != 0)
        factor->kind++;
    /* without data the number of groups does not matter: their effects are listed by item */
    const size_t n_groups = model->dataset != NULL ? model->dataset->n_groups : 1;
    if (factor->kind == FACTOR_COVARIATE) {
        TRY(find_covariate(model, factor->name, true, &factor->covariate));
        const size_t k = covariates_find(model->covariates, factor->name);
        factor->n = covariates_n_levels(model->covariates, k);
        factor->own = covariates_own(model->covariates, k);
        return OK;
    }
    factor->n = factor->kind == FACTOR_ITEM    ? model->n_items
                : factor->kind == FACTOR_GROUP ? n_groups
                                               : model->n_skills;
    if (factor->n == 0)
        return fail(BAD_USER,
                    "model.factors names %s, but the items of the data set have no %ss; "
                    "import them with --%s, or remove it",
                    factor->name, factor->name,
                    factor->kind == FACTOR_GROUP ? "group" : "skills");
    return OK;
}

/* Errors are stored as factor_NAME_error, which must not be the effects of another factor. */
static enum status check_tensors(const struct lme_factor *factor, const char *other)
{
    const char *name = factor->name;
    const size_t n = strlen(name);
    if (factor->kind != FACTOR_COVARIATE || strncmp(other, name, n) != 0 ||
        strcmp(other + n, "_error") != 0)
        return OK;
    return fail(BAD_USER,
                "model.factors: the effects of '%s' would have the same name as the errors "
                "of '%s'; import it under another name, for example --factors other=COLUMN",
                other, name);
}

/* The student and the words of model.factors. */
static enum status find_factors(const struct model *model, struct lme_shape *shape)
{
    const struct lme_options *o = model->options;
    shape->factors[shape->n_factors++] =
        (struct lme_factor){.kind = FACTOR_STUDENT, .name = "student", .n = model->n_students};
    const char *text = o->factors;
    for (struct lme_factor factor = {0}; next_word(&text, factor.name);) {
        TRY(find_factor(model, &factor));
        for (size_t f = 1; f < shape->n_factors; f++) {
            if (strcmp(shape->factors[f].name, factor.name) == 0)
                return fail(BAD_USER, "model.factors names '%s' twice; remove one",
                            factor.name);
            TRY(check_tensors(&shape->factors[f], factor.name));
            TRY(check_tensors(&factor, shape->factors[f].name));
        }
        if (shape->n_factors == MOST_FACTORS)
            return fail(BAD_USER, "model.factors names more than %d factors", MOST_FACTORS - 1);
        shape->factors[shape->n_factors++] = factor;
    }
    if (shape->n_factors == 1)
        return fail(BAD_USER, "model.factors is empty; name at least one, for example "
                              "model.factors=item");
    return OK;
}

/* Chooses the units; the columns are the levels of all other factors. */
static enum status choose_unit(const struct model *model, struct lme_shape *shape)
{
    const struct lme_options *o = model->options;
    for (size_t f = 1; f < shape->n_factors; f++)
        if (shape->factors[f].kind == FACTOR_ITEM &&
            (o->eliminate == ELIMINATE_ITEM ||
             (o->eliminate == ELIMINATE_AUTO && model->n_items > model->n_students)))
            shape->unit = f;
    if (o->eliminate == ELIMINATE_ITEM && shape->unit == 0)
        return fail(BAD_USER, "model.eliminate = item, but items are not among "
                              "model.factors; add item there, or use model.eliminate=auto");
    for (size_t f = 0; f < shape->n_factors; f++)
        if (f != shape->unit) {
            shape->factors[f].first = shape->n_columns;
            shape->n_columns += shape->factors[f].n;
        }
    return OK;
}

/* The intercept and the words of model.fixed. */
static enum status find_fixed(const struct model *model, struct lme_shape *shape)
{
    const struct lme_options *o = model->options;
    shape->fixed[shape->n_fixed++] = (struct lme_fixed){.name = "intercept"};
    const char *text = o->fixed;
    for (struct lme_fixed fixed = {0}; next_word(&text, fixed.name);) {
        fixed.kind = FIXED_COVARIATE;
        for (int k = FIXED_POSITION; k < FIXED_COVARIATE; k++)
            if (strcmp(fixed_names[k], fixed.name) == 0)
                fixed.kind = (enum lme_fixed_kind)k;
        if (fixed.kind == FIXED_COVARIATE)
            TRY(find_covariate(model, fixed.name, false, &fixed.covariate));
        for (size_t k = 0; k < shape->n_fixed; k++)
            if (strcmp(shape->fixed[k].name, fixed.name) == 0)
                return fail(BAD_USER, "model.fixed names '%s' twice; remove one", fixed.name);
        if (shape->n_fixed == MOST_FIXED)
            return fail(BAD_USER, "model.fixed names more than %d effects", MOST_FIXED - 1);
        shape->fixed[shape->n_fixed++] = fixed;
    }
    return OK;
}

static enum status derive(const struct model *model, struct lme_shape *shape)
{
    const struct lme_options *o = model->options;
    int n_rows = 0, n_columns = 0;
    *shape = (struct lme_shape){.logit = o->link == LINK_LOGIT};
    TRY(scalapack_parse(o->grid, &n_rows, &n_columns));
    TRY(find_factors(model, shape));
    TRY(choose_unit(model, shape));
    TRY(find_fixed(model, shape));
    shape->n_spread = shape->n_factors + !shape->logit;
    shape->n_outer = shape->n_fixed + shape->n_spread;
    shape->n_search = lme_search_size(shape->n_outer);

    size_t panel = 0; /* in the order of `declare` */
    shape->fixed_panel = panel++;
    shape->fixed_error_panel = panel++;
    shape->spread_panel = panel++;
    for (size_t f = 1; f < shape->n_factors; f++) {
        shape->factors[f].effect_panel = panel++;
        shape->factors[f].error_panel = panel++;
    }
    shape->total_panel = panel++;
    shape->search_panel = panel++;
    return OK;
}

/* A tensor that is a list, in a panel of one row. */
static void declare_list(struct params *p, const char *name, const char *suffix, size_t n)
{
    struct tensor tensor = {.panel = params_panel(p, 1, n),
                            .n_columns = n,
                            .rank = 1,
                            .shape = {n},
                            .decays = false};
    snprintf(tensor.name, sizeof tensor.name, "%s%s", name, suffix);
    params_tensor(p, &tensor);
}

static enum status declare(struct model *model)
{
    struct params *p = &model->params;
    struct lme_shape *shape = model->shape;
    TRY(derive(model, shape));
    declare_list(p, "fixed", "", shape->n_fixed);
    declare_list(p, "fixed", "_error", shape->n_fixed);
    declare_list(p, "sd", "", shape->n_spread);
    for (size_t f = 1; f < shape->n_factors; f++) {
        /* effects of groups are listed by item, so that a model has them without its data */
        const struct lme_factor *factor = &shape->factors[f];
        const size_t n = factor->kind == FACTOR_GROUP ? model->n_items : factor->n;
        char name[64];
        snprintf(name, sizeof name, "%s%s", factor->kind == FACTOR_COVARIATE ? "factor_" : "",
                 factor->name);
        declare_list(p, name, "", n);
        declare_list(p, name, "_error", n);
    }
    declare_list(p, "total", "", model->n_items);
    const size_t panel = params_panel(p, 1, 2 * shape->n_search);
    params_tensor(p,
                  &(struct tensor){
                      "search", panel, 0, 2 * shape->n_search, 2, {shape->n_search, 2}, false});
    return OK;
}

static unsigned uses(const struct model *model)
{
    const struct lme_shape *shape = lme_shape(model);
    unsigned all = 0;
    for (size_t f = 0; f < shape->n_factors; f++)
        all |= shape->factors[f].kind == FACTOR_SKILL   ? MODEL_SKILLS
               : shape->factors[f].kind == FACTOR_GROUP ? MODEL_GROUPS
                                                        : 0;
    return all;
}

static void init(struct model *model, uint64_t seed, const struct item_counts *counts)
{
    (void)seed;
    const struct lme_shape *shape = lme_shape(model);
    double right = 0, all = 0;
    for (size_t i = 0; i < counts->n_items; i++) {
        right += (double)counts->right[i];
        all += (double)(counts->right[i] + counts->wrong[i]);
    }
    memset(model->params.value, 0, model->params.n * sizeof *model->params.value);
    const double odds = (right + 1) / (all - right + 1);
    params_rows(&model->params, shape->fixed_panel)[0] =
        (real)(shape->logit ? Sleef_cinz_logd1_u10purec(odds) : odds / (1 + odds));
    real *spread = params_rows(&model->params, shape->spread_panel);
    for (size_t f = 0; f < shape->n_spread; f++)
        spread[f] = shape->logit ? 1 : (real)0.3;
}

/* The tables: fit, standard deviations, fixed effects, items, skills, levels of factors. */
enum {
    TABLE_FIT,
    TABLE_SPREADS,
    TABLE_FIXED,
    TABLE_ITEMS,
    TABLE_SKILLS,
    TABLE_LEVELS,
    N_TABLES
};

static void add_name(struct table *table, const char *name)
{
    names_add(&table->row_names, name, strlen(name));
}

/* Criteria to compare models of the same attempts. The parameters are what the likelihood is
 * maximised over, fixed effects and standard deviations:
 *
 *     AIC = deviance + 2 parameters
 *     BIC = deviance + parameters log(training attempts) */
static void fit_table(const struct model *model, const struct lme_shape *shape,
                      struct table *table)
{
    struct lme_search search;
    lme_search_load(&search, shape->n_outer, params_rows(&model->params, shape->search_panel));
    const bool fresh = search.phase == SEARCH_FRESH;
    table_create(table, "fit", "likelihood", fresh ? 0 : 1,
                 "deviance log_likelihood parameters aic bic attempts");
    table->caption =
        "How well the model fits the answers it was trained on. The deviance is minus twice "
        "their log-likelihood. AIC adds 2 for each parameter (fixed effects and standard "
        "deviations), BIC the logarithm of the number of training attempts. Of two models of "
        "the same answers, prefer the one with the smaller value.";
    if (fresh)
        return;
    add_name(table, shape->logit ? "Laplace" : "exact");
    const double n = (double)shape->n_outer;
    const double cells[] = {search.deviance,
                            -search.deviance / 2,
                            n,
                            search.deviance + 2 * n,
                            search.deviance + n * Sleef_cinz_logd1_u10purec(search.n_attempts),
                            search.n_attempts};
    memcpy(table_row(table, 0), cells, sizeof cells);
}

static void spread_table(const struct model *model, const struct lme_shape *shape,
                         struct table *table)
{
    const real *spread = params_rows(&model->params, shape->spread_panel);
    table_create(table, "spreads", "factor", shape->n_spread, "variance sd");
    table->caption =
        "How much students, items and other factors differ: standard deviations (sd) of "
        "their effects on the log-odds, where 1 moves a chance of 50 % to 73 % (with link = "
        "identity, on the outcome itself).";
    for (size_t f = 0; f < shape->n_spread; f++) {
        add_name(table, f < shape->n_factors ? shape->factors[f].name : "residual");
        table_row(table, f)[0] = (double)spread[f] * (double)spread[f];
        table_row(table, f)[1] = (double)spread[f];
    }
}

static void fixed_table(const struct model *model, const struct lme_shape *shape,
                        struct table *table)
{
    const real *fixed = params_rows(&model->params, shape->fixed_panel);
    const real *error = params_rows(&model->params, shape->fixed_error_panel);
    table_create(table, "fixed", "effect", shape->n_fixed, "estimate error z");
    table->caption = "Fixed effects, which are the same for all attempts, with their "
                     "standard errors.";
    for (size_t k = 0; k < shape->n_fixed; k++) {
        add_name(table, shape->fixed[k].name);
        double *row = table_row(table, k);
        row[0] = (double)fixed[k];
        row[1] = (double)error[k];
        row[2] = error[k] > 0 ? row[0] / row[1] : NAN;
    }
}

/* Whether the table of items, or of skills, lists the factor. */
static bool is_listed(const struct lme_factor *factor, bool skills)
{
    return skills ? factor->kind == FACTOR_SKILL
                  : factor->kind == FACTOR_ITEM || factor->kind == FACTOR_GROUP;
}

/* Effects and errors of all factors listed by item, or of the skills. */
static void effect_table(const struct model *model, const struct lme_shape *shape, bool skills,
                         struct table *table)
{
    char columns[128] = "";
    for (size_t f = 0; f < shape->n_factors; f++)
        if (is_listed(&shape->factors[f], skills))
            snprintf(columns + strlen(columns), sizeof columns - strlen(columns),
                     "%s_effect %s_error ", shape->factors[f].name, shape->factors[f].name);
    strcat(columns, skills ? "" : "total");
    const bool any = columns[0] != '\0';
    table_create(table, skills ? "skills" : "items", skills ? "skill" : "item",
                 !any     ? 0
                 : skills ? model->n_skills
                          : model->n_items,
                 columns);
    table->caption = skills ? "Effects of skills: skills above zero are easier."
                            : "Effects of items: items above zero are easier than the average "
                              "item.";
    size_t column = 0;
    for (size_t f = 0; f < shape->n_factors; f++) {
        if (!is_listed(&shape->factors[f], skills))
            continue;
        const size_t panels[] = {shape->factors[f].effect_panel, shape->factors[f].error_panel};
        for (size_t k = 0; k < 2; k++, column++)
            for (size_t r = 0; r < table->n_rows; r++)
                table_row(table, r)[column] = (double)params_rows(&model->params, panels[k])[r];
    }
    for (size_t r = 0; !skills && r < table->n_rows; r++)
        table_row(table, r)[column] =
            (double)params_rows(&model->params, shape->total_panel)[r];
}

/* Levels of all factors of attempts, one factor after the other. */
static void level_table(const struct model *model, const struct lme_shape *shape,
                        struct table *table)
{
    size_t n = 0, row = 0;
    for (size_t f = 0; f < shape->n_factors; f++)
        n += shape->factors[f].kind == FACTOR_COVARIATE ? shape->factors[f].n : 0;
    table_create(table, "levels", "level", n, "effect error");
    table->caption = "Effects of the levels of each factor, with their standard errors.";
    for (size_t f = 0; f < shape->n_factors; f++) {
        const struct lme_factor *factor = &shape->factors[f];
        if (factor->kind != FACTOR_COVARIATE)
            continue;
        model_name_levels(model, factor->name, table);
        for (size_t l = 0; l < factor->n; l++, row++) {
            table_row(table, row)[0] =
                (double)params_rows(&model->params, factor->effect_panel)[l];
            table_row(table, row)[1] =
                (double)params_rows(&model->params, factor->error_panel)[l];
        }
    }
}

static void show(const struct model *model, size_t k, struct table *table)
{
    const struct lme_shape *shape = lme_shape(model);
    if (k == TABLE_FIT)
        fit_table(model, shape, table);
    else if (k == TABLE_SPREADS)
        spread_table(model, shape, table);
    else if (k == TABLE_FIXED)
        fixed_table(model, shape, table);
    else if (k == TABLE_LEVELS)
        level_table(model, shape, table);
    else
        effect_table(model, shape, k == TABLE_SKILLS, table);
}

static size_t n_hidden(const struct model *model)
{
    (void)model;
    return 1;
}

const struct model_kind lme_kind = {
    .name = "lme",
    .title = "mixed-effects regression with crossed random effects of students, items, "
             "groups, skills and factors of attempts",
    .source = "Bates and others 2015",
    .loss = "negative Laplace log-likelihood of the training answers, in nats per answer",
    .options = option_table,
    .n_options = COUNT(option_table),
    .options_size = sizeof(struct lme_options),
    .shape_size = sizeof(struct lme_shape),
    .declare = declare,
    .init = init,
    .attach = lme_attach,
    .detach = lme_detach,
    .training = lme_training,
    .predict = lme_predict,
    .setup = {.uses = uses},
    .fit = {.grid = lme_grid, .learn = lme_learn, .state = lme_state},
    .view = {.n_hidden = n_hidden,
             .hidden = lme_hidden,
             .deviation = lme_deviation,
             .rasch = lme_rasch,
             .n_tables = N_TABLES,
             .table = show},
    .live = {.begin = lme_live_begin, .tell = lme_live_tell, .ask = lme_live_ask},
};
