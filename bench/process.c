/* SPDX-License-Identifier: Apache-2.0 */
/* posix_spawn, process groups, reaping, orphans. */
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
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/protocol.h"
#include "core/clean_text.h"

extern char **environ;

#define MAX_LIVE 16
#define MAX_STRAY_ROUNDS 10000 /* something that multiplies faster than it is killed is left to the sandbox */

static volatile pid_t live[MAX_LIVE]; /* started and not yet reaped; 0: free */
static enum { UNDECIDED, PARENT_OF_ORPHANS, NO_PARENT_OF_ORPHANS } orphans;

static void note_live(pid_t from, pid_t to)
{
    for (int i = 0; i < MAX_LIVE; i++)
        if (live[i] == from) {
            live[i] = to;
            return;
        }
}

static bool is_live(pid_t pid)
{
    for (int i = 0; i < MAX_LIVE; i++)
        if (pid > 0 && live[i] == pid) return true;
    return false;
}

bool fkp_process_is_ours(pid_t pid)
{
    return is_live(pid) || is_live(getsid(pid));
}

/* A child of this process that is not in `live`; 0 when there is none. */
static pid_t find_stray(void)
{
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = 0;
    for (char *at = text, *end;; at = end) {
        pid_t pid = (pid_t)strtol(at, &end, 10);
        if (end == at || *end != ' ') return 0; /* the last, cut off one waits for the next look */
        if (!is_live(pid)) return pid;
    }
}

/* Whoever has children already, of the program that this process was before, cannot tell theirs from a candidate's. */
static void adopt_orphans(void)
{
    if (orphans == UNDECIDED)
        orphans = find_stray() == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 ? PARENT_OF_ORPHANS : NO_PARENT_OF_ORPHANS;
}

static void kill_strays(void)
{
    pid_t pid;
    for (int i = 0; orphans == PARENT_OF_ORPHANS && i < MAX_STRAY_ROUNDS && (pid = find_stray()) > 0; i++) {
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) continue; /* its children are ours now */
    }
}

int fkp_log_create(void)
{
    return memfd_create("log", MFD_CLOEXEC);
}

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

fk_status fkp_process_start(fkp_process *process, char *const argv[], int log_fd, int keep_fd, const char *const *variables)
{
    *process = (fkp_process){0};
    if (log_fd < 0) return fk_fail(FK_ERROR_MEMORY, "cannot make a log for %s", argv[0]);
    adopt_orphans();
    char **environment = build_environment(variables);
    if (!environment) return fk_fail(FK_ERROR_MEMORY, "out of memory for an environment");
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, log_fd, 1);
    posix_spawn_file_actions_adddup2(&actions, log_fd, 2);
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
    note_live(0, pid);
    return FK_OK;
}

fk_status fkp_process_fork(fkp_process *process)
{
    *process = (fkp_process){0};
    adopt_orphans();
    fflush(NULL);
    pid_t parent = getpid(), pid = fork();
    if (pid < 0) return fk_fail(FK_ERROR_MEMORY, "cannot fork: %s", strerror(errno));
    process->pid = pid;
    if (pid > 0) {
        note_live(0, pid);
        return FK_OK;
    }
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1); /* gone in between */
    setsid();
    orphans = UNDECIDED;
    return FK_OK;
}

/* Reaps an ended leader. Its group goes first: while the leader is not reaped, the group's number cannot be another's. */
static void reap(fkp_process *process)
{
    int status = 0;
    kill(-process->pid, SIGKILL);
    while (waitpid(process->pid, &status, 0) < 0 && errno == EINTR) continue;
    note_live(process->pid, 0);
    kill_strays();
    process->ended = true;
    process->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    process->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

bool fkp_process_wait(fkp_process *process, double deadline_s, bool (*stop)(void))
{
    if (process->pid <= 0 || process->ended) return true;
    int pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
    for (;;) {
        siginfo_t info = {0};
        int got = waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT);
        if ((got == 0 && info.si_pid == process->pid) || (got < 0 && errno != EINTR)) reap(process);
        double left = deadline_s - fkp_now();
        if (process->ended || (deadline_s > 0 && left <= 0) || (stop && stop())) break;
        struct pollfd p = {.fd = pidfd, .events = POLLIN};
        int timeout_ms = deadline_s > 0 ? (int)(left * 1000) + 1 : -1;
        if (pidfd < 0) timeout_ms = 5; /* no pidfd: look again soon */
        poll(&p, pidfd >= 0, timeout_ms);
    }
    if (pidfd >= 0) close(pidfd);
    return process->ended;
}

void fkp_process_ask_to_end(fkp_process *process)
{
    if (process->pid <= 0 || process->ended) return;
    kill(-process->pid, SIGTERM);
    fkp_process_wait(process, fkp_now() + 1, NULL);
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

/* `n` bytes, which may be NUL bytes, become text. */
static void end_text(char *buf, ssize_t n)
{
    for (ssize_t i = 0; i < n; i++)
        if (!buf[i]) buf[i] = '?';
    buf[n > 0 ? n : 0] = 0;
    fkp_clean_text(buf);
}

void fkp_log_head(int log_fd, char *buf, unsigned long size)
{
    end_text(buf, pread(log_fd, buf, size - 1, 0));
}

void fkp_log_tail(int log_fd, char *buf, unsigned long size)
{
    struct stat info;
    off_t end = fstat(log_fd, &info) == 0 ? info.st_size : 0;
    end_text(buf, pread(log_fd, buf, size - 1, end > (off_t)size - 1 ? end - ((off_t)size - 1) : 0));
}
