/* cohort doctor: examines the machine it runs on and advises what would make it faster. */
#define _GNU_SOURCE
#include "base/fail.h"
#include "base/h5.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/memory.h"
#include "cohort.h"
#include "commands/commands.h"
#include "commands/doctor_internal.h"
#include "learn/scalapack.h"
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

struct values {
    const char *disk;
    bool json;
};

#define AT(field) offsetof(struct values, field)
static const struct flag flags[] = {
    {{"disk", OPTION_TEXT, AT(disk), ".", 0, 0, NULL,
      "test the file system of this directory, where runs or data sets will be"},
     0,
     "DIRECTORY"},
    {{"json", OPTION_SWITCH, AT(json), "no", 0, 0, NULL, "print one JSON object"}, 0, NULL},
};

static const double GB = 1e9, roomy = 1e9; /* bytes that should be free on a disk */

/* The findings, printed as JSON or as text: `object` has sections of keys with a text or a
 * number. */
struct findings {
    json_t *object, *advice;
};

static void advise(struct findings *findings, const char *format, ...) PRINTF(2, 3);
static void advise(struct findings *findings, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    json_array_append_new(findings->advice, command_json_text(text));
}

static json_t *section(struct findings *findings, const char *name)
{
    json_t *object = json_object();
    json_object_set_new(findings->object, name, object);
    return object;
}

/* The ranks of one host. */
struct host {
    const char *name;
    int n_ranks, n_cpus;
    double gflops_least, gflops_most, bandwidth, memory;
};

static void gather_host(const struct doctor_rank *ranks, int n, const char *name,
                        struct host *host)
{
    cpu_set_t all;
    CPU_ZERO(&all);
    *host = (struct host){.name = name, .gflops_least = INFINITY, .memory = INFINITY};
    double quota = INFINITY;
    for (int r = 0; r < n; r++) {
        const struct doctor_rank *rank = &ranks[r];
        if (strcmp(rank->host, name) != 0)
            continue;
        host->n_ranks++;
        CPU_OR(&all, &all, &rank->cpus);
        host->gflops_least = fmin(host->gflops_least, rank->gflops);
        host->gflops_most = fmax(host->gflops_most, rank->gflops);
        host->bandwidth += rank->bandwidth;
        host->memory = fmin(host->memory, rank->memory);
        quota = fmin(quota, rank->cpu_quota);
    }
    host->n_cpus = CPU_COUNT(&all);
    if (quota < host->n_cpus)
        host->n_cpus = (int)ceil(quota);
}

static void report_host(struct findings *findings, json_t *list, const struct host *host)
{
    json_t *object = json_object();
    json_object_set_new(object, "host", command_json_text(host->name));
    json_object_set_new(object, "ranks", json_integer(host->n_ranks));
    json_object_set_new(object, "cpus", json_integer(host->n_cpus));
    json_object_set_new(object, "sgemm_gflops_least", command_json_number(host->gflops_least));
    json_object_set_new(object, "sgemm_gflops_most", command_json_number(host->gflops_most));
    json_object_set_new(object, "bandwidth_gb_per_second",
                        command_json_number(host->bandwidth));
    json_object_set_new(object, "memory_available_gb", command_json_number(host->memory / GB));
    json_array_append_new(list, object);
    if (host->n_ranks > host->n_cpus)
        advise(findings,
               "%s: %d ranks share %d CPUs and wait for each other; use at most %d ranks there",
               host->name, host->n_ranks, host->n_cpus, host->n_cpus);
    if (host->memory < 1e9)
        advise(findings, "%s: only %.2f GB of memory available", host->name, host->memory / GB);
    if (host->n_ranks <= host->n_cpus && host->gflops_least < 0.5 * host->gflops_most)
        advise(findings,
               "%s: the slowest rank is at most half as fast as the fastest; check whether "
               "other programs run there",
               host->name);
}

static void report_ranks(struct findings *findings, const struct doctor_rank *ranks, int n,
                         double sum_seconds)
{
    json_object_set_new(findings->object, "ranks", json_integer(n));
    json_t *list = json_array();
    json_object_set_new(findings->object, "hosts", list);
    for (int r = 0; r < n; r++) {
        bool known = false;
        for (int q = 0; q < r && !known; q++)
            known = strcmp(ranks[q].host, ranks[r].host) == 0;
        if (known)
            continue;
        struct host host;
        gather_host(ranks, n, ranks[r].host, &host);
        report_host(findings, list, &host);
    }
    json_object_set_new(findings->object, "sum_of_1_mb_microseconds",
                        n > 1 ? json_real(1e6 * sum_seconds) : json_null());
}

/* Kernels of CPUs older than those with AVX2. */
static bool is_old_kernel(const char *kernel)
{
    static const char *const old[] = {"Prescott", "Core2",       "Penryn", "Dunnington",
                                      "Nehalem",  "Sandybridge", "Atom",   "Generic"};
    for (size_t k = 0; k < COUNT(old); k++)
        if (strcmp(old[k], kernel) == 0)
            return true;
    return false;
}

static void report_cpu(struct findings *findings)
{
    json_t *cpu = section(findings, "cpu"), *available = json_array();
    for (int isa = 0; isa < N_ISAS; isa++)
        if (machine_has((enum isa)isa))
            json_array_append_new(available, json_string(machine_isa_names[isa]));
    json_object_set_new(cpu, "vectors", json_string(machine_isa_names[machine_isa()]));
    json_object_set_new(cpu, "available", available);
    json_object_set_new(cpu, "numbers", json_string(REAL_NAME));
    if (machine_isa() + 1 < N_ISAS && machine_has((enum isa)(machine_isa() + 1)))
        advise(findings, "COHORT_ISA=%s disables the wider vectors that this CPU has",
               getenv("COHORT_ISA") ? getenv("COHORT_ISA") : "");
}

static void report_blas(struct findings *findings, const struct doctor_rank *ranks, int n)
{
    json_t *blas = section(findings, "blas");
    const char *core = getenv("OPENBLAS_CORETYPE");
    json_object_set_new(blas, "kernel", json_string(ranks[0].kernel));
    json_object_set_new(
        blas, "kernel_is_right",
        json_boolean(!is_old_kernel(ranks[0].kernel) || !machine_has(ISA_AVX2)));
    json_object_set_new(blas, "coretype", core ? command_json_text(core) : json_null());
    json_object_set_new(blas, "threads", json_integer(ranks[0].n_threads));
    const char *library = NULL;
    const bool fast = scalapack_blas_is_fast(&library);
    json_object_set_new(blas, "serves_scalapack", json_boolean(fast));
    if (!fast)
        advise(findings,
               "ScaLAPACK uses the matrix products of %s instead of OpenBLAS, which is many "
               "times faster: link cohort with -lopenblas before ScaLAPACK",
               library);
    for (int r = 0; r < n; r++) {
        if (is_old_kernel(ranks[r].kernel) && machine_has(ISA_AVX2)) {
            advise(findings,
                   "OpenBLAS on %s uses its %s kernels, several times slower than the right "
                   "ones for this CPU: set OPENBLAS_CORETYPE=%s",
                   ranks[r].host, ranks[r].kernel,
                   machine_has(ISA_AVX512) ? "SkylakeX" : "Haswell");
            break;
        }
        if (ranks[r].n_threads > 1) {
            advise(findings, "OpenBLAS uses %d threads per rank: set OPENBLAS_NUM_THREADS=1",
                   ranks[r].n_threads);
            break;
        }
    }
}

static void report_libraries(struct findings *findings)
{
    unsigned major = 0, minor = 0, release = 0;
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "", text[64];
    int length = 0, standard = 0, sub = 0;
    MPI_Get_library_version(version, &length);
    MPI_Get_version(&standard, &sub);
    version[strcspn(version, ",\n")] = '\0';
    json_t *mpi = section(findings, "mpi");
    json_object_set_new(mpi, "library", command_json_text(version));
    snprintf(text, sizeof text, "%d.%d", standard, sub);
    json_object_set_new(mpi, "standard", json_string(text));
    H5get_libversion(&major, &minor, &release);
    snprintf(text, sizeof text, "%u.%u.%u", major, minor, release);
    json_t *hdf5 = section(findings, "hdf5");
    json_object_set_new(hdf5, "version", json_string(text));
#ifdef H5_HAVE_PARALLEL
    json_object_set_new(hdf5, "parallel", json_true());
#else
    json_object_set_new(hdf5, "parallel", json_false());
    advise(findings, "HDF5 was built without MPI: ranks read data sets one after the other");
#endif
    if (major != H5_VERS_MAJOR || minor != H5_VERS_MINOR || release != H5_VERS_RELEASE)
        advise(findings, "cohort was built with HDF5 %s but runs with %s: rebuild it",
               H5_VERS_INFO, text);
}

static void report_limits(struct findings *findings, int n_hosts)
{
    static const struct {
        const char *name;
        int resource;
        double least; /* below it, advise */
        const char *advice;
    } limits[] = {
        {"open_files", RLIMIT_NOFILE, 256, "ulimit -n 1024: MPI opens files between ranks"},
        {"locked_memory", RLIMIT_MEMLOCK, 64e6,
         "ulimit -l unlimited: fast networks lock memory"},
        {"stack", RLIMIT_STACK, 1e6, "ulimit -s 8192"},
        {"address_space", RLIMIT_AS, 4e9, "ulimit -v unlimited"},
        {"file_size", RLIMIT_FSIZE, 1e9, "ulimit -f unlimited: checkpoints may not fit"},
    };
    json_t *object = section(findings, "limits");
    for (size_t l = 0; l < COUNT(limits); l++) {
        struct rlimit limit;
        if (getrlimit((__rlimit_resource_t)limits[l].resource, &limit) != 0)
            continue;
        const bool open = limit.rlim_cur == RLIM_INFINITY;
        json_object_set_new(object, limits[l].name,
                            open ? json_string("unlimited")
                                 : json_integer((json_int_t)limit.rlim_cur));
        const bool matters = limits[l].resource != RLIMIT_MEMLOCK || n_hosts > 1;
        if (!open && matters && (double)limit.rlim_cur < limits[l].least)
            advise(findings, "the limit on %s is %.0f: %s", limits[l].name,
                   (double)limit.rlim_cur, limits[l].advice);
    }
}

static void report_disk(struct findings *findings, const char *directory,
                        const struct doctor_disk *disk)
{
    json_t *object = section(findings, "disk");
    json_object_set_new(object, "directory", command_json_text(directory));
    json_object_set_new(object, "free_gb", json_real(disk->free_bytes / GB));
    json_object_set_new(object, "write_mb_per_second", json_real(disk->write_rate / 1e6));
    json_object_set_new(object, "small_file_milliseconds", json_real(1e3 * disk->small_file));
    json_object_set_new(object, "locks", json_boolean(disk->locks));
    json_object_set_new(object, "parallel_reads", json_boolean(disk->parallel_reads));
    if (disk->free_bytes < roomy)
        advise(findings, "%s: only %.3f GB free: there may soon be no space for checkpoints",
               directory, disk->free_bytes / GB);
    if (!disk->locks)
        advise(findings,
               "%s: the file system has no locks: nothing keeps two jobs out of one run "
               "directory",
               directory);
    if (disk->small_file > 0.5)
        advise(findings,
               "%s: syncing a small file takes %.1f s: save less often (raise "
               "run.save_minutes)",
               directory, disk->small_file);
}

static void say_value(const char *key, const json_t *value)
{
    printf("  %-26s", key);
    if (json_is_array(value)) {
        const json_t *one = NULL;
        size_t i = 0;
        json_array_foreach(value, i, one)
            printf("%s%s", i > 0 ? ", " : "", json_string_value(one));
        putchar('\n');
    } else if (json_is_string(value)) {
        printf("%s\n", json_string_value(value));
    } else if (json_is_integer(value)) {
        printf("%lld\n", (long long)json_integer_value(value));
    } else if (json_is_real(value)) {
        printf("%.4g\n", json_real_value(value));
    } else {
        puts(json_is_true(value) ? "yes" : json_is_false(value) ? "no" : "-");
    }
}

static void say(const struct findings *findings)
{
    json_t *part = NULL, *value = NULL, *line = NULL;
    const char *name = NULL, *key = NULL;
    size_t i = 0;
    const long long n_ranks = json_integer_value(json_object_get(findings->object, "ranks"));
    printf("cohort %s, %lld rank%s\n", COHORT_VERSION, n_ranks, n_ranks == 1 ? "" : "s");
    json_object_foreach(findings->object, name, part)
    {
        if (strcmp(name, "hosts") == 0) {
            json_array_foreach(part, i, line)
            {
                putchar('\n');
                json_object_foreach(line, key, value) say_value(key, value);
            }
        } else if (json_is_object(part)) {
            printf("\n%s\n", name);
            json_object_foreach(part, key, value) say_value(key, value);
        } else if (json_is_real(part)) {
            say_value(name, part);
        }
    }
    puts(json_array_size(findings->advice) > 0 ? "\nadvice" : "\nNo problems found.");
    json_array_foreach(findings->advice, i, line) printf("  - %s\n", json_string_value(line));
}

/* Collective; prints the report in any case, and fails if something does not work. */
static enum status examine(const struct comm *comm, const struct values *values)
{
    struct doctor_rank own;
    struct doctor_disk disk;
    double sum_seconds = 0;
    size_t n_bytes = 0;
    enum status status = doctor_disk(comm, values->disk, &disk);
    if (status == BAD_USER)
        return status;
    doctor_measure(comm, &own);
    if (!own.matmul_is_right)
        status = fail(BAD_IO,
                      "doctor: OpenBLAS on %s computes wrong products with its %s kernels; set "
                      "OPENBLAS_CORETYPE, or use another OpenBLAS",
                      own.host, own.kernel);
    if (!doctor_sum(comm, &sum_seconds))
        status = fail(BAD_IO, "doctor: MPI computes wrong sums over the ranks; do not train "
                              "with this MPI; check its installation, or use another one");
    status = comm_agree(comm, status);
    struct doctor_rank *ranks = comm_gather(comm, &own, sizeof own, &n_bytes);
    if (comm->rank == 0) {
        struct findings findings = {json_object(), json_array()};
        json_object_set_new(findings.object, "version", json_string(COHORT_VERSION));
        report_ranks(&findings, ranks, comm->size, sum_seconds);
        report_cpu(&findings);
        report_blas(&findings, ranks, comm->size);
        report_libraries(&findings);
        report_disk(&findings, values->disk, &disk);
        report_limits(&findings,
                      (int)json_array_size(json_object_get(findings.object, "hosts")));
        if (!values->json)
            say(&findings);
        json_object_set_new(findings.object, "advice", findings.advice);
        json_object_set_new(findings.object, "ok", json_boolean(status == OK));
        if (values->json)
            command_json_print(json_incref(findings.object));
        json_decref(findings.object);
    }
    memory_free(ranks);
    return status;
}

static enum status run(const struct comm *comm, int argc, char **argv)
{
    struct values values = {0};
    const char **words = NEW(const char *, (size_t)argc);
    int n_words = 0;
    enum status status = command_parse(&command_doctor, argc, argv, &values, words, &n_words);
    if (status == OK && n_words > 0)
        status = command_usage(&command_doctor);
    memory_free(words);
    return status == OK ? examine(comm, &values) : status;
}

const struct command command_doctor = {
    .name = "doctor",
    .usage = "doctor [--disk DIRECTORY] [--json]",
    .summary = "Check ranks, BLAS, HDF5, disk and limits, and report problems",
    .details = "Start it the way training will be started: on the same nodes with the same "
               "number of ranks. It measures matrix products and memory bandwidth on all ranks "
               "at once, sums between ranks, and the disk. It takes about a second and leaves "
               "no files behind. Problems that only slow training down are printed as advice.",
    .examples = "Check this machine with 8 ranks, and the file system of the runs:\n\n"
                "  mpirun -n 8 cohort doctor --disk /scratch/me/runs",
    .exit_status = "74 if something does not work at all; 0 otherwise, with or without advice.",
    .flags = flags,
    .n_flags = COUNT(flags),
    .run = run,
};
