/* tests: import small files with the command itself and print the data set as short texts. */
#ifndef COHORT_IMPORTED_H
#define COHORT_IMPORTED_H

#include "base/fail.h"
#include "base/log.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "data/dataset.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#undef fail /* cmocka defines a macro of this name */

static struct comm world;
static char home[256]; /* this test's own directory */

/* A data set read back from its file. */
struct class
{
    struct dataset dataset;
    struct shard shard;
    struct names students;
};

static inline void settle(int *argc, char ***argv)
{
    comm_start(&world, argc, argv);
    log_mute(true);
    const char *where = getenv("TMPDIR");
    snprintf(home, sizeof home, "%s/imported.XXXXXX", where ? where : "/tmp");
    if (mkdtemp(home) == NULL)
        abort();
}

static inline void leave(void)
{
    char command[512];
    snprintf(command, sizeof command, "rm -rf '%s'", home);
    if (system(command) != 0)
        perror(command);
    comm_finish(&world);
}

static inline void write_bytes(const char *name, const char *bytes, size_t n)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", home, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static inline void write_text(const char *name, const char *text)
{
    write_bytes(name, text, strlen(text));
}

static inline void write_gzip(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", home, name);
    gzFile file = gzopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(gzwrite(file, text, (unsigned)strlen(text)), strlen(text));
    assert_int_equal(gzclose(file), Z_OK);
}

/* Run a command given as one line: blanks separate words, `~` stands for a blank within a word,
 * and @ for this test's directory. */
static inline enum status run_line(const struct command *command, const char *line)
{
    char text[4096], *argv[64];
    size_t n = 0;
    for (const char *c = line; *c != '\0'; c++)
        n += (size_t)snprintf(text + n, sizeof text - n, *c == '@' ? "%s" : "%.1s",
                              *c == '@' ? home : c);
    int argc = 0;
    argv[argc++] = (char *)command->name;
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " "))
        argv[argc++] = word;
    for (int i = 0; i < argc; i++)
        for (char *c = argv[i]; i > 0 && *c != '\0'; c++)
            *c = *c == '~' ? ' ' : *c;
    fail_clear();
    return command->run(&world, argc, argv);
}

extern const struct command command_import, command_simulate;

static inline void read_class(const char *name, struct class *class)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", home, name);
    const enum status status = dataset_open(&class->dataset, path, &world);
    if (status != OK)
        print_error("%s\n", fail_sentence());
    assert_int_equal(status, OK);
    const size_t n = class->dataset.n_students;
    assert_int_equal(dataset_read(&class->dataset, 0, n, &class->shard), OK);
    assert_int_equal(dataset_read_names(&class->dataset, 0, n, &class->students), OK);
}

/* Import into out.h5, which must succeed, and read it back. */
static inline void import_class(const char *line, struct class *class)
{
    char whole[2048];
    snprintf(whole, sizeof whole, "%s -o @/out.h5", line);
    const enum status status = run_line(&command_import, whole);
    if (status != OK)
        print_error("%s\n", fail_sentence());
    assert_int_equal(status, OK);
    read_class("out.h5", class);
}

/* Run an import that must fail with this status, print these words, and leave no files. */
static inline void import_fails(const char *line, enum status expected, const char *words)
{
    char whole[2048], path[512];
    snprintf(whole, sizeof whole, "%s -o @/failed.h5", line);
    const enum status status = run_line(&command_import, whole);
    if (status != expected || strstr(fail_sentence(), words) == NULL)
        print_error("%d: %s (expected: %s)\n", (int)status, fail_sentence(), words);
    assert_int_equal(status, expected);
    assert_non_null(strstr(fail_sentence(), words));
    snprintf(path, sizeof path, "%s/failed.h5", home);
    assert_int_not_equal(access(path, F_OK), 0);
    snprintf(path, sizeof path, "%s/failed.h5.tmp", home);
    assert_int_not_equal(access(path, F_OK), 0);
    fail_clear();
}

static inline void free_class(struct class *class)
{
    shard_free(&class->shard);
    names_free(&class->students);
    dataset_close(&class->dataset);
}

static inline size_t find_student(const struct class *class, const char *name)
{
    for (size_t s = 0; s < class->students.n; s++)
        if (strcmp(names_get(&class->students, s), name) == 0)
            return s;
    print_error("there is no student '%s'\n", name);
    assert_true(false);
    return 0;
}

/* A student's attempts: "q1+ q2- q3?"; with `marks`, "q1+train* |q2-valid": * means shown, and
 * | precedes an attempt that does not begin a new step. */
static inline const char *story(const struct class *class, const char *name, bool marks)
{
    static const char *const splits[] = {"train", "valid", "test"};
    static char text[4096];
    const size_t s = find_student(class, name);
    size_t n = 0;
    text[0] = '\0';
    for (uint64_t t = class->shard.first[s]; t < class->shard.first[s + 1]; t++) {
        const uint8_t mark = class->shard.mark[t];
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s%s%c", n > 0 ? " " : "",
                              marks && !(mark & MARK_STEP) ? "|" : "",
                              names_get(&class->dataset.items, class->shard.item[t]),
                              "-+?"[mark_outcome(mark)]);
        if (marks)
            n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", splits[mark_split(mark)],
                                  mark_is_shown(mark) ? "*" : "");
    }
    return text;
}

/* The skills of an item, then its group in parentheses: "a b (g)". */
static inline const char *item_story(const struct class *class, const char *item)
{
    static char text[1024];
    const struct dataset *dataset = &class->dataset;
    size_t i = 0, n = 0;
    while (i < dataset->n_items && strcmp(names_get(&dataset->items, i), item) != 0)
        i++;
    assert_true(i < dataset->n_items);
    text[0] = '\0';
    for (uint64_t k = dataset->item_first[i]; k < dataset->item_first[i + 1]; k++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n > 0 ? " " : "",
                              names_get(&dataset->skills, dataset->item_skills[k]));
    if (dataset->item_group[i] >= 0)
        snprintf(text + n, sizeof text - n, "%s(%s)", n > 0 ? " " : "",
                 names_get(&dataset->groups, (size_t)dataset->item_group[i]));
    return text;
}

static inline int64_t time_of(const struct class *class, const char *student, size_t t)
{
    assert_true(class->dataset.has_time);
    return class->shard.time[class->shard.first[find_student(class, student)] + t];
}

#endif
