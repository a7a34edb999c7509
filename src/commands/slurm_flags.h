/* The options of commands that submit jobs. Their defaults are also in the templates in jobs, for
 * people who submit those by hand; tests/cli/cli_submit.sh compares them. */
#ifndef COHORT_SLURM_FLAGS_H
#define COHORT_SLURM_FLAGS_H

#include "sweep/slurm.h"

/* Rows of a table of options; AT(field) is the place of a field of the command's struct
 * slurm_job. */
#define SLURM_FLAGS(AT)                                                                        \
    {{"account", OPTION_TEXT, AT(account), "", 0, 0, NULL, "Slurm account"}, 0, "NAME"},       \
        {{"partition", OPTION_TEXT, AT(partition), "", 0, 0, NULL, "Slurm partition"},         \
         0,                                                                                    \
         "NAME"},                                                                              \
        {{"nodes", OPTION_INTEGER, AT(nodes), "1", 1, 1e6, NULL, "nodes per job"}, 0, NULL},   \
        {{"ranks", OPTION_INTEGER, AT(ranks), "4", 1, 1e7, NULL,                               \
          "ranks per job, on all its nodes together; one per core"},                           \
         0,                                                                                    \
         NULL},                                                                                \
        {{"time", OPTION_TEXT, AT(time), "1:00:00", 0, 0, NULL,                                \
          "time limit of a job, for each of its starts: minutes, h:mm:ss or days-hours"},      \
         0,                                                                                    \
         "TIME"},                                                                              \
        {{"modules", OPTION_TEXT, AT(modules), "", 0, 0, NULL,                                 \
          "modules to load first, such as \"gcc openmpi\""},                                   \
         0,                                                                                    \
         "NAMES"},                                                                             \
        {{"notice", OPTION_INTEGER, AT(notice), "120", 1, 65535, NULL,                         \
          "seconds before the time limit at which the ranks begin to save"},                   \
         0,                                                                                    \
         NULL},                                                                                \
        {{"restarts", OPTION_INTEGER, AT(restarts), "50", 0, 1e6, NULL,                        \
          "maximum number of times that a job that ran out of time is requeued"},              \
         0,                                                                                    \
         NULL},                                                                                \
        {{"launch", OPTION_CHOICE, AT(launch), "auto", 0, 0, slurm_launches,                   \
          "how to start the ranks; auto: srun where Slurm has PMIx, else mpirun"},             \
         0,                                                                                    \
         "LAUNCHER"},                                                                          \
    {                                                                                          \
        {"sbatch",   OPTION_TEXT,                                                              \
         AT(sbatch), "",                                                                       \
         0,          0,                                                                        \
         NULL,       "further options of sbatch, such as \"--qos=long --mem-per-cpu=2G\""},    \
            0, "OPTIONS"                                                                       \
    }

#endif
