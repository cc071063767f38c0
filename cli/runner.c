/* SPDX-License-Identifier: Apache-2.0 */
/* The hidden first word of runner processes (bench/runner.h). */
#include "bench/runner.h"

#include "cli/command.h"

static int raw_main(int argc, char **argv)
{
    (void)argc, (void)argv;
    return fkp_runner_main();
}

const fkp_command fkp_command_runner = {.name = FKP_RUNNER_ARGUMENT, .raw_main = raw_main};
