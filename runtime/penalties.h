/* SPDX-License-Identifier: Apache-2.0 */
/* Penalties of a step's requests on their logits. Where no request asks for any nothing is done; else the tokens of each are listed on the
 * host and go to the device with the step. */
#ifndef FK_RUNTIME_PENALTIES_H
#define FK_RUNTIME_PENALTIES_H

#include "runtime/engine.h"
#include "runtime/scheduler.h"

/* Memory of the host for the lists, reused from step to step; zeroed at first, free(memory) at last. */
typedef struct fk_penalty_buffer {
    void *memory;
    size_t bytes;
} fk_penalty_buffer;

/* Changes logits [L, V], a row for each item of the schedule that wants a token, in place. What a sequence's `user` begins with is its
 * fk_sampling. The buffer must not be touched before the context is synchronized. */
fk_status fk_penalties_apply(fk_ctx *ctx, const fk_schedule *schedule, fk_tensor logits, fk_penalty_buffer *buffer);
/* FK_ERROR_INVALID names a penalty out of range. */
fk_status fk_penalties_check(const fk_sampling *sampling);

#endif
