/* USR1, which Slurm can send some time before the end of a job, TERM, which mpirun passes on when
 * the user presses Ctrl-C, and INT (Ctrl-C itself) mean: finish the step, save, exit with
 * STOPPED. A handler may do very little, so it only sets a flag that is checked between steps.
 * Ranks receive a signal at different times, so they agree before they stop (trainer.c). A
 * second Ctrl-C ends the program at once. */
#include "base/signals.h"
#include "base/log.h"
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t came, talks;

static void on_signal(int number)
{
    static const char words[] =
        "\nstopping after this step, then saving; press Ctrl-C again to stop at once\n";
    const int error = errno;
    if (number == SIGINT && came) {
        signal(SIGINT, SIG_DFL);
        raise(SIGINT);
    }
    if (number == SIGINT && talks && write(STDERR_FILENO, words, strlen(words)) < 0)
        talks = 0;
    came = 1;
    errno = error;
}

void signals_catch(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART}, before;
    talks = !log_muted();
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    /* A shell starts commands in the background with INT ignored. */
    if (sigaction(SIGINT, NULL, &before) == 0 && before.sa_handler != SIG_IGN)
        sigaction(SIGINT, &action, NULL);
}

bool signals_came(void)
{
    return came;
}
