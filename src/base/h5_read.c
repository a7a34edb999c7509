/* Reads files that may be hostile. HDF5 has features that reach outside the file or allocate
 * whatever the file asks for: links, virtual data sets, numbers in other files, filters that
 * load code, shapes of 2^60 numbers. So an array is read only if it looks like one from
 * h5_write:
 *
 *     reached by hard links only, from the root;
 *     stored in the file itself, with no filter but the checksum;
 *     of one of cohort's number types, not a named type;
 *     of at most four dimensions, with no more numbers than the file has bytes for.
 *
 * An attribute must be one number or one text of fixed and moderate length. */
#include "base/fail.h"
#include "base/h5.h"
#include "base/h5_guard.h"
#include "base/memory.h"
#include <string.h>

enum { LONGEST_TEXT = 1 << 20 };

struct array {
    hid_t id;
    int rank;
    uint64_t shape[4], n; /* n: all numbers */
    H5T_class_t class;
};

enum place { NOWHERE, HERE, ELSEWHERE };

/* Whether a name leads to an object in this file. Checks every group on the way. */
static enum place find(hid_t file, const char *name)
{
    char *part = memory_text("%s", name);
    enum place place = HERE;
    for (char *p = part + 1; place == HERE; p++) {
        if (*p != '/' && *p != '\0')
            continue;
        const char end = *p;
        H5L_info_t info;
        *p = '\0';
        if (H5Lexists(file, part, H5P_DEFAULT) <= 0)
            place = NOWHERE;
        else if (H5Lget_info(file, part, &info, H5P_DEFAULT) < 0 || info.type != H5L_TYPE_HARD)
            place = ELSEWHERE;
        *p = end;
        if (end == '\0')
            break;
    }
    memory_free(part);
    return place;
}

bool h5_exists(hid_t file, const char *name)
{
    H5_GUARD;
    return find(file, name) != NOWHERE; /* a link exists, and is refused when read */
}

static enum status unreadable(const char *name)
{
    return fail(BAD_DATA, "the array %s is missing or damaged", name);
}

static enum status strange(const char *what, const char *name, const char *why)
{
    return fail(BAD_DATA, "the %s %s %s: the file is damaged or was changed; create it again",
                what, name, why);
}

static bool is_our_type(hid_t type)
{
    const hid_t ours[] = {H5T_STD_U8LE,  H5T_STD_U16LE, H5T_STD_U32LE,  H5T_STD_U64LE,
                          H5T_STD_I32LE, H5T_STD_I64LE, H5T_IEEE_F32LE, H5T_IEEE_F64LE};
    if (type < 0 || H5Tcommitted(type) != 0)
        return false;
    for (size_t t = 0; t < COUNT(ours); t++)
        if (H5Tequal(type, ours[t]) > 0)
            return true;
    return false;
}

/* Why the numbers are not stored in the way of h5_write; NULL: they are. Called before the
 * shape is read, since a virtual data set opens other files for that. */
static const char *strange_storage(hid_t array)
{
    hid_t creation = H5Dget_create_plist(array);
    if (creation < 0)
        return "has an unknown storage layout";
    const H5D_layout_t layout = H5Pget_layout(creation);
    const char *why = NULL;
    if (layout != H5D_CHUNKED && layout != H5D_CONTIGUOUS && layout != H5D_COMPACT)
        why = "is a virtual data set";
    else if (H5Pget_external_count(creation) != 0)
        why = "has its numbers in other files";
    for (int f = 0; why == NULL && f < H5Pget_nfilters(creation); f++) {
        unsigned flags = 0;
        size_t n_values = 0;
        if (H5Pget_filter2(creation, (unsigned)f, &flags, &n_values, NULL, 0, NULL, NULL) !=
            H5Z_FILTER_FLETCHER32)
            why = "is stored with a filter";
    }
    H5Pclose(creation);
    return why;
}

static const char *strange_shape(hid_t file, struct array *array)
{
    hid_t space = H5Dget_space(array->id), type = H5Dget_type(array->id);
    hsize_t size[H5S_MAX_RANK], file_size = 0;
    uint64_t n_bytes = is_our_type(type) ? H5Tget_size(type) : 0;
    const char *why = n_bytes == 0 ? "does not hold plain numbers" : NULL;
    array->class = n_bytes > 0 ? H5Tget_class(type) : H5T_NO_CLASS;
    array->rank = space < 0 || H5Sget_simple_extent_type(space) != H5S_SIMPLE
                      ? -1
                      : H5Sget_simple_extent_dims(space, size, NULL);
    if (why == NULL && (array->rank < 1 || array->rank > 4))
        why = "has an unexpected shape";
    array->n = 1;
    bool overflows = false;
    for (int d = 0; why == NULL && d < array->rank; d++) {
        array->shape[d] = size[d];
        overflows |= __builtin_mul_overflow(array->n, size[d], &array->n);
    }
    overflows |= __builtin_mul_overflow(n_bytes, array->n, &n_bytes);
    if (why == NULL && array->n > 0 &&
        (overflows || H5Fget_filesize(file, &file_size) < 0 || n_bytes > file_size ||
         n_bytes > H5Dget_storage_size(array->id)))
        why = "claims more numbers than the file holds";
    if (type >= 0)
        H5Tclose(type);
    if (space >= 0)
        H5Sclose(space);
    return why;
}

static void close_array(struct array *array)
{
    if (array->id >= 0)
        H5Dclose(array->id);
    array->id = -1;
}

static enum status open_array(hid_t file, const char *name, struct array *array)
{
    *array = (struct array){.id = -1};
    const enum place place = find(file, name);
    if (place == ELSEWHERE)
        return strange("array", name, "is a link");
    if (place == HERE)
        array->id = H5Dopen2(file, name, H5P_DEFAULT);
    if (array->id < 0)
        return unreadable(name);
    const char *why = strange_storage(array->id);
    if (why == NULL)
        why = strange_shape(file, array);
    if (why == NULL)
        return OK;
    close_array(array);
    return strange("array", name, why);
}

enum status h5_shape(hid_t file, const char *name, int *rank, uint64_t shape[4])
{
    H5_GUARD;
    struct array array;
    TRY(open_array(file, name, &array));
    *rank = array.rank;
    for (int d = 0; d < array.rank; d++)
        shape[d] = array.shape[d];
    close_array(&array);
    return OK;
}

static enum status other_length(const char *name, uint64_t n_stored, uint64_t n)
{
    return fail(BAD_DATA,
                "the array %s has %llu numbers, but %llu were expected: another version of "
                "cohort wrote it, or it was changed; create the file again",
                name, (unsigned long long)n_stored, (unsigned long long)n);
}

enum status h5_length(hid_t file, const char *name, uint64_t *n)
{
    H5_GUARD;
    int rank = 0;
    uint64_t shape[4] = {0};
    TRY(h5_shape(file, name, &rank, shape));
    *n = shape[0];
    return rank == 1 ? OK : strange("array", name, "has an unexpected shape");
}

static enum status check_class(const struct array *array, const char *name, hid_t type)
{
    return array->class == H5Tget_class(type)
               ? OK
               : strange("array", name, "has the wrong type of numbers");
}

static enum status open_range(hid_t file, const char *name, hid_t type, uint64_t first,
                              uint64_t n, struct array *array)
{
    TRY(open_array(file, name, array));
    TRY(check_class(array, name, type));
    if (array->rank != 1)
        return strange("array", name, "has an unexpected shape");
    return n <= array->n && first <= array->n - n ? OK
                                                  : other_length(name, array->n, first + n);
}

/* HDF5 reads collectively only from a file that was opened by MPI-IO. */
static bool is_shared(hid_t file)
{
    hid_t access = H5Fget_access_plist(file);
    const bool shared = H5Pget_driver(access) == H5FD_MPIO;
    H5Pclose(access);
    return shared;
}

/* All ranks open the range before any rank reads: a collective read that one rank does not join
 * never ends. */
enum status h5_read_range(hid_t file, const char *name, hid_t type, uint64_t first, uint64_t n,
                          void *values, const struct comm *comm)
{
    H5_GUARD;
    struct array array;
    enum status status = open_range(file, name, type, first, n, &array);
    if (comm != NULL)
        status = comm_agree(comm, status);
    if (status == OK) {
        hid_t all = H5Dget_space(array.id);
        const hsize_t start = first, count = n;
        hid_t part = H5Screate_simple(1, &count, NULL);
        hid_t transfer = H5Pcreate(H5P_DATASET_XFER);
        if (comm != NULL && is_shared(file))
            H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE);
        if (n > 0)
            H5Sselect_hyperslab(all, H5S_SELECT_SET, &start, NULL, &count, NULL);
        else {
            H5Sselect_none(all);
            H5Sselect_none(part);
        }
        if (H5Dread(array.id, type, part, all, transfer, values) < 0)
            status = unreadable(name);
        H5Pclose(transfer);
        H5Sclose(part);
        H5Sclose(all);
        if (comm != NULL)
            status = comm_agree(comm, status);
    }
    close_array(&array);
    return status;
}

enum status h5_read(hid_t file, const char *name, hid_t type, uint64_t n, void *values)
{
    H5_GUARD;
    struct array array;
    enum status status = open_array(file, name, &array);
    if (status == OK && array.n != n)
        status = other_length(name, array.n, n);
    if (status == OK)
        status = check_class(&array, name, type);
    if (status == OK && n > 0 &&
        H5Dread(array.id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
        status = unreadable(name);
    close_array(&array);
    return status;
}

/* Opens an attribute with one value of this class; -1: missing, or of another class. */
static hid_t open_attribute(hid_t file, const char *name, H5T_class_t class, hid_t *type)
{
    hid_t attribute = H5Aexists(file, name) > 0 ? H5Aopen(file, name, H5P_DEFAULT) : (hid_t)-1;
    if (attribute < 0)
        return -1;
    hid_t space = H5Aget_space(attribute);
    *type = H5Aget_type(attribute);
    const bool single = space >= 0 && H5Sget_simple_extent_npoints(space) == 1;
    const bool right = class == H5T_STRING
                           ? H5Tget_class(*type) == H5T_STRING && H5Tcommitted(*type) == 0 &&
                                 H5Tis_variable_str(*type) == 0 &&
                                 H5Tget_size(*type) <= LONGEST_TEXT
                           : is_our_type(*type) && H5Tget_class(*type) == class;
    if (space >= 0)
        H5Sclose(space);
    if (single && right)
        return attribute;
    if (*type >= 0)
        H5Tclose(*type);
    H5Aclose(attribute);
    return -1;
}

char *h5_text(hid_t file, const char *name)
{
    H5_GUARD;
    hid_t type = -1, attribute = open_attribute(file, name, H5T_STRING, &type);
    if (attribute < 0)
        return NULL;
    char *text = memory_zeroed(H5Tget_size(type) + 1, 1);
    if (H5Aread(attribute, type, text) < 0) {
        memory_free(text);
        text = NULL;
    }
    H5Tclose(type);
    H5Aclose(attribute);
    return text;
}

static enum status read_number(hid_t file, const char *name, hid_t type, void *value)
{
    hid_t stored = -1, attribute = open_attribute(file, name, H5Tget_class(type), &stored);
    const bool failed = attribute < 0 || H5Aread(attribute, type, value) < 0;
    if (attribute >= 0) {
        H5Tclose(stored);
        H5Aclose(attribute);
    }
    return failed ? fail(BAD_DATA, "the attribute %s is missing or damaged", name) : OK;
}

enum status h5_integer(hid_t file, const char *name, int64_t *value)
{
    H5_GUARD;
    return read_number(file, name, H5T_NATIVE_INT64, value);
}

enum status h5_number(hid_t file, const char *name, double *value)
{
    H5_GUARD;
    return read_number(file, name, H5T_NATIVE_DOUBLE, value);
}

struct each {
    enum status (*visit)(const char *name, void *arg);
    void *arg;
    enum status status;
};

static herr_t visit_link(hid_t group, const char *name, const H5L_info_t *info, void *arg)
{
    (void)group;
    (void)info;
    struct each *each = arg;
    each->status = each->visit(name, each->arg);
    return each->status == OK ? 0 : 1;
}

enum status h5_each(hid_t file, const char *group, enum status (*visit)(const char *, void *),
                    void *arg)
{
    H5_GUARD;
    const enum place place = find(file, group);
    if (place == NOWHERE)
        return OK;
    if (place == ELSEWHERE)
        return strange("group", group, "is a link");
    struct each each = {visit, arg, OK};
    hsize_t position = 0;
    if (H5Literate_by_name(file, group, H5_INDEX_NAME, H5_ITER_INC, &position, visit_link,
                           &each, H5P_DEFAULT) < 0)
        return fail(BAD_DATA, "the group %s is damaged", group);
    return each.status;
}
