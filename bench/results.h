/* SPDX-License-Identifier: Apache-2.0 */
/* The result file of a bench: one JSON object a line, flushed after each case, so that an interruption costs one case. */
#ifndef FK_BENCH_RESULTS_H
#define FK_BENCH_RESULTS_H

#include <stdio.h>

#include "bench/record.h"

typedef struct fkp_results {
    char path[1200];
    FILE *file;
    json_t *finished; /* key -> line, from an earlier run */
} fkp_results;

/* results/<device>/<date>-bench.json for `path` NULL; folders are made. With `resume`, finished cases that are there are kept and
 * found by key (NULL path: the newest file of that folder). FK_ERROR_IO names what cannot be written. */
fk_status fkp_results_open(fkp_results *results, const char *path, const char *device_name, bool resume);
void fkp_results_close(fkp_results *results);
/* Identity of a finished case. */
void fkp_results_key(const fkp_case *c, uint64_t candidate_hash, uint64_t environment_hash, char key[128]);
/* The line of an earlier run, NULL when there is none. */
const json_t *fkp_results_find(const fkp_results *results, const char *key);
/* Appends a line; takes no reference. */
fk_status fkp_results_write(fkp_results *results, const json_t *line);

#endif
