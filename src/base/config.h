/* Options in tables: files, command lines, help and checkpoints are made from them. */
#ifndef COHORT_CONFIG_H
#define COHORT_CONFIG_H

#include "base/base.h"
#include <stdio.h>

enum option_type { OPTION_INTEGER, OPTION_NUMBER, OPTION_SWITCH, OPTION_TEXT, OPTION_CHOICE };

/* One row of a table: where the value goes (an int64_t, double, bool, const char * or int at
 * `offset` of the owner's plain struct), its default as text, its range or choices, and what it
 * means. */
struct option {
    const char *key;
    enum option_type type;
    size_t offset;
    const char *standard;       /* the default; NULL: the user must give a value */
    double least, most;         /* range of an integer or a number */
    const char *const *choices; /* OPTION_CHOICE: NULL-terminated, the value is the index */
    const char *help;
};

/* A table together with the struct it fills. */
struct option_group {
    const char *section;
    const struct option *options;
    size_t n_options;
    void *target;
};

/* What the user set: `key = value` lines by section, each with its origin for error messages. */
struct config;
struct manual;
struct config *config_create(void);
void config_destroy(struct config *config);

/* Reads a file of sections and `key = value` lines; `#` and `;` begin a comment line, and a
 * UTF-8 byte-order mark is skipped. */
CHECKED enum status config_read(struct config *config, const char *path);
CHECKED enum status config_read_text(struct config *config, const char *text,
                                     const char *origin);

/* Takes one `section.key=value`; `data=x`, `run=x` and `refit=x` are short for data.file,
 * run.directory, train.refit and train.update. */
CHECKED enum status config_set(struct config *config, const char *assignment,
                               const char *origin);

/* The value that was set last, NULL if none was. */
const char *config_get(const struct config *config, const char *section, const char *key);

/* Whether the user set it, rather than a preset or another suggestion. */
bool config_is_given(const struct config *config, const char *section, const char *key);

/* Everything that was set, in order: entry e of config_count. */
struct config_entry {
    const char *section, *key, *value, *origin;
};
size_t config_count(const struct config *config);
struct config_entry config_entry(const struct config *config, size_t e);

/* The same with one entry per key: entry e if it is the first of its key, with the value that
 * was set last; false for later ones. */
bool config_setting(const struct config *config, size_t e, struct config_entry *entry);

/* Adds lines that rank below everything the user set or that was suggested before: presets, and
 * the settings of a run that is continued. */
CHECKED enum status config_suggest(struct config *config, const char *text, const char *origin);

/* Fills the targets of all groups: defaults, then suggestions, then what the user set. A key
 * that no group knows is an error that names the nearest one. Texts live as long as `config`. */
CHECKED enum status config_resolve(const struct config *config,
                                   const struct option_group *groups, size_t n_groups);

/* The same for some of the sections only: keys of sections that no group has are skipped. */
CHECKED enum status config_resolve_some(const struct config *config,
                                        const struct option_group *groups, size_t n_groups);

/* The same for one section, whose keys must all be known. */
CHECKED enum status config_resolve_only(const struct config *config,
                                        const struct option_group *group);

/* Words of a command line: files to read, in order, and then assignments, so that those win. */
CHECKED enum status config_read_words(struct config *config, const char *const *words,
                                      size_t n_words);

/* The complete configuration as a file that config_read reads back; caller frees. Sections or
 * keys (as in train.refit) that `leave_out` names (NULL-terminated, may be NULL) are not
 * written. */
char *config_text(const struct option_group *groups, size_t n_groups,
                  const char *const *leave_out);

/* Adds the tables to a page: a subheading for each group, then its keys. */
void config_help(struct manual *manual, const struct option_group *groups, size_t n_groups);

/* The default of a row and its range or choices, for help: "default: 20; range: 1 to 100"; and
 * the latter alone: "1 to 100", "a, b, c". */
void config_facts(const struct option *option, char *text, size_t size);
void config_range_text(const struct option *option, char *text, size_t size);
void config_choices_text(const struct option *option, char *text, size_t size);

/* Parses one value for one row into its place in `target`; for command-line options too. */
CHECKED enum status config_parse(const struct option *option, const char *value,
                                 const char *origin, void *target);

/* The number of edits that turn one word into another: letters added, removed, replaced, or
 * exchanged with the next one. */
int config_distance(const char *a, const char *b);

/* The nearest of n names to `word` by edit distance, NULL if none is near. */
const char *config_nearest(const char *word, const char *const *names, size_t n);

#endif
