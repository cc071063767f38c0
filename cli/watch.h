/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for candidates to change: what `bench --watch` does between two rounds. */
#ifndef FK_CLI_WATCH_H
#define FK_CLI_WATCH_H

#include <sys/stat.h>

#include "bench/candidate_files.h"

/* The candidates of a folder or file as they were last seen. */
typedef struct fkp_watch {
    const char *path; /* borrowed */
    fk_device_type device;
    struct stat *seen; /* by operator index; st_ino 0: no candidate */
} fkp_watch;

/* Notes the present state of the candidates at `path`. Close it in any case. */
fk_status fkp_watch_open(fkp_watch *watch, const char *path, fk_device_type device);
void fkp_watch_close(fkp_watch *watch);
/* Returns once candidates are new or changed and have kept still for a moment: *ops, their operators' names separated by commas,
 * to be freed. FK_ERROR_INTERRUPTED after Ctrl-C. Removed ones are forgotten. */
fk_status fkp_watch_wait(fkp_watch *watch, char **ops);

#endif
