/* How fast `cohort predict RUN --follow` answers: many lines at once, and one line at a time.
 *
 *     bench_follow RUN STUDENTS ITEMS LINES     the run has items item-1, item-2, ...
 *
 * The program is started as a platform would start it, with pipes for its input and output. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double processor_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_CHILDREN, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void must(int works, const char *what)
{
    if (works)
        return;
    perror(what);
    exit(1);
}

/* Starts the program; its pipes are *in and *out. */
static pid_t start(const char *run, int *in, int *out)
{
    int to[2], from[2];
    must(pipe(to) == 0 && pipe(from) == 0, "pipe");
    const pid_t child = fork();
    must(child >= 0, "fork");
    if (child == 0) {
        dup2(to[0], 0);
        dup2(from[1], 1);
        dup2(open("/dev/null", O_WRONLY), 2);
        close(to[1]);
        close(from[0]);
        const char *program = getenv("COHORT") ? getenv("COHORT") : "build/cohort";
        execl(program, program, "predict", run, "--follow", (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    *in = to[1];
    *out = from[0];
    return child;
}

static void stop(pid_t child, int in, int out)
{
    int status = 0;
    close(in);
    close(out);
    must(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0,
         "cohort predict --follow failed");
}

static size_t print_line(char *line, size_t size, long n_students, long n_items)
{
    return (size_t)snprintf(line, size, "s%ld,item-%ld,%ld\n", random() % n_students,
                            1 + random() % n_items, random() & 1);
}

static void put(int in, const char *text, size_t n)
{
    for (size_t done = 0; done < n;) {
        const ssize_t now_done = write(in, text + done, n - done);
        must(now_done > 0, "write");
        done += (size_t)now_done;
    }
}

/* Reads until a line has ended; returns the number of bytes. */
static size_t get_line(int out)
{
    char bytes[4096];
    size_t n = 0;
    for (;;) {
        const ssize_t more = read(out, bytes, sizeof bytes);
        must(more > 0, "read");
        n += (size_t)more;
        if (bytes[more - 1] == '\n')
            return n;
    }
}

static const char header[] = "student,item,outcome\n";

/* A process writes all lines while this one counts the answers. */
static void many(const char *run, long n_students, long n_items, long n_lines)
{
    int in = -1, out = -1;
    const double processor = processor_seconds();
    const pid_t child = start(run, &in, &out);
    put(in, header, strlen(header));
    get_line(out); /* the model is open */
    const double begin = now();
    const pid_t writer = fork();
    must(writer >= 0, "fork");
    if (writer == 0) {
        FILE *file = fdopen(in, "w");
        char line[64];
        for (long i = 0; i < n_lines; i++)
            fwrite(line, 1, print_line(line, sizeof line, n_students, n_items), file);
        fclose(file);
        _exit(0);
    }
    close(in);
    static char bytes[1 << 16];
    long n = 0;
    for (ssize_t more; (more = read(out, bytes, sizeof bytes)) > 0;)
        for (ssize_t i = 0; i < more; i++)
            n += bytes[i] == '\n';
    const double seconds = now() - begin;
    waitpid(writer, NULL, 0);
    stop(child, -1, out);
    must(n == n_lines, "some lines were not answered");
    printf("%ld lines of %ld students at once: %.0f answers per second, %.0f per second of "
           "processor time (all processes); at least 20000\n",
           n_lines, n_students, (double)n_lines / seconds,
           (double)n_lines / (processor_seconds() - processor));
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void single(const char *run, long n_students, long n_items, long n_lines)
{
    int in = -1, out = -1;
    char line[64];
    double *times = calloc((size_t)n_lines, sizeof *times);
    must(times != NULL, "calloc");
    const pid_t child = start(run, &in, &out);
    put(in, header, strlen(header));
    get_line(out);
    for (long i = 0; i < n_lines; i++) {
        const size_t n = print_line(line, sizeof line, n_students, n_items);
        const double begin = now();
        put(in, line, n);
        get_line(out);
        times[i] = now() - begin;
    }
    stop(child, in, out);
    qsort(times, (size_t)n_lines, sizeof *times, ascending);
    printf("one line at a time: median %.0f us, 99 %% within %.0f us; at most 1000\n",
           1e6 * times[n_lines / 2], 1e6 * times[n_lines - 1 - n_lines / 100]);
    free(times);
}

int main(int argc, char **argv)
{
    if (argc != 5) {
        fprintf(stderr, "usage: bench_follow RUN STUDENTS ITEMS LINES\n");
        return 2;
    }
    const long n_students = atol(argv[2]), n_items = atol(argv[3]), n_lines = atol(argv[4]);
    signal(SIGPIPE, SIG_IGN);
    many(argv[1], n_students, n_items, n_lines);
    single(argv[1], n_students, n_items, n_lines / 20 + 1);
    return 0;
}
