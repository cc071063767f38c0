/* SPDX-License-Identifier: Apache-2.0 */
/* Paths from the program's own place. */
#define _GNU_SOURCE
#include "cli/paths.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

fk_status fkp_home_folder(char path[FKP_PATH_SIZE])
{
    ssize_t n = readlink("/proc/self/exe", path, FKP_PATH_SIZE - 1);
    if (n <= 0) return fk_fail(FK_ERROR_IO, "cannot find this program's own file: %s", strerror(errno));
    path[n] = 0;
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(path, '/');
        if (!slash) return fk_fail(FK_ERROR_IO, "this program's path '%s' has no folder above", path);
        *slash = 0;
    }
    return FK_OK;
}

fk_status fkp_home_path(const char *name, char path[FKP_PATH_SIZE])
{
    FK_TRY(fkp_home_folder(path));
    size_t used = strlen(path);
    if (snprintf(path + used, FKP_PATH_SIZE - used, "/%s", name) >= (int)(FKP_PATH_SIZE - used))
        return fk_fail(FK_ERROR_IO, "path too long: %s/...", path);
    return FK_OK;
}
