/* SPDX-License-Identifier: Apache-2.0 */
/* Paths from the program's own place and from the cache folder. */
#define _GNU_SOURCE
#include "cli/paths.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/data_tables.h"
#include "core/nearest.h"

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

fk_status fkp_asset_path(const fkp_cli *cli, const char *name, char path[FKP_PATH_SIZE])
{
    const fkp_tsv *assets = fkp_assets();
    int row = fkp_tsv_find(assets, "name", name);
    if (row < 0) {
        fkp_nearest nearest = {.word = name};
        for (int i = 0; i < assets->count; i++) fkp_nearest_offer(&nearest, fkp_tsv_cell(assets, i, "name"));
        return fkp_fail_unknown("asset", &nearest, "tools/assets.tsv lists them");
    }
    if (snprintf(path, FKP_PATH_SIZE, "%s/assets/%s", cli->common.cache, fkp_tsv_cell(assets, row, "file")) >= FKP_PATH_SIZE)
        return fk_fail(FK_ERROR_IO, "cache folder's path is too long: %s", cli->common.cache);
    struct stat info;
    if (stat(path, &info) != 0 || info.st_size != strtoll(fkp_tsv_cell(assets, row, "bytes"), NULL, 10))
        return fk_fail(FK_ERROR_MISSING, "%s is not at hand (%s); fetch it with: tools/fetch-assets %s", name, path, name);
    return FK_OK;
}
