/* The skills of an item, from a cell such as fractions~~ratio. Where no option and no format names
 * the separator, it is guessed for each cell (csv_cell.h). A guess must be visible: a line says once
 * for each separator what it splits, and once that commas between words do not split. */
#include "base/log.h"
#include "data_tools/csv_cell.h"
#include "data_tools/import.h"
#include <string.h>
#include <xxhash.h>

static void say_split(struct import *import, const char *path, struct span cell,
                      const char *separator)
{
    const size_t n = strlen(import->split_at);
    if (strchr(import->split_at, separator[0]) != NULL || n + 1 == sizeof import->split_at)
        return;
    import->split_at[n] = separator[0];
    log_say(
        "%s: skills are split at '%s', as in '%.*s' (--skill-separator none keeps them whole)",
        path, separator, (int)size_min(cell.n, 60), cell.start);
}

static void say_whole(struct import *import, const char *path, struct span cell)
{
    if (import->said_whole || memchr(cell.start, ',', cell.n) == NULL)
        return;
    import->said_whole = true;
    log_say("%s: skills such as '%.*s' are not split (--skill-separator comma splits them)",
            path, (int)size_min(cell.n, 60), cell.start);
}

uint64_t import_skills_add(struct import *import, const char *path, uint32_t item,
                           struct span cell, const char *separator, const char *nothing)
{
    struct csv_cell_list list = csv_cell_list(cell, separator);
    struct span skill;
    uint64_t sum = 0;
    size_t n = 0;
    while (csv_cell_list_next(&list, &skill)) {
        if (nothing != NULL && span_is(skill, nothing))
            continue;
        builder_item_skill(import->builder, item,
                           builder_skill(import->builder, skill.start, skill.n));
        sum += XXH3_64bits(skill.start, skill.n);
        n++;
    }
    if (strcmp(separator, "auto") == 0 && n > 1)
        say_split(import, path, cell, list.separator);
    else if (strcmp(separator, "auto") == 0 && n == 1 && list.separator[0] == '\0')
        say_whole(import, path, cell);
    return n == 0 ? 0 : sum | 1;
}
