/* Words of the pages: the buckets of counts, paths without what is private, and what the settings
 * of a run say on its training. */
#include "base/memory.h"
#include "report/report_internal.h"
#include <stdlib.h>
#include <string.h>

const char *const report_bucket_names[REPORT_BUCKETS] = {
    "0",     "1",      "2",       "3–5",     "6–10",     "11–20",
    "21–50", "51–100", "101–200", "201–500", "501–1000", "over 1000"};

size_t report_bucket(uint64_t n)
{
    static const uint64_t last[] = {0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000};
    size_t b = 0;
    while (b < COUNT(last) && n > last[b])
        b++;
    return b;
}

char *report_shown(const char *path, int n_parts)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    size_t first = n;
    for (int parts = 0; path[0] == '/' && first > 0; first--)
        if (path[first - 1] == '/' && ++parts == n_parts)
            break;
    return path[0] == '/' ? memory_text("%.*s", (int)(n - first), path + first)
                          : memory_text("%.*s", (int)n, path);
}

int report_monitor(const struct config *config)
{
    const char *name = config_get(config, "train", "monitor");
    for (int m = 0; m < N_METRICS && name != NULL; m++)
        if (strcmp(metrics_names[m], name) == 0)
            return m;
    return name != NULL && strcmp(name, "likelihood") == 0 ? -1 : METRIC_LOG_LOSS;
}

int64_t report_epochs(const struct config *config)
{
    const char *epochs = config_get(config, "train", "epochs");
    const char *refit = config_get(config, "refit", "epochs");
    if (refit != NULL && strtoll(refit, NULL, 10) > 0) /* as many as the best epoch took */
        epochs = refit;
    return epochs != NULL ? strtoll(epochs, NULL, 10) : 0;
}

static int64_t train_integer(const struct config *config, const char *key)
{
    const char *value = config_get(config, "train", key);
    return value != NULL ? strtoll(value, NULL, 10) : 0;
}

void report_fold(const struct config *config, int64_t *fold, int64_t *n_folds)
{
    *fold = train_integer(config, "fold");
    *n_folds = *fold > 0 ? train_integer(config, "folds") : 0;
}

const char report_fixed_words[] = "This model assumes a fixed ability: a rising line means a "
                                  "better estimate, not learning.";

/* Features of ktm that change with the attempts of a student. */
static bool has_changes(const char *features)
{
    static const char *const changing[] = {"attempts", "wins", "fails", "previous_", "elapsed"};
    for (const char *word = features; *word != '\0'; word += strspn(word, " ")) {
        for (size_t k = 0; k < COUNT(changing); k++)
            if (strncmp(word, changing[k], strlen(changing[k])) == 0)
                return true;
        word += strcspn(word, " ");
    }
    return false;
}

bool report_is_fixed(const struct model_kind *kind, const struct config *config)
{
    const char *features = config_get(config, "model", "features");
    return strcmp(kind->name, "lme") == 0 || strcmp(kind->name, "vae") == 0 ||
           (strcmp(kind->name, "ktm") == 0 && features != NULL && !has_changes(features));
}
