/* tests: HDF5 files damaged by the fuzzer. A complete file is read into memory. An input is a
 * list of edits, HURT_EDIT bytes each, which HDF5 itself carries out, so that the result is a
 * valid HDF5 file with different content: changed numbers of arrays and attributes, changed
 * shapes and types, removed or redirected links. */
#ifndef COHORT_HURT_H
#define COHORT_HURT_H

#include "fuzz.h"

#include "base/atomic_file.h"

enum { HURT_EDIT = 12, HURT_MOST_EDITS = 12, HURT_MOST_NAMES = 96, HURT_MOST_BYTES = 1 << 16 };

/* A good file: its bytes, and the objects that can be damaged. */
struct hurt {
    char *bytes;
    size_t n_bytes;
    char *arrays[HURT_MOST_NAMES], *attributes[HURT_MOST_NAMES];
    char *floats[HURT_MOST_NAMES]; /* those of the arrays that are not integers */
    size_t n_arrays, n_attributes, n_floats;
};

/* ---- good files */

static inline herr_t hurt_add_array(hid_t file, const char *name, const H5O_info_t *info,
                                    void *arg)
{
    struct hurt *hurt = arg;
    if (info->type != H5O_TYPE_DATASET || hurt->n_arrays == HURT_MOST_NAMES)
        return 0;
    hurt->arrays[hurt->n_arrays++] = memory_text("%s", name);
    hid_t array = H5Dopen2(file, name, H5P_DEFAULT), type = H5Dget_type(array);
    if (H5Tget_class(type) == H5T_FLOAT)
        hurt->floats[hurt->n_floats++] = hurt->arrays[hurt->n_arrays - 1];
    H5Tclose(type);
    H5Dclose(array);
    return 0;
}

static inline herr_t hurt_add_attribute(hid_t file, const char *name, const H5A_info_t *info,
                                        void *arg)
{
    (void)file;
    (void)info;
    struct hurt *hurt = arg;
    if (hurt->n_attributes < HURT_MOST_NAMES)
        hurt->attributes[hurt->n_attributes++] = memory_text("%s", name);
    return 0;
}

static inline herr_t hurt_copy_link(hid_t from, const char *name, const H5L_info_t *info,
                                    void *to)
{
    (void)info;
    return H5Ocopy(from, name, *(const hid_t *)to, name, H5P_DEFAULT, H5P_DEFAULT);
}

static inline herr_t hurt_copy_attribute(hid_t from, const char *name, const H5A_info_t *info,
                                         void *to)
{
    (void)info;
    char value[4096];
    hid_t old = H5Aopen(from, name, H5P_DEFAULT), type = H5Aget_type(old);
    hid_t space = H5Aget_space(old);
    fuzz_must(H5Aget_storage_size(old) <= sizeof value, "short attributes");
    hid_t fresh = H5Acreate2(*(const hid_t *)to, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    const bool good = H5Aread(old, type, value) >= 0 && H5Awrite(fresh, type, value) >= 0;
    H5Aclose(fresh);
    H5Aclose(old);
    H5Sclose(space);
    H5Tclose(type);
    return good ? 0 : -1;
}

/* A file in HDF5's oldest format, which h5_image can read (see h5_create_image). */
static inline void hurt_take(struct hurt *hurt, const char *path, size_t front)
{
    hid_t old = h5_open(path, MPI_COMM_SELF, 1), fresh = h5_create_image(front);
    fuzz_must(old >= 0 && fresh >= 0, path);
    H5Literate(old, H5_INDEX_NAME, H5_ITER_INC, NULL, hurt_copy_link, &fresh);
    H5Aiterate2(old, H5_INDEX_NAME, H5_ITER_INC, NULL, hurt_copy_attribute, &fresh);
    H5Ovisit(fresh, H5_INDEX_NAME, H5_ITER_INC, hurt_add_array, hurt);
    H5Aiterate2(fresh, H5_INDEX_NAME, H5_ITER_INC, NULL, hurt_add_attribute, hurt);
    hurt->bytes = h5_image(fresh, &hurt->n_bytes);
    fuzz_must(hurt->bytes != NULL && hurt->n_arrays > 0 && hurt->n_attributes > 0, path);
    H5Fclose(fresh);
    H5Fclose(old);
}

/* ---- edits */

struct hurt_edit {
    uint8_t deed, which;
    uint16_t at;
    uint8_t value[8];
};

static inline hid_t hurt_type(uint8_t n)
{
    const hid_t types[] = {H5T_STD_U8LE,   H5T_STD_I8LE,  H5T_STD_U16LE, H5T_STD_U32LE,
                           H5T_STD_I32LE,  H5T_STD_U64LE, H5T_STD_I64LE, H5T_IEEE_F32LE,
                           H5T_IEEE_F64LE, H5T_STD_I64BE, H5T_C_S1};
    return types[n % COUNT(types)];
}

/* Boundary values, as bytes of a number of `type`. */
static inline void hurt_special(hid_t type, uint8_t n, char *bytes)
{
    static const double numbers[] = {0,     1,      -1,     2,       255,    65535,
                                     65536, 0x1p31, 0x1p32, -0x1p31, 0x1p63, -0x1p63,
                                     1e-45, 3e38,   -3e38,  1e308,   -1e308, 0x1p53};
    double value[4] = {n % 32 == 30   ? (double)__builtin_nanf("")
                       : n % 32 == 31 ? (double)__builtin_inff()
                                      : numbers[n % COUNT(numbers)]};
    const size_t size = H5Tget_size(type);
    if (size <= 8 && H5Tconvert(H5T_NATIVE_DOUBLE, type, 1, value, NULL, H5P_DEFAULT) >= 0)
        memcpy(bytes, value, size);
}

/* Change some of the `n` elements of `type` in `bytes`. */
static inline void hurt_numbers(hid_t type, size_t n, char *bytes, const struct hurt_edit *edit)
{
    const size_t size = H5Tget_size(type), n_bytes = n * size;
    if (n_bytes == 0)
        return;
    const size_t at = edit->at % n;
    if (edit->deed & 64) /* boundary values, one or several in a row */
        for (size_t i = at; i < n && i <= at + edit->value[1]; i++)
            hurt_special(type, edit->value[0], bytes + i * size);
    else if (edit->deed & 128) /* copy one from another place */
        memmove(bytes + at * size, bytes + (edit->value[0] + 256u * edit->value[1]) % n * size,
                size);
    else /* bytes from the fuzzer */
        for (size_t b = 0; b < 1 + edit->value[7] % 7u; b++)
            bytes[(edit->at + b) % n_bytes] = (char)edit->value[b];
}

/* A complete array, NULL if missing or too large; caller frees. */
static inline char *hurt_read(hid_t file, const char *name, hid_t *type, size_t *n)
{
    hid_t array = h5_exists(file, name) ? H5Dopen2(file, name, H5P_DEFAULT) : -1;
    if (array < 0)
        return NULL;
    hid_t space = H5Dget_space(array);
    *type = H5Dget_type(array);
    *n = (size_t)H5Sget_simple_extent_npoints(space);
    char *bytes = NULL;
    if (*n <= HURT_MOST_BYTES / 8 && H5Tget_size(*type) <= 8) {
        bytes = memory_zeroed(HURT_MOST_BYTES, 1);
        if (*n > 0)
            H5Dread(array, *type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes);
    } else {
        H5Tclose(*type);
    }
    H5Sclose(space);
    H5Dclose(array);
    return bytes;
}

static inline void hurt_array(hid_t file, const char *name, const struct hurt_edit *edit)
{
    hid_t type = -1;
    size_t n = 0;
    char *bytes = hurt_read(file, name, &type, &n);
    if (bytes == NULL)
        return;
    hurt_numbers(type, n, bytes, edit);
    hid_t array = H5Dopen2(file, name, H5P_DEFAULT);
    if (n > 0)
        H5Dwrite(array, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes);
    H5Dclose(array);
    H5Tclose(type);
    memory_free(bytes);
}

/* A different shape: the same bytes, fewer, or with zeros appended. */
static inline void hurt_shape(hid_t file, const char *name, const struct hurt_edit *edit)
{
    hid_t type = -1;
    size_t n = 0;
    char *bytes = hurt_read(file, name, &type, &n);
    if (bytes == NULL)
        return;
    hid_t fresh = H5Tcopy(edit->deed & 64 ? hurt_type(edit->value[0]) : type);
    uint64_t shape[3] = {n, 1, 1};
    int rank = 1;
    switch (edit->value[1] % 4) {
    case 0:
        shape[0] = n + (uint64_t)(int8_t)edit->value[2] < 4096
                       ? n + (uint64_t)(int8_t)edit->value[2]
                       : 0;
        break;
    case 1:
        shape[0] = edit->at % 4096;
        break;
    case 2:
        rank = 1 + edit->value[2] % 3;
        shape[rank - 1] = n;
        shape[0] = rank > 1 ? edit->value[3] % 4 : n;
        break;
    default:
        break;
    }
    H5Ldelete(file, name, H5P_DEFAULT);
    if (shape[0] * shape[1] * shape[2] <= HURT_MOST_BYTES / 8 &&
        h5_write(file, name, fresh, fresh, rank, shape, bytes) != OK)
        fail_clear();
    H5Tclose(fresh);
    H5Tclose(type);
    memory_free(bytes);
}

/* The replacement of the array: nothing, an array that only claims to be long, a group, or a
 * link to somewhere else. */
static inline void hurt_link(hid_t file, const char *name, const struct hurt *hurt,
                             const struct hurt_edit *edit)
{
    if (!h5_exists(file, name))
        return;
    H5Ldelete(file, name, H5P_DEFAULT);
    const char *other = hurt->arrays[edit->value[1] % hurt->n_arrays];
    switch (edit->value[0] % 6) {
    case 0: {
        hsize_t size = (hsize_t)1 << edit->value[1] % 63, chunk = 1024;
        hid_t space = H5Screate_simple(1, &size, NULL), list = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_chunk(list, 1, &chunk);
        H5Dclose(H5Dcreate2(file, name, hurt_type(edit->value[2]), space, H5P_DEFAULT, list,
                            H5P_DEFAULT));
        H5Pclose(list);
        H5Sclose(space);
        break;
    }
    case 1:
        if (h5_group(file, name) != OK)
            fail_clear();
        break;
    case 2:
        H5Lcreate_soft(other, file, name, H5P_DEFAULT, H5P_DEFAULT);
        break;
    case 3:
        H5Lcreate_external("class.h5", other, file, name, H5P_DEFAULT, H5P_DEFAULT);
        break;
    case 4:
        if (h5_exists(file, other))
            H5Lcreate_hard(file, other, file, name, H5P_DEFAULT, H5P_DEFAULT);
        break;
    default:
        break;
    }
}

static inline void hurt_attribute(hid_t file, const char *name, const struct hurt_edit *edit)
{
    if (H5Aexists(file, name) <= 0)
        return;
    hid_t attribute = H5Aopen(file, name, H5P_DEFAULT), type = H5Aget_type(attribute);
    hid_t space = H5Aget_space(attribute);
    const size_t n = (size_t)H5Sget_simple_extent_npoints(space);
    char *bytes = memory_zeroed(HURT_MOST_BYTES, 1);
    const bool small = n * H5Tget_size(type) <= HURT_MOST_BYTES / 2;
    if (small && n > 0)
        H5Aread(attribute, type, bytes);
    H5Sclose(space);
    H5Aclose(attribute);
    H5Adelete(file, name);
    hid_t fresh = H5Tcopy(type);
    hsize_t size = 1;
    if ((edit->deed & 32) == 0) { /* the same except for some of its bytes */
        const bool is_text = H5Tget_class(type) == H5T_STRING;
        hurt_numbers(is_text ? H5T_STD_U8LE : type, is_text ? H5Tget_size(type) : n, bytes,
                     edit);
        space = H5Screate(H5S_SCALAR);
    } else {
        size = edit->value[1];
        space = size % 7 == 6 ? H5Screate(H5S_NULL) : H5Screate_simple(1, &size, NULL);
        if (edit->deed & 64) {
            H5Tclose(fresh);
            fresh = H5Tcopy(hurt_type(edit->value[0]));
        }
    }
    if (small && size * H5Tget_size(fresh) < HURT_MOST_BYTES && edit->value[0] != 255) {
        attribute = H5Acreate2(file, name, fresh, space, H5P_DEFAULT, H5P_DEFAULT);
        H5Awrite(attribute, fresh, bytes);
        H5Aclose(attribute);
    }
    H5Sclose(space);
    H5Tclose(fresh);
    H5Tclose(type);
    memory_free(bytes);
}

static inline void hurt_edit(hid_t file, const struct hurt *hurt, const uint8_t *input)
{
    struct hurt_edit edit = {.deed = input[0], .which = input[1]};
    memcpy(&edit.at, input + 2, sizeof edit.at);
    memcpy(edit.value, input + 4, sizeof edit.value);
    const char *array = hurt->arrays[edit.which % hurt->n_arrays];
    switch (edit.deed % 8) {
    case 0:
        hurt_shape(file, array, &edit);
        break;
    case 1:
        hurt_link(file, array, hurt, &edit);
        break;
    case 2:
    case 3:
        hurt_attribute(file, hurt->attributes[edit.which % hurt->n_attributes], &edit);
        break;
    case 4:
        hurt_array(file, array, &edit);
        break;
    default: /* most often, since there are most of them and little else prevents them */
        if (hurt->n_floats > 0)
            hurt_array(file, hurt->floats[edit.which % hurt->n_floats], &edit);
        break;
    }
}

/* The file's bytes after the edits of an input; caller frees. */
static inline char *hurt_bytes(const struct hurt *hurt, const uint8_t *input, size_t n,
                               size_t *n_bytes)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_core(access, 1 << 16, 0);
    H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST, H5F_LIBVER_LATEST);
    H5Pset_file_image(access, hurt->bytes, hurt->n_bytes);
    hid_t file = H5Fopen("hurt", H5F_ACC_RDWR, access);
    H5Pclose(access);
    fuzz_must(file >= 0, "a good file to begin with");
    for (size_t e = 0; e < HURT_MOST_EDITS && (e + 1) * HURT_EDIT <= n; e++)
        hurt_edit(file, hurt, input + e * HURT_EDIT);
    char *bytes = h5_image(file, n_bytes);
    fuzz_must(bytes != NULL, "an image of the file");
    H5Fclose(file);
    return bytes;
}

/* ---- the files to damage, and the commands that read them */

/* Two classes: class.h5 with everything a data set can have, and dense.h5 with many answers per
 * step. */
static inline void hurt_classes(void)
{
    static const char table[] = "student,item,correct,time,kc,unit,score,x,teacher\n";
    static const char *const rows[] = {"q1,%d,%d,a;b,u1,1,0.5,t1\n", "q2,%d,%d,b,u1,2,-1,t2\n",
                                       "q3,%d,%d,,u2,,3,\n", "q4,%d,%d,c;a,,3,0,t1\n"};
    FILE *file = fopen("class.csv", "w"), *dense = fopen("dense.txt", "w");
    fuzz_must(file != NULL && dense != NULL, "files of its own");
    fputs(table, file);
    for (int s = 0; s < 15; s++) {
        for (int t = 0; t < 8; t++) {
            fprintf(file, "s%d,", s);
            fprintf(file, rows[(s + 3 * t) % 4], (s * t + t / 2) % 2, 1000 * s + 60 * t * t);
        }
        fprintf(dense, "3\n%d %d\n%d\n\n", s % 4, (s + 1) % 4, s % 3);
    }
    fuzz_must(fclose(file) == 0 && fclose(dense) == 0, "files of its own");
    fuzz_prepare(&command_import, "csv class.csv --time time --skills kc --group unit --target "
                                  "score --covariates x --factors teacher -o class.h5");
    fuzz_prepare(&command_import, "csv class.csv --skills kc --covariates x -o plain.h5");
    fuzz_prepare(&command_import, "sequences dense.txt --items 4 -o dense.h5");
}

/* What is trained: one run of this name each. */
static const struct hurt_kind {
    const char *name, *data, *settings;
} hurt_kinds[] = {
    {"rbm", "class.h5", "model.kind=rbm model.hidden=2 train.epochs=2"},
    {"chains", "class.h5", "model.kind=rbm model.hidden=2 model.persistent=yes train.epochs=2"},
    {"rtrbm", "dense.h5", "model.kind=rtrbm model.hidden=2 train.epochs=2"},
    {"dkt", "class.h5", "model.kind=dkt model.hidden=2 train.epochs=2"},
    {"skills", "class.h5", "model.kind=dkt model.hidden=2 model.input=skill train.epochs=2"},
    {"vae", "class.h5", "model.kind=vae model.dimensions=1 model.hidden=4 train.epochs=2"},
    {"lme", "class.h5", "model.kind=lme model.fixed=x model.factors=teacher train.epochs=3"},
    {"fixed", "plain.h5", "model.kind=lme model.fixed=x train.epochs=3"},
    {"numbers", "plain.h5", "model.kind=ktm model.features=item,x train.epochs=2"},
    {"bkt", "class.h5", "model.kind=bkt train.epochs=3"},
    {"das3h", "class.h5", "model.kind=ktm model.preset=das3h train.epochs=2"},
    {"fm", "class.h5", "model.kind=ktm model.preset=fm train.epochs=2"},
};

static inline void hurt_runs(void)
{
    for (size_t k = 0; k < COUNT(hurt_kinds); k++) {
        char *line = memory_text("data=%s run=%s %s run.save_minutes=0", hurt_kinds[k].data,
                                 hurt_kinds[k].name, hurt_kinds[k].settings);
        fuzz_prepare(&command_train, line);
        memory_free(line);
    }
    fuzz_prepare(&command_blend, "rbm lme bkt -o blend");
}

/* One of the commands that read, each a line in which %1$s is a model and %2$s a data set. */
static inline enum status hurt_command(const struct command *command, const char *line,
                                       const char *model, const char *data)
{
    char text[512], *words[FUZZ_MOST_WORDS];
    int n = 0;
    words[n++] = (char *)(uintptr_t)command->name;
    snprintf(text, sizeof text, line, model, data);
    for (char *rest = text, *word; (word = strsep(&rest, " ")) != NULL;)
        words[n++] = word;
    words[n] = NULL;
    const enum status status = fuzz_command(command, words);
    static const char *const made[] = {"out", "out.h5", "out.csv", "out.html"};
    for (size_t m = 0; m < COUNT(made); m++)
        fuzz_remove(made[m]);
    return status;
}

static const struct hurt_verb {
    const struct command *command;
    const char *line;
} hurt_verbs[] = {
    {&command_evaluate, "%1$s --data %2$s --calibration --groups"},
    {&command_predict, "%1$s --data %2$s -o out.csv"},
    {&command_export, "%1$s -o out"},
    {&command_export, "%1$s --data %2$s --hidden -o out"},
    {&command_sample, "%1$s --data %2$s --students 3 -o out.h5"},
    {&command_report, "%1$s --data %2$s -o out.html"},
};

#endif
