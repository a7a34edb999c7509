/* Data sets with changed content and a correct digest. The first bytes of an input choose a
 * good data set, the command that reads it, and a model; edits follow (see hurt.h). */
#include "hurt.h"

static struct hurt classes[3];

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    fuzz_settle(argc, argv);
    hurt_classes();
    hurt_runs();
    hurt_take(&classes[0], "class.h5", 0);
    hurt_take(&classes[1], "plain.h5", 0);
    hurt_take(&classes[2], "dense.h5", 0);
    return 0;
}

static enum status train(const struct hurt_kind *kind)
{
    char *line = memory_text("data=hurt.h5 run=out %s train.epochs=1", kind->settings);
    const enum status status = hurt_command(&command_train, line, "", "");
    memory_free(line);
    return status;
}

static enum status read_hurt(const uint8_t *data, size_t size)
{
    size_t n_bytes = 0;
    const struct hurt_kind *kind = &hurt_kinds[data[2] % COUNT(hurt_kinds)];
    char *bytes = hurt_bytes(&classes[data[0] % COUNT(classes)], data + 3, size - 3, &n_bytes);
    fuzz_write("hurt.h5", bytes, n_bytes);
    memory_free(bytes);
    const size_t verb = data[1] % (COUNT(hurt_verbs) + 4);
    if (verb == COUNT(hurt_verbs))
        return hurt_command(&command_verify, "%2$s", "", "hurt.h5");
    if (verb == COUNT(hurt_verbs) + 1)
        return hurt_command(&command_inspect, "%2$s --items --students 5", "", "hurt.h5");
    if (verb > COUNT(hurt_verbs) + 1)
        return train(kind);
    return hurt_command(hurt_verbs[verb].command, hurt_verbs[verb].line, kind->name, "hurt.h5");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size >= 3)
        fuzz_try(read_hurt, data, size, false);
    return 0;
}
