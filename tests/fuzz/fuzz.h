/* tests: shared by the fuzzers. A fuzzer is a program of clang's libFuzzer, which calls
 * LLVMFuzzerTestOneInput repeatedly with bytes that reach new branches. Here:
 *
 *   - cohort's own errors (a status and a message) are the expected result. Anything else that
 *     ends the program is a finding: a signal, a sanitizer, ENSURE, a loop of 25 seconds;
 *   - the machine has little memory: a request for more than ROOM at once fails with cohort's
 *     error message, which is an expected result too;
 *   - every digest of 128 bits is zero, so that any change the fuzzer makes to a file agrees
 *     with the digest stored in it;
 *   - a failure leaves nothing behind: no open file, no HDF5 object, no draft;
 *   - the working directory is a new one in memory, and no path leads out of it.
 *
 * The Makefile links with --wrap for the functions that are replaced below. */
#ifndef COHORT_FUZZ_H
#define COHORT_FUZZ_H

#define _GNU_SOURCE
#include "base/comm.h"
#include "base/fail.h"
#include "base/h5.h"
#include "base/log.h"
#include "base/memory.h"
#include "commands/commands.h"
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#ifndef FUZZ_ROOM
#define FUZZ_ROOM (64 << 20)
#endif
enum { FUZZ_MOST_WORDS = 32 };

static struct comm fuzz_world;
static char fuzz_home[64];
static jmp_buf fuzz_refused;
static bool fuzz_is_armed, fuzz_is_poor;
static FILE *fuzz_voice; /* stderr, before libFuzzer closes it for the program */

/* ---- replacements of the program's own functions */

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    fuzz_is_poor = fuzz_is_armed && size > FUZZ_ROOM;
    return fuzz_is_poor ? NULL : __real_aligned_alloc(alignment, size);
}

_Noreturn void __wrap_fail_abort(enum status status, const char *format, ...) PRINTF(2, 3);
_Noreturn void __wrap_fail_abort(enum status status, const char *format, ...)
{
    if (fuzz_is_armed && fuzz_is_poor && status == BAD_IO)
        longjmp(fuzz_refused, 1);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(fuzz_voice, format, arguments);
    va_end(arguments);
    fprintf(fuzz_voice, " (status %d)\n", (int)status);
    abort();
}

XXH128_hash_t __wrap_XXH3_128bits(const void *bytes, size_t n);
XXH128_hash_t __wrap_XXH3_128bits(const void *bytes, size_t n)
{
    (void)bytes;
    (void)n;
    return (XXH128_hash_t){0};
}

XXH128_hash_t __wrap_XXH3_128bits_digest(const XXH3_state_t *state);
XXH128_hash_t __wrap_XXH3_128bits_digest(const XXH3_state_t *state)
{
    (void)state;
    return (XXH128_hash_t){0};
}

/* ---- the working directory */

static inline void fuzz_must(bool condition, const char *what)
{
    if (condition)
        return;
    fprintf(fuzz_voice, "this fuzzer expected: %s; cohort said: %s\n", what, fail_sentence());
    abort();
}

static inline int fuzz_remove_one(const char *path, const struct stat *info, int type,
                                  struct FTW *place)
{
    (void)info;
    (void)type;
    (void)place;
    return remove(path);
}

/* Remove a file, or a directory with its content; it may be missing. */
static inline void fuzz_remove(const char *path)
{
    nftw(path, fuzz_remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static inline void fuzz_write(const char *path, const void *bytes, size_t n)
{
    const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    fuzz_must(file >= 0 && write(file, bytes, n) == (ssize_t)n, "room for a small file");
    close(file);
}

static inline void fuzz_leave(void)
{
    if (chdir("/") == 0)
        fuzz_remove(fuzz_home);
}

/* The lowest free file descriptor. */
static inline int fuzz_free_number(void)
{
    const int number = open("/dev/null", O_RDONLY | O_CLOEXEC);
    close(number);
    return number;
}

/* From LLVMFuzzerInitialize: one rank, in a directory of its own, silent until the first
 * input. */
static inline void fuzz_settle(int *argc, char ***argv)
{
    fuzz_voice = fdopen(dup(STDERR_FILENO), "w");
    setvbuf(fuzz_voice, NULL, _IOLBF, 0);
    const char *memory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(fuzz_home, sizeof fuzz_home, "%s/cohort-fuzz.XXXXXX", memory);
    fuzz_must(mkdtemp(fuzz_home) != NULL && chdir(fuzz_home) == 0, "a directory of its own");
    atexit(fuzz_leave);
    setenv("OMPI_MCA_opal_signal", "", 1); /* the fuzzer handles signals */
    comm_start(&fuzz_world, argc, argv);
    h5_start();
    log_mute(true);
    fuzz_must(freopen("/dev/null", "w", stdout) != NULL, "a silent stdout");
}

/* ---- one input */

/* Split `line` into the words of a command line. Words cannot lead out of the directory: a
 * slash is kept only between numbers. */
static inline int fuzz_words(char *line, char **words, int room)
{
    int n = 0;
    for (char *rest = line, *word; n < room && (word = strsep(&rest, " ")) != NULL;) {
        for (char *c = word; *c != '\0'; c++)
            if (*c == '/' && strncmp(word, "--split=", 8) != 0)
                *c = '_';
        if (*word != '\0' && strncmp(word, "..", 2) != 0)
            words[n++] = word;
    }
    return n;
}

/* Run a command as main would; the words end with NULL. */
static inline enum status fuzz_command(const struct command *command, char **words)
{
    int n = 0;
    while (words[n] != NULL)
        n++;
    return comm_agree(&fuzz_world, command->run(&fuzz_world, n, words));
}

/* The same for a fixed line; it must succeed. */
static inline void fuzz_prepare(const struct command *command, const char *line)
{
    char *text = memory_text("%s %s", command->name, line), *words[FUZZ_MOST_WORDS];
    int n = 0;
    for (char *rest = text, *word; (word = strsep(&rest, " ")) != NULL;)
        words[n++] = word;
    words[n] = NULL;
    fuzz_must(fuzz_command(command, words) == OK, line);
    memory_free(text);
}

/* Check that the status is valid and that there is a message, and clear it. FUZZ_SAY=1 prints
 * it. */
static inline void fuzz_judge(enum status status, bool may_be_io)
{
    if (getenv("FUZZ_SAY") != NULL)
        fprintf(fuzz_voice, "status %d: %s\n", (int)status, fail_sentence());
    const bool refused = status == BAD_USER || status == BAD_USAGE || status == BAD_DATA ||
                         status == DIVERGED || (may_be_io && status == BAD_IO);
    fuzz_must(status == OK || refused, "a status of the user's kinds");
    fuzz_must(status == OK || strlen(fail_sentence()) >= 10, "a sentence");
    fail_clear();
}

/* Run one input; returns a status. Afterwards only files remain. */
typedef enum status fuzz_deed(const uint8_t *data, size_t size);

static inline void fuzz_try(fuzz_deed *deed, const uint8_t *data, size_t size, bool may_be_io)
{
    const int next_file = fuzz_free_number();
    fuzz_is_armed = true;
    log_mute(false);
    if (setjmp(fuzz_refused) == 0) {
        fuzz_judge(deed(data, size), may_be_io);
        fuzz_must(H5Fget_obj_count((hid_t)H5F_OBJ_ALL, H5F_OBJ_ALL) <= 0,
                  "no HDF5 object left open");
        fuzz_must(fuzz_free_number() == next_file, "no file left open");
    } else { /* out of memory, where the program would end: its resources are freed here */
        fail_clear();
        H5close();
        h5_start();
        close_range((unsigned)next_file, ~0u, 0);
    }
    fuzz_is_armed = false;
}

/* The next part of an input made of parts, each after a line `@@@@ NAME`; the first part has no
 * such line. Splits the text in place; false at the end. */
struct fuzz_part {
    char *name, *text;
    size_t n;
};

static inline bool fuzz_next_part(char **rest, size_t *n_rest, struct fuzz_part *part)
{
    static const char mark[] = "@@@@ ";
    if (*rest == NULL)
        return false;
    *part = (struct fuzz_part){.name = (char *)"", .text = *rest, .n = *n_rest};
    if (*n_rest >= strlen(mark) && memcmp(*rest, mark, strlen(mark)) == 0) {
        part->name = *rest + strlen(mark);
        const size_t n_name = size_min(strcspn(part->name, "\n"), *n_rest - strlen(mark));
        part->text = part->name + n_name;
        part->n = *n_rest - strlen(mark) - n_name;
        if (part->n > 0) {
            *part->text++ = '\0';
            part->n--;
        }
    }
    char *next = memmem(part->text, part->n, "\n@@@@ ", strlen(mark) + 1);
    *n_rest = next != NULL ? part->n - (size_t)(next + 1 - part->text) : 0;
    *rest = next != NULL ? next + 1 : NULL;
    if (next != NULL)
        part->n = (size_t)(next - part->text) + 1;
    return true;
}

#endif
