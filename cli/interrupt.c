/* SPDX-License-Identifier: Apache-2.0 */
/* Signal handlers of the command line. */
#define _GNU_SOURCE
#include "cli/interrupt.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t interrupted;

static void on_signal(int number)
{
    (void)number;
    if (interrupted) _exit(130); /* the second one: whoever waits has waited long enough */
    interrupted = 1;
}

void fkp_interrupt_install(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_handler = on_signal; /* no SA_RESTART: blocking reads return and their loops see the flag */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, NULL);
}

bool fkp_interrupted(void)
{
    return interrupted != 0;
}

fk_status fkp_interrupt_check(void)
{
    return interrupted ? fk_fail(FK_ERROR_INTERRUPTED, "interrupted") : FK_OK;
}
