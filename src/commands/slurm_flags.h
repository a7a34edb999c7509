/* The flags of commands that submit jobs. */
#ifndef COHORT_SLURM_FLAGS_H
#define COHORT_SLURM_FLAGS_H

#include "sweep/slurm.h"

/* Rows of a table of flags; AT(field) is the place of a field of the command's struct
 * slurm_job. */
#define SLURM_FLAGS(AT)                                                                        \
    {{"account", OPTION_TEXT, AT(account), "", 0, 0, NULL, "Slurm's account"}, 0},             \
        {{"partition", OPTION_TEXT, AT(partition), "", 0, 0, NULL, "Slurm's partition"}, 0},   \
        {{"nodes", OPTION_INTEGER, AT(nodes), "1", 1, 1e6, NULL, "nodes of a job"}, 0},        \
        {{"ranks", OPTION_INTEGER, AT(ranks), "4", 1, 1e7, NULL,                               \
          "ranks of a job on all its nodes, one a core"},                                      \
         0},                                                                                   \
        {{"time", OPTION_TEXT, AT(time), "1:00:00", 0, 0, NULL,                                \
          "time limit of each start of a job: minutes, h:mm:ss or days-hours"},                \
         0},                                                                                   \
        {{"modules", OPTION_TEXT, AT(modules), "", 0, 0, NULL,                                 \
          "modules to load first, as in \"gcc openmpi\""},                                     \
         0},                                                                                   \
        {{"notice", OPTION_INTEGER, AT(notice), "120", 1, 65535, NULL,                         \
          "seconds before the time limit in which ranks save"},                                \
         0},                                                                                   \
        {{"restarts", OPTION_INTEGER, AT(restarts), "50", 0, 1e6, NULL,                        \
          "how often a job that ran out of time goes back into the queue"},                    \
         0},                                                                                   \
        {{"launch", OPTION_CHOICE, AT(launch), "auto", 0, 0, slurm_launches,                   \
          "what starts the ranks; auto: srun where Slurm has PMIx, else mpirun"},              \
         0},                                                                                   \
    {                                                                                          \
        {"sbatch",   OPTION_TEXT,                                                              \
         AT(sbatch), "",                                                                       \
         0,          0,                                                                        \
         NULL,       "further options of sbatch, as in \"--qos=long --mem-per-cpu=2G\""},      \
            0                                                                                  \
    }

#endif
