/* Mixed-effects regression with crossed random effects, by Laplace's method.
 *
 *     eta_a = x_a . beta + b_student(a) + b_item(a) (+ b_group(a) + b_skills(a))
 *     P(correct) = sigma(eta) (link = logit), or outcome ~ N(eta, sigma_e^2) (link = identity)
 *     b = sigma_f u,  u ~ N(0, 1), one sigma_f for each factor
 *
 * The likelihood of (beta, sigma) is an integral over all effects. Laplace's approximation
 * takes it at their mode, with H = I + Lambda Z^T W Z Lambda the curvature there:
 *
 *     -2 log L = sum over attempts of -2 log P(outcome)  +  u^T u  +  log det H
 *
 * which is what lme4::glmer (nAGQ = 1) minimises, and exact for link = identity (maximum
 * likelihood, not REML). The spreads may be zero: H is then the identity there, and the
 * deviance is a smooth, even function of sigma.
 *
 *     tensor                  shape      symbol
 *     fixed, fixed_error      fixed      beta, standard errors
 *     sd                      spreads    |sigma| of student, each factor, and the residual
 *     item, item_error        items      b_item, its conditional standard deviation
 *     group, group_error      items      of the item's group
 *     skill, skill_error      skills
 *     total                   items      all effects of an item together: what predicts
 *     search                  n, 2       the memory of the search, as pairs of large and small
 *
 * Students are as many as it takes: H is diagonal in them, so each is eliminated on its own
 * rank, and adds a small outer product to the dense matrix over the columns (levels of the
 * other factors), which is spread over a grid of ranks (grid.h). Cost of a Newton step: the sum
 * over students of (distinct items)^2, and columns^3 / 3. Training is a search over beta and
 * sigma with exact derivatives; an epoch is one point of it, the last epoch the result.
 *
 * A student's effect is not a parameter: it is the mode given what was shown before. */
#include "fail.h"
#include "lme_parts.h"
#include "memory.h"
#include <math.h>
#include <sleef.h>
#include <string.h>

const char *const lme_factor_names[] = {"item", "group", "skill"};
static const char *const fixed_names[] = {"intercept", "position", "practice"};
static const char *const links[] = {"logit", "identity", NULL};

#define AT(field) offsetof(struct lme_options, field)
static const struct option option_table[] = {
    {"link", OPTION_CHOICE, AT(link), "logit", 0, 0, links,
     "logit: chances of outcomes; identity: the linear model, outcomes as numbers 0 and 1"},
    {"factors", OPTION_TEXT, AT(factors), "item", 0, 0, NULL,
     "what has random effects besides the student: item, group (of the item), skill, or "
     "several "
     "of them between spaces"},
    {"fixed", OPTION_TEXT, AT(fixed), "", 0, 0, NULL,
     "fixed effects besides the intercept: position (log of 1 + earlier attempts), practice "
     "(the "
     "same of this item), or both"},
    {"grid", OPTION_TEXT, AT(grid), "auto", 0, 0, NULL,
     "ranks that hold the dense matrix, as RxC: with the same grid the bits are the same at "
     "any "
     "number of ranks; auto: one rank below order 2000, else all"},
    {"tolerance", OPTION_NUMBER, AT(tolerance), "1e-6", 1e-12, 1, NULL,
     "the search ends when it promises less than this of the deviance"},
};

/* The names between spaces in model.factors. */
static enum status find_words(const char *text, size_t *found, size_t *n_found)
{
    *n_found = 0;
    for (const char *word = text + strspn(text, " "); *word != '\0';) {
        const size_t length = strcspn(word, " ");
        size_t k = 0;
        while (k < N_FACTOR_KINDS && (strlen(lme_factor_names[k]) != length ||
                                      strncmp(lme_factor_names[k], word, length) != 0))
            k++;
        if (k == N_FACTOR_KINDS)
            return fail(BAD_USER,
                        "model.factors: there is no '%.*s' to have effects; expected of item, "
                        "group, skill",
                        (int)length, word);
        for (size_t i = 0; i < *n_found; i++)
            if (found[i] == k)
                return fail(BAD_USER, "model.factors names '%s' twice: once is enough",
                            lme_factor_names[k]);
        found[(*n_found)++] = k;
        word += length + strspn(word + length, " ");
    }
    return OK;
}

static enum status find_factors(const struct model *model, struct lme_shape *shape)
{
    const struct lme_options *o = model->options;
    size_t found[N_FACTOR_KINDS], n = 0;
    TRY(find_words(o->factors, found, &n));
    if (n == 0)
        return fail(BAD_USER, "model.factors is empty: name at least one, as in "
                              "model.factors=item");
    for (size_t f = 0; f < n; f++) {
        const enum lme_factor_kind kind = (enum lme_factor_kind)found[f];
        const size_t n_groups = model->dataset != NULL ? model->dataset->n_groups : 1;
        if ((kind == FACTOR_GROUP && n_groups == 0) ||
            (kind == FACTOR_SKILL && model->n_skills == 0))
            return fail(BAD_USER,
                        "model.factors names %s, but the items of the data set have no %ss; "
                        "import them with --%s, or leave it out",
                        lme_factor_names[kind], lme_factor_names[kind],
                        kind == FACTOR_GROUP ? "group" : "skills");
        struct lme_factor *factor = &shape->factors[shape->n_factors++];
        factor->kind = kind;
        factor->first = shape->n_columns;
        factor->n = kind == FACTOR_ITEM    ? model->n_items
                    : kind == FACTOR_GROUP ? n_groups
                                           : model->n_skills;
        shape->n_columns += factor->n;
    }
    return OK;
}

/* The intercept and the words of model.fixed. Without data any name may be a covariate's. */
static enum status find_fixed(const struct model *model, struct lme_shape *shape)
{
    const struct lme_options *o = model->options;
    const struct dataset *dataset = model->dataset;
    shape->fixed[shape->n_fixed++] = (struct lme_fixed){.name = "intercept"};
    for (const char *word = o->fixed + strspn(o->fixed, " "); *word != '\0';) {
        struct lme_fixed fixed = {.kind = FIXED_COVARIATE};
        const int length = (int)strcspn(word, " ");
        snprintf(fixed.name, sizeof fixed.name, "%.*s", length, word);
        for (int k = FIXED_POSITION; k < FIXED_COVARIATE; k++)
            if (strcmp(fixed_names[k], fixed.name) == 0)
                fixed.kind = (enum lme_fixed_kind)k;
        if (fixed.kind == FIXED_COVARIATE && dataset != NULL) {
            char list[256] = "";
            while (fixed.covariate < dataset->covariates.n &&
                   strcmp(names_get(&dataset->covariates, fixed.covariate), fixed.name) != 0)
                snprintf(list + strlen(list), sizeof list - strlen(list), ", %s",
                         names_get(&dataset->covariates, fixed.covariate++));
            if (fixed.covariate == dataset->covariates.n)
                return fail(BAD_USER,
                            "model.fixed: there is no '%s' to have an effect; expected of "
                            "position, practice%s (covariates come with import "
                            "--covariates)",
                            fixed.name, list);
        }
        for (size_t k = 0; k < shape->n_fixed; k++)
            if (strcmp(shape->fixed[k].name, fixed.name) == 0)
                return fail(BAD_USER, "model.fixed names '%s' twice: once is enough",
                            fixed.name);
        if (shape->n_fixed == MOST_FIXED)
            return fail(BAD_USER, "model.fixed names more than %d effects", MOST_FIXED - 1);
        shape->fixed[shape->n_fixed++] = fixed;
        word += length + (int)strspn(word + length, " ");
    }
    return OK;
}

enum status lme_shape_of(const struct model *model, struct lme_shape *shape)
{
    const struct lme_options *o = model->options;
    int n_rows = 0, n_columns = 0;
    *shape = (struct lme_shape){.logit = o->link == LINK_LOGIT};
    TRY(grid_parse(o->grid, &n_rows, &n_columns));
    TRY(find_factors(model, shape));
    TRY(find_fixed(model, shape));
    shape->n_spread = 1 + shape->n_factors + !shape->logit;
    shape->n_outer = shape->n_fixed + shape->n_spread;
    shape->n_search = lme_search_size(shape->n_outer);

    size_t panel = 0; /* in the order of `declare` */
    shape->fixed_panel = panel++;
    shape->fixed_error_panel = panel++;
    shape->spread_panel = panel++;
    for (size_t f = 0; f < shape->n_factors; f++) {
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
    struct lme_shape shape;
    TRY(lme_shape_of(model, &shape));
    declare_list(p, "fixed", "", shape.n_fixed);
    declare_list(p, "fixed", "_error", shape.n_fixed);
    declare_list(p, "sd", "", shape.n_spread);
    for (size_t f = 0; f < shape.n_factors; f++) {
        /* effects of groups are listed by item, so that a model tells them without its data */
        const enum lme_factor_kind kind = shape.factors[f].kind;
        const size_t n = kind == FACTOR_SKILL ? model->n_skills : model->n_items;
        declare_list(p, lme_factor_names[kind], "", n);
        declare_list(p, lme_factor_names[kind], "_error", n);
    }
    declare_list(p, "total", "", model->n_items);
    const size_t panel = params_panel(p, 1, 2 * shape.n_search);
    params_tensor(p,
                  &(struct tensor){
                      "search", panel, 0, 2 * shape.n_search, 2, {shape.n_search, 2}, false});
    return OK;
}

static struct lme_shape known_shape(const struct model *model)
{
    struct lme_shape shape;
    ENSURE(lme_shape_of(model, &shape) == OK); /* it was declared */
    return shape;
}

static void init(struct model *model, uint64_t seed, const struct item_counts *counts)
{
    (void)seed;
    const struct lme_shape shape = known_shape(model);
    double right = 0, all = 0;
    for (size_t i = 0; i < counts->n_items; i++) {
        right += (double)counts->right[i];
        all += (double)(counts->right[i] + counts->wrong[i]);
    }
    memset(model->params.value, 0, model->params.n * sizeof *model->params.value);
    const double odds = (right + 1) / (all - right + 1);
    params_rows(&model->params, shape.fixed_panel)[0] =
        (real)(shape.logit ? Sleef_cinz_logd1_u10purec(odds) : odds / (1 + odds));
    real *spread = params_rows(&model->params, shape.spread_panel);
    for (size_t f = 0; f < shape.n_spread; f++)
        spread[f] = shape.logit ? 1 : (real)0.3;
}

/* The spreads, the fixed effects, the items and the skills. */
enum { TABLE_SPREADS, TABLE_FIXED, TABLE_ITEMS, TABLE_SKILLS, N_TABLES };

static void add_name(struct table *table, const char *name)
{
    names_add(&table->row_names, name, strlen(name));
}

static void spread_table(const struct model *model, const struct lme_shape *shape,
                         struct table *table)
{
    const real *spread = params_rows(&model->params, shape->spread_panel);
    table_create(table, "spreads", "factor", shape->n_spread, "variance sd");
    for (size_t f = 0; f < shape->n_spread; f++) {
        add_name(table, f == 0                 ? "student"
                        : f > shape->n_factors ? "residual"
                                               : lme_factor_names[shape->factors[f - 1].kind]);
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
    for (size_t k = 0; k < shape->n_fixed; k++) {
        add_name(table, shape->fixed[k].name);
        double *row = table_row(table, k);
        row[0] = (double)fixed[k];
        row[1] = (double)error[k];
        row[2] = error[k] > 0 ? row[0] / row[1] : NAN;
    }
}

/* Effects and errors of all factors that are listed by item, or those of the skills. */
static void effect_table(const struct model *model, const struct lme_shape *shape, bool skills,
                         struct table *table)
{
    char columns[128] = "";
    for (size_t f = 0; f < shape->n_factors; f++)
        if ((shape->factors[f].kind == FACTOR_SKILL) == skills)
            snprintf(columns + strlen(columns), sizeof columns - strlen(columns),
                     "%s %s_error ", lme_factor_names[shape->factors[f].kind],
                     lme_factor_names[shape->factors[f].kind]);
    strcat(columns, skills ? "" : "total");
    const bool any = columns[0] != '\0';
    table_create(table, skills ? "skills" : "items", skills ? "skill" : "item",
                 !any     ? 0
                 : skills ? model->n_skills
                          : model->n_items,
                 columns);
    size_t column = 0;
    for (size_t f = 0; f < shape->n_factors; f++) {
        if ((shape->factors[f].kind == FACTOR_SKILL) != skills)
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

static void show(const struct model *model, size_t k, struct table *table)
{
    const struct lme_shape shape = known_shape(model);
    if (k == TABLE_SPREADS)
        spread_table(model, &shape, table);
    else if (k == TABLE_FIXED)
        fixed_table(model, &shape, table);
    else
        effect_table(model, &shape, k == TABLE_SKILLS, table);
}

static size_t n_hidden(const struct model *model)
{
    (void)model;
    return 1;
}

const struct model_kind lme_kind = {
    .name = "lme",
    .title = "mixed-effects regression: random effects of students, items, groups and skills",
    .source = "Bates and others 2015",
    .loss = "minus the Laplace log-likelihood of training answers, nats",
    .options = option_table,
    .n_options = COUNT(option_table),
    .options_size = sizeof(struct lme_options),
    .declare = declare,
    .init = init,
    .attach = lme_attach,
    .detach = lme_detach,
    .training = lme_training,
    .learn = lme_learn,
    .state = lme_state,
    .predict = lme_predict,
    .n_hidden = n_hidden,
    .hidden = lme_hidden,
    .n_tables = N_TABLES,
    .table = show,
};
