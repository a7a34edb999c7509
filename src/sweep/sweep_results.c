/* The results of trials. Each trial and rung has one file,
 *
 *     DIRECTORY/trials/ID/rung-1.json
 *
 * written by rename by the job that trained it. The leaderboard is built from these files alone
 * and contains nothing that depends on time or machine, so its bytes are the same however the
 * trials were run. The few files that do not belong to one trial are protected by the kernel's
 * lock on the file `lock`, because jobs may start or end at the same time. */
#include "base/atomic_file.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/memory.h"
#include "runs/run.h"
#include "runs/run_find.h"
#include "sweep/sweep.h"
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const sweep_states[] = {"waiting", "running", "done", "failed"};

char *sweep_path(const struct sweep *sweep, size_t trial, const char *name)
{
    return memory_text("%s/trials/%s%s%s", sweep->directory, sweep->trials[trial].id,
                       name ? "/" : "", name ? name : "");
}

static char *result_path(const struct sweep *sweep, size_t trial, int64_t rung)
{
    char name[32];
    snprintf(name, sizeof name, "rung-%lld.json", (long long)rung);
    return sweep_path(sweep, trial, name);
}

/* Reports the first line in which two sweeps differ. */
static enum status other_sweep(const char *path, const char *stored, const char *now)
{
    while (*stored == *now && *stored != '\0') {
        const size_t a = strcspn(stored, "\n"), b = strcspn(now, "\n");
        if (a != b || memcmp(stored, now, a) != 0)
            break;
        stored += a + (stored[a] == '\n');
        now += b + (now[b] == '\n');
    }
    return fail(
        BAD_USER,
        "%s: this directory belongs to another sweep, with '%.*s' where '%.*s' is requested "
        "now (only sweep.trials and sweep.ranks may change); choose another run=",
        path, (int)strcspn(stored, "\n"), stored, (int)strcspn(now, "\n"), now);
}

enum status sweep_lock(const struct sweep *sweep, int *file)
{
    char *path = memory_text("%s/lock", sweep->directory);
    const enum status status = file_lock_take(path, LOCK_FOREVER, file);
    memory_free(path);
    return status;
}

static enum status check_same(const struct sweep *sweep, const char *path)
{
    char *stored = NULL;
    size_t n = 0;
    enum status status = file_read(path, &stored, &n);
    if (status == OK && strcmp(stored, sweep->text) != 0)
        status = other_sweep(sweep->directory, stored, sweep->text);
    memory_free(stored);
    return status;
}

static enum status make(const struct sweep *sweep, const char *path)
{
    int file = -1;
    TRY(file_make_directory(sweep->directory));
    TRY(sweep_lock(sweep, &file));
    const enum status status = file_exists(path)
                                   ? check_same(sweep, path)
                                   : atomic_file_write(path, sweep->text, strlen(sweep->text));
    close(file);
    return status;
}

enum status sweep_note_size(const struct sweep *sweep)
{
    char *path = memory_text("%s/size.ini", sweep->directory);
    char *text = memory_text("sweep.trials = %lld\nsweep.ranks = %lld\n",
                             (long long)sweep->options.trials, (long long)sweep->options.ranks);
    char *known = NULL;
    size_t n = 0;
    enum status status = file_exists(path) ? file_read(path, &known, &n) : OK;
    if (status == OK && (known == NULL || strcmp(known, text) != 0))
        status = atomic_file_write(path, text, strlen(text));
    memory_free(known);
    memory_free(text);
    memory_free(path);
    return status;
}

/* sweep.ini begins with the keys of [sweep]; the others have their sections before a dot. */
static enum status recall_line(struct config *config, const char *line, const char *path)
{
    const int n = (int)strcspn(line, "\n"), key = (int)strcspn(line, " =\n");
    if (n == 0 || line[0] == '[')
        return OK;
    char *whole =
        memory_text("%s%.*s\n", memchr(line, '.', (size_t)key) ? "" : "sweep.", n, line);
    const enum status status = config_suggest(config, whole, path);
    memory_free(whole);
    return status;
}

enum status sweep_recall(struct config *config)
{
    const char *directory = config_get(config, "run", "directory");
    for (size_t e = 0; e < config_count(config); e++)
        if (strcmp(config_entry(config, e).section, "run") != 0)
            return OK;
    if (directory == NULL)
        return OK;
    static const char *const names[] = {"sweep.ini", "size.ini"};
    if (!file_is_in(directory, names[0]))
        return fail(BAD_USER, "run=%s: %s; expected the directory of a sweep", directory,
                    file_exists(directory) ? "there is no sweep.ini in it"
                                           : "no such directory");
    enum status status = OK;
    for (size_t f = 0; status == OK && f < COUNT(names); f++) {
        char *path = memory_text("%s/%s", directory, names[f]), *text = NULL;
        size_t n = 0;
        if (file_exists(path))
            status = file_read(path, &text, &n);
        for (const char *line = text; status == OK && line != NULL && *line != '\0';
             line += strcspn(line, "\n"), line += *line == '\n')
            status = recall_line(config, line, path);
        memory_free(text);
        memory_free(path);
    }
    return status;
}

enum status sweep_open(const struct sweep *sweep)
{
    char *path = memory_text("%s/sweep.ini", sweep->directory);
    char *config = memory_text("%s/config.ini", sweep->directory);
    enum status status = OK;
    if (file_exists(path))
        status = check_same(sweep, path);
    else if (file_exists(config) || run_is_auto(sweep->directory))
        status = fail(BAD_USER,
                      "%s: this directory belongs to %s; choose another run= for the sweep",
                      sweep->directory, file_exists(config) ? "a run" : "`cohort auto`");
    else
        status = make(sweep, path);
    memory_free(config);
    memory_free(path);
    return status;
}

static void score_read(const json_t *object, struct score *score)
{
    *score = (struct score){.n = json_integer_value(json_object_get(object, "n"))};
    for (int m = 0; m < N_METRICS; m++) {
        const json_t *value = json_object_get(object, metrics_names[m]);
        *metrics_value(score, m) = json_is_number(value) ? json_number_value(value) : NAN;
    }
}

char *sweep_describe(const struct sweep *sweep, size_t trial, const char *first)
{
    char *text = memory_text("%s", first);
    for (size_t d = 0; d < sweep->n_dimensions; d++) {
        char *longer = memory_text("%s%s%s.%s=%s", text, text[0] != '\0' ? " " : "",
                                   sweep->dimensions[d].section, sweep->dimensions[d].key,
                                   sweep->trials[trial].values[d]);
        memory_free(text);
        text = longer;
    }
    return text;
}

enum status sweep_write_result(const struct sweep *sweep, size_t trial,
                               const struct sweep_result *result)
{
    json_t *object = json_object(), *settings = json_object();
    for (size_t d = 0; d < sweep->n_dimensions; d++) {
        char *key =
            memory_text("%s.%s", sweep->dimensions[d].section, sweep->dimensions[d].key);
        json_object_set_new(settings, key, json_string(sweep->trials[trial].values[d]));
        memory_free(key);
    }
    json_object_set_new(object, "trial", json_string(sweep->trials[trial].id));
    json_object_set_new(object, "settings", settings);
    json_object_set_new(object, "rung", json_integer(result->rung));
    json_object_set_new(object, "data_digest", json_string(result->data_digest));
    json_object_set_new(object, "state", json_string(sweep_states[result->state]));
    if (result->state == SWEEP_FAILED) {
        json_object_set_new(object, "reason", json_string(result->reason));
    } else {
        json_object_set_new(object, "epochs", json_integer(result->epochs));
        json_object_set_new(object, "valid", score_json(&result->valid));
        json_object_set_new(object, "test", score_json(&result->test));
        if (sweep->folds) {
            json_object_set_new(object, "valid_spread", score_json(&result->valid_spread));
            json_object_set_new(object, "test_spread", score_json(&result->test_spread));
        }
    }
    json_object_set_new(object, "seconds", json_real(result->seconds));
    char *text =
        json_dumps(object, JSON_PRESERVE_ORDER | JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    char *line = memory_text("%s\n", text), *path = result_path(sweep, trial, result->rung);
    enum status status = atomic_file_write(path, line, strlen(line));
    memory_free(path);
    memory_free(line);
    free(text);
    json_decref(object);
    return status;
}

/* Whether a job is running the trial: the lock on the claim ends with its process. */
static bool is_claimed(const struct sweep *sweep, size_t trial)
{
    char *path = sweep_path(sweep, trial, "claim");
    const bool claimed = file_lock_is_held(path);
    memory_free(path);
    return claimed;
}

void sweep_read_result(const struct sweep *sweep, size_t trial, int64_t rung,
                       struct sweep_result *result)
{
    *result = (struct sweep_result){.state = SWEEP_WAITING, .rung = rung};
    char *path = result_path(sweep, trial, rung);
    json_t *object = run_json(path);
    memory_free(path);
    const char *state = json_string_value(json_object_get(object, "state"));
    if (state == NULL) {
        result->state = is_claimed(sweep, trial) ? SWEEP_RUNNING : SWEEP_WAITING;
    } else if (strcmp(state, "failed") == 0) {
        const char *reason = json_string_value(json_object_get(object, "reason"));
        result->state = SWEEP_FAILED;
        result->reason = memory_text("%s", reason ? reason : "");
    } else {
        result->state = SWEEP_DONE;
        result->epochs = json_integer_value(json_object_get(object, "epochs"));
        score_read(json_object_get(object, "valid"), &result->valid);
        score_read(json_object_get(object, "test"), &result->test);
        score_read(json_object_get(object, "valid_spread"), &result->valid_spread);
        score_read(json_object_get(object, "test_spread"), &result->test_spread);
    }
    result->seconds = json_number_value(json_object_get(object, "seconds"));
    const char *digest = json_string_value(json_object_get(object, "data_digest"));
    snprintf(result->data_digest, sizeof result->data_digest, "%s", digest ? digest : "");
    json_decref(object);
}

void sweep_read_last(const struct sweep *sweep, size_t trial, struct sweep_result *result)
{
    for (int64_t rung = sweep->options.rungs; rung >= 1; rung--) {
        sweep_read_result(sweep, trial, rung, result);
        if (result->state == SWEEP_DONE || result->state == SWEEP_FAILED || rung == 1)
            return;
        memory_free(result->reason);
    }
}

/* ---- ranking */

struct ranked {
    size_t trial;
    int64_t rung;
    bool done;
    double score; /* smaller is better */
};

static struct ranked ranked_of(const struct sweep *sweep, size_t trial,
                               const struct sweep_result *result)
{
    struct score copy = result->valid;
    const double value = *metrics_value(&copy, sweep->metric);
    return (struct ranked){
        .trial = trial,
        .rung = result->rung,
        .done = result->state == SWEEP_DONE && !isnan(value),
        .score = metrics_up(sweep->metric) ? -value : value,
    };
}

/* Done before not done; the last rung first; then by score; then by number. */
static int compare(const void *x, const void *y)
{
    const struct ranked *a = x, *b = y;
    if (a->done != b->done)
        return a->done ? -1 : 1;
    if (a->done && a->rung != b->rung)
        return a->rung > b->rung ? -1 : 1;
    if (a->done && a->score != b->score)
        return a->score < b->score ? -1 : 1;
    return a->trial < b->trial ? -1 : a->trial > b->trial;
}

static int by_number(const void *x, const void *y)
{
    const size_t a = *(const size_t *)x, b = *(const size_t *)y;
    return a < b ? -1 : a > b;
}

size_t *sweep_rung(const struct sweep *sweep, int64_t rung, size_t *n)
{
    size_t n_before = sweep->n_trials;
    size_t *trials = NEW(size_t, n_before);
    for (size_t t = 0; t < n_before; t++)
        trials[t] = t;
    for (int64_t r = 1; r < rung; r++) {
        struct ranked *ranked = NEW(struct ranked, n_before);
        for (size_t i = 0; i < n_before; i++) {
            struct sweep_result result;
            sweep_read_result(sweep, trials[i], r, &result);
            ranked[i] = ranked_of(sweep, trials[i], &result);
            memory_free(result.reason);
        }
        qsort(ranked, n_before, sizeof *ranked, compare);
        size_t kept = 0;
        while (kept < n_before && kept < sweep_width(sweep, r + 1) && ranked[kept].done) {
            trials[kept] = ranked[kept].trial;
            kept++;
        }
        memory_free(ranked);
        n_before = kept;
        qsort(trials, kept, sizeof *trials, by_number);
    }
    *n = n_before;
    return trials;
}

size_t sweep_n_open(const struct sweep *sweep, int64_t rung, const size_t *trials, size_t n)
{
    size_t n_open = 0;
    for (size_t i = 0; i < n; i++) {
        struct sweep_result result;
        sweep_read_result(sweep, trials[i], rung, &result);
        memory_free(result.reason);
        n_open += result.state != SWEEP_DONE && result.state != SWEEP_FAILED;
    }
    return n_open;
}

void sweep_read_board(const struct sweep *sweep, struct sweep_board *board)
{
    *board = (struct sweep_board){.order = NEW(size_t, sweep->n_trials),
                                  .results = NEW(struct sweep_result, sweep->n_trials)};
    struct ranked *ranked = NEW(struct ranked, sweep->n_trials);
    for (size_t t = 0; t < sweep->n_trials; t++) {
        sweep_read_last(sweep, t, &board->results[t]);
        board->n_by_state[board->results[t].state]++;
        ranked[t] = ranked_of(sweep, t, &board->results[t]);
    }
    qsort(ranked, sweep->n_trials, sizeof *ranked, compare);
    for (size_t t = 0; t < sweep->n_trials; t++)
        board->order[t] = ranked[t].trial;
    memory_free(ranked);
}

void sweep_board_free(const struct sweep *sweep, struct sweep_board *board)
{
    for (size_t t = 0; board->results != NULL && t < sweep->n_trials; t++)
        memory_free(board->results[t].reason);
    memory_free(board->results);
    memory_free(board->order);
    *board = (struct sweep_board){0};
}

/* ---- effects */

static void level_names(const struct sweep_dimension *d, struct sweep_effect *effect)
{
    effect->n_levels = d->n_values > 0 ? d->n_values : 3;
    effect->levels = NEW(struct sweep_level, effect->n_levels);
    for (size_t l = 0; l < effect->n_levels; l++) {
        const double a = (double)l / 3, b = (double)(l + 1) / 3;
        effect->levels[l].name =
            d->n_values > 0 ? memory_text("%s", d->values[l])
            : d->is_log     ? memory_text("%.3g to %.3g", d->low * pow(d->high / d->low, a),
                                          d->low * pow(d->high / d->low, b))
                            : memory_text("%.3g to %.3g", d->low + a * (d->high - d->low),
                                          d->low + b * (d->high - d->low));
        effect->levels[l].best = NAN;
    }
}

static size_t level_of(const struct sweep_dimension *d, const char *value)
{
    for (size_t v = 0; v < d->n_values; v++)
        if (strcmp(d->values[v], value) == 0)
            return v;
    const double x = strtod(value, NULL);
    const double u =
        d->is_log ? log(x / d->low) / log(d->high / d->low) : (x - d->low) / (d->high - d->low);
    return (size_t)fmin(2, fmax(0, floor(3 * u)));
}

void sweep_effect(const struct sweep *sweep, size_t dimension, struct sweep_effect *effect)
{
    const struct sweep_dimension *d = &sweep->dimensions[dimension];
    *effect = (struct sweep_effect){.share = NAN};
    level_names(d, effect);
    size_t n = 0;
    double sum = 0, squares = 0, between = 0;
    for (size_t t = 0; t < sweep->n_trials; t++) {
        struct sweep_result result;
        sweep_read_result(sweep, t, 1, &result);
        memory_free(result.reason);
        const double value = *metrics_value(&result.valid, sweep->metric);
        if (result.state != SWEEP_DONE || isnan(value))
            continue;
        struct sweep_level *level =
            &effect->levels[level_of(d, sweep->trials[t].values[dimension])];
        const bool better =
            isnan(level->best) ||
            (metrics_up(sweep->metric) ? value > level->best : value < level->best);
        level->n++;
        level->mean += value;
        level->best = better ? value : level->best;
        n++;
        sum += value;
        squares += value * value;
    }
    for (size_t l = 0; l < effect->n_levels; l++) {
        struct sweep_level *level = &effect->levels[l];
        level->mean = level->n > 0 ? level->mean / (double)level->n : NAN;
        if (level->n > 0)
            between += (double)level->n * pow(level->mean - sum / (double)n, 2);
    }
    const double all = squares - sum * sum / (double)n;
    if (n > 1 && all > 1e-15)
        effect->share = fmin(1, between / all);
}

void sweep_effect_free(struct sweep_effect *effect)
{
    for (size_t l = 0; l < effect->n_levels; l++)
        memory_free(effect->levels[l].name);
    memory_free(effect->levels);
    *effect = (struct sweep_effect){0};
}
