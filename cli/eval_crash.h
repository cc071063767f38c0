/* SPDX-License-Identifier: Apache-2.0 */
/* A candidate that crashes takes eval's process with it. This names the candidate and writes the record before the end. */
#ifndef FK_CLI_EVAL_CRASH_H
#define FK_CLI_EVAL_CRASH_H

#include <jansson.h>
#include <stdio.h>

#include "bench/candidate_set.h"

typedef struct fkp_crash_guard fkp_crash_guard;

/* Prepares what a crash inside a candidate writes: `record` (status and detail are filled in per candidate) as a line on
 * `json` when that is not NULL, a message on stderr, exit code 1. Crashes elsewhere stay what they are. One at a time. */
fk_status fkp_crash_guard_create(const fkp_candidate_set *set, json_t *record, FILE *json, fkp_crash_guard **out);
void fkp_crash_guard_destroy(fkp_crash_guard *guard);

#endif
