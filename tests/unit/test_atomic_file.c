/* Files are intact or absent: after errors, full disks and kills. */
#define _GNU_SOURCE /* nftw */
#include "base/atomic_file.h"
#include "base/fail.h"
#include "base/file.h"
#include "base/file_lock.h"
#include "base/memory.h"
#include "base/rng.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

static char *home; /* this test's own directory */

static int settle(void **state)
{
    (void)state;
    fail_clear();
    const char *where = getenv("TMPDIR");
    home = memory_text("%s/store.XXXXXX", where ? where : "/tmp");
    return mkdtemp(home) == NULL;
}

static int unlink_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

static int leave(void **state)
{
    (void)state;
    char *disk = memory_text("%s/disk", home);
    umount(disk); /* in case a test ended with it mounted */
    memory_free(disk);
    nftw(home, unlink_one, 16, FTW_DEPTH | FTW_PHYS);
    memory_free(home);
    return 0;
}

static char *in_home(const char *name)
{
    return memory_text("%s/%s", home, name);
}

static int n_files(const char *directory)
{
    DIR *list = opendir(directory);
    assert_non_null(list);
    int n = 0;
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;)
        n += entry->d_name[0] != '.';
    closedir(list);
    return n;
}

static void expect_content(const char *path, const void *bytes, size_t n_bytes)
{
    char *got = NULL;
    size_t n_got = 0;
    assert_int_equal(file_read(path, &got, &n_got), OK);
    assert_int_equal(n_got, n_bytes);
    assert_memory_equal(got, bytes, n_bytes);
    assert_int_equal(got[n_got], '\0');
    memory_free(got);
}

/* The call failed with this status and a message that names `path`. */
static void expect_failure(enum status status, enum status expected, const char *path)
{
    assert_int_equal(status, expected);
    if (strstr(fail_sentence(), path) == NULL)
        fail_msg("'%s' does not name %s", fail_sentence(), path);
    fail_clear();
}

static void test_write_and_replace(void **state)
{
    (void)state;
    char *path = in_home("a");
    static const char binary[] = {'a', '\0', '\n', '\xff', '\r', '\n', '\0'};
    assert_false(file_exists(path));
    assert_int_equal(atomic_file_write(path, "first", 5), OK);
    assert_true(file_exists(path));
    expect_content(path, "first", 5);
    assert_int_equal(atomic_file_write(path, binary, sizeof binary), OK);
    expect_content(path, binary, sizeof binary);
    assert_int_equal(atomic_file_write(path, "", 0), OK);
    expect_content(path, "", 0);
    assert_int_equal(n_files(home), 1);
    memory_free(path);
}

static void test_only_regular_files_are_replaced(void **state)
{
    (void)state;
    char *pipe = in_home("pipe");
    struct stat info;
    assert_int_equal(mkfifo(pipe, 0600), 0);
    expect_failure(atomic_file_write(pipe, "x", 1), BAD_USER, pipe);
    assert_int_equal(stat(pipe, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    char *stream = in_home("stdout");
    assert_int_equal(symlink("/proc/self/fd/1", stream), 0);
    expect_failure(atomic_file_write(stream, "x", 1), BAD_USER, stream);
    assert_int_equal(lstat(stream, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(n_files(home), 2);
    memory_free(stream);
    memory_free(pipe);
}

/* Nothing blocks on a pipe. A lock is a plain file of its own: locking changes no other
 * file. */
static void test_pipes_and_links(void **state)
{
    (void)state;
    char *pipe = in_home("pipe"), *precious = in_home("precious"), *link_to = in_home("link");
    char *second = in_home("second"), *own = in_home("own"), *bytes = NULL, start[4];
    size_t n = 0;
    int file = -1;
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(atomic_file_write(precious, "precious", 8), OK);
    assert_int_equal(symlink(precious, link_to), 0);
    expect_failure(file_read(pipe, &bytes, &n), BAD_USER, pipe);
    expect_failure(file_read("/dev/zero", &bytes, &n), BAD_USER, "/dev/zero");
    assert_int_equal(file_peek(pipe, start, sizeof start), 0);
    assert_int_equal(file_peek(precious, start, sizeof start), sizeof start);
    assert_memory_equal(start, "prec", sizeof start);
    expect_failure(file_lock_take(pipe, 0, &file), BAD_USER, pipe);
    expect_failure(file_lock_take(link_to, 0, &file), BAD_USER, link_to);
    assert_int_equal(link(precious, second), 0);
    expect_failure(file_lock_take(second, 0, &file), BAD_USER, second);
    expect_failure(file_lock_take(home, 0, &file), BAD_IO, home);
    assert_int_equal(file, -1);
    assert_false(file_lock_is_held(pipe));
    assert_int_equal(file_lock_take(own, 0, &file), OK);
    assert_true(file >= 0 && file_lock_is_held(own));
    close(file);
    expect_content(precious, "precious", 8);
    memory_free(pipe);
    memory_free(precious);
    memory_free(link_to);
    memory_free(second);
    memory_free(own);
}

static void test_large_files(void **state)
{
    (void)state;
    char *path = in_home("large");
    const size_t sizes[] = {65534, 65535, 65536, 131071, 131072, 3000001};
    for (size_t j = 0; j < COUNT(sizes); j++) {
        char *bytes = NEW_SCRATCH(char, sizes[j]);
        for (size_t b = 0; b < sizes[j]; b++)
            bytes[b] = (char)(b * 2654435761u >> 13);
        assert_int_equal(atomic_file_write(path, bytes, sizes[j]), OK);
        expect_content(path, bytes, sizes[j]);
        memory_free(bytes);
    }
    memory_free(path);
}

/* A reader that has the old file open keeps reading the old file: it is never written to. */
static void test_old_file_is_never_touched(void **state)
{
    (void)state;
    char *path = in_home("a"), bytes[8] = "";
    assert_int_equal(atomic_file_write(path, "old", 3), OK);
    const int reader = open(path, O_RDONLY);
    assert_true(reader >= 0);
    assert_int_equal(atomic_file_write(path, "young", 5), OK);
    assert_int_equal(read(reader, bytes, sizeof bytes), 3);
    assert_memory_equal(bytes, "old", 3);
    close(reader);
    expect_content(path, "young", 5);
    memory_free(path);
}

/* There are two good files at every moment: a reader that polls never finds one missing, and
 * neither does the next job, wherever this one was killed. */
static void test_previous_file_is_kept(void **state)
{
    (void)state;
    char *path = in_home("last"), *kept = in_home("previous"),
         *leftover = atomic_file_temporary(kept);
    assert_int_equal(atomic_file_write_keeping(path, kept, "1", 1), OK);
    assert_false(file_exists(kept));
    assert_int_equal(symlink("nowhere", leftover), 0);
    assert_int_equal(atomic_file_write_keeping(path, kept, "2", 1), OK);
    expect_content(kept, "1", 1);
    const pid_t writer = fork();
    assert_true(writer >= 0);
    if (writer == 0) {
        for (int n = 0; n < 300; n++)
            if (atomic_file_write_keeping(path, kept, "3", 1) != OK)
                _exit(1);
        _exit(0);
    }
    int64_t n_missing = 0;
    int code = -1;
    while (waitpid(writer, &code, WNOHANG) == 0)
        n_missing += !file_exists(path) + !file_exists(kept);
    assert_int_equal(code, 0);
    assert_int_equal(n_missing, 0);
    /* Killed when the old file had both names and the new one had none. */
    unlink(kept);
    assert_int_equal(link(path, kept), 0);
    assert_int_equal(atomic_file_write_keeping(path, kept, "4", 1), OK);
    expect_content(path, "4", 1);
    expect_content(kept, "3", 1);
    assert_int_equal(n_files(home), 2);
    memory_free(leftover);
    memory_free(kept);
    memory_free(path);
}

static void test_leftovers_are_replaced(void **state)
{
    (void)state;
    char *path = in_home("a"), *leftover = atomic_file_temporary(path);
    FILE *file = fopen(leftover, "w");
    assert_non_null(file);
    fputs("half of a much longer file than the one that comes now", file);
    fclose(file);
    assert_int_equal(atomic_file_write(path, "whole", 5), OK);
    expect_content(path, "whole", 5);
    assert_false(file_exists(leftover));
    memory_free(leftover);
    memory_free(path);
}

static void test_temporary_files(void **state)
{
    (void)state;
    char *path = in_home("a");
    assert_int_equal(atomic_file_write(path, "old", 3), OK);
    for (int commit = 0; commit < 2; commit++) {
        struct atomic_file draft;
        assert_int_equal(atomic_file_begin(&draft, path), OK);
        assert_memory_equal(draft.name, home, strlen(home)); /* in the same file system */
        assert_string_not_equal(draft.name, path);
        FILE *file = fopen(draft.name, "w");
        assert_non_null(file);
        fputs("young", file);
        fclose(file);
        expect_content(path, "old", 3);
        if (commit) {
            assert_int_equal(atomic_file_commit(&draft, path), OK);
            expect_content(path, "young", 5);
        } else {
            atomic_file_abandon(&draft);
            expect_content(path, "old", 3);
        }
        assert_null(draft.name);
        assert_int_equal(n_files(home), 1);
    }
    struct atomic_file lost;
    assert_int_equal(atomic_file_begin(&lost, path), OK);
    unlink(lost.name);
    expect_failure(atomic_file_commit(&lost, path), BAD_IO, path);
    expect_content(path, "young", 5);
    memory_free(path);
}

/* Several jobs replace one file: all succeed, and the file is always intact and from one of
 * them. */
static void test_writers_take_turns(void **state)
{
    (void)state;
    enum { SIZE = 200000, N_WRITERS = 4, N_TURNS = 40 };
    char *path = in_home("a"), *bytes = NEW(char, SIZE);
    assert_int_equal(atomic_file_write(path, bytes, SIZE), OK);
    pid_t writers[N_WRITERS];
    for (int w = 0; w < N_WRITERS; w++) {
        writers[w] = fork();
        assert_true(writers[w] >= 0);
        if (writers[w] != 0)
            continue;
        memset(bytes, 'a' + w, SIZE);
        for (int n = 0; n < N_TURNS; n++)
            if (atomic_file_write(path, bytes, SIZE) != OK)
                _exit(1);
        _exit(0);
    }
    int n_bad = 0, n_failed = 0;
    for (int w = 0; w < N_WRITERS;) {
        char *got = NULL;
        size_t n = 0;
        assert_int_equal(file_read(path, &got, &n), OK);
        n_bad += n != SIZE || memcmp(got, got + 1, SIZE - 1) != 0;
        memory_free(got);
        int code = 0;
        if (waitpid(writers[w], &code, WNOHANG) == writers[w]) {
            n_failed += code != 0;
            w++;
        }
    }
    assert_int_equal(n_bad, 0);
    assert_int_equal(n_failed, 0);
    assert_int_equal(n_files(home), 1);
    memory_free(bytes);
    memory_free(path);
}

static void test_missing_directory(void **state)
{
    (void)state;
    char *path = in_home("missing/a");
    expect_failure(atomic_file_write(path, "x", 1), BAD_IO, path);
    assert_int_equal(n_files(home), 0);
    char *bytes = NULL;
    size_t n = 0;
    expect_failure(file_read(path, &bytes, &n), BAD_USER, path);
    assert_null(bytes);
    memory_free(path);
}

/* Even root cannot write below a regular file, or replace a directory by a file. */
static void test_unwritable_places(void **state)
{
    (void)state;
    char *file = in_home("file"), *below = in_home("file/a"), *directory = in_home("directory");
    char *bytes = NULL;
    size_t n = 0;
    assert_int_equal(atomic_file_write(file, "x", 1), OK);
    assert_int_equal(mkdir(directory, 0777), 0);
    expect_failure(atomic_file_write(below, "y", 1), BAD_IO, below);
    expect_failure(atomic_file_write(directory, "y", 1), BAD_IO, directory);
    expect_failure(file_make_directory(below), BAD_USER, file);
    expect_failure(file_make_directory(file), BAD_USER, file);
    expect_failure(file_read(directory, &bytes, &n), BAD_USER, directory);
    assert_int_equal(n_files(home), 2);
    expect_content(file, "x", 1);
    memory_free(file);
    memory_free(below);
    memory_free(directory);
}

/* The old file survives a write that does not fit, and no other file remains. */
static void expect_no_room(const char *directory)
{
    enum { BIG = 1 << 20 };
    char *path = memory_text("%s/a", directory), *big = NEW(char, BIG);
    assert_int_equal(atomic_file_write(path, big, BIG), BAD_IO);
    assert_null(strstr(fail_sentence(), "previous file")); /* there is none */
    fail_clear();
    assert_int_equal(atomic_file_write(path, "old", 3), OK);
    const enum status status = atomic_file_write(path, big, BIG);
    char *sentence = memory_text("%s", fail_sentence());
    expect_failure(status, BAD_IO, path);
    expect_content(path, "old", 3);
    assert_int_equal(n_files(directory), 1);
    assert_int_equal(atomic_file_write(path, "next", 4), OK);
    expect_content(path, "next", 4);
    assert_non_null(strstr(sentence, "the previous file is intact"));
    memory_free(sentence);
    memory_free(big);
    memory_free(path);
}

static void test_file_size_limit(void **state)
{
    (void)state;
    atomic_file_start();
    struct rlimit before, limit;
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    limit.rlim_cur = 100000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    expect_no_room(home);
    setrlimit(RLIMIT_FSIZE, &before);
    signal(SIGXFSZ, SIG_DFL);
}

static void test_disk_full(void **state)
{
    (void)state;
    char *disk = in_home("disk");
    assert_int_equal(mkdir(disk, 0777), 0);
    if (mount("tmpfs", disk, "tmpfs", 0, "size=128k") != 0) {
        print_message("skipped test_disk_full: a small disk cannot be mounted here: %s\n",
                      strerror(errno));
        memory_free(disk);
        skip();
    }
    expect_no_room(disk);
    assert_int_equal(umount(disk), 0);
    memory_free(disk);
}

/* Writers killed at random moments leave one of two files, always intact. Where the disk is
 * slow they get more time, until both have been seen. */
static void test_killed_writers(void **state)
{
    (void)state;
    enum { SIZE = 300000, N_KILLS = 25, MOST_KILLS = 6 * N_KILLS };
    char *path = in_home("a"), *bytes[2] = {NEW(char, SIZE), NEW(char, SIZE)};
    memset(bytes[0], 'a', SIZE);
    memset(bytes[1], 'b', SIZE);
    assert_int_equal(atomic_file_write(path, bytes[0], SIZE), OK);
    int n_seen[2] = {0};
    for (uint32_t k = 0; k < N_KILLS || (k < MOST_KILLS && n_seen[0] * n_seen[1] == 0); k++) {
        const pid_t writer = fork();
        assert_true(writer >= 0);
        if (writer == 0)
            for (int turn = 1;; turn = !turn)
                if (atomic_file_write(path, bytes[turn], SIZE) != OK)
                    _exit(1);
        const struct rng rng = {.seed = 3, .purpose = RNG_SIMULATE, .when = k};
        const uint64_t most = UINT64_C(20000000) << k / N_KILLS; /* nanoseconds */
        const struct timespec wait = {.tv_nsec = (long)rng_below(&rng, 0, most)};
        nanosleep(&wait, NULL);
        kill(writer, SIGKILL);
        int status = 0;
        waitpid(writer, &status, 0);
        assert_true(WIFSIGNALED(status));
        char *got = NULL;
        size_t n = 0;
        assert_int_equal(file_read(path, &got, &n), OK);
        assert_int_equal(n, SIZE);
        const int turn = got[0] == 'b';
        assert_memory_equal(got, bytes[turn], SIZE);
        n_seen[turn]++;
        memory_free(got);
    }
    assert_true(n_seen[0] > 0 && n_seen[1] > 0); /* both were written */
    memory_free(bytes[0]);
    memory_free(bytes[1]);
    memory_free(path);
}

static void test_make_directory(void **state)
{
    (void)state;
    static const char *const names[] = {"a/b/c", "a/b/c/", "a//d", "a/b"};
    for (size_t j = 0; j < COUNT(names); j++) {
        char *path = in_home(names[j]);
        assert_int_equal(file_make_directory(path), OK);
        struct stat info;
        assert_int_equal(stat(path, &info), 0);
        assert_true(S_ISDIR(info.st_mode));
        assert_int_equal(file_make_directory(path), OK);
        memory_free(path);
    }
    assert_int_equal(file_make_directory("/"), OK);
    assert_int_equal(file_make_directory("."), OK);
    expect_failure(file_make_directory(""), BAD_IO, "");
}

static void test_relative_path(void **state)
{
    (void)state;
    char *before = getcwd(NULL, 0);
    assert_int_equal(chdir(home), 0);
    assert_int_equal(atomic_file_write("a", "x", 1), OK);
    expect_content("a", "x", 1);
    assert_int_equal(file_make_directory("b/c"), OK);
    assert_int_equal(atomic_file_write("b/c/d", "y", 1), OK);
    assert_int_equal(chdir(before), 0);
    assert_int_equal(n_files(home), 2);
    free(before);
}

#define IN_A_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, settle, leave)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_DIRECTORY(test_write_and_replace),
        IN_A_DIRECTORY(test_only_regular_files_are_replaced),
        IN_A_DIRECTORY(test_pipes_and_links),
        IN_A_DIRECTORY(test_large_files),
        IN_A_DIRECTORY(test_old_file_is_never_touched),
        IN_A_DIRECTORY(test_previous_file_is_kept),
        IN_A_DIRECTORY(test_leftovers_are_replaced),
        IN_A_DIRECTORY(test_temporary_files),
        IN_A_DIRECTORY(test_writers_take_turns),
        IN_A_DIRECTORY(test_missing_directory),
        IN_A_DIRECTORY(test_unwritable_places),
        IN_A_DIRECTORY(test_file_size_limit),
        IN_A_DIRECTORY(test_disk_full),
        IN_A_DIRECTORY(test_killed_writers),
        IN_A_DIRECTORY(test_make_directory),
        IN_A_DIRECTORY(test_relative_path),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
