/* Which launcher started a process, detected from environments as launchers set them. */
#include "base/launcher.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const variables[] = {
    "COHORT_MPI",
    "OMPI_COMM_WORLD_SIZE",
    "OMPI_COMM_WORLD_RANK",
    "PMI_SIZE",
    "PMI_RANK",
    "PMIX_RANK",
    "SLURM_NTASKS",
    "SLURM_STEP_ID",
    "SLURM_STEP_NUM_TASKS",
    "SLURM_PROCID",
};

/* "A=1 B=2" and none of the other variables above. */
static struct launcher look(const char *text)
{
    for (size_t v = 0; v < COUNT(variables); v++)
        unsetenv(variables[v]);
    char words[256];
    snprintf(words, sizeof words, "%s", text);
    for (char *word = strtok(words, " "); word != NULL; word = strtok(NULL, " ")) {
        char *value = strchr(word, '=');
        *value++ = '\0';
        setenv(word, value, 1);
    }
    return launcher_look();
}

static void test_launchers(void **state)
{
    (void)state;
    static const struct {
        const char *environment, *variable;
        int size, rank;
    } cases[] = {
        {"", NULL, 0, 0},
        {"OMPI_COMM_WORLD_SIZE=3 OMPI_COMM_WORLD_RANK=2 PMIX_RANK=2", "OMPI_COMM_WORLD_SIZE", 3,
         2},
        {"PMI_SIZE=2 PMI_RANK=1", "PMI_SIZE", 2, 1},
        {"SLURM_STEP_ID=0 SLURM_STEP_NUM_TASKS=4 SLURM_PROCID=3", "SLURM_STEP_NUM_TASKS", 4, 3},
        {"SLURM_STEP_ID=7 SLURM_STEP_NUM_TASKS=1 SLURM_PROCID=0", NULL, 0, 0},
        {"SLURM_STEP_ID=7 SLURM_STEP_NUM_TASKS=1 PMIX_RANK=0", "PMIX_RANK", 1, 0},
        /* A batch script, with and without a step number; the shell of an interactive job. */
        {"SLURM_NTASKS=8 SLURM_PROCID=0", NULL, 0, 0},
        {"SLURM_STEP_ID=4294967291 SLURM_STEP_NUM_TASKS=8 SLURM_NTASKS=8", NULL, 0, 0},
        {"SLURM_STEP_ID=4294967290 SLURM_STEP_NUM_TASKS=2", NULL, 0, 0},
        {"SLURM_STEP_ID=batch SLURM_STEP_NUM_TASKS=8", NULL, 0, 0},
        /* mpirun in a job: its daemons are the step. */
        {"SLURM_STEP_ID=1 SLURM_STEP_NUM_TASKS=2 OMPI_COMM_WORLD_SIZE=16 "
         "OMPI_COMM_WORLD_RANK=9",
         "OMPI_COMM_WORLD_SIZE", 16, 9},
        {"OMPI_COMM_WORLD_SIZE=many PMI_SIZE=-2", NULL, 0, 0},
        {"COHORT_MPI=no OMPI_COMM_WORLD_SIZE=3 PMIX_RANK=2", NULL, 0, 0},
        {"COHORT_MPI=yes", "COHORT_MPI", 1, 0},
        {"COHORT_MPI=yes PMI_SIZE=2 PMI_RANK=1", "PMI_SIZE", 2, 1},
    };
    for (size_t c = 0; c < COUNT(cases); c++) {
        const struct launcher launcher = look(cases[c].environment);
        if (cases[c].variable == NULL)
            assert_null(launcher.variable);
        else
            assert_string_equal(launcher.variable, cases[c].variable);
        assert_int_equal(launcher.size, cases[c].size);
        assert_int_equal(launcher.rank, cases[c].rank);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_launchers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
