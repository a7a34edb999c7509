/* HDF5 1.10 believes what some files say of the sizes of their own parts, and reads beyond its
 * memory: in the formats before 1.8, in which metadata have no checksums, a few altered bytes
 * make it fall. A file from anywhere must not end the program without a word, so a fault inside
 * a call that reads becomes a sentence and the exit code of damaged data. Elsewhere a fault is
 * our own, and does what it always does; the sanitizers see all of them.
 *
 * After a fault nothing can be trusted, least of all the heap: the handler prints what was made
 * ready before, and leaves without tidying up. A launcher then ends the other ranks. */
#include "base/h5_guard.h"
#include "base/log.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__)
#define HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif

static volatile sig_atomic_t depth;
static char sentence[4096];

#ifdef HAS_SANITIZER
void h5_guard_start(void) {}
#else
static void on_fault(int number)
{
    if (depth == 0) { /* comes again, and ends the program */
        signal(number, SIG_DFL);
        return;
    }
    const ssize_t done = write(STDERR_FILENO, sentence, strlen(sentence));
    _exit(done >= 0 ? BAD_DATA : BAD_IO);
}

void h5_guard_start(void)
{
    struct sigaction action = {.sa_handler = on_fault};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}
#endif

void h5_guard_name(const char *path)
{
    char *text = log_shown(path);
    snprintf(sentence, sizeof sentence,
             "cohort: %.3000s: the HDF5 library fails on this file: it is damaged, or was not "
             "written by cohort; take a copy of it, or make it again\n",
             text != NULL ? text : "a file");
    log_shown_free(text);
}

int h5_guard_enter(void)
{
    return depth++;
}

void h5_guard_leave(int *guarded)
{
    depth = *guarded;
}
