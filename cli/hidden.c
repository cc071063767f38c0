/* SPDX-License-Identifier: Apache-2.0 */
/* The hidden first words of our own child processes (bench/runner.h, bench/guard.h). */
#include "bench/runner.h"

#include "bench/guard.h"
#include "cli/command.h"

static int runner_main(int argc, char **argv)
{
    (void)argc, (void)argv;
    return fkp_runner_main();
}

const fkp_command fkp_command_runner = {.name = FKP_RUNNER_ARGUMENT, .raw_main = runner_main};
const fkp_command fkp_command_guard = {.name = FKP_GUARD_ARGUMENT, .raw_main = fkp_guard_main};
