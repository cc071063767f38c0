/* SPDX-License-Identifier: Apache-2.0 */
/* A step's metadata (ids, positions, slots, block tables, sampling parameters): filled in on the host, copied to the device
 * in one piece. Where each array stands depends on the step's sizes alone, so that steps of equal sizes have equal
 * addresses. */
#ifndef FK_RUNTIME_ENGINE_BATCH_H
#define FK_RUNTIME_ENGINE_BATCH_H

#include <fk/ctx.h>
#include <fk/model.h>

#include "runtime/engine.h"
#include "runtime/scheduler.h"

/* Sizes of one step. */
typedef struct fk_batch_sizes {
    int64_t tokens, sequences, blocks, logits; /* T, B, M, L of fk_batch */
} fk_batch_sizes;

/* Sampling parameters of the rows of the logits, device tensors [L]. */
typedef struct fk_sampling_rows {
    fk_tensor temperature, top_p, min_p; /* f32 */
    fk_tensor top_k;              /* i32 */
    fk_tensor seed, offset;       /* i64 */
    bool greedy;                  /* every row takes its largest logit */
} fk_sampling_rows;

typedef struct fk_batch_buffers {
    fk_backend *backend;
    char *host, *device;
    size_t bytes;
} fk_batch_buffers;

/* Memory for steps up to `most`. */
fk_status fk_batch_buffers_init(fk_batch_buffers *buffers, fk_backend *backend, fk_batch_sizes most);
void fk_batch_buffers_deinit(fk_batch_buffers *buffers);
/* The step as device tensors; the copy is in the context's stream. Sampling parameters are those that a sequence's `user`
 * begins with (an fk_sampling). */
fk_status fk_batch_build(fk_batch_buffers *buffers, fk_ctx *ctx, const fk_schedule *schedule, int64_t block_size,
                         fk_batch *batch, fk_sampling_rows *sampling);

#endif
