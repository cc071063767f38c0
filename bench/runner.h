/* SPDX-License-Identifier: Apache-2.0 */
/* The process that runs one implementation for the judge. */
#ifndef FK_BENCH_RUNNER_H
#define FK_BENCH_RUNNER_H

/* First argument of the executable that makes it a runner instead of the command line. */
#define FKP_RUNNER_ARGUMENT "__runner"

/* Serves messages on descriptor FKP_RUNNER_FD until the judge closes it; returns the exit code. */
int fkp_runner_main(void);

#endif
