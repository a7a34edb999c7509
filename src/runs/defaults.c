/* The rules behind `cohort train data=D run=R model.kind=K` without any other setting.
 *
 * Each rule gives one setting of some kinds of models: a fixed value, or a function of the shape
 * of the data (data_shape.h). The first rule for a setting counts. A rule yields to everything
 * that is set by the user, by a preset, or by the run that is continued. And values that belong
 * together come together:
 *
 *     model.*       not with model.preset: a preset means exactly what it says
 *     optimizer.*   not if optimizer.method is set: a rate for adam is none for sgd
 *     factors       not if model.features is set: features without factors are a regression
 *     patience      not if train.epochs is set: who asks for epochs gets them
 *
 * Rules were chosen on the validation parts of the public data sets and of simulated classes;
 * tests/bench/README.md has the scores. */
#include "runs/defaults.h"
#include "base/fail.h"
#include "base/memory.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What rules see: the data, what the user set of batch and block (0: nothing), and whether the
 * features of ktm are set. */
struct known {
    struct data_shape data;
    double batch, block;
    bool features;
};

struct rule {
    const char *kinds; /* separated by spaces */
    const char *setting;
    const char *value;                           /* or, if NULL: */
    double (*number)(const struct known *known); /* NAN: the rule does not apply */
    const char *why;
};

static double between(double least, double x, double most)
{
    return fmin(most, fmax(least, x));
}

/* Two significant digits, so that a setting reads well and small changes of the data rarely
 * change it. */
static double rounded(double x)
{
    const double unit = pow(10, floor(log10(x)) - 1);
    return round(x / unit) * unit;
}

static double when(bool applies, double value)
{
    return applies ? value : NAN;
}

/* ---- mini-batches */

/* A step should learn from about 2400 answers, and an epoch have ten steps if students suffice. */
static double sequence_batch(const struct known *k)
{
    const double wanted = fmin(2400 / k->data.per_student, k->data.n_students / 10);
    return fmax(k->block, round(between(4, wanted, 64)));
}

static double sequence_block(const struct known *k)
{
    return between(1, floor((k->batch > 0 ? k->batch : sequence_batch(k)) / 4), 16);
}

static double matrix_batch(const struct known *k)
{
    return fmax(k->block, round(between(10, k->data.n_students / 10, 100)));
}

static double matrix_block(const struct known *k)
{
    return between(1, floor((k->batch > 0 ? k->batch : matrix_batch(k)) / 10), 10);
}

/* ---- regularization: the fewer answers an item has, the more its weights shrink */

static double matrix_decay(const struct known *k)
{
    return rounded(between(0.1, 150 / k->data.per_item, 5));
}

static double sequence_decay(const struct known *k)
{
    return rounded(between(0.3, 100 / k->data.per_item, 3));
}

/* Adam moves rare rows as far per answer as common ones, so items with few answers need short
 * steps. */
static double recurrent_rate(const struct known *k)
{
    return rounded(between(0.0005, k->data.per_item / 50000, 0.003));
}

static double recurrent_hidden(const struct known *k)
{
    return between(20, k->data.n_items, 100);
}

/* ---- length of training, in steps: an epoch of a small class has few */

static double epochs_of(const struct known *k, double batch, double steps)
{
    const double of_user = k->batch > 0 ? k->batch : batch;
    return round(steps * fmin(1, of_user / k->data.n_students));
}

static double no_valid_epochs(const struct known *k)
{
    return when(!k->data.has_valid, 15);
}

static double matrix_epochs(const struct known *k)
{
    return between(200, epochs_of(k, matrix_batch(k), 4000), 1000);
}

static double sequence_epochs(const struct known *k)
{
    return between(40, epochs_of(k, sequence_batch(k), 2000), 200);
}

static double matrix_patience(const struct known *k)
{
    return when(k->data.has_valid, between(10, epochs_of(k, matrix_batch(k), 500), 50));
}

static double sequence_patience(const struct known *k)
{
    return when(k->data.has_valid, between(5, epochs_of(k, sequence_batch(k), 300), 30));
}

/* ---- models */

/* Where items come back later, or not at all, a student's old answers say as much as new ones.
 */
static double rbm_window(const struct known *k)
{
    return when(k->data.recent > 0.5, RECENT_ATTEMPTS);
}

/* The rows of an item's skills are added: many of them say little and drown the item's own. */
static double has_few_skills(const struct known *k)
{
    return when(k->data.n_skills > 0 && k->data.skills_per_item <= 5, 1);
}

static double one_ability(const struct known *k)
{
    return when(k->data.n_skills > 12, 1);
}

/* Rates of items with several skills are those of the skills, whatever the item. Whether that
 * costs more than practice tells is seen in the data. */
static double items_say_more(const struct known *k)
{
    return when(k->data.skills_per_item > 2 && k->data.item_loss < k->data.practice_loss, 1);
}

/* Where items have few answers or are alike, own rates only add noise. */
static double own_rates(const struct known *k)
{
    return when(k->data.n_items > k->data.n_skills && k->data.per_item >= 5 &&
                    k->data.item_loss < k->data.skill_loss && isnan(items_say_more(k)),
                1);
}

static double is_practised(const struct known *k)
{
    return when(data_shape_is_practised(&k->data), 1);
}

/* With few answers, weights of counts fit the students that gave them, not others. */
static double few_answers_l2(const struct known *k)
{
    return rounded(between(3, 150000 / k->data.n_answers, 30));
}

/* Whether ktm is a factorization machine. Only validation can tell when factors overfit. */
static double has_factors(const struct known *k)
{
    return when(!k->features && data_shape_has_pairs(&k->data) && k->data.has_valid, 1);
}

static double factors_l2(const struct known *k)
{
    return when(!isnan(has_factors(k)), rounded(between(10, 2000 / k->data.per_item, 20)));
}

/* Words of ktm's features: how often a student was right and wrong, at all and recently. In a
 * factorization machine, items and the attempt before interact; counts hardly do. */
#define COUNTS(modifier)                                                                       \
    "item:l2=1 skill wins:log" modifier " fails:log" modifier " wins_item:log" modifier        \
    " fails_item:log" modifier " wins_skill:log" modifier " fails_skill:log" modifier
#define RECENT(modifier)                                                                       \
    " wins:decay=0.9" modifier " fails:decay=0.9" modifier " wins:decay=0.6" modifier          \
    " fails:decay=0.6" modifier " wins_item:decay=0.7" modifier                                \
    " fails_item:decay=0.7" modifier " wins_skill:decay=0.7" modifier                          \
    " fails_skill:decay=0.7" modifier " wins_item:decay=0" modifier                            \
    " fails_item:decay=0" modifier
#define ALONE ":factors_l2=100"

/* With `value`, `number` only decides whether the rule applies. */
static const struct rule rules[] = {
    {"rbm", "model.copies", "1", NULL,
     "one copy of an answer is enough; more copies gain little"},
    {"rbm", "model.hidden", "50", NULL,
     "more units than abilities; early stopping limits them"},
    {"rbm", "model.start", "log_odds", NULL, "items need not learn their difficulty first"},
    {"rbm", "model.scale", "0.01", NULL, "small weights that differ from each other"},
    {"rbm", "model.common", "yes", NULL, "items with few answers learn from all others"},
    {"rbm", "model.conditional", "yes", NULL,
     "which items a student was given tells something"},
    {"rbm", "model.window", NULL, rbm_window,
     "over half of the answers are to an item met within the last 15 attempts, so recent "
     "answers "
     "say more than old ones"},
    {"dkt", "model.cell", "gru", NULL, "as good as lstm with three quarters of the work"},
    {"dkt", "model.input", "both", has_few_skills,
     "the data have skills, at most five per item"},
    {"dkt", "model.common", "yes", NULL, "items with few answers learn from all others"},
    {"dkt", "model.dropout", "0.5", NULL, "best on all data sets tried"},
    {"rtrbm", "model.hidden", NULL, recurrent_hidden,
     "as many units as items, from 20 to 100: units without a use follow chance"},
    {"rtrbm", "model.scale", "0.05", NULL, "best on all data sets tried"},
    {"vae", "model.dimensions", "1", one_ability,
     "more than 12 skills are too many abilities to estimate from one student's answers"},
    {"vae", "model.prior_a", "0.5", NULL,
     "discriminations of rarely answered items stay near 1"},
    {"vae", "model.prior_b", "2", NULL, "difficulties of rarely answered items stay moderate"},
    {"bkt", "model.forget", "yes", NULL, "a student who fails again counts as one who forgot"},
    {"bkt", "model.trace", "item", items_say_more,
     "items have more than two skills on average, and the mean of an item predicts answers "
     "better than a student's earlier answers to its skills"},
    {"bkt", "model.items", "yes", own_rates,
     "items of one skill differ: with at least 5 answers per item, the mean of an item "
     "predicts "
     "answers better than the mean of its skills"},
    {"ktm", "model.features", COUNTS(ALONE) RECENT(ALONE) " previous_item", is_practised,
     "students practise the same skills repeatedly, so recent answers say more than old ones"},
    {"ktm", "model.features", COUNTS(""), NULL, "best logistic regression on counts"},
    {"ktm", "model.l2", NULL, few_answers_l2,
     "150000 / answers, from 3 to 30; 1 for items, which differ more"},
    {"ktm", "model.factors", "16", has_factors,
     "an item's chance depends on which attempt came before, and items have at least 50 "
     "answers"},
    {"ktm", "model.l2_factors", NULL, factors_l2,
     "2000 / answers per item, from 10 to 20: items with few answers learn less about pairs"},
    {"ktm", "model.weights_first", "yes", has_factors,
     "validation decides whether factors are better than none"},
    {"ktm", "model.scale", "0.02", has_factors, "factors hardly change what weights learned"},
    {"ktm", "model.products", "10", has_factors,
     "short steps, so that validation can stop in time"},

    {"rbm rtrbm dkt vae", "optimizer.method", "adam", NULL,
     "finds its own step size for every parameter"},
    {"rbm", "optimizer.rate", "0.001", NULL, "slow enough for items with few answers"},
    {"dkt", "optimizer.rate", "0.005", NULL, "best on all data sets tried"},
    {"rtrbm", "optimizer.rate", NULL, recurrent_rate,
     "answers per item / 50000, from 0.0005 to 0.003: items with few answers learn slowly"},
    {"vae", "optimizer.rate", "0.005", NULL,
     "slow enough for validation to stop in time where there is little to learn"},
    {"dkt", "optimizer.beta2", "0.99", NULL,
     "gradients of small mini-batches vary a lot, and a slower second moment lags behind"},
    {"rbm", "optimizer.decay", NULL, matrix_decay, "150 / answers per item, from 0.1 to 5"},
    {"dkt", "optimizer.decay", NULL, sequence_decay, "100 / answers per item, from 0.3 to 3"},
    {"rtrbm", "optimizer.decay", "0.03", NULL, "best on all data sets tried"},
    {"rbm rtrbm dkt", "optimizer.average", "0.99", NULL,
     "the mean of the last hundred steps predicts better than the last one"},

    {"dkt rtrbm", "train.batch", NULL, sequence_batch,
     "students with about 2400 answers, but at most a tenth of all; from 4 to 64"},
    {"dkt rtrbm", "train.block", NULL, sequence_block,
     "a quarter of a batch, at most 16: four ranks can share it"},
    {"rbm vae", "train.batch", NULL, matrix_batch, "a tenth of the students, from 10 to 100"},
    {"rbm vae", "train.block", NULL, matrix_block,
     "a tenth of a batch, at most 10: ten ranks can share it"},
    {"rbm rtrbm dkt vae", "train.epochs", NULL, no_valid_epochs,
     "no validation attempts say when to stop"},
    {"rbm vae", "train.epochs", NULL, matrix_epochs,
     "what 4000 steps take, but at least 200 and at most 1000; validation stops it earlier"},
    {"dkt rtrbm", "train.epochs", NULL, sequence_epochs,
     "what 2000 steps take, but at least 40 and at most 200; validation stops it earlier"},
    {"ktm", "train.epochs", "50", has_factors, "validation stops it earlier"},
    {"bkt lme ktm", "train.epochs", "1000", NULL, "it stops when it has converged"},
    {"bkt lme", "train.valid_every", "1000", NULL, "the last pass is the result"},
    {"ktm", "train.patience", "5", has_factors,
     "factors fit the training answers too well if nothing stops them"},
    {"rbm vae", "train.patience", NULL, matrix_patience,
     "what 500 steps take, but at least 10 and at most 50 epochs without a better score"},
    {"dkt rtrbm", "train.patience", NULL, sequence_patience,
     "what 300 steps take, but at least 5 and at most 30 epochs without a better score"},
};

/* The section of a setting, and its key. */
static const char *split_name(const struct rule *rule, char section[32])
{
    const char *dot = strchr(rule->setting, '.');
    snprintf(section, 32, "%.*s", (int)(dot - rule->setting), rule->setting);
    return dot + 1;
}

static bool is_for(const struct rule *rule, const char *kind)
{
    const size_t n = strlen(kind);
    for (const char *at = rule->kinds; (at = strstr(at, kind)) != NULL; at += n)
        if ((at == rule->kinds || at[-1] == ' ') && (at[n] == '\0' || at[n] == ' '))
            return true;
    return false;
}

/* The value of a rule as text; false: it does not apply to these data. */
static bool value_of(const struct rule *rule, const struct known *known, char *text,
                     size_t size)
{
    const double number = rule->number != NULL ? rule->number(known) : 0;
    if (isnan(number))
        return false;
    if (rule->value != NULL)
        snprintf(text, size, "%s", rule->value);
    else
        snprintf(text, size, "%.10g", number);
    return true;
}

/* Settings that contradict what the user set. */
static bool contradicts(const struct config *config, const struct rule *rule)
{
    static const char *const pairs[][3] = {{"model.window", "repeats", "last"},
                                           {"model.items", "trace", "item"},
                                           {"model.trace", "items", "yes"},
                                           {"model.prior_a", "discrimination", "signed"},
                                           {"model.prior_a", "discrimination", "equal"},
                                           {"model.prior_a", "discrimination", "one"}};
    for (size_t p = 0; p < COUNT(pairs); p++) {
        const char *value = config_get(config, "model", pairs[p][1]);
        if (strcmp(rule->setting, pairs[p][0]) == 0 && value != NULL &&
            strcmp(value, pairs[p][2]) == 0)
            return true;
    }
    return false;
}

/* A positive number that is set, 0 if there is none. */
static double given(const struct config *config, const char *section, const char *key)
{
    const char *value = config_get(config, section, key);
    return value != NULL ? fmax(0, strtod(value, NULL)) : 0;
}

enum status defaults_suggest(struct config *config, const struct data_shape *shape, FILE *out)
{
    const char *kind = config_get(config, "model", "kind");
    if (kind == NULL)
        return OK;
    const struct known known = {*shape, given(config, "train", "batch"),
                                given(config, "train", "block"),
                                config_get(config, "model", "features") != NULL};
    const bool preset = config_get(config, "model", "preset") != NULL;
    const bool method = config_get(config, "optimizer", "method") != NULL;
    const bool epochs = config_is_given(config, "train", "epochs");
    enum status status = OK;
    for (size_t r = 0; status == OK && r < COUNT(rules); r++) {
        char section[32], value[1024];
        const char *key = split_name(&rules[r], section);
        if (!is_for(&rules[r], kind) || config_get(config, section, key) != NULL ||
            (preset && strcmp(section, "model") == 0) ||
            (method && strcmp(section, "optimizer") == 0) ||
            (epochs && strcmp(key, "patience") == 0) || contradicts(config, &rules[r]) ||
            !value_of(&rules[r], &known, value, sizeof value))
            continue;
        char *line = memory_text("%s = %s\n", rules[r].setting, value);
        status = config_suggest(config, line, "defaults for these data");
        if (out != NULL)
            fprintf(out, "%s    %s\n", line, rules[r].why);
        memory_free(line);
    }
    return status;
}
