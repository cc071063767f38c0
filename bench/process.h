/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes of the judge: runners and compilers. Each has a session and process group of its own, so that a deadline
 * ends all of it; its standard streams go to a file, never to a parser. */
#ifndef FK_BENCH_PROCESS_H
#define FK_BENCH_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include <fk/status.h>

typedef struct fkp_process {
    pid_t pid; /* 0 when none runs */
    bool ended;
    int exit_code; /* -1 when a signal ended it */
    int signal;
} fkp_process;

/* Starts argv[0] (found on PATH) with stdin from /dev/null, stdout and stderr appended to `log_path`. `keep_fd` becomes
 * descriptor FKP_RUNNER_FD of the child (-1: none); all other descriptors are closed. Variables: argv-like "NAME=value"
 * list put before this process's environment, NULL for none. FK_ERROR_MISSING when the program does not exist. */
fk_status fkp_process_start(fkp_process *process, char *const argv[], const char *log_path, int keep_fd,
                            const char *const *variables);
/* Waits until `deadline_s` (fkp_now; 0: forever); true when the process has ended. */
bool fkp_process_wait(fkp_process *process, double deadline_s);
/* Kills the whole group and reaps. */
void fkp_process_kill(fkp_process *process);
/* "exit code 3", "signal 11 (Segmentation fault)". */
const char *fkp_process_end(const fkp_process *process, char *buf, unsigned long size);

/* Processor time that all threads of the process have spent; 0 when it is gone. */
double fkp_process_cpu_seconds(const fkp_process *process);

/* Directory of this executable, without a slash at its end. */
fk_status fkp_executable_folder(char *buf, unsigned long size);
/* The last `max_bytes` of a text file into buf (NUL-terminated, control characters replaced); "" when there is none. */
void fkp_read_tail(const char *path, char *buf, unsigned long size);

#endif
