/* SPDX-License-Identifier: Apache-2.0 */
/* Where things are: beside the program (scenarios, tools) and in the cache (models, measurements). */
#ifndef FK_CLI_PATHS_H
#define FK_CLI_PATHS_H

#include "cli/command.h"

#define FKP_PATH_SIZE 4096

/* The folder above the program's: the tree for build/fastkernels, the bundle for dist/bin/fastkernels. */
fk_status fkp_home_folder(char path[FKP_PATH_SIZE]);
/* "<home>/<name>". */
fk_status fkp_home_path(const char *name, char path[FKP_PATH_SIZE]);
/* File of a fetched asset ("smollm2-135m") in the cache: FK_ERROR_INVALID for an unknown name (nearest offered),
 * FK_ERROR_MISSING when it is not at hand whole (says how to fetch it). */
fk_status fkp_asset_path(const fkp_cli *cli, const char *name, char path[FKP_PATH_SIZE]);

#endif
