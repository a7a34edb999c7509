/* Jobs for Slurm, from the templates in jobs/. */
#ifndef COHORT_SLURM_H
#define COHORT_SLURM_H

#include "base/base.h"
#include "base/config.h"
#include "base/names.h"

enum slurm_template { SLURM_TRAIN, SLURM_SWEEP, N_SLURM_TEMPLATES };
enum slurm_launch { SLURM_AUTO, SLURM_SRUN, SLURM_MPIRUN };
extern const char *const slurm_launches[]; /* NULL-terminated */

/* What a person decides about a job; an empty string leaves it to the site. */
struct slurm_job {
    const char *account, *partition, *time, *modules, *sbatch; /* sbatch: further options */
    int64_t nodes, ranks, restarts, notice;                    /* notice: seconds */
    int launch;
};

/* A whole script: the template with its marked lines replaced. */
struct slurm_script {
    enum slurm_template template;
    const struct slurm_job *job;
    const char *name, *log;      /* of the job; its log file */
    const char *made_by;         /* a command */
    const char *command;         /* what the job runs: train, auto or sweep */
    const struct names *words;   /* its arguments */
    int64_t first_pack, n_packs; /* of a sweep: array task 0 runs pack first_pack + 1 */
};

/* All explicit settings as section.key=value, into zeroed `words`: files may change while a job
 * waits. */
void slurm_words(const struct config *config, struct names *words);

/* The name of a job: the last component of its directory. */
const char *slurm_name(const char *directory);

/* The pattern of a log file `name`, which may contain %a and the like, in a directory, whose
 * name is literal; caller frees. */
char *slurm_log(const char *directory, const char *name);

/* The text of the script (caller frees); fails on values that Slurm could not read. */
CHECKED enum status slurm_write(const struct slurm_script *script, char **text);

/* Submits a script by sbatch with further options (NULL-terminated, may be NULL); returns the
 * job number. */
CHECKED enum status slurm_submit(const char *script, const char *const *options, int64_t *job);

/* Whether a job is in the queue: its state such as PENDING or RUNNING (caller frees); NULL: it
 * has ended, or Slurm does not know it. */
CHECKED enum status slurm_state(int64_t job, char **state);

/* Submits the script of a run or the like in `directory`, and prints the job number. Refused while
 * the job that was submitted last for this directory is in the queue. */
CHECKED enum status slurm_hand_over(const char *script, const char *directory, const char *log);

/* Cancels a job, after a later one was refused. */
void slurm_cancel(int64_t job);

/* MaxArraySize of this Slurm: array task numbers are smaller. */
CHECKED enum status slurm_array_size(int64_t *size);

/* Creates a directory for logs; `kept` is the part of its path that already existed. Afterwards
 * either slurm_unmake removes the rest again, or `kept` is just freed. */
CHECKED enum status slurm_make(const char *directory, char **kept);
void slurm_unmake(const char *directory, const char *kept);

#endif
