/* Checkpoints with changed content and a correct digest. The first bytes of an input choose a
 * kind and the command that reads its checkpoint; edits follow (see hurt.h). */
#include "hurt.h"

#include "base/file.h"

enum { FRONT = 512, N_RUNS = COUNT(hurt_kinds) + 1 };
static struct hurt checkpoints[N_RUNS];

static const char *name_of(size_t r)
{
    return r < COUNT(hurt_kinds) ? hurt_kinds[r].name : "blend";
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    fuzz_settle(argc, argv);
    hurt_classes();
    hurt_runs();
    for (size_t r = 0; r < N_RUNS; r++) {
        char *path = memory_text("%s/last.h5", name_of(r));
        hurt_take(&checkpoints[r], path, FRONT);
        memory_free(path);
    }
    return 0;
}

/* The header, for any bytes with a digest of zero. */
static void write_checkpoint(const char *path, char *bytes, size_t n_bytes)
{
    char text[FRONT];
    const int n = snprintf(text, sizeof text,
                           "cohort checkpoint\nxxh3-128 %032d of the %zu bytes that follow\n",
                           0, n_bytes - FRONT);
    memset(bytes, '\n', FRONT);
    memcpy(bytes, text, (size_t)n);
    fuzz_write(path, bytes, n_bytes);
}

static void copy(const struct hurt_kind *kind, const char *name)
{
    char *bytes = NULL, *from = memory_text("%s/%s", kind->name, name);
    char *to = memory_text("out/%s", name);
    size_t n = 0;
    fuzz_must(!file_exists(from) || file_read(from, &bytes, &n) == OK, from);
    if (bytes != NULL)
        fuzz_write(to, bytes, n);
    memory_free(bytes);
    memory_free(from);
    memory_free(to);
}

/* The run continues from this checkpoint. */
static enum status go_on(const struct hurt_kind *kind, char *bytes, size_t n_bytes)
{
    fuzz_must(mkdir("out", 0777) == 0, "a run's directory");
    copy(kind, "config.ini");
    copy(kind, "best.h5");
    write_checkpoint("out/last.h5", bytes, n_bytes);
    char *line = memory_text("data=%s run=out %s train.epochs=4", kind->data, kind->settings);
    const enum status status = hurt_command(&command_train, line, "", "");
    memory_free(line);
    return status;
}

static enum status read_hurt(const uint8_t *data, size_t size)
{
    size_t n_bytes = 0;
    const size_t r = data[0] % N_RUNS, verb = data[1] % (COUNT(hurt_verbs) + 4);
    const bool trained = r < COUNT(hurt_kinds);
    const char *class = trained ? hurt_kinds[r].data : "class.h5";
    char *bytes = hurt_bytes(&checkpoints[r], data + 2, size - 2, &n_bytes);
    write_checkpoint("hurt.h5", bytes, n_bytes);
    enum status status = OK;
    if (verb < COUNT(hurt_verbs))
        status =
            hurt_command(hurt_verbs[verb].command, hurt_verbs[verb].line, "hurt.h5", class);
    else if (verb < COUNT(hurt_verbs) + 2 || !trained)
        status = hurt_command(&command_inspect, data[1] < 128 ? "%1$s" : "%1$s --json",
                              "hurt.h5", "");
    else
        status = go_on(&hurt_kinds[r], bytes, n_bytes);
    memory_free(bytes);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= 2)
        fuzz_try(read_hurt, data, size, false);
    return 0;
}
