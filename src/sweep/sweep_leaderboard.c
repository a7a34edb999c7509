/* The files of the leaderboard:
 *
 *     leaderboard.csv   every trial, best first
 *     effects.csv       the effect of each hyperparameter
 *     best.ini          the best trial's settings, ready to train */
#include "base/atomic_file.h"
#include "base/csv_quote.h"
#include "base/fail.h"
#include "base/memory.h"
#include "sweep/sweep.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct text {
    char *bytes;
    size_t n;
    FILE *out;
};

static void text_begin(struct text *text)
{
    text->out = memory_stream(&text->bytes, &text->n);
}

static enum status text_write(struct text *text, const struct sweep *sweep, const char *name)
{
    fclose(text->out);
    char *path = memory_text("%s/%s", sweep->directory, name);
    enum status status = atomic_file_write(path, text->bytes, text->n);
    memory_free(path);
    free(text->bytes);
    return status;
}

static void print_score(FILE *out, const struct score *score, bool there)
{
    struct score copy = *score;
    for (int m = 0; m < N_METRICS; m++) {
        const double value = *metrics_value(&copy, m);
        if (there && !isnan(value))
            fprintf(out, ",%.9g", value);
        else
            fputc(',', out);
    }
}

static enum status write_board(const struct sweep *sweep, const struct sweep_board *board)
{
    static const char *const parts[] = {"valid", "test", "valid_spread", "test_spread"};
    struct text text;
    text_begin(&text);
    fputs("place,trial,state,rung,epochs", text.out);
    for (size_t d = 0; d < sweep->n_dimensions; d++)
        fprintf(text.out, ",%s.%s", sweep->dimensions[d].section, sweep->dimensions[d].key);
    const int n_parts = sweep->folds ? 4 : 2;
    for (int p = 0; p < n_parts; p++)
        for (int m = 0; m < N_METRICS; m++)
            fprintf(text.out, ",%s_%s", parts[p], metrics_names[m]);
    fputs(",reason\n", text.out);
    for (size_t place = 0; place < sweep->n_trials; place++) {
        const size_t t = board->order[place];
        const struct sweep_result *result = &board->results[t];
        const bool done = result->state == SWEEP_DONE;
        fprintf(text.out, "%zu,%s,%s,%lld,", place + 1, sweep->trials[t].id,
                sweep_states[result->state], (long long)result->rung);
        if (done)
            fprintf(text.out, "%lld", (long long)result->epochs);
        for (size_t d = 0; d < sweep->n_dimensions; d++) {
            fputc(',', text.out);
            csv_quote(text.out, sweep->trials[t].values[d]);
        }
        const struct score *const scores[] = {&result->valid, &result->test,
                                              &result->valid_spread, &result->test_spread};
        for (int p = 0; p < n_parts; p++)
            print_score(text.out, scores[p], done && scores[p < 2 ? p : p - 2]->n > 0);
        fputc(',', text.out);
        csv_quote(text.out, result->reason ? result->reason : "");
        fputc('\n', text.out);
    }
    return text_write(&text, sweep, "leaderboard.csv");
}

static enum status write_effects(const struct sweep *sweep)
{
    struct text text;
    text_begin(&text);
    fprintf(text.out, "key,level,trials,mean_valid_%s,best_valid_%s,share_of_variance\n",
            metrics_names[sweep->metric], metrics_names[sweep->metric]);
    for (size_t d = 0; d < sweep->n_dimensions; d++) {
        struct sweep_effect effect;
        sweep_effect(sweep, d, &effect);
        for (size_t l = 0; l < effect.n_levels; l++) {
            const struct sweep_level *level = &effect.levels[l];
            fprintf(text.out, "%s.%s,", sweep->dimensions[d].section, sweep->dimensions[d].key);
            csv_quote(text.out, level->name);
            fprintf(text.out, ",%zu,", level->n);
            if (level->n > 0)
                fprintf(text.out, "%.9g,%.9g,", level->mean, level->best);
            else
                fputs(",,", text.out);
            if (!isnan(effect.share))
                fprintf(text.out, "%.6g", effect.share);
            fputc('\n', text.out);
        }
        sweep_effect_free(&effect);
    }
    return text_write(&text, sweep, "effects.csv");
}

static enum status write_best(const struct sweep *sweep, size_t trial)
{
    struct settings settings;
    enum status status = sweep_settings(sweep, trial, sweep->epochs, &settings);
    char *directory = memory_text("%s/best", sweep->directory);
    if (status == OK) {
        settings.run.directory = directory;
        char *config = config_text(settings.groups, N_SETTINGS_GROUPS, NULL);
        char *path = memory_text("%s/best.ini", sweep->directory);
        char *text = memory_text("# The best trial of the sweep, %s.\n%s",
                                 sweep->trials[trial].id, config);
        status = atomic_file_write(path, text, strlen(text));
        memory_free(text);
        memory_free(path);
        memory_free(config);
    }
    settings_destroy(&settings);
    memory_free(directory);
    return status;
}

enum status sweep_collect(const struct sweep *sweep, struct sweep_board *board)
{
    int file = -1;
    TRY(sweep_lock(sweep, &file));
    sweep_read_board(sweep, board);
    enum status status = write_board(sweep, board);
    if (status == OK)
        status = write_effects(sweep);
    if (status == OK && board->results[board->order[0]].state == SWEEP_DONE)
        status = write_best(sweep, board->order[0]);
    close(file);
    return status;
}
