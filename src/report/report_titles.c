/* Titles of tables and of their pictures in words a teacher understands, in place of the names that
 * tables have in files. A table or column without an entry keeps its name. */
#include "report/report_titles.h"
#include "base/memory.h"
#include <string.h>

static const struct {
    const char *kind, *table, *title;
} tables[] = {
    {"average", "items", "How likely a right answer is at the first attempt"},
    {"average", "common", "How earlier answers count"},
    {"bkt", "skills", "How each skill is learned"},
    {"bkt", "common", "How skills are learned on average"},
    {"bkt", "items", "How often each item is guessed or slipped on"},
    {"blend", "members", "Which models the blend has"},
    {"ktm", "features", "Which information counts"},
    {"ktm", "items", "What the model knows about each item"},
    {"ktm", "skills", "What the model knows about each skill"},
    {"ktm", "levels", "What the circumstances of an attempt change"},
    {"ktm", "counts", "How earlier answers count"},
    {"lme", "fit", "How well the model fits"},
    {"lme", "spreads", "How much students and items differ"},
    {"lme", "fixed", "What is the same for everybody"},
    {"lme", "items", "How easy each item is"},
    {"lme", "skills", "How easy each skill is"},
    {"lme", "levels", "What the circumstances of an attempt change"},
    {"vae", "items", "How hard each item is, and how well it separates students"},
};

/* Of pictures of a column, with the label of its values; a column called "a: Angles" is entry "a"
 * with its skill. */
static const struct entry {
    const char *kind, *table, *column, *title, *label;
} columns[] = {
    {"average", "items", "start", "Chance of a right answer at the first attempt", "chance"},
    {"ktm", "items", "weight", "How easy each item is", "weight"},
    {"ktm", "skills", "weight", "How easy each skill is", "weight"},
    {"lme", "spreads", "sd", "Standard deviations", "standard deviation"},
    {"lme", "fixed", "estimate", "Effects on all answers", "effect on the log-odds"},
    {"lme", "items", "item_effect", "How easy each item is", "effect on the log-odds"},
    {"lme", "items", "group_effect", "How easy the group of each item is",
     "effect on the log-odds"},
    {"lme", "skills", "skill_effect", "How easy each skill is", "effect on the log-odds"},
    {"vae", "items", "a", "How well each item separates students", "discrimination a"},
    {"vae", "items", "b", "How hard each item is", "difficulty b"},
};

const char *report_title_of_table(const char *kind, const struct table *table)
{
    for (size_t k = 0; k < COUNT(tables); k++)
        if (strcmp(tables[k].kind, kind) == 0 && strcmp(tables[k].table, table->name) == 0)
            return tables[k].title;
    return table->name;
}

static const struct entry *entry_of(const char *kind, const struct table *table, size_t column)
{
    const char *name = names_get(&table->columns, column);
    const size_t n = strcspn(name, ":");
    for (size_t k = 0; k < COUNT(columns); k++)
        if (strcmp(columns[k].kind, kind) == 0 && strcmp(columns[k].table, table->name) == 0 &&
            strlen(columns[k].column) == n && strncmp(columns[k].column, name, n) == 0)
            return &columns[k];
    return NULL;
}

char *report_title_of_column(const char *kind, const struct table *table, size_t column)
{
    const struct entry *entry = entry_of(kind, table, column);
    const char *name = names_get(&table->columns, column);
    return entry != NULL ? memory_text("%s%s", entry->title, name + strcspn(name, ":"))
                         : memory_text("%s: %s", report_title_of_table(kind, table), name);
}

const char *report_title_of_values(const char *kind, const struct table *table, size_t column)
{
    const struct entry *entry = entry_of(kind, table, column);
    return entry != NULL ? entry->label : names_get(&table->columns, column);
}

const char *report_title_of_head(const struct table *table, size_t column)
{
    const char *name = names_get(&table->columns, column);
    const size_t n = strlen(table->row);
    if (strncmp(name, table->row, n) != 0)
        return name;
    return strcmp(name + n, "_effect") == 0  ? "effect"
           : strcmp(name + n, "_error") == 0 ? "standard error"
                                             : name;
}

void report_titles_name_abilities(struct table *table, const struct names *skills)
{
    struct names renamed = {0};
    for (size_t c = 0; c < table->n_columns; c++) {
        const char *name = names_get(&table->columns, c);
        char *with = memory_text("%s", name);
        for (size_t k = 0; k < skills->n; k++) {
            static const char *const stems[] = {"a", "error_a"};
            for (size_t s = 0; s < COUNT(stems); s++) {
                char *numbered = memory_text("%s_%zu", stems[s], k + 1);
                if (strcmp(name, numbered) == 0) {
                    memory_free(with);
                    with = memory_text("%s: %s", stems[s], names_get(skills, k));
                }
                memory_free(numbered);
            }
        }
        names_add(&renamed, with, strlen(with));
        memory_free(with);
    }
    names_free(&table->columns);
    table->columns = renamed;
}
