/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends of a guard: starting it, and its life. */
#define _GNU_SOURCE
#include "bench/guard.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_FILE_BYTES ((rlim_t)2 << 30) /* of what a command writes: a source of one line can ask for any size */
#define GRACE_S 1                         /* between asking a command to end and ending it */

extern char **environ;

fk_status fkp_guard_start(fkp_process *process, char *const argv[], int log_fd)
{
    char parent[24], *whole[FKP_GUARD_MAX_ARGUMENTS + 4] = {"/proc/self/exe", FKP_GUARD_ARGUMENT, parent};
    snprintf(parent, sizeof parent, "%ld", (long)getpid());
    for (int i = 0; argv[i]; i++) {
        assert(i < FKP_GUARD_MAX_ARGUMENTS);
        whole[3 + i] = argv[i];
    }
    return fkp_process_start(process, whole, log_fd, -1, NULL);
}

static pid_t start_command(char **argv)
{
    pid_t child = 0;
    posix_spawnattr_t attributes;
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    if (posix_spawnp(&child, argv[0], NULL, &attributes, argv, environ) != 0) child = 0;
    posix_spawnattr_destroy(&attributes);
    return child;
}

int fkp_guard_main(int argc, char **argv)
{
    sigset_t news;
    sigemptyset(&news);
    sigaddset(&news, SIGCHLD);
    sigaddset(&news, SIGTERM); /* from the parent, or because there is none any more */
    sigprocmask(SIG_BLOCK, &news, NULL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (argc < 4 || getppid() != (pid_t)strtol(argv[2], NULL, 10)) return 1; /* gone already */
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){MOST_FILE_BYTES, MOST_FILE_BYTES});
    pid_t child = start_command(argv + 3);
    if (!child) return FKP_GUARD_NO_COMMAND;
    int status = 0;
    bool asked = false;
    while (waitpid(child, &status, WNOHANG) != child) {
        int got = asked ? sigtimedwait(&news, NULL, &(struct timespec){.tv_sec = GRACE_S}) : sigwaitinfo(&news, NULL);
        if (got == SIGTERM && !asked) {
            asked = true;
            kill(0, SIGTERM); /* the group: itself too, which it has noted */
        } else if (got < 0 && errno == EAGAIN) break;
    }
    if (asked) kill(0, SIGKILL); /* what the command has left behind, and the guard */
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
