/* SPDX-License-Identifier: Apache-2.0 */
/* Signal handlers of the command line. */
#define _GNU_SOURCE
#include "cli/interrupt.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/process.h"

#define IMPATIENT_MS 300 /* a second signal within this is the first one's echo: shells and timeout(1) send to the group, too */

static volatile sig_atomic_t interrupted;
static volatile int64_t first_ms;

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    int error = errno;
    (void)number, (void)context;
    bool ours = info->si_code <= 0 && (info->si_pid == getpid() || fkp_process_is_ours(info->si_pid));
    errno = error;
    if (ours) return; /* a candidate has no say in when we end */
    if (interrupted && now_ms() - first_ms > IMPATIENT_MS) _exit(130);  /* whoever waits has waited long enough */
    if (!interrupted) first_ms = now_ms();
    interrupted = 1;
}

void fkp_interrupt_install(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = on_signal; /* no SA_RESTART: blocking reads return and their loops see the flag */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    struct sigaction before;
    if (sigaction(SIGHUP, NULL, &before) == 0 && before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, NULL); /* not under nohup */
    action.sa_flags = 0;
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
