/* SPDX-License-Identifier: Apache-2.0 */
/* Expected values of a call. A composition's reference calls operators, which round what they hand on to its dtype; the expected
 * values must not depend on that, for an implementation that fuses or reorders rounds elsewhere. So compositions compute in float64
 * throughout, and what comes out is rounded once. References that compute themselves do so anyway. */
#ifndef FK_CORE_GOLDEN_H
#define FK_CORE_GOLDEN_H

#include <fk/ctx.h>
#include <fk/op.h>

/* Computes the call of `args`, with all its outputs given, in the step arena of a context of the CPU that runs references only;
 * errors are the context's. Returns its status; the caller resets the context. */
fk_status fk_golden_call(fk_ctx *ctx, const fk_op *op, const void *args);

#endif
