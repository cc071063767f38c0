/* SPDX-License-Identifier: Apache-2.0 */
/* A linear layer split by output features: on one rank the linear operator; more ranks would hold rows of the weight. */
#include "core/composition.h"

static fk_status reference(fk_ctx *ctx, const fk_column_parallel_linear_args *a)
{
    fk_linear_out(ctx, *a->output, *a->input_, *a->weight, fkp_optional(a->bias_weight));
    return fk_ctx_status(ctx);
}

static fk_cost cost(const fk_column_parallel_linear_args *a)
{
    return (fk_cost){.read_bytes = fkp_bytes(a->input_) + fkp_bytes(a->weight) + fkp_bytes(a->bias_weight),
                     .write_bytes = fkp_bytes(a->output),
                     .flops = 2 * (double)fk_tensor_numel(a->output) * (double)a->weight->shape[1]};
}

static const char *const cases[] = {"T=0 I=8 O=8", "T=3 I=63 O=17 bias_weight=absent", "T=2x3 I=65 O=32", "T=17 I=576 O=192 bias_weight=absent",
                                    NULL};

#define FK_OP_DEF "linear/column_parallel_linear.def"
#define FK_OP_REFERENCE reference
#define FK_OP_COST cost
#define FK_OP_CASES cases
#include "fk/define_op.h"
