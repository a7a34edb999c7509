/* `cohort train rbm.ini` finds rbm.ini in the current directory or, by its bare name, among the
 * files that were installed with the program:
 *
 *     PREFIX/bin/cohort     -> PREFIX/share/cohort/jobs
 *     build/cohort          -> jobs, in the source
 *
 * jobs/rbm.ini, as documents write it from the source's directory, is the same file. */
#include "base/job_files.h"
#include "base/config.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The directory of installed files; NULL: there is none. Caller frees. */
static char *directory(void)
{
    static const char *const places[] = {"../share/cohort/jobs", "../jobs"};
    char program[4096];
    const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(program, '/');
    if (slash == NULL)
        return NULL;
    *slash = '\0';
    for (size_t p = 0; p < COUNT(places); p++) {
        char *path = memory_text("%s/%s", program, places[p]), *full = realpath(path, NULL);
        memory_free(path);
        char *found = full != NULL ? memory_text("%s", full) : NULL;
        free(full);
        if (found != NULL && file_is_in(found, "train.sbatch"))
            return found;
        memory_free(found);
    }
    return NULL;
}

static int is_settings(const struct dirent *entry)
{
    const size_t n = strlen(entry->d_name);
    return n > 4 && strcmp(entry->d_name + n - 4, ".ini") == 0;
}

void job_files_list(struct names *names)
{
    char *path = directory();
    struct dirent **entries = NULL;
    const int n = path != NULL ? scandir(path, &entries, is_settings, alphasort) : 0;
    for (int e = 0; e < n; e++) {
        names_add(names, entries[e]->d_name, strlen(entries[e]->d_name));
        free(entries[e]);
    }
    free(entries);
    memory_free(path);
}

static enum status not_found(const char *word)
{
    struct names names = {0};
    job_files_list(&names);
    const char **list = NEW(const char *, names.n + 1);
    for (size_t i = 0; i < names.n; i++)
        list[i] = names_get(&names, i);
    const char *nearest = config_nearest(word, list, names.n);
    for (size_t i = 0; nearest == NULL && i < names.n; i++)
        if (strncmp(list[i], word, strlen(word)) == 0)
            nearest = list[i];
    const enum status status =
        fail(BAD_USER,
             "cannot open %s: No such file or directory; expected a file of settings, or "
             "settings such as model.kind=rbm%s%s%s",
             word, nearest ? "; did you mean " : "", nearest ? nearest : "",
             nearest ? ", which comes with cohort?" : "");
    memory_free(list);
    names_free(&names);
    return status;
}

enum status job_files_find(const char *word, char **path)
{
    if (file_exists(word)) {
        *path = memory_text("%s", word);
        return OK;
    }
    const char *name = strncmp(word, "jobs/", 5) == 0 ? word + 5 : word;
    const bool bare = strchr(name, '/') == NULL;
    char *place = bare ? directory() : NULL;
    *path = place != NULL ? memory_text("%s/%s", place, name) : NULL;
    const bool found = *path != NULL && file_exists(*path);
    memory_free(place);
    if (found) {
        log_say("settings: %s", *path);
        return OK;
    }
    memory_free(*path);
    *path = NULL;
    return bare ? not_found(name)
                : fail(BAD_USER,
                       "cannot open %s: No such file or directory; expected a file of settings",
                       word);
}
