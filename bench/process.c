/* SPDX-License-Identifier: Apache-2.0 */
/* posix_spawn, process groups, reaping. */
#define _GNU_SOURCE
#include "bench/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/protocol.h"

extern char **environ;

/* The given variables, then those of this process that they do not replace. */
static char **build_environment(const char *const *variables)
{
    size_t n = 0, given = 0, count = 0;
    while (environ[n]) n++;
    while (variables && variables[given]) given++;
    char **list = calloc(n + given + 1, sizeof *list);
    if (!list) return NULL;
    for (size_t i = 0; i < given; i++) list[count++] = (char *)(uintptr_t)variables[i];
    for (size_t i = 0; i < n; i++) {
        bool replaced = false;
        for (size_t k = 0; k < given; k++) {
            size_t name = strcspn(variables[k], "=") + 1;
            if (strncmp(environ[i], variables[k], name) == 0) replaced = true;
        }
        if (!replaced) list[count++] = environ[i];
    }
    return list;
}

fk_status fkp_process_start(fkp_process *process, char *const argv[], const char *log_path, int keep_fd,
                            const char *const *variables)
{
    *process = (fkp_process){0};
    char **environment = build_environment(variables);
    if (!environment) return fk_fail(FK_ERROR_MEMORY, "out of memory for an environment");
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, log_path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    if (keep_fd >= 0) posix_spawn_file_actions_adddup2(&actions, keep_fd, FKP_RUNNER_FD);
    posix_spawn_file_actions_addclosefrom_np(&actions, keep_fd >= 0 ? FKP_RUNNER_FD + 1 : 3);
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    pid_t pid = 0;
    int error = posix_spawnp(&pid, argv[0], &actions, &attributes, argv, environment);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    free(environment);
    if (error == ENOENT || error == EACCES)
        return fk_fail(FK_ERROR_MISSING, "cannot start %s: %s", argv[0], strerror(error));
    if (error) return fk_fail(FK_ERROR_INTERNAL, "cannot start %s: %s", argv[0], strerror(error));
    process->pid = pid;
    return FK_OK;
}

/* Reaps an ended leader. Its group goes first: while the leader is not reaped, the group's number cannot be another's. */
static void reap(fkp_process *process)
{
    int status = 0;
    kill(-process->pid, SIGKILL);
    while (waitpid(process->pid, &status, 0) < 0 && errno == EINTR) continue;
    process->ended = true;
    process->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    process->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

bool fkp_process_wait(fkp_process *process, double deadline_s)
{
    if (process->pid <= 0 || process->ended) return true;
    int pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    for (;;) {
        siginfo_t info = {0};
        int got = waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT);
        if ((got == 0 && info.si_pid == process->pid) || (got < 0 && errno != EINTR)) reap(process);
        double left = deadline_s - fkp_now();
        if (process->ended || (deadline_s > 0 && left <= 0)) break;
        struct pollfd p = {.fd = pidfd, .events = POLLIN};
        int timeout_ms = deadline_s > 0 ? (int)(left * 1000) + 1 : -1;
        if (pidfd < 0) timeout_ms = 5; /* no pidfd: look again soon */
        poll(&p, pidfd >= 0, timeout_ms);
    }
    if (pidfd >= 0) close(pidfd);
    return process->ended;
}

void fkp_process_kill(fkp_process *process)
{
    if (process->pid <= 0) return;
    if (!process->ended) {
        kill(process->pid, SIGKILL);
        reap(process);
    }
    process->pid = 0;
}

const char *fkp_process_end(const fkp_process *process, char *buf, unsigned long size)
{
    if (process->signal) snprintf(buf, size, "signal %d (%s)", process->signal, strsignal(process->signal));
    else snprintf(buf, size, "exit code %d", process->exit_code);
    return buf;
}

double fkp_process_cpu_seconds(const fkp_process *process)
{
    clockid_t clock;
    struct timespec t;
    if (process->pid <= 0 || clock_getcpuclockid(process->pid, &clock) != 0 || clock_gettime(clock, &t) != 0) return 0;
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

fk_status fkp_executable_folder(char *buf, unsigned long size)
{
    ssize_t n = readlink("/proc/self/exe", buf, size - 1);
    if (n <= 0) return fk_fail(FK_ERROR_INTERNAL, "/proc/self/exe: %s", strerror(errno));
    buf[n] = 0;
    char *slash = strrchr(buf, '/');
    if (slash) *slash = 0;
    return FK_OK;
}

void fkp_read_tail(const char *path, char *buf, unsigned long size)
{
    buf[0] = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    off_t end = lseek(fd, 0, SEEK_END);
    off_t start = end > (off_t)size - 1 ? end - ((off_t)size - 1) : 0;
    ssize_t n = pread(fd, buf, size - 1, start);
    close(fd);
    buf[n > 0 ? n : 0] = 0;
    for (char *c = buf; *c; c++)
        if ((unsigned char)*c < 32 && *c != '\n' && *c != '\t') *c = '?';
}
