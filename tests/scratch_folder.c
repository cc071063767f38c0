/* SPDX-License-Identifier: Apache-2.0 */
/* Scratch folders. */
#define _GNU_SOURCE
#include "scratch_folder.h"

#include "unit.h"

#include <ftw.h>
#include <sys/stat.h>

char scratch_folder[] = "/tmp/fk-test-XXXXXX";

int scratch_make(void **state)
{
    (void)state;
    return mkdtemp(scratch_folder) ? 0 : 1;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info, (void)kind, (void)walk;
    return remove(path);
}

int scratch_remove(void **state)
{
    (void)state;
    return nftw(scratch_folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *scratch_path(const char *name)
{
    static char path[400];
    snprintf(path, sizeof path, "%s/%s", scratch_folder, name);
    return path;
}

void scratch_write(const char *name, const char *text)
{
    FILE *file = fopen(scratch_path(name), "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}
