/* Settings from the fuzzer. An input is a settings file, then optional parts: words of a
 * command line, one per line, after `@@@@ words`, and suggested settings, as those of a
 * continued run, after `@@@@ run`. Accepted settings must read back the same after being
 * written, and make a run or a sweep, or be refused with an error message. Sweeps are limited
 * to 2000 trials, to keep inputs fast. */
#define FUZZ_ROOM (64 << 10)
#include "fuzz.h"

#include "sweep/sweep.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    fuzz_settle(argc, argv);
    return 0;
}

static enum status set_words(struct config *config, char *lines)
{
    for (char *rest = lines, *word; (word = strsep(&rest, "\n")) != NULL;)
        if (*word != '\0')
            TRY(config_set(config, word, "command line"));
    return OK;
}

static enum status read_parts(struct config *config, char *text, size_t size)
{
    char *rest = text;
    struct fuzz_part part;
    while (fuzz_next_part(&rest, &size, &part)) {
        part.text[part.n > 0 && rest != NULL ? part.n - 1 : part.n] = '\0';
        TRY(strcmp(part.name, "words") == 0 ? set_words(config, part.text)
            : strcmp(part.name, "run") == 0 ? config_suggest(config, part.text, "run")
                                            : config_read_text(config, part.text, "file"));
    }
    return OK;
}

/* The settings written as text read back as settings with the same text. */
static void expect_round_trip(const struct settings *settings)
{
    char *text = config_text(settings->groups, N_SETTINGS_GROUPS, NULL);
    struct config *config = config_create();
    struct settings again;
    fuzz_must(config_read_text(config, text, "text") == OK, "settings that can be read again");
    fuzz_must(settings_create(&again, config, NULL) == OK, "settings that are taken again");
    char *back = config_text(again.groups, N_SETTINGS_GROUPS, NULL);
    fuzz_must(strcmp(back, text) == 0, "the same settings again");
    settings_destroy(&again);
    memory_free(back);
    memory_free(text);
}

static enum status settle(char *text, size_t size)
{
    struct config *config = config_create();
    enum status status = read_parts(config, text, size);
    if (status != OK) {
        config_destroy(config);
        return status;
    }
    struct settings settings;
    status = settings_create(&settings, config, NULL);
    if (status == OK)
        expect_round_trip(&settings);
    settings_destroy(&settings);
    return status;
}

static enum status plan(char *text, size_t size)
{
    struct config *config = config_create();
    enum status status = read_parts(config, text, size);
    if (status != OK) {
        config_destroy(config);
        return status;
    }
    struct sweep sweep;
    status = sweep_create(&sweep, config);
    sweep_destroy(&sweep);
    return status;
}

static enum status read_both(const uint8_t *data, size_t size)
{
    char *text = memory_text("%*s", (int)size, "");
    memcpy(text, data, size);
    fuzz_judge(settle(text, size), false);
    memcpy(text, data, size);
    const enum status status = plan(text, size);
    memory_free(text);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (memchr(data, '\0', size) == NULL)
        fuzz_try(read_both, data, size, false);
    return 0;
}
