/* `cohort import` with files and options from the fuzzer. An input is a line of words, the
 * first of them the format, and then the files it names:
 *
 *     csv a.csv --student=who --skip-bad
 *     @@@@ a.csv
 *     who,item,correct
 *     ...
 *
 * A data set that was written must pass verify; after a failure there is none. */
#include "fuzz.h"

#include "data/dataset.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    fuzz_settle(argc, argv);
    return 0;
}

static bool is_plain(const char *name)
{
    const size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.");
    return n > 0 && n <= 20 && name[n] == '\0' && name[0] != '.' && strcmp(name, "out.h5") != 0;
}

/* The number of keys in --items is the number of attempts per line: valid, but slow when
 * large. */
static void bound_items(char *word)
{
    if (strncmp(word, "--items=", 8) == 0 && strlen(word) > 10)
        word[10] = '\0';
}

static enum status import(const uint8_t *data, size_t size)
{
    char *text = memory_text("%*s", (int)size, ""), *rest = text;
    memcpy(text, data, size);
    struct fuzz_part line = {0}, part;
    enum { MOST_FILES = 8 };
    const char *files[MOST_FILES];
    size_t n_files = 0;
    fuzz_next_part(&rest, &size, &line);
    while (n_files < MOST_FILES && fuzz_next_part(&rest, &size, &part))
        if (is_plain(part.name)) {
            fuzz_write(part.name, part.text, part.n);
            files[n_files++] = part.name;
        }
    char *words[FUZZ_MOST_WORDS + 4] = {(char *)"import", (char *)"-o", (char *)"out.h5"};
    line.text[strcspn(line.text, "\n")] = '\0';
    int n = 3 + fuzz_words(line.text, words + 3, FUZZ_MOST_WORDS), kept = 3;
    for (int w = 3; w < n; w++) {
        bound_items(words[w]);
        const bool is_output = strcmp(words[w], "-o") == 0 ||
                               strncmp(words[w], "--output", 8) == 0 ||
                               strcmp(words[w], "--items") == 0;
        if (!is_output)
            words[kept++] = words[w];
    }
    words[kept] = NULL;
    enum status status = fuzz_command(&command_import, words);
    const bool is_there = access("out.h5", F_OK) == 0;
    fuzz_must(is_there == (status == OK), "a data set after success, none after a failure");
    fuzz_must(access("out.h5.tmp", F_OK) != 0, "no draft left behind");
    if (status == OK)
        fuzz_must(dataset_verify("out.h5", NULL) == OK, "a data set that verify calls good");
    for (size_t f = 0; f < n_files; f++)
        unlink(files[f]);
    unlink("out.h5");
    memory_free(text);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 0)
        fuzz_try(import, data, size, true);
    return 0;
}
