/* SPDX-License-Identifier: Apache-2.0 */
/* Finding assets. Their list comes from tools/assets.tsv, which the fetching script reads too. */
#include "runtime/assets.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const struct {
    const char *name, *file;
    long long bytes;
} assets[] = {
#include "assets.inc"
};

const char *fk_asset_name_at(int index)
{
    return index < (int)(sizeof assets / sizeof assets[0]) ? assets[index].name : NULL;
}

bool fk_asset_is_model(int index)
{
    const char *dot = strrchr(assets[index].file, '.');
    return !dot || strcmp(dot, ".gguf") == 0; /* a folder has no suffix */
}

fk_status fk_cache_dir(const char *cache_dir, char *path, size_t size)
{
    const char *base = cache_dir && *cache_dir ? cache_dir : getenv("FK_CACHE"), *tail = "";
    if (!base || !*base) base = getenv("XDG_CACHE_HOME"), tail = "/fastkernels";
    if (!base || !*base) base = getenv("HOME"), tail = "/.cache/fastkernels";
    if (!base || !*base) return fk_fail(FK_ERROR_MISSING, "no cache folder: none of FK_CACHE, XDG_CACHE_HOME, HOME is set");
    if (snprintf(path, size, "%s%s", base, tail) >= (int)size)
        return fk_fail(FK_ERROR_INVALID, "cache folder %.60s... is too long", base);
    return FK_OK;
}

/* Bytes of a file, or of all files of a folder and of those below it; -1 when there is none. */
static long long bytes_of(const char *path, int depth)
{
    struct stat info;
    if (stat(path, &info) != 0) return -1;
    if (!S_ISDIR(info.st_mode)) return info.st_size;
    DIR *folder = opendir(path);
    if (!folder) return -1;
    long long sum = 0;
    for (struct dirent *e; (e = readdir(folder));) {
        char inner[4096];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        if (depth == 0 || snprintf(inner, sizeof inner, "%s/%s", path, e->d_name) >= (int)sizeof inner) continue;
        long long bytes = bytes_of(inner, depth - 1);
        sum += bytes > 0 ? bytes : 0;
    }
    closedir(folder);
    return sum;
}

fk_status fk_asset_path(const char *name, const char *cache_dir, char *path, size_t size)
{
    for (int i = 0; fk_asset_name_at(i); i++) {
        if (strcmp(assets[i].name, name) != 0) continue;
        char folder[2048];
        FK_TRY(fk_cache_dir(cache_dir, folder, sizeof folder));
        if (snprintf(path, size, "%s/assets/%s", folder, assets[i].file) >= (int)size)
            return fk_fail(FK_ERROR_INVALID, "cache folder %.60s... is too long", folder);
        long long bytes = bytes_of(path, 2);
        if (bytes < 0)
            return fk_fail(FK_ERROR_MISSING, "asset %s is not in the cache (%s); fetch it with: tools/fetch-assets %s", name,
                           path, name);
        if (bytes != assets[i].bytes)
            return fk_fail(FK_ERROR_INVALID, "asset %s has %lld bytes, expected %lld: %s", name, bytes, assets[i].bytes, path);
        return FK_OK;
    }
    return fk_fail(FK_ERROR_INVALID, "unknown asset '%s'", name);
}
