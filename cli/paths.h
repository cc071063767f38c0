/* SPDX-License-Identifier: Apache-2.0 */
/* Where things are that come with the program: scenarios, tools, examples. */
#ifndef FK_CLI_PATHS_H
#define FK_CLI_PATHS_H

#include <fk/status.h>

#define FKP_PATH_SIZE 4096

/* The folder above the program's: the tree for build/fastkernels, the bundle for dist/bin/fastkernels. */
fk_status fkp_home_folder(char path[FKP_PATH_SIZE]);
/* "<home>/<name>". */
fk_status fkp_home_path(const char *name, char path[FKP_PATH_SIZE]);

#endif
