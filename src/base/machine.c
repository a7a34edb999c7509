/* OpenBLAS 0.3.21 does not know some recent CPUs and then falls back to kernels from 2004 that
 * are five times slower. cohort checks the choice and corrects it before MPI starts. OpenBLAS
 * reads the overriding environment variable only when it is loaded, so the program restarts
 * itself. cohort's own vector kernels are chosen here too. */
#include "base/machine.h"
#include "base/fail.h"
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *const machine_isa_names[N_ISAS] = {"plain", "avx2", "avx512"};

bool machine_has(enum isa isa)
{
#ifdef __x86_64__
    __builtin_cpu_init();
    switch (isa) {
    case ISA_AVX2:
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2") &&
               __builtin_cpu_supports("fma");
    case ISA_AVX512:
        return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    default:
        return true;
    }
#else
    return isa == ISA_PLAIN;
#endif
}

enum isa machine_isa(void)
{
    static int chosen = -1;
    if (chosen >= 0)
        return (enum isa)chosen;
    const char *wish = getenv("COHORT_ISA");
    int isa = N_ISAS;
    while (isa-- > 0) {
        const bool wanted = wish == NULL || strcmp(wish, machine_isa_names[isa]) == 0;
        if (wanted && machine_has((enum isa)isa))
            break;
    }
    if (isa < 0)
        fail_abort(BAD_USER,
                   "COHORT_ISA=%s: unknown instruction set, or this CPU does not have it; "
                   "expected plain, avx2 or avx512",
                   wish);
    chosen = isa;
    return (enum isa)isa;
}

const char *machine_blas_kernel(void)
{
    return openblas_get_corename();
}

double machine_number(const char *path, const char *format)
{
    double value = INFINITY;
    FILE *file = fopen(path, "r");
    char line[256];
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, format, &value) == 1)
            break;
    if (file != NULL)
        fclose(file);
    return value;
}

/* The smallest limit of a control group and its parents. Truncates `group`, its path. */
static double group_limit(const char *root, char *group, const char *file)
{
    double limit = INFINITY;
    for (;;) {
        char path[1024];
        snprintf(path, sizeof path, "%s%s/%s", root, group, file);
        limit = fmin(limit, machine_number(path, "%lf"));
        char *last = strrchr(group, '/');
        if (last == NULL)
            return limit;
        *last = '\0';
    }
}

/* Control groups limit a job's memory: version 2 ("0::PATH") or version 1 ("N:memory:PATH"). */
double machine_memory(void)
{
    double limit = 1024 * machine_number("/proc/meminfo", "MemAvailable: %lf");
    FILE *groups = fopen("/proc/self/cgroup", "r");
    char line[512], path[512];
    while (groups != NULL && fgets(line, sizeof line, groups) != NULL)
        if (sscanf(line, "0::%511s", path) == 1)
            limit = fmin(limit, group_limit("/sys/fs/cgroup", path, "memory.max"));
        else if (sscanf(line, "%*d:memory:%511s", path) == 1)
            limit = fmin(limit,
                         group_limit("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes"));
    if (groups != NULL)
        fclose(groups);
    return limit;
}

void machine_settle(char **argv)
{
    const bool old = strcmp(openblas_get_corename(), "Prescott") == 0 ||
                     strcmp(openblas_get_corename(), "Core2") == 0;
    const char *better = machine_has(ISA_AVX512) ? "SkylakeX"
                         : machine_has(ISA_AVX2) ? "Haswell"
                                                 : NULL;
    if (old && better != NULL && getenv("OPENBLAS_CORETYPE") == NULL) {
        setenv("OPENBLAS_CORETYPE", better, 1);
        setenv("OPENBLAS_NUM_THREADS", "1", 1);
        execv("/proc/self/exe", argv);
        perror("cohort: warning: cannot restart with the right BLAS kernel");
    }
    openblas_set_num_threads(1);
}
