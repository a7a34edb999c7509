/* USR1, which Slurm sends some time before the end of a job, and TERM mean: finish the step,
 * save, end with STOPPED. A handler may do next to nothing, so it leaves a mark, and whoever
 * works in steps looks at it between them. Ranks get a signal at different moments: they agree
 * before they stop (trainer.c). */
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
