/* SPDX-License-Identifier: Apache-2.0 */
/* Read-only mapping of whole files. */
#define _POSIX_C_SOURCE 200809L
#include "core/file_map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint8_t empty_file[1]; /* what an empty map points to: mmap refuses a length of 0 */

static fk_status fail_errno(const char *doing, const char *path, int error)
{
    fk_status status = error == ENOENT ? FK_ERROR_MISSING : error == ENOMEM ? FK_ERROR_MEMORY : FK_ERROR_IO;
    return fk_fail(status, "cannot %s '%s': %s (errno %d)", doing, path, strerror(error), error);
}

fk_status fkp_file_map_wrap(fkp_file_map *map, const char *name, const void *data, size_t size)
{
    *map = (fkp_file_map){.name = strdup(name), .data = data ? data : empty_file, .size = size, .borrowed = true};
    return map->name ? FK_OK : fk_fail(FK_ERROR_MEMORY, "%s: out of memory", name);
}

fk_status fkp_file_map_open(fkp_file_map *map, const char *path)
{
    struct stat st;
    FK_TRY(fkp_file_map_wrap(map, path, NULL, 0));
    fk_status status = FK_OK;
    /* O_NONBLOCK: opening a named pipe must fail below, not wait for a writer. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        status = fail_errno("open", path, errno);
        goto done;
    }
    if (fstat(fd, &st) != 0) {
        status = fail_errno("examine", path, errno);
        goto done;
    }
    if (!S_ISREG(st.st_mode)) {
        status = fk_fail(FK_ERROR_INVALID, "'%s' is %s, not a regular file", path,
                         S_ISDIR(st.st_mode) ? "a directory" : "a device, pipe or socket");
        goto done;
    }
    if ((uintmax_t)st.st_size > SIZE_MAX) {
        status = fk_fail(FK_ERROR_UNSUPPORTED, "'%s' has %jd bytes, too large for this address space", path,
                         (intmax_t)st.st_size);
        goto done;
    }
    if (st.st_size == 0) goto done;
    void *data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
        status = fail_errno("map", path, errno);
        goto done;
    }
    map->data = data;
    map->size = (size_t)st.st_size;
    map->borrowed = false;
done:
    if (fd >= 0) close(fd);
    if (status != FK_OK) fkp_file_map_close(map);
    return status;
}

void fkp_file_map_close(fkp_file_map *map)
{
    if (map->size > 0 && !map->borrowed) munmap((void *)(uintptr_t)map->data, map->size);
    free(map->name);
    *map = (fkp_file_map){0};
}
