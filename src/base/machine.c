/* OpenBLAS 0.3.21 does not know some recent CPUs and then falls back to kernels from 2004 that
 * are five times slower. cohort checks the choice and corrects it before MPI starts. OpenBLAS
 * reads the overriding environment variable only when it is loaded, so the program restarts
 * itself. cohort's own vector kernels are chosen here too.
 *
 * OpenBLAS also starts one thread per core when it is loaded, before main. Each thread asks for
 * 128 MB of addresses until it gets them, and the program waits for all threads when it ends: for
 * ever, if the addresses are limited (ulimit -v). OpenBLAS asks a function of its own how many
 * threads OPENBLAS_NUM_THREADS wants. The dynamic linker finds cohort's function of that name
 * first, so no thread is ever started. It is weak, so that it yields if OpenBLAS is linked
 * statically. For an OpenBLAS that does not ask, the program restarts itself. The main thread too
 * would ask for its buffer for ever, so cohort first tries whether it can be had. */
#include "base/machine.h"
#include "base/fail.h"
#include <cblas.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int openblas_num_threads_env(void);
__attribute__((weak)) int openblas_num_threads_env(void)
{
    return 1;
}

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

void dpotrf_(const char *part, const int *n, double *a, const int *stride, int *info);

void machine_prepare_blas(void)
{
    enum { BUFFER = 130 << 20 };
    void *room = malloc(BUFFER);
    if (room == NULL)
        fail_abort(BAD_IO,
                   "out of memory: OpenBLAS needs a buffer of %d MB for each rank; use "
                   "fewer ranks per node, or raise the limit on memory (ulimit -v)",
                   BUFFER >> 20);
    free(room);
    const int one = 1;
    int info = 0;
    double number = 1;
    dpotrf_("L", &one, &number, &one, &info); /* OpenBLAS keeps the buffer */
}

void machine_settle(char **argv)
{
    const bool old = strcmp(openblas_get_corename(), "Prescott") == 0 ||
                     strcmp(openblas_get_corename(), "Core2") == 0;
    const char *better = machine_has(ISA_AVX512) ? "SkylakeX"
                         : machine_has(ISA_AVX2) ? "Haswell"
                                                 : NULL;
    const bool change = old && better != NULL && getenv("OPENBLAS_CORETYPE") == NULL;
    const char *n_threads = getenv("OPENBLAS_NUM_THREADS");
    const bool told = n_threads != NULL && strcmp(n_threads, "1") == 0;
    if (change || (openblas_get_num_threads() > 1 && !told)) {
        if (change)
            setenv("OPENBLAS_CORETYPE", better, 1);
        setenv("OPENBLAS_NUM_THREADS", "1", 1);
        execv("/proc/self/exe", argv);
        perror("cohort: warning: cannot restart with the right settings of OpenBLAS");
    }
    openblas_set_num_threads(1);
}
