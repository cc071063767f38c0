/* SPDX-License-Identifier: Apache-2.0 */
/* A command that does not outlive whoever started it, whichever way that ends. The system tells a parent's death to one
 * process only, and a compiler is several: so a process of ours leads their group, waits beside them, and passes it on. */
#ifndef FK_BENCH_GUARD_H
#define FK_BENCH_GUARD_H

#include "bench/process.h"

/* First argument of the executable that makes it a guard instead of the command line; the parent's process id and the
 * command follow. */
#define FKP_GUARD_ARGUMENT "__guard"
#define FKP_GUARD_MAX_ARGUMENTS 48
#define FKP_GUARD_NO_COMMAND 127 /* the exit code when argv[0] cannot be started, as a shell's */

/* Starts argv (at most FKP_GUARD_MAX_ARGUMENTS words) under a guard, whose end is the command's: its exit code, or 128 and
 * the signal. SIGTERM to the group gives the command a second to remove its files. */
fk_status fkp_guard_start(fkp_process *process, char *const argv[], int log_fd);

/* What the guard does; returns the exit code. */
int fkp_guard_main(int argc, char **argv);

#endif
