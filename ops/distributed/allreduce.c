/* SPDX-License-Identifier: Apache-2.0 */
/* Sum over ranks, the specification: added in double in the order of ranks, rounded once, so that every rank
 * has the same bits. */
#include <stdio.h>

#include <fk/ctx.h>
#include <fk/ops.h>

#include "core/communicator.h"
#include "core/element.h"

static fk_status reference(fk_ctx *ctx, const fk_allreduce_args *a)
{
    fk_communicator *group = fk_ctx_communicator(ctx);
    int64_t n = fk_tensor_numel(a->input_);
    if (!group || group->size == 1) {
        for (int64_t i = 0; i < n; i++) fkp_set_element(a->output, i, fkp_element(a->input_, i));
        return FK_OK;
    }
    fk_tensor part =
        fk_ctx_tensor(ctx, a->input_->dtype, a->input_->ndim, a->input_->shape); /* dense, unlike the input */
    fk_tensor parts = fk_ctx_tensor(ctx, a->input_->dtype, 2, (int64_t[]){group->size, n});
    FK_TRY(fk_ctx_status(ctx));
    for (int64_t i = 0; i < n; i++) fkp_set_element(&part, i, fkp_element(a->input_, i));
    char shape[120], what[160];
    snprintf(what, sizeof what, "allreduce of %s", fk_tensor_format(&part, shape, sizeof shape));
    FK_TRY(group->all_gather(group, what, part.data, fk_tensor_nbytes(&part), parts.data));
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int r = 0; r < group->size; r++) sum += fkp_element(&parts, r * n + i);
        fkp_set_element(a->output, i, sum);
    }
    return FK_OK;
}

static const char *const cases[] = {"T=0", "T=1", "T=3x63", "T=2x5x65", "T=7x1536", NULL};

#define FK_OP_DEF "distributed/allreduce.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CASES cases
#include "fk/define_op.h"
