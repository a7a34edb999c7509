/* MPI takes half a second to start, and a command that no launcher started does not need it. So
 * the launcher is asked first, by what it puts into the environment of its processes:
 *
 *     OMPI_COMM_WORLD_SIZE    mpirun of Open MPI
 *     PMI_SIZE                mpirun of MPICH and its kin, srun --mpi=pmi2
 *     SLURM_STEP_NUM_TASKS    srun, whichever --mpi it was given
 *     PMIX_RANK               others that speak PMIx; they do not say how many
 *
 * in this order, since mpirun may itself run under srun, with one task a machine. A batch
 * script and the shell of an interactive job are no steps of srun's, though Slurm numbers them
 * too, at the end of the numbers; what they call is one process. SLURM_NTASKS says what a job
 * may start, not what was started. */
#include "base/launcher.h"
#include <stdlib.h>
#include <string.h>

/* The number that a variable has, -1 where it has none. */
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
