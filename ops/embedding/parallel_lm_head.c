/* SPDX-License-Identifier: Apache-2.0 */
/* The output head: on one rank the linear operator over the vocabulary; more ranks would each hold a range of tokens. */
#include "core/composition.h"

static fk_status reference(fk_ctx *ctx, const fk_parallel_lm_head_args *a)
{
    fk_linear_out(ctx, *a->logits, *a->input_, *a->weight, fkp_optional(a->bias_weight));
    return fk_ctx_status(ctx);
}

static fk_cost cost(const fk_parallel_lm_head_args *a)
{
    return (fk_cost){.read_bytes = fkp_bytes(a->input_) + fkp_bytes(a->weight) + fkp_bytes(a->bias_weight),
                     .write_bytes = fkp_bytes(a->logits),
                     .flops = 2 * (double)fk_tensor_numel(a->logits) * (double)a->weight->shape[1]};
}

static const char *const cases[] = {"T=0 V=8 D=8 bias_weight=absent", "T=3 V=17 D=63", "T=2x3 V=50 D=64 bias_weight=absent",
                                    "T=2 V=1000 D=576 bias_weight=absent", NULL};

#define FK_OP_DEF "embedding/parallel_lm_head.def"
#define FK_OP_REFERENCE reference
#define FK_OP_COST cost
#define FK_OP_CASES cases
#include "fk/define_op.h"
