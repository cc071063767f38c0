/* SPDX-License-Identifier: Apache-2.0 */
/* A whole file mapped read-only, or bytes that stand for one. Every reader of a model format starts here, so that opening a
 * file of any size costs no copy. Limit: a file that somebody shortens while it is mapped raises SIGBUS when the lost
 * pages are touched; model files are replaced by renaming (as the writers here do), never cut in place. */
#ifndef FK_CORE_FILE_MAP_H
#define FK_CORE_FILE_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <fk/status.h>

typedef struct fkp_file_map {
    char *name; /* the path; stands in messages */
    const uint8_t *data; /* never NULL when open, also for an empty file */
    size_t size;
    bool borrowed; /* the bytes are the caller's */
} fkp_file_map;

/* Maps the regular file at `path`. The message of a failure names the path and the errno. */
fk_status fkp_file_map_open(fkp_file_map *map, const char *path);
/* The same of borrowed bytes (NULL when there are none), which must outlive the map. */
fk_status fkp_file_map_wrap(fkp_file_map *map, const char *name, const void *data, size_t size);
/* Unmaps and clears; does nothing to a cleared map. */
void fkp_file_map_close(fkp_file_map *map);

#endif
