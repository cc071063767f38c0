/* SPDX-License-Identifier: Apache-2.0 */
/* Captures: the calls of operators that a run makes, recorded at the door. Equal calls (scalars, shapes, strides,
 * dtypes) are one case with a count. A folder holds <op>.json and, with the values that were kept,
 * <op>.safetensors: integer tensors always (routing, tables, positions and lengths drive the work), float tensors while a
 * budget lasts, else their mean and deviation. */
#ifndef FK_BENCH_CAPTURE_H
#define FK_BENCH_CAPTURE_H

#include <fk/ctx.h>
#include <fk/door.h>

#include <jansson.h>

#include "core/safetensors.h"

typedef struct fkp_capture fkp_capture;

/* Values of float tensors are kept up to `max_bytes` an operator. */
fk_status fkp_capture_create(int64_t max_bytes, fkp_capture **out);
void fkp_capture_destroy(fkp_capture *capture);
/* Records every call of the context from here to detach. Counts of the door start from zero. */
fk_status fkp_capture_attach(fkp_capture *capture, fk_ctx *ctx);
/* Stops, and compares what was recorded with the door's own counts: FK_ERROR_INTERNAL names an operator that differs. */
fk_status fkp_capture_detach(fkp_capture *capture, fk_ctx *ctx);

/* Writes every operator's files, whole or not at all; `scenario` and what else is in `facts` go into each. */
fk_status fkp_capture_write(const fkp_capture *capture, const char *folder, const json_t *facts);

/* Writes JSON to a file, whole or not at all. */
fk_status fkp_json_write_file(const json_t *json, const char *path);

typedef struct fkp_capture_totals {
    int operators, cases; /* operators that were called, different cases */
    int64_t calls, kept_bytes;
} fkp_capture_totals;
fkp_capture_totals fkp_capture_total(const fkp_capture *capture);

#endif
