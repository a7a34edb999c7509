/* cohort: one program, many commands. `commands` in src/commands/commands.c lists them. */
#include "base/atomic_file.h"
#include "base/comm.h"
#include "base/fail.h"
#include "base/h5.h"
#include "base/log.h"
#include "base/machine.h"
#include "cohort.h"
#include "commands/commands.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>

static enum status dispatch(const struct comm *comm, int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "help";
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0) {
        if (!log_muted())
            printf("cohort %s (%s)\n", COHORT_VERSION, REAL_NAME);
        return OK;
    }
    const char *names[64];
    for (size_t c = 0; c < n_commands; c++) {
        names[c] = commands[c]->name;
        if (strcmp(name, names[c]) != 0)
            continue;
        for (int i = 2; i < argc; i++)
            if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
                struct manual manual = manual_for_terminal(stdout);
                if (!log_muted())
                    command_help(&manual, commands[c]);
                return OK;
            }
        return commands[c]->run(comm, argc > 1 ? argc - 1 : 1, argc > 1 ? argv + 1 : argv);
    }
    const char *nearest = config_nearest(name, names, n_commands);
    return fail(BAD_USAGE, "unknown command '%s'%s%s%s; `cohort help` lists all", name,
                nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

int main(int argc, char **argv)
{
    machine_settle(argv);
    fail_start();
    struct comm world;
    comm_start(&world, &argc, &argv);
    log_start();
    h5_start();
    atomic_file_start();
    enum status status = dispatch(&world, argc, argv);
    if ((fflush(stdout) != 0 || ferror(stdout)) && status == OK)
        status = fail(BAD_IO, "cannot write to standard output: %s", strerror(errno));
    status = comm_agree(&world, status);
    if (status != OK && fail_sentence()[0] != '\0')
        log_say("cohort: %s", fail_sentence());
    log_finish();
    comm_finish(&world);
    return (int)status;
}
