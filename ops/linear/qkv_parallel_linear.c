/* SPDX-License-Identifier: Apache-2.0 */
/* Query, key and value projections in one weight: the linear operator; query heads, key heads and value heads stand one after
 * another in the output. */
#include "core/composition.h"

static fk_status reference(fk_ctx *ctx, const fk_qkv_parallel_linear_args *a)
{
    fk_linear_out(ctx, *a->output, *a->input_, *a->weight, fkp_optional(a->bias_weight));
    return fk_ctx_status(ctx);
}

static fk_cost cost(const fk_qkv_parallel_linear_args *a)
{
    return (fk_cost){.read_bytes = fkp_bytes(a->input_) + fkp_bytes(a->weight) + fkp_bytes(a->bias_weight),
                     .write_bytes = fkp_bytes(a->output),
                     .flops = 2 * (double)fk_tensor_numel(a->output) * (double)a->weight->shape[1]};
}

static const char *const cases[] = {"T=0 I=8 head_size=4 total_num_heads=2 total_num_kv_heads=1",
                                    "T=3 I=63 head_size=16 total_num_heads=3 total_num_kv_heads=1",
                                    "T=2x3 I=64 head_size=8 total_num_heads=4 total_num_kv_heads=2 bias_weight=absent",
                                    "T=9 I=576 head_size=64 total_num_heads=9 total_num_kv_heads=3 bias_weight=absent",
                                    NULL};

#define FK_OP_DEF "linear/qkv_parallel_linear.def"
#define FK_OP_REFERENCE reference
#define FK_OP_COST cost
#define FK_OP_CASES cases
#include "fk/define_op.h"
