/* HDF5 1.10 trusts the sizes that a file states for its own parts, and reads out of bounds: in
 * the formats before 1.8, whose metadata have no checksums, a few changed bytes crash it. A
 * damaged file must not end the program without a message, so a fault inside a reading call
 * becomes an error message and the exit code for damaged data. A fault elsewhere is cohort's
 * own bug and takes its usual course; sanitizer builds see all faults.
 *
 * After a fault nothing can be trusted, least of all the heap: the handler prints a message
 * that was prepared before, and exits without cleaning up. The launcher then ends the other
 * ranks. */
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
    if (depth == 0) { /* the fault recurs and ends the program */
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
    snprintf(
        sentence, sizeof sentence,
        "cohort: %.3000s: the HDF5 library crashed on this file: it is damaged, or was not "
        "written by cohort; use a backup, or create it again\n",
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
