/* The part of HDF5 that cohort needs. Arrays are chunked with Fletcher-32 checksums, since
 * plain HDF5 does not notice flipped bits. Object times are not stored, so equal content gives
 * equal bytes. Checkpoints are built in memory (the core driver) and written by atomic_file.c,
 * because HDF5 on a full disk may hang or report success. h5_read.c reads. */
#define _GNU_SOURCE /* memfd_create, SEEK_DATA */
#include "base/h5.h"
#include "base/fail.h"
#include "base/h5_guard.h"
#include "base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 16 };

/* A cohort file is complete once it has its name, and is never written again, so HDF5's locks
 * protect nothing. But HDF5 would refuse to open files on a file system without locks. No file
 * may name a filter for which HDF5 would load code from disk. */
void h5_start(void)
{
    setenv("HDF5_USE_FILE_LOCKING", "FALSE", 0);
    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    H5PLset_loading_state(0);
    h5_guard_start();
}

static hid_t creation_list(hsize_t user_block)
{
    hid_t list = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_obj_track_times(list, 0);
    if (user_block > 0)
        H5Pset_userblock(list, user_block);
    return list;
}

static hid_t create(const char *name, hid_t access, H5F_libver_t oldest, hsize_t user_block)
{
    H5Pset_libver_bounds(access, oldest, H5F_LIBVER_LATEST);
    hid_t creation = creation_list(user_block);
    hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, creation, access);
    H5Pclose(creation);
    H5Pclose(access);
    return file;
}

/* Whether a file on disk may grow by n bytes. HDF5 must not hit the user's limit (ulimit -f):
 * it could never close the file. Metadata need some room too. */
static bool within_limits(uint64_t size, uint64_t n)
{
    enum { METADATA = 1 << 18 };
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           size + n + n / 512 + METADATA <= limit.rlim_cur;
}

hid_t h5_create(const char *path)
{
    if (!within_limits(0, 0)) {
        errno = EFBIG;
        return -1;
    }
    return create(path, H5Pcreate(H5P_FILE_ACCESS), H5F_LIBVER_LATEST, 0);
}

/* HDF5 treats two open images with one name as the same file. */
static void image_name(char name[32])
{
    static unsigned n_images;
    snprintf(name, 32, "image %u", n_images++);
}

hid_t h5_create_image(size_t reserve_in_front)
{
    char name[32];
    image_name(name);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_core(access, 1 << 20, 0);
    /* H5Fget_file_image of 1.10 clears a flag in the superblock without updating its checksum;
     * the oldest superblock has none. */
    return create(name, access, H5F_LIBVER_EARLIEST, reserve_in_front);
}

void *h5_image(hid_t file, size_t *n_bytes)
{
    hsize_t front = 0; /* HDF5's image lacks the reserved bytes */
    hid_t creation = H5Fget_create_plist(file);
    H5Pget_userblock(creation, &front);
    H5Pclose(creation);
    *n_bytes = 0;
    if (H5Fflush(file, H5F_SCOPE_GLOBAL) < 0)
        return NULL;
    ssize_t n = H5Fget_file_image(file, NULL, 0);
    if (n <= 0)
        return NULL;
    char *bytes = memory_zeroed(front + (size_t)n, 1);
    if (H5Fget_file_image(file, bytes + front, (size_t)n) != n) {
        memory_free(bytes);
        return NULL;
    }
    *n_bytes = front + (size_t)n;
    return bytes;
}

hid_t h5_open(const char *path, MPI_Comm comm, int n_ranks)
{
    H5_GUARD;
    h5_guard_name(path);
    struct stat info; /* opening a pipe would wait for a writer */
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode))
        return -1;
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    if (n_ranks > 1)
        H5Pset_fapl_mpio(access, comm, MPI_INFO_NULL);
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, access);
    H5Pclose(access);
    return file;
}

hid_t h5_open_image(const char *path, const void *bytes, size_t n_bytes)
{
    H5_GUARD;
    h5_guard_name(path);
    char name[32];
    image_name(name);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_fapl_core(access, 1 << 20, 0);
    H5Pset_file_image(access, (void *)(uintptr_t)bytes, n_bytes);
    hid_t file = H5Fopen(name, H5F_ACC_RDONLY, access);
    H5Pclose(access);
    return file;
}

/* HDF5's descriptor of a file on disk; -1: the file is open by MPI, or in memory. */
static int descriptor_of(hid_t file)
{
    void *handle = NULL;
    hid_t access = H5Fget_access_plist(file);
    const bool plain = H5Pget_driver(access) == H5FD_SEC2;
    H5Pclose(access);
    return plain && H5Fget_vfd_handle(file, H5P_DEFAULT, &handle) >= 0 ? *(const int *)handle
                                                                       : -1;
}

/* If HDF5 cannot close a file because the disk is full or broken, the program crashes when HDF5
 * shuts down, inside MPI_Finalize. So HDF5 closes a file in memory instead, which receives what
 * it still wants to write. */
void h5_let_go(hid_t file)
{
    H5_GUARD;
    const int disk = descriptor_of(file), sink = memfd_create("let go", MFD_CLOEXEC);
    if (sink >= 0 && disk >= 0)
        dup2(sink, disk);
    H5Fclose(file);
    if (sink >= 0)
        close(sink);
}

/* After a flush HDF5 writes only a flag near the start of the file. It gets that part in
 * memory, and we write it back with calls whose errors we can check. */
enum status h5_close(hid_t file, const char *path)
{
    enum { FRONT = 4096 };
    char front[FRONT];
    const int disk = descriptor_of(file), sink = memfd_create("front", MFD_CLOEXEC);
    const int own = disk >= 0 ? fcntl(disk, F_DUPFD_CLOEXEC, 0) : -1;
    bool done = own >= 0 && sink >= 0 && H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0;
    const ssize_t n = done ? pread(own, front, FRONT, 0) : -1;
    done = n > 0 && pwrite(sink, front, (size_t)n, 0) == n && dup2(sink, disk) >= 0;
    if (done)
        done = H5Fclose(file) >= 0 && lseek(sink, FRONT, SEEK_DATA) < 0 &&
               pread(sink, front, (size_t)n, 0) == n && pwrite(own, front, (size_t)n, 0) == n;
    else
        h5_let_go(file);
    if (own >= 0 && close(own) != 0)
        done = false;
    if (sink >= 0)
        close(sink);
    return done ? OK
                : fail(BAD_IO, "%s: HDF5 cannot close the file; is the disk full or broken?",
                       path);
}

enum status h5_group(hid_t file, const char *name)
{
    hid_t creation = H5Pcreate(H5P_GROUP_CREATE);
    H5Pset_obj_track_times(creation, 0);
    hid_t group = H5Gcreate2(file, name, H5P_DEFAULT, creation, H5P_DEFAULT);
    H5Pclose(creation);
    if (group < 0)
        return fail(BAD_IO, "HDF5 cannot create the group %s", name);
    H5Gclose(group);
    return OK;
}

enum status h5_write(hid_t file, const char *name, hid_t file_type, hid_t type, int rank,
                     const uint64_t *shape, const void *values)
{
    hsize_t chunk[4], size[4], file_size = 0;
    uint64_t n = 1, room = CHUNK;
    for (int d = rank - 1; d >= 0; d--) {
        size[d] = shape[d];
        n *= shape[d];
        chunk[d] = size_max(1, size_min(shape[d], room));
        room = size_max(1, room / chunk[d]);
    }
    H5Fget_filesize(file, &file_size);
    if (descriptor_of(file) >= 0 && !within_limits(file_size, n * H5Tget_size(file_type)))
        return fail(BAD_IO,
                    "no room for %s: your limit on file sizes (ulimit -f) is too small; raise "
                    "it",
                    name);
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_obj_track_times(creation, 0);
    H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER);
    if (n > 0) {
        H5Pset_chunk(creation, rank, chunk);
        H5Pset_fletcher32(creation);
    }
    hid_t space = H5Screate_simple(rank, size, NULL);
    hid_t array = H5Dcreate2(file, name, file_type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    const bool failed = array < 0 || (n > 0 && H5Dwrite(array, type, H5S_ALL, H5S_ALL,
                                                        H5P_DEFAULT, values) < 0);
    const bool close_failed = array >= 0 && H5Dclose(array) < 0;
    H5Sclose(space);
    H5Pclose(creation);
    return failed || close_failed
               ? fail(BAD_IO, "HDF5 cannot write %s; is the disk full?", name)
               : OK;
}

enum status h5_write_strings(hid_t file, const char *name, size_t n, const char *const *texts)
{
    const hsize_t size = n;
    uint64_t n_bytes = 0;
    hsize_t file_size = 0;
    for (size_t i = 0; i < n; i++)
        n_bytes += strlen(texts[i]) + 32; /* its place in HDF5's heap, and a reference to it */
    H5Fget_filesize(file, &file_size);
    if (descriptor_of(file) >= 0 && !within_limits(file_size, n_bytes))
        return fail(BAD_IO,
                    "no room for %s: your limit on file sizes (ulimit -f) is too small; raise "
                    "it",
                    name);
    hid_t creation = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(1, &size, NULL);
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Pset_obj_track_times(creation, 0);
    H5Tset_size(type, H5T_VARIABLE);
    H5Tset_cset(type, H5T_CSET_UTF8);
    hid_t array = H5Dcreate2(file, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    const bool failed =
        array < 0 || (n > 0 && H5Dwrite(array, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, texts) < 0);
    const bool close_failed = array >= 0 && H5Dclose(array) < 0;
    H5Tclose(type);
    H5Sclose(space);
    H5Pclose(creation);
    return failed || close_failed
               ? fail(BAD_IO, "HDF5 cannot write %s; is the disk full?", name)
               : OK;
}

static enum status write_attribute(hid_t file, const char *name, hid_t type, const void *value)
{
    hid_t space = H5Screate(H5S_SCALAR);
    hid_t attribute = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    const bool failed = attribute < 0 || H5Awrite(attribute, type, value) < 0;
    if (attribute >= 0)
        H5Aclose(attribute);
    H5Sclose(space);
    return failed ? fail(BAD_IO, "HDF5 cannot write the attribute %s", name) : OK;
}

enum status h5_write_text(hid_t file, const char *name, const char *text)
{
    /* Variable-length strings are stored in a heap; a fixed length keeps the bytes in place. */
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, strlen(text) + 1);
    enum status status = write_attribute(file, name, type, text);
    H5Tclose(type);
    return status;
}

enum status h5_write_integer(hid_t file, const char *name, int64_t value)
{
    return write_attribute(file, name, H5T_STD_I64LE, &value);
}

enum status h5_write_number(hid_t file, const char *name, double value)
{
    return write_attribute(file, name, H5T_IEEE_F64LE, &value);
}
