/* MPI takes half a second to start, and a command without a launcher does not need it. So
 * cohort first looks for the variables that launchers set, in this order:
 *
 *     OMPI_COMM_WORLD_SIZE    mpirun of Open MPI
 *     PMI_SIZE                mpirun of MPICH and its derivatives, srun --mpi=pmi2
 *     SLURM_STEP_NUM_TASKS    srun with any --mpi
 *     PMIX_RANK               other PMIx launchers; they do not tell the number of processes
 *
 * The order matters, since mpirun may itself run under srun, with one task per node. A batch
 * script and the shell of an interactive job are not steps of srun, though Slurm gives them
 * step numbers at the end of the range; commands in them are single processes. SLURM_NTASKS is
 * what a job may start, not what was started. */
#include "base/launcher.h"
#include <stdlib.h>
#include <string.h>

/* The value of a variable, -1 if it is not a number. */
static int64_t number(const char *variable)
{
    const char *text = getenv(variable);
    char *end = NULL;
    const long long value = text != NULL ? strtoll(text, &end, 10) : -1;
    return end != NULL && end != text && *end == '\0' && value >= 0 ? value : -1;
}

static bool said(const char *size, const char *rank, struct launcher *launcher)
{
    const int64_t n = number(size), r = number(rank);
    if (n < 1 || n > INT32_MAX)
        return false;
    *launcher = (struct launcher){size, (int)n, r >= 0 && r < n ? (int)r : 0};
    return true;
}

static bool in_step(void)
{
    const int64_t first_special = 4294967290; /* interactive, batch script, extern, pending */
    const int64_t step = number("SLURM_STEP_ID");
    return step >= 0 && step < first_special;
}

struct launcher launcher_look(void)
{
    struct launcher launcher = {0};
    const char *wish = getenv("COHORT_MPI");
    if (wish != NULL && strcmp(wish, "no") == 0)
        return launcher;
    if (said("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", &launcher) ||
        said("PMI_SIZE", "PMI_RANK", &launcher) ||
        (in_step() && number("SLURM_STEP_NUM_TASKS") > 1 &&
         said("SLURM_STEP_NUM_TASKS", "SLURM_PROCID", &launcher)))
        return launcher;
    if (getenv("PMIX_RANK") != NULL)
        return (struct launcher){"PMIX_RANK", 1, 0};
    if (wish != NULL && strcmp(wish, "yes") == 0)
        return (struct launcher){"COHORT_MPI", 1, 0};
    return launcher;
}
