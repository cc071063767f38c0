/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes of the judge: runners and compilers. Each has a session and process group of its own, so that a deadline
 * ends all of it; its standard streams go to a log in memory, never to a parser, so that however a judge ends, it leaves no
 * file. What a child's children do to get away (a session of their own, parents that end) leads to this process, which
 * becomes the parent of orphans and ends them. */
#ifndef FK_BENCH_PROCESS_H
#define FK_BENCH_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <fk/status.h>

typedef struct fkp_process {
    pid_t pid; /* 0 when none runs */
    bool ended;
    int exit_code; /* -1 when a signal ended it */
    int signal;
} fkp_process;

#define FKP_LOG_MAX_BYTES ((uint64_t)64 << 20) /* a runner that writes more is ended */

/* A file in memory for what a child writes; -1 when there is none. Close it when it has been read. */
int fkp_log_create(void);
/* Starts argv[0] (found on PATH) with stdin from /dev/null, stdout and stderr appended to `log_fd`. `keep_fd` becomes
 * FKP_RUNNER_FD in the child (-1: none). `variables` ("NAME=value", NULL-terminated, may be NULL) are added to the environment. */
fk_status fkp_process_start(fkp_process *process, char *const argv[], int log_fd, int keep_fd, const char *const *variables);
/* A copy of this process in a session of its own, which does not outlive it; pid is 0 in the copy. */
fk_status fkp_process_fork(fkp_process *process);
/* Waits until `deadline_s` (fkp_now; 0: forever) or until `stop` (may be NULL) says so; true when the process has ended. */
bool fkp_process_wait(fkp_process *process, double deadline_s, bool (*stop)(void));
/* Asks the whole group to end, which lets a compiler remove its files, and waits for a second at most. */
void fkp_process_ask_to_end(fkp_process *process);
/* Kills the whole group, those who left it, and reaps. */
void fkp_process_kill(fkp_process *process);
/* Whether a process is a child of ours or in its session; safe in a signal handler. */
bool fkp_process_is_ours(pid_t pid);
/* "exit code 3", "signal 11 (Segmentation fault)". */
const char *fkp_process_end(const fkp_process *process, char *buf, unsigned long size);

/* Processor time that all threads of the process have spent; 0 when it is gone. */
double fkp_process_cpu_seconds(const fkp_process *process);

/* Directory of this executable, without a slash at its end. */
fk_status fkp_executable_folder(char *buf, unsigned long size);
/* The end of a log into buf (NUL-terminated, control characters replaced); "" when there is none. */
void fkp_log_tail(int log_fd, char *buf, unsigned long size);
/* The same of its beginning. */
void fkp_log_head(int log_fd, char *buf, unsigned long size);

#endif
