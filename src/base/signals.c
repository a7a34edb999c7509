/* USR1, which Slurm can send some time before the end of a job, and TERM mean: finish the step,
 * save, exit with STOPPED. A handler may do very little, so it only sets a flag that is checked
 * between steps. Ranks receive a signal at different times, so they agree before they stop
 * (trainer.c). */
#include "base/signals.h"
#include <signal.h>

static volatile sig_atomic_t came;

static void on_signal(int number)
{
    (void)number;
    came = 1;
}

void signals_catch(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool signals_came(void)
{
    return came;
}
