/* The page of one student, for the student's teacher: what to practise next and why, what needs
 * help, what is mastered, and the path there.
 *
 * What to practise next is tried out with the model. After the student's last attempt it is told
 * right answers at a skill, one by one, until the rule (report_rule.c) calls it mastered:
 *
 *     a(1) ... a(t)  right          mastery 78 %
 *     a(1) ... a(t)  right right    mastery 87 %: 2 right answers are needed
 *
 * Of the skills that practice can make mastered, the rule decides which comes first. Models in
 * which answers at a skill hardly move it (lme, vae) offer none. */
#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/shell_quote.h"
#include "plot/html.h"
#include "plot/plot.h"
#include "report/report_internal.h"
#include "runs/parallel_output.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NEXT = 3, MOST_LISTED = 5 };

/* A skill of the student. */
struct standing_at {
    uint32_t skill;
    enum report_state state;
    enum report_advice advice;
    double mastery;
    struct report_answers answers;
    int64_t needed; /* right answers in a row; more than REPORT_MOST_NEEDED: that many are not
                       enough */
};

static const char PATH_TITLE[] = "Attempts and mastery";

struct page {
    const struct report_plan *plan;
    const struct report *report; /* the scores of the model */
    const struct dataset *dataset;
    const struct names *things;
    const char *thing, *kind;
    char *run;
    struct report_rule rule;
    struct standing_at *at; /* by state, then from high to low mastery */
    size_t n, n_in[N_STATES];
    size_t n_left, n_judged; /* candidates for practice; with enough answers */
    const struct standing_at *next[MOST_NEXT];
    size_t n_next;
    uint64_t n_attempts;
    int64_t n_withheld;
    struct report_path path;
    bool is_fixed; /* see report_is_fixed */
};

/* ---- measuring ---- */

static int64_t count_needed(struct standing *standing, const struct report_rule *rule, size_t s,
                            const struct standing_at *at)
{
    const uint64_t end = standing->inference->shard.first[s + 1];
    standing_go(standing, s, end);
    for (int64_t n = 1; n <= REPORT_MOST_NEEDED; n++) {
        standing_suppose(standing, at->skill, (size_t)n - 1);
        if (report_rule_state(rule, standing_mastery(standing, at->skill), at->answers.n + n) ==
            STATE_MASTERED)
            return n;
    }
    return REPORT_MOST_NEEDED + 1;
}

/* On the rank that has the student: all skills with items. */
static void measure(struct page *page, struct standing *standing, size_t s)
{
    const struct shard *shard = &standing->inference->shard;
    const size_t n_skills = standing->skills.n;
    struct report_answers *answers = NEW(struct report_answers, n_skills);
    page->at = NEW(struct standing_at, n_skills);
    page->n_attempts = shard->first[s + 1] - shard->first[s];
    page->n_withheld = report_path_count(standing, s, answers);
    report_path_take(&page->path, standing, s);
    standing_go(standing, s, shard->first[s + 1]);
    for (uint32_t k = 0; k < n_skills; k++) {
        const double mastery = standing_mastery(standing, k);
        if (isfinite(mastery))
            page->at[page->n++] = (struct standing_at){
                .skill = k,
                .state = report_rule_state(&page->rule, mastery, answers[k].n),
                .advice = report_rule_advice(&page->rule, mastery, answers[k].n),
                .mastery = mastery,
                .answers = answers[k]};
    }
    for (size_t i = 0; i < page->n; i++)
        if (page->at[i].advice != ADVISE_NOT)
            page->at[i].needed = count_needed(standing, &page->rule, s, &page->at[i]);
    memory_free(answers);
}

/* Collective: what the rank with the student measured, on rank 0. */
static void collect(struct page *page, const struct comm *comm, bool here)
{
    size_t n_bytes = 0;
    const size_t one = here ? 1 : 0;
    struct standing_at *at = comm_gather(comm, page->at, page->n * sizeof *at, &n_bytes);
    memory_free(page->at);
    page->at = at;
    page->n = comm->rank == 0 ? n_bytes / sizeof *at : 0;
    struct report_path *path =
        comm_gather(comm, &page->path, one * sizeof page->path, &n_bytes);
    uint64_t *n_attempts =
        comm_gather(comm, &page->n_attempts, one * sizeof page->n_attempts, &n_bytes);
    int64_t *n_withheld =
        comm_gather(comm, &page->n_withheld, one * sizeof page->n_withheld, &n_bytes);
    if (comm->rank == 0) {
        page->path = *path;
        page->n_attempts = *n_attempts;
        page->n_withheld = *n_withheld;
    }
    memory_free(path);
    memory_free(n_attempts);
    memory_free(n_withheld);
}

static int compare_states(const void *a, const void *b)
{
    const struct standing_at *x = a, *y = b;
    return x->state != y->state       ? (x->state > y->state ? 1 : -1)
           : x->mastery != y->mastery ? (x->mastery < y->mastery ? 1 : -1)
                                      : (x->skill > y->skill) - (x->skill < y->skill);
}

/* Tried and nearly certain: the mastery is high, but there are too few answers. */
static bool is_nearly_certain(const struct standing_at *at)
{
    return at->state == STATE_PROGRESS && at->advice == ADVISE_NOT;
}

/* Tried, but more right answers are needed than can be asked for. */
static bool is_out_of_reach(const struct standing_at *at)
{
    return at->answers.n > 0 && at->advice != ADVISE_NOT && at->needed > REPORT_MOST_NEEDED;
}

/* Called in need of help although nearly all of the last answers were right. */
static bool is_contradicted(const struct standing_at *at)
{
    return at->state == STATE_HELP && at->answers.n_recent == REPORT_RECENT &&
           at->answers.recent_right >= REPORT_RECENT - 1;
}

/* Whether x is to be practised before y. */
static bool is_before(const struct standing_at *x, const struct standing_at *y)
{
    return x->advice != y->advice     ? x->advice < y->advice
           : x->needed != y->needed   ? x->needed < y->needed
           : x->mastery != y->mastery ? x->mastery < y->mastery
                                      : x->skill < y->skill;
}

static void arrange(struct page *page)
{
    qsort(page->at, page->n, sizeof *page->at, compare_states);
    for (size_t i = 0; i < page->n; i++)
        page->n_in[page->at[i].state]++;
    for (size_t i = 0; i < page->n; i++) {
        page->n_left += page->at[i].advice != ADVISE_NOT;
        page->n_judged += page->at[i].answers.n >= page->rule.answers;
    }
    for (size_t p = 0; p < MOST_NEXT; p++) {
        const struct standing_at *last = p > 0 ? page->next[p - 1] : NULL, *best = NULL;
        for (size_t i = 0; i < page->n; i++)
            if (page->at[i].advice != ADVISE_NOT && page->at[i].needed <= REPORT_MOST_NEEDED &&
                (last == NULL || is_before(last, &page->at[i])) &&
                (best == NULL || is_before(&page->at[i], best)))
                best = &page->at[i];
        if (best == NULL)
            return;
        page->next[page->n_next++] = best;
    }
}

/* ---- the page ---- */

static const char *name_of(const struct page *page, const struct standing_at *at)
{
    return names_get(page->things, at->skill);
}

static void print_bold(FILE *out, const char *element, const char *name)
{
    fprintf(out, "<%s><bdi>", element);
    html_text(out, name);
    fprintf(out, "</bdi></%s>", element);
}

/* "3 mastered, 1 in progress and 2 in need of help": those that there are. */
static void show_tally(FILE *out, const struct page *page)
{
    static const char *const words[] = {[STATE_MASTERED] = "mastered",
                                        [STATE_PROGRESS] = "in progress",
                                        [STATE_HELP] = "in need of help"};
    const size_t n_tried = page->n - page->n_in[STATE_UNTRIED];
    size_t n_left = 0;
    for (size_t state = 0; state < COUNT(words); state++)
        n_left += page->n_in[state] > 0;
    fprintf(out, "<p>Of %zu %s%s tried, ", n_tried, page->thing, n_tried == 1 ? "" : "s");
    for (size_t state = 0; state < COUNT(words); state++) {
        if (page->n_in[state] == 0)
            continue;
        n_left--;
        fprintf(out, "%zu %s %s%s", page->n_in[state], page->n_in[state] == 1 ? "is" : "are",
                words[state],
                n_left > 1    ? ", "
                : n_left == 1 ? " and "
                              : ".");
    }
    if (page->n_in[STATE_UNTRIED] > 0)
        fprintf(out, " Not tried: %zu.", page->n_in[STATE_UNTRIED]);
    fputs("</p>\n", out);
}

static void show_head(FILE *out, const struct page *page)
{
    const size_t n_tried = page->n - page->n_in[STATE_UNTRIED];
    print_bold(out, "h1", page->plan->student);
    fputs("\n<p class=\"under\">", out);
    fprintf(out, "%s attempt%s; %s model ", html_whole((int64_t)page->n_attempts).text,
            page->n_attempts == 1 ? "" : "s", page->kind);
    html_text(out, page->run);
    fputs("</p>\n", out);
    /* A summary that is not to be relied on comes after the warning and is not praised. */
    report_warn_teacher(out, page->report);
    fputs(report_distrust(page->report, page->report->runs) == NULL ? "<div class=\"lead\">\n"
                                                                    : "<div>\n",
          out);
    if (n_tried == 0)
        html_say(out, "p", "There are no answers yet that the model has seen.");
    else
        show_tally(out, page);
    if (n_tried > 0 && page->n_judged == 0)
        html_say(out, "p",
                 "No %s has %d answers yet, so none can be called mastered or in need of help.",
                 page->thing, (int)page->rule.answers);
    fputs("<p>", out);
    if (page->n_next > 0) {
        fputs("Practise next: ", out);
        print_bold(out, "b", name_of(page, page->next[0]));
        fputs(".", out);
    } else if (page->n_left == 0) {
        fprintf(out,
                "Nothing is left to practise: the mastery of every %s is at least %.0f %%.",
                page->thing, 100 * page->rule.mastered);
    } else {
        fprintf(out,
                "This model gives no advice on what to practise: in it, even %d right answers "
                "in a row would make no further %s mastered.",
                (int)REPORT_MOST_NEEDED, page->thing);
    }
    fputs("</p>\n</div>\n", out);
}

/* What the model says where the answers contradict it. */
static const char *opinion(const struct page *page)
{
    return page->rule.knows ? "does not think it known" : "expects wrong answers";
}

/* One reason to practise something next. */
static void show_reason(FILE *out, const struct page *page, const struct standing_at *at)
{
    const int percent = report_rule_percent(&page->rule, at->mastery);
    fputs("<li>", out);
    print_bold(out, "b", name_of(page, at));
    if (at->answers.n == 0)
        fprintf(out,
                page->rule.knows
                    ? ": not tried yet; the chance of knowing it before any answer is %d %%."
                    : ": not tried yet; from the other answers, the model expects a mastery of "
                      "%d %%.",
                percent);
    else if (at->answers.n_recent == 1)
        fprintf(out, ": mastery %d\u00a0%%; the only answer was %s.", percent,
                at->answers.recent_right == 1 ? "right" : "wrong");
    else
        fprintf(out, ": mastery %d\u00a0%%; %" PRId64 " of the last %" PRId64 " answers right.",
                percent, at->answers.recent_right, at->answers.n_recent);
    if (at->advice == ADVISE_UNKNOWN && at->answers.n < page->rule.answers)
        fprintf(out, " Ask %s more before deciding.",
                at->answers.n + 1 < page->rule.answers ? "one or two" : "one");
    else if (is_contradicted(at))
        fprintf(out, " The model %s: check with the student.", opinion(page));
    else if (at->advice == ADVISE_UNKNOWN)
        fputs(
            page->rule.knows
                ? " Explain it before practising: it is probably not known yet."
                : " Explain it before practising: most answers are still expected to be wrong.",
            out);
    else if (at->advice == ADVISE_UNTRIED)
        fputs(" A first try shows where the student stands.", out);
    else if (!at->answers.latest_right)
        fputs(" Go through the latest wrong answer first.", out);
    if (at->needed == 1 && at->answers.latest_right)
        fputs(" One more right answer would make it mastered.", out);
    else if (at->answers.n == 0 || at->answers.latest_right)
        fprintf(out, " %" PRId64 " right answers in a row would make it mastered.", at->needed);
    fputs("</li>\n", out);
}

/* The names of what is such, from low to high mastery or the other way; returns how many. */
static size_t list_names(FILE *out, const struct page *page, const char *before,
                         bool (*is_such)(const struct standing_at *at))
{
    size_t n = 0;
    for (size_t i = 0; i < page->n; i++)
        if (is_such(&page->at[i]) && n++ < MOST_LISTED) {
            fputs(n > 1 ? ", " : before, out);
            print_bold(out, "span", name_of(page, &page->at[i]));
        }
    if (n > MOST_LISTED)
        fprintf(out, " and %zu more", n - MOST_LISTED);
    return n;
}

/* What has a high mastery, but too few answers to be called mastered. */
static void show_certain(FILE *out, const struct page *page)
{
    if (list_names(out, page,
                   "<p>Nearly certain, and not to be practised: ", is_nearly_certain) == 0)
        return;
    fprintf(
        out,
        ". The mastery is at least %.0f %%, but there are fewer than %d answers; one or two "
        "more right ones would confirm it.</p>\n",
        100 * page->rule.mastered, (int)page->rule.answers);
}

/* What practice alone cannot make mastered. */
static void show_skipped(FILE *out, const struct page *page)
{
    bool few = false;
    for (size_t i = 0; i < page->n; i++)
        few |= is_out_of_reach(&page->at[i]) && page->at[i].answers.n < page->rule.answers;
    if (list_names(out, page, "<p>Skipped for now: ", is_out_of_reach) == 0)
        return;
    fprintf(out, ". More than %d right answers in a row would be needed; ",
            (int)REPORT_MOST_NEEDED);
    if (few)
        fprintf(out,
                "where fewer than %d answers are known, ask one or two more, else begin with "
                "an explanation.</p>\n",
                (int)page->rule.answers);
    else
        fputs("begin with an explanation.</p>\n", out);
}

static void show_next(FILE *out, const struct page *page)
{
    if (page->n_next == 0) {
        show_certain(out, page);
        return;
    }
    html_say(out, "h2", "What to practise next, and why");
    fputs("<ol>\n", out);
    for (size_t i = 0; i < page->n_next; i++)
        show_reason(out, page, page->next[i]);
    fputs("</ol>\n", out);
    show_skipped(out, page);
    show_certain(out, page);
}

static void show_state(FILE *out, const struct page *page, enum report_state state,
                       const char *title, const char *words)
{
    const char *const heads[] = {page->thing, "mastery", "right answers", "of the last 5"};
    size_t first = 0;
    for (int before = 0; before < (int)state; before++)
        first += page->n_in[before];
    const size_t n = page->n_in[state], n_shown = size_min(n, (size_t)page->plan->n_rows);
    if (n == 0)
        return;
    html_say(out, "h2", "%s", title);
    html_say(out, "p", "%s", words);
    html_table_begin(out, heads, state == STATE_UNTRIED ? 2 : COUNT(heads));
    for (size_t i = first; i < first + n_shown; i++) {
        const struct standing_at *at = &page->at[i];
        html_row(out, name_of(page, at));
        fprintf(out, "<td>%d %%</td>", report_rule_percent(&page->rule, at->mastery));
        if (state != STATE_UNTRIED)
            fprintf(out,
                    "<td>%" PRId64 " of %" PRId64 "</td><td>%" PRId64 " of %" PRId64 "</td>",
                    at->answers.right, at->answers.n, at->answers.recent_right,
                    at->answers.n_recent);
        html_row_end(out);
    }
    html_table_end(out);
    if (n_shown < n)
        html_say(out, "p class=\"note\"", "Rows not shown: %s; --top shows more.",
                 html_whole((int64_t)(n - n_shown)).text);
}

/* Below the table of what needs help. */
static void show_contradicted(FILE *out, const struct page *page)
{
    for (size_t i = 0; i < page->n; i++) {
        const struct standing_at *at = &page->at[i];
        if (!is_contradicted(at))
            continue;
        fputs("<p>", out);
        print_bold(out, "b", name_of(page, at));
        fprintf(out,
                ": the model %s (%d\u00a0%%) although %" PRId64 " of the last %" PRId64
                " were right: check with the student.</p>\n",
                opinion(page), report_rule_percent(&page->rule, at->mastery),
                at->answers.recent_right, at->answers.n_recent);
    }
}

static void show_rule(FILE *out, const struct page *page)
{
    html_say(out, "h2", "How this page decides");
    report_rule_show(out, &page->rule, page->thing);
    if (page->n_withheld > 0)
        html_say(out, "p",
                 "Answers that are withheld from the model, to test it, and count nowhere on "
                 "this page: %s.",
                 html_whole(page->n_withheld).text);
    char *run = shell_quote_text("%s", page->run);
    html_say(out, "p class=\"note\"",
             "These are estimates by a model, from answers alone. “cohort report %s” shows how "
             "good the model is.",
             run);
    memory_free(run);
}

static void print_page(FILE *out, size_t row, const void *arg)
{
    const struct page *page = arg;
    (void)row;
    html_begin(out, page->plan->title[0] != '\0' ? page->plan->title : page->plan->student);
    show_head(out, page);
    show_next(out, page);
    show_state(out, page, STATE_HELP, "Needs help",
               page->rule.knows
                   ? "Several answers are known, and by them these are probably not known yet. "
                     "Explain these before more practice."
                   : "Several answers are known, and most of the next ones are expected to be "
                     "wrong. Explain these before more practice.");
    show_contradicted(out, page);
    show_state(out, page, STATE_PROGRESS, "In progress",
               "Tried, but not yet certain. The nearest to mastered come first.");
    show_state(out, page, STATE_MASTERED, "Mastered",
               "No more practice is needed now; repeat these from time to time.");
    if (page->path.n_skills > 0) {
        html_say(out, "h2", "The path so far");
        html_figures(out);
        report_path_draw(out, &page->path, page->things, page->thing, PATH_TITLE, "");
        report_path_draw_growth(out, &page->path, page->thing, PATH_TITLE, page->is_fixed);
        html_figures_end(out);
    }
    char *estimate = memory_text("An estimate from the answers to other %ss.", page->thing);
    show_state(out, page, STATE_UNTRIED, "Not tried yet",
               page->rule.knows ? "The chance of knowing them before any answer." : estimate);
    memory_free(estimate);
    show_rule(out, page);
    html_end(out);
}

enum status report_student_write(const struct comm *comm, const char *path,
                                 const struct report_plan *plan)
{
    struct inference inference;
    struct standing standing = {0};
    struct report_run run = {0};
    struct report report = {.plan = plan,
                            .runs = &run,
                            .n = 1,
                            .n_all = 1,
                            .pairs = {.baseline = {SIZE_MAX, SIZE_MAX}}};
    size_t student = 0;
    paired_start(&report.pairs.paired, comm, REPORT_RESAMPLINGS, REPORT_SEED);
    enum status status = inference_open_any(&inference, path, plan->data, comm);
    if (status == OK)
        status = report_find_student(&inference, plan->student, &student);
    if (status == OK)
        status = report_measure_scores(&run, &inference, path, plan, &report.pairs);
    if (status == OK)
        status = standing_open(&standing, &inference);
    if (status == OK) {
        const struct shard *shard = &inference.shard;
        const bool here = student >= shard->first_student &&
                          student < shard->first_student + shard->n_students;
        struct page page = {
            .plan = plan,
            .report = &report,
            .dataset = &inference.dataset,
            .things = standing.by_item ? &inference.dataset.items : &inference.dataset.skills,
            .thing = standing.by_item ? "item" : "skill",
            .kind = inference.model->kind->name,
            .run = report_shown(path, 1),
            .rule = report_rule_of(live_knows(inference.model)),
            .is_fixed = report_is_fixed(inference.model->kind, inference.config)};
        log_live("report: writing %s", plan->output);
        if (here)
            measure(&page, &standing, student - shard->first_student);
        collect(&page, comm, here);
        arrange(&page);
        status =
            parallel_output_write(comm, plan->output, "", comm->rank == 0, print_page, &page);
        memory_free(page.at);
        memory_free(page.run);
    }
    standing_close(&standing);
    inference_close(&inference);
    report_run_free(&run);
    paired_free(&report.pairs.paired);
    return status;
}
