/* The last part of the path is compared with the entries of its directory by edit distance (see
 * config_nearest.c). */
#include "base/nearest_path.h"
#include "base/config.h"
#include "base/memory.h"
#include "base/names.h"
#include <dirent.h>
#include <string.h>

enum { MOST_ENTRIES = 10000 };

static void list(const char *directory, struct names *names)
{
    DIR *open = opendir(directory);
    if (open == NULL)
        return;
    for (const struct dirent *entry; names->n < MOST_ENTRIES && (entry = readdir(open));)
        if (entry->d_name[0] != '.')
            names_add(names, entry->d_name, strlen(entry->d_name));
    closedir(open);
}

char *nearest_path_hint(const char *path)
{
    char *whole = memory_text("%s", path);
    size_t n = strlen(whole);
    while (n > 1 && whole[n - 1] == '/')
        whole[--n] = '\0';
    const char *slash = strrchr(whole, '/');
    const size_t n_directory = slash != NULL ? (size_t)(slash - whole) + 1 : 0;
    char *directory =
        n_directory > 0 ? memory_text("%.*s", (int)n_directory, whole) : memory_text(".");
    struct names names = {0};
    list(directory, &names);
    const char **words = NEW(const char *, names.n + 1);
    for (size_t i = 0; i < names.n; i++)
        words[i] = names_get(&names, i);
    const char *nearest = config_nearest(whole + n_directory, words, names.n);
    char *hint = nearest != NULL
                     ? memory_text("; did you mean %.*s%s?", (int)n_directory, whole, nearest)
                     : memory_text("%s", "");
    memory_free(words);
    names_free(&names);
    memory_free(directory);
    memory_free(whole);
    return hint;
}
