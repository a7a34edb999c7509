/* Jobs for Slurm. A job script is one of the templates in jobs/, which people can also edit by
 * hand. The Makefile turns the templates into C strings, so they are part of the program. Some
 * of their lines are replaced here:
 *
 *     lines with " # 1 account", ... " # 5 modules"           what the template asks people for
 *     lines starting with #SBATCH --job-name=, cohort=, ...   what only a program knows
 *
 * A replacement that finds no line, or two, is a bug of cohort.
 *
 * sbatch gets the environment that this process was started with. Variables that MPI has added
 * since would make the job's ranks believe they were already launched; those of a surrounding
 * job (SLURM_...) describe that job. */
#define _GNU_SOURCE
#include "sweep/slurm.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/shell_quote.h"
#include "cohort.h"
#include <errno.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

const char *const slurm_launches[] = {"auto", "srun", "mpirun", NULL};

static const char *const templates[N_SLURM_TEMPLATES] = {[SLURM_TRAIN] =
#include <train.sbatch.h>
                                                             , [SLURM_SWEEP] =
#include <sweep.sbatch.h>
};
static const char *const template_names[] = {"train.sbatch", "sweep.sbatch"};

/* ---- writing a script */

static bool is_plain(const char *word)
{
    return word[0] != '\0' && word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRST"
                                                "UVWXYZ0123456789_-+=.,:/@")] == '\0';
}

/* Prints a value in an #SBATCH line. */
static void put_value(FILE *out, const char *value)
{
    if (is_plain(value)) {
        fputs(value, out);
        return;
    }
    fputc('"', out);
    for (; *value != '\0'; value++)
        fprintf(out, "%s%c", strchr("\"\\", *value) != NULL ? "\\" : "", *value);
    fputc('"', out);
}

static void put_option(FILE *out, const char *name, const char *value)
{
    if (value[0] == '\0')
        return;
    fprintf(out, "#SBATCH --%s=", name);
    put_value(out, value);
    fputc('\n', out);
}

static void put_list(FILE *out, const char *name, const char *const *words, size_t n)
{
    fprintf(out, "%s=(", name);
    for (size_t w = 0; w < n; w++) {
        fputs(n > 3 ? "\n    " : w > 0 ? " " : "", out);
        shell_quote(out, words[w]);
    }
    fputs(n > 3 ? "\n)\n" : ")\n", out);
}

static void put_account(FILE *out, const struct slurm_script *script)
{
    put_option(out, "account", script->job->account);
}

static void put_partition(FILE *out, const struct slurm_script *script)
{
    put_option(out, "partition", script->job->partition);
}

static void put_ranks(FILE *out, const struct slurm_script *script)
{
    fprintf(out, "#SBATCH --nodes=%" PRId64 " --ntasks=%" PRId64 "\n", script->job->nodes,
            script->job->ranks);
}

static void put_time(FILE *out, const struct slurm_script *script)
{
    put_option(out, "time", script->job->time);
    if (script->job->sbatch[0] != '\0')
        fprintf(out, "#SBATCH %s\n", script->job->sbatch);
}

static void put_modules(FILE *out, const struct slurm_script *script)
{
    char *copy = memory_text("%s", script->job->modules), *rest = NULL;
    const char *words[64];
    size_t n = 0;
    for (char *word = strtok_r(copy, " ", &rest); word != NULL && n < COUNT(words);
         word = strtok_r(NULL, " ", &rest))
        words[n++] = word;
    put_list(out, "modules", words, n);
    memory_free(copy);
}

static void put_name(FILE *out, const struct slurm_script *script)
{
    put_option(out, "job-name", script->name);
}

static void put_log(FILE *out, const struct slurm_script *script)
{
    put_option(out, "output", script->log);
    fputs("#SBATCH --open-mode=append\n", out);
}

static void put_signal(FILE *out, const struct slurm_script *script)
{
    fprintf(out, "#SBATCH --signal=B:USR1@%" PRId64 " --requeue\n", script->job->notice);
}

static void put_program(FILE *out, const struct slurm_script *script)
{
    (void)script;
    char path[4096];
    const ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    fputs("cohort=", out);
    shell_quote(out, n > 0 ? path : "cohort");
    fputc('\n', out);
}

static void put_launch(FILE *out, const struct slurm_script *script)
{
    fprintf(out, "launch=%s\n", slurm_launches[script->job->launch]);
}

static void put_restarts(FILE *out, const struct slurm_script *script)
{
    fprintf(out, "most_restarts=%" PRId64 "\n", script->job->restarts);
}

static void put_settings(FILE *out, const struct slurm_script *script)
{
    const char **words = NEW(const char *, script->words->n);
    for (size_t w = 0; w < script->words->n; w++)
        words[w] = names_get(script->words, w);
    put_list(out, "settings", words, script->words->n);
    memory_free(words);
}

static void put_command(FILE *out, const struct slurm_script *script)
{
    fprintf(out, "command=(%s \"${settings[@]}\")\n", script->command);
}

static void put_packs(FILE *out, const struct slurm_script *script)
{
    fprintf(out, "first=%" PRId64 " packs=%" PRId64 "\n", -script->first_pack, script->n_packs);
}

void slurm_words(const struct config *config, struct names *words)
{
    for (size_t e = 0; e < config_count(config); e++) {
        struct config_entry entry;
        if (!config_setting(config, e, &entry))
            continue;
        char *word = memory_text("%s.%s=%s", entry.section, entry.key, entry.value);
        names_add(words, word, strlen(word));
        memory_free(word);
    }
}

const char *slurm_name(const char *directory)
{
    size_t start = strlen(directory);
    while (start > 0 && directory[start - 1] != '/')
        start--;
    return directory[start] != '\0' ? directory + start : "cohort";
}

char *slurm_log(const char *directory, const char *name)
{
    char *twice = NEW(char, 2 * strlen(directory) + 1), *to = twice;
    for (; *directory != '\0'; directory++) {
        *to++ = *directory;
        if (*directory == '%')
            *to++ = '%';
    }
    char *pattern = memory_text("%s/%s", twice, name);
    memory_free(twice);
    return pattern;
}

/* A mark that begins with a space matches anywhere in a line, others at its start. */
static const struct change {
    const char *mark;
    void (*put)(FILE *out, const struct slurm_script *script);
    bool in_sweeps_only;
} changes[] = {
    {" # 1 account", put_account, false},    {" # 2 partition", put_partition, false},
    {" # 3 nodes", put_ranks, false},        {" # 4 time", put_time, false},
    {" # 5 modules", put_modules, false},    {"#SBATCH --job-name=", put_name, false},
    {"#SBATCH --output=", put_log, false},   {"#SBATCH --signal=", put_signal, false},
    {"cohort=", put_program, false},         {"launch=", put_launch, false},
    {"most_restarts=", put_restarts, false}, {"settings=", put_settings, false},
    {"command=", put_command, false},        {"first=", put_packs, true},
};

static bool has_mark(const char *line, size_t n, const char *mark)
{
    const size_t length = strlen(mark);
    return mark[0] == ' ' ? memmem(line, n, mark, length) != NULL
                          : n >= length && memcmp(line, mark, length) == 0;
}

/* Refuses what neither an #SBATCH line nor the name of a log can hold. */
static enum status check(const struct slurm_script *script)
{
    const struct slurm_job *job = script->job;
    const char *const values[] = {job->account, job->partition, job->time,   job->modules,
                                  job->sbatch,  script->name,   script->log, script->made_by};
    for (size_t v = 0; v < COUNT(values); v++)
        if (strchr(values[v], '\n') != NULL)
            return fail(BAD_USER, "'%s' contains a newline, which a job script cannot hold",
                        values[v]);
    if (strchr(script->log, '\\') != NULL)
        return fail(BAD_USER,
                    "'%s': Slurm cannot write to a file with a backslash in its name; choose "
                    "another run=",
                    script->log);
    return OK;
}

enum status slurm_write(const struct slurm_script *script, char **text)
{
    *text = NULL;
    TRY(check(script));
    char *buffer = NULL;
    size_t size = 0;
    FILE *out = memory_stream(&buffer, &size);
    int n_found[COUNT(changes)] = {0};
    bool in_head = true; /* comments for people who edit the template */
    fprintf(out, "#!/bin/bash\n# Written by `%s` of cohort %s from its template %s.\n",
            script->made_by, COHORT_VERSION, template_names[script->template]);
    for (const char *line = templates[script->template]; *line != '\0';) {
        const size_t n = strcspn(line, "\n");
        in_head = in_head && !has_mark(line, n, "#SBATCH");
        size_t c = 0;
        while (c < COUNT(changes) && !has_mark(line, n, changes[c].mark))
            c++;
        if (c < COUNT(changes)) {
            n_found[c]++;
            changes[c].put(out, script);
        } else if (!in_head) {
            fprintf(out, "%.*s\n", (int)n, line);
        }
        line += n + 1;
    }
    fclose(out);
    for (size_t c = 0; c < COUNT(changes); c++)
        ENSURE(n_found[c] == (script->template == SLURM_SWEEP || !changes[c].in_sweeps_only));
    *text = memory_text("%s", buffer);
    free(buffer);
    return OK;
}

/* ---- calling Slurm */

/* The environment at the start of this process, without that of a surrounding job; caller frees
 * both. */
static char **first_environment(char **bytes)
{
    size_t n = 0, n_kept = 0, capacity = 0;
    char **list = NULL;
    if (file_read("/proc/self/environ", bytes, &n) != OK) {
        fail_clear();
        n = 0;
    }
    for (size_t at = 0; at < n; at += strlen(*bytes + at) + 1) {
        char *entry = *bytes + at;
        const bool of_a_job =
            (strncmp(entry, "SLURM_", 6) == 0 && strncmp(entry, "SLURM_CONF=", 11) != 0) ||
            strncmp(entry, "PMIX_", 5) == 0 || strncmp(entry, "PMI_", 4) == 0;
        if (of_a_job)
            continue;
        GROW(list, n_kept, capacity);
        list[n_kept++] = entry;
    }
    GROW(list, n_kept, capacity);
    list[n_kept] = NULL;
    return list;
}

static char *read_back(FILE *file)
{
    char *text = NEW(char, 1 << 16);
    rewind(file);
    const size_t n = fread(text, 1, (1 << 16) - 1, file);
    text[n] = '\0';
    return text;
}

/* A program's output and exit code. */
struct answer {
    int code; /* -1: could not be started, for `reason` */
    int reason;
    char *out, *err;
};

static void answer_free(struct answer *answer)
{
    memory_free(answer->out);
    memory_free(answer->err);
}

static enum status call(const char *const *words, const char *input, struct answer *answer)
{
    *answer = (struct answer){.code = -1};
    FILE *files[3];
    for (int f = 0; f < 3; f++)
        files[f] = tmpfile();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    bool ready = true;
    for (int f = 0; f < 3; f++) {
        ready = ready && files[f] != NULL;
        if (ready)
            posix_spawn_file_actions_adddup2(&actions, fileno(files[f]), f);
    }
    enum status status = OK;
    if (ready) {
        fputs(input, files[0]);
        ready = fflush(files[0]) == 0;
        rewind(files[0]);
    }
    if (!ready)
        status = fail(BAD_IO, "cannot create a temporary file for %s: %s", words[0],
                      strerror(errno));
    char *bytes = NULL, **environment = first_environment(&bytes);
    pid_t child = 0;
    if (status == OK) {
        answer->reason =
            posix_spawnp(&child, words[0], &actions, NULL, (char *const *)words, environment);
        int ended = 0;
        if (answer->reason == 0 && waitpid(child, &ended, 0) == child)
            answer->code = WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
        answer->out = read_back(files[1]);
        answer->err = read_back(files[2]);
    }
    posix_spawn_file_actions_destroy(&actions);
    for (int f = 0; f < 3; f++)
        if (files[f] != NULL)
            fclose(files[f]);
    memory_free(environment);
    memory_free(bytes);
    return status;
}

/* Reports a Slurm program's error on one line. */
static enum status refused(const char *program, const struct answer *answer)
{
    if (answer->code == -1 || answer->code == 127)
        return fail(BAD_USER,
                    "%s cannot be started (%s); is this machine part of a Slurm cluster? "
                    "`--dry-run` shows the script without it",
                    program, strerror(answer->reason != 0 ? answer->reason : ENOENT));
    char *words = answer->err;
    size_t n = strlen(words);
    while (n > 0 && words[n - 1] == '\n')
        words[--n] = '\0';
    const char *last = words; /* its last line is part of the error; others come before it */
    for (const char *end; (end = strchr(last, '\n')) != NULL; last = end + 1)
        log_say("%.*s", (int)(end - last), last);
    return fail(BAD_USER, "%s refused with exit code %d: %s", program, answer->code,
                n > 0 ? last : "it gave no reason");
}

/* What `sbatch --parsable` prints: a number of 32 bits, or NUMBER;CLUSTER. 0: something else. */
static int64_t job_of(const char *text)
{
    char *end = NULL;
    const size_t n_digits = strspn(text, "0123456789");
    const int64_t job = n_digits > 0 && n_digits <= 10 ? strtoll(text, &end, 10) : 0;
    return job > 0 && job <= UINT32_MAX && strchr(";\n", *end) != NULL ? job : 0;
}

enum status slurm_submit(const char *script, const char *const *options, int64_t *job)
{
    const char *words[16] = {"sbatch", "--parsable"};
    size_t n = 2;
    for (; options != NULL && options[n - 2] != NULL; n++) {
        ENSURE(n + 1 < COUNT(words));
        words[n] = options[n - 2];
    }
    struct answer answer;
    TRY(call(words, script, &answer));
    *job = answer.code == 0 ? job_of(answer.out) : 0;
    enum status status = OK;
    if (answer.code != 0)
        status = refused("sbatch", &answer);
    else if (*job == 0)
        status = fail(BAD_USER,
                      "sbatch printed '%.*s'; expected a job number; see `squeue --me` for "
                      "what it submitted",
                      (int)size_min(strcspn(answer.out, "\n"), 60), answer.out);
    answer_free(&answer);
    return status;
}

enum status slurm_state(int64_t job, char **state)
{
    char *id = memory_text("%" PRId64, job);
    const char *const words[] = {"squeue", "--noheader", "--jobs", id, "--format", "%T", NULL};
    struct answer answer;
    *state = NULL;
    static const char *const waiting[] = {"PENDING", "CONFIGURING", "RUNNING",     "SUSPENDED",
                                          "STOPPED", "REQUEUED",    "REQUEUE_HOLD"};
    const enum status status = call(words, "", &answer);
    memory_free(id);
    TRY(status);
    const size_t n = answer.code == 0 ? strcspn(answer.out, "\n ") : 0;
    for (size_t w = 0; w < COUNT(waiting); w++)
        if (n == strlen(waiting[w]) && strncmp(answer.out, waiting[w], n) == 0)
            *state = memory_text("%s", waiting[w]);
    answer_free(&answer);
    return OK;
}

void slurm_cancel(int64_t job)
{
    char *id = memory_text("%" PRId64, job);
    const char *const words[] = {"scancel", "--quiet", id, NULL};
    struct answer answer;
    if (call(words, "", &answer) == OK)
        answer_free(&answer);
    memory_free(id);
}

enum status slurm_array_size(int64_t *size)
{
    const char *const words[] = {"scontrol", "show", "config", NULL};
    struct answer answer;
    TRY(call(words, "", &answer));
    enum status status = OK;
    if (answer.code != 0) {
        status = refused("scontrol", &answer);
    } else {
        const char *line = strstr(answer.out, "\nMaxArraySize");
        const char *equals = line != NULL ? strchr(line, '=') : NULL;
        *size = equals != NULL ? strtoll(equals + 1, NULL, 10) : 1001;
        if (*size < 2)
            status = fail(BAD_USER,
                          "Slurm allows no array jobs here (MaxArraySize = %" PRId64
                          "); run the sweep in one job, with the template sweep.sbatch",
                          *size);
    }
    answer_free(&answer);
    return status;
}

/* ---- directories for logs */

enum status slurm_make(const char *directory, char **kept)
{
    char *path = memory_text("%s", directory);
    size_t n = 0;
    for (size_t i = 1; i <= strlen(directory); i++)
        if (directory[i] == '/' || directory[i] == '\0') {
            path[i] = '\0';
            if (!file_exists(path))
                break;
            path[i] = directory[i];
            n = i;
        }
    memory_free(path);
    *kept = memory_text("%.*s", (int)n, directory);
    const enum status status = file_make_directory(directory);
    if (status != OK)
        slurm_unmake(directory, *kept);
    return status;
}

void slurm_unmake(const char *directory, const char *kept)
{
    char *path = memory_text("%s", directory);
    for (size_t n = strlen(path); n > strlen(kept); n--)
        if (directory[n] == '/' || directory[n] == '\0') {
            path[n] = '\0';
            (void)!rmdir(path);
        }
    memory_free(path);
}
