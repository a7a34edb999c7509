/* cohort blend: combines trained models into one that predicts better than each. */
#include "base/cell_text.h"
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "runs/blending.h"
#include "runs/run.h"
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

struct values {
    const char *output, *data;
    int method;
    bool skip_first, json;
};

#define AT(field) offsetof(struct values, field)
static const struct flag flags[] = {
    {{"output", OPTION_TEXT, AT(output), "", 0, 0, NULL, "write the blend to this directory"},
     'o',
     "DIRECTORY"},
    {{"method", OPTION_CHOICE, AT(method), "convex", 0, 0, blend_methods,
      "convex: weights on probabilities that sum to one; logistic: a logistic regression on "
      "logits"},
     0,
     NULL},
    {{"data", OPTION_TEXT, AT(data), "", 0, 0, NULL,
      "use this copy of the runs' data set, if it has moved since training"},
     0,
     "DATA.h5"},
    {{"skip-first", OPTION_SWITCH, AT(skip_first), "no", 0, 0, NULL,
      "exclude first attempts from the scores (the weights are still fitted on them)"},
     0,
     NULL},
    {{"json", OPTION_SWITCH, AT(json), "no", 0, 0, NULL, "print one JSON object"}, 0, NULL},
};

/* A line of the table: a member, a pair of members or the whole blend, with its scores on the
 * validation (0) and test (1) attempts. */
struct line {
    struct blend_weights weights;
    struct score scores[2];
};

struct report {
    const struct blend *blend;
    const struct values *values;
    struct line members[BLEND_MOST], all;
    struct line *pairs;
    size_t n_pairs;
};

static void score(const struct report *report, struct line *line)
{
    for (int part = 0; part < 2; part++)
        blend_score(report->blend, &line->weights, part, report->values->skip_first,
                    &line->scores[part]);
}

static void fit(const struct report *report, struct line *line)
{
    line->weights.method = (enum blend_method)report->values->method;
    blend_fit(report->blend, &line->weights);
    score(report, line);
}

/* Collective. */
static void make_report(struct report *report)
{
    const size_t n = report->blend->n_members;
    for (size_t m = 0; m < n; m++) {
        report->members[m].weights =
            (struct blend_weights){.n = 1, .members = {m}, .weights = {1}};
        score(report, &report->members[m]);
    }
    report->pairs = NEW(struct line, n * (n - 1) / 2);
    for (size_t a = 0; n > 2 && a < n; a++)
        for (size_t b = a + 1; b < n; b++) {
            struct line *pair = &report->pairs[report->n_pairs++];
            pair->weights = (struct blend_weights){.n = 2, .members = {a, b}};
            fit(report, pair);
        }
    report->all.weights.n = n;
    for (size_t m = 0; m < n; m++)
        report->all.weights.members[m] = m;
    fit(report, &report->all);
}

/* How much lower the log-loss of a line is than that of its best member by validation. */
static double gain(const struct report *report, const struct line *line, int part)
{
    size_t best = line->weights.members[0];
    for (size_t m = 1; m < line->weights.n; m++)
        if (report->members[line->weights.members[m]].scores[0].log_loss <
            report->members[best].scores[0].log_loss)
            best = line->weights.members[m];
    return report->members[best].scores[part].log_loss - line->scores[part].log_loss;
}

/* "1 runs/rbm (rbm)". Caller frees. */
static char *member_name(const struct blend *blend, size_t m)
{
    return memory_text("%zu %s (%s%s)", m + 1, blend->paths[m], blend->kinds[m],
                       blend->origins[m] != NULL ? ", refit" : "");
}

static int name_width(const struct blend *blend)
{
    size_t width = 16;
    for (size_t m = 0; m < blend->n_members; m++) {
        char *name = member_name(blend, m);
        width = size_max(width, cell_text_width(name));
        memory_free(name);
    }
    return (int)width;
}

static void print_line(const struct report *report, const char *name, const struct line *line)
{
    cell_text_left(name, (size_t)name_width(report->blend), 0);
    for (int part = 0; part < 2; part++) {
        const struct score *s = &line->scores[part];
        if (s->n > 0)
            printf("  %8.5f  %8.5f  %6.4f", s->log_loss, s->cbd, s->auc);
        else
            printf("  %8s  %8s  %6s", "-", "-", "-");
    }
    if (line->weights.n > 1)
        printf("  %+8.5f", gain(report, line, report->all.scores[1].n > 0 ? 1 : 0));
    putchar('\n');
}

static void print_table(const struct report *report)
{
    const struct blend *blend = report->blend;
    const int width = name_width(blend);
    printf("%-*s  %-26s  %-26s  %s\n%-*s  %8s  %8s  %6s  %8s  %8s  %6s  %8s\n", width, "",
           "validation", "test", "log-loss", width, "", "log-loss", "CBD", "AUC", "log-loss",
           "CBD", "AUC", "gain");
    for (size_t m = 0; m < blend->n_members; m++) {
        char *name = member_name(blend, m);
        print_line(report, name, &report->members[m]);
        memory_free(name);
    }
    for (size_t p = 0; p < report->n_pairs; p++) {
        const struct blend_weights *w = &report->pairs[p].weights;
        char name[64];
        snprintf(name, sizeof name, "%zu + %zu", w->members[0] + 1, w->members[1] + 1);
        print_line(report, name, &report->pairs[p]);
    }
    print_line(report, "blend", &report->all);
    if (blend->n_refits > 0)
        printf("\nA refit was trained on the validation attempts. Its weight and validation "
               "scores "
               "come\nfrom the run that it is a refit of; its test scores are its own%s.\n",
               blend->n_refits < blend->n_members
                   ? ".\nAll members see the validation outcomes before the test attempts"
                   : "");
    printf("\nblend = ");
    const struct blend_weights *w = &report->all.weights;
    if (w->method == BLEND_LOGISTIC)
        printf("sigma(%.4f", w->intercept);
    for (size_t m = 0; m < w->n; m++)
        printf("%s%.4f %s%zu%s", m > 0 || w->method == BLEND_LOGISTIC ? " + " : "",
               w->weights[m], w->method == BLEND_LOGISTIC ? "logit(" : "p", m + 1,
               w->method == BLEND_LOGISTIC ? ")" : "");
    printf("%s\n", w->method == BLEND_LOGISTIC ? ")" : "");
}

static json_t *line_json(const struct line *line)
{
    json_t *object = json_object(), *members = json_array(), *weights = json_array();
    for (size_t m = 0; m < line->weights.n; m++) {
        json_array_append_new(members, json_integer((json_int_t)line->weights.members[m] + 1));
        json_array_append_new(weights, command_json_number(line->weights.weights[m]));
    }
    json_object_set_new(object, "members", members);
    json_object_set_new(object, "weights", weights);
    if (line->weights.method == BLEND_LOGISTIC)
        json_object_set_new(object, "intercept", command_json_number(line->weights.intercept));
    json_object_set_new(object, "valid",
                        line->scores[0].n > 0 ? score_json(&line->scores[0]) : json_null());
    json_object_set_new(object, "test",
                        line->scores[1].n > 0 ? score_json(&line->scores[1]) : json_null());
    return object;
}

static void print_json(const struct report *report)
{
    const struct blend *blend = report->blend;
    json_t *object = json_object(), *members = json_array(), *pairs = json_array();
    for (size_t m = 0; m < blend->n_members; m++) {
        json_t *member = line_json(&report->members[m]);
        json_object_set_new(member, "run", command_json_text(blend->paths[m]));
        json_object_set_new(member, "model", json_string(blend->kinds[m]));
        if (blend->origins[m] != NULL)
            json_object_set_new(member, "refit_of", command_json_text(blend->origins[m]));
        json_array_append_new(members, member);
    }
    for (size_t p = 0; p < report->n_pairs; p++)
        json_array_append_new(pairs, line_json(&report->pairs[p]));
    json_object_set_new(object, "method", json_string(blend_methods[report->values->method]));
    json_object_set_new(object, "members", members);
    json_object_set_new(object, "pairs", pairs);
    json_object_set_new(object, "blend", line_json(&report->all));
    command_json_print(object);
}

static enum status make(const struct comm *comm, const struct values *values,
                        const char *const *runs, size_t n)
{
    struct blend blend;
    enum status status = blend_create(&blend, comm, runs, n, values->data);
    if (status == OK) {
        struct report report = {.blend = &blend, .values = values};
        make_report(&report);
        status = blend_save(&blend, &report.all.weights, values->output);
        if (status == OK && !log_muted()) {
            if (values->json)
                print_json(&report);
            else
                print_table(&report);
            log_say("wrote %s", values->output);
        }
        memory_free(report.pairs);
    }
    blend_destroy(&blend);
    return status;
}

/* Rank 0: why a trial of a sweep failed; NULL: it did not, or this is no trial. Caller frees. */
static char *failure_of(const char *path)
{
    char *reason = NULL;
    enum { MOST_RUNGS = 20 };
    for (int rung = 1; rung <= MOST_RUNGS && reason == NULL; rung++) {
        char *file = memory_text("%s/rung-%d.json", path, rung);
        json_t *result = run_json(file);
        const char *state = json_string_value(json_object_get(result, "state"));
        const char *words = json_string_value(json_object_get(result, "reason"));
        if (state != NULL && strcmp(state, "failed") == 0)
            reason = memory_text("%s", words != NULL ? words : "unknown");
        json_decref(result);
        memory_free(file);
    }
    return reason;
}

/* Collective: removes failed trials of sweeps from the list. */
static void skip_failed(const struct comm *comm, const char **words, int *n_words)
{
    int n = 0;
    for (int w = 0; w < *n_words; w++) {
        char *reason = comm_share_text(comm, comm->rank == 0 ? failure_of(words[w]) : NULL);
        if (reason != NULL)
            log_say("skipping %s, a trial that failed: %s", words[w], reason);
        else
            words[n++] = words[w];
        memory_free(reason);
    }
    *n_words = n;
}

static enum status check(const struct values *values, int n_words)
{
    if (values->output[0] == '\0')
        return fail(BAD_USAGE, "blend: no output; name a directory with -o");
    if (n_words < 2 || n_words > BLEND_MOST)
        return fail(BAD_USAGE, "blend: %d run%s given; expected 2 to %d trained runs", n_words,
                    n_words == 1 ? " is" : "s are", BLEND_MOST);
    return OK;
}

static enum status run(const struct comm *comm, int argc, char **argv)
{
    struct values values = {0};
    const char **words = NEW(const char *, (size_t)argc);
    int n_words = 0;
    enum status status = command_parse(&command_blend, argc, argv, &values, words, &n_words);
    if (status == OK && n_words == 0)
        status = command_usage(&command_blend);
    if (status == OK)
        skip_failed(comm, words, &n_words);
    if (status == OK)
        status = check(&values, n_words);
    if (status == OK)
        status = make(comm, &values, words, (size_t)n_words);
    memory_free(words);
    return status;
}

const struct command command_blend = {
    .name = "blend",
    .usage = "blend RUN... -o DIRECTORY [--method convex|logistic] [--skip-first] [--json]",
    .summary = "Combine trained models into one that predicts better than each",
    .details =
        "Fit one weight per model on the validation attempts, for the smallest log-loss. All "
        "runs must be trained on the same data set and hold out the same attempts.\n\n"
        "The table shows each model, the blend of every pair and the blend of all. The column "
        "`gain` is the test log-loss of the member with the best validation score, minus that "
        "of the blend; above 0, the blend is better.\n\n"
        "The blend is a run directory. `cohort evaluate`, `predict`, `inspect`, `export`, "
        "`report` and `verify` accept it, and it no longer needs the directories of its "
        "members.\n\n"
        "Failed trials of a sweep among the runs (as in sweeps/rbm/trials/*) are skipped.\n\n"
        "Refits (`cohort train refit=RUN`) were trained on the validation attempts. Their "
        "weights are therefore fitted on the predictions of the original runs, which must "
        "still exist unchanged. The validation scores are those of the original runs; the test "
        "scores are those of the refits.",
    .examples = "Blend three models and evaluate the result:\n\n"
                "  cohort blend runs/rbm runs/dkt runs/lme -o runs/blend\n"
                "  cohort evaluate runs/blend",
    .see_also = "cohort-evaluate(1), cohort-train(1)",
    .flags = flags,
    .n_flags = COUNT(flags),
    .run = run,
};
