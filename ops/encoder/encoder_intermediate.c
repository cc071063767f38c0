/* SPDX-License-Identifier: Apache-2.0 */
/* The widening half of BERT's feed-forward block: gelu(W x + b), GELU by the error function. */
#include "core/composition.h"

static fk_status reference(fk_ctx *ctx, const fk_encoder_intermediate_args *a)
{
    fk_tensor h = fk_linear(ctx, *a->hidden_states, *a->dense, *a->dense_bias).output; /* [..., I] */
    fk_gelu_out(ctx, *a->output, h, "none");
    return fk_ctx_status(ctx);
}

static fk_cost cost(const fk_encoder_intermediate_args *a)
{
    double n = (double)fk_tensor_numel(a->output);
    return (fk_cost){.read_bytes = fkp_bytes(a->hidden_states) + fkp_bytes(a->dense) + fkp_bytes(a->dense_bias),
                     .write_bytes = fkp_bytes(a->output),
                     .flops = n * (2 * (double)a->dense->shape[1] + 8)};
}

static const char *const cases[] = {"T=0 D=8 I=16", "T=1 D=64 I=176", "T=3 D=63 I=65", "T=2x3 D=64 I=128", "T=9 D=384 I=1536", NULL};

#define FK_OP_DEF "encoder/encoder_intermediate.def"
#define FK_OP_REFERENCE reference
#define FK_OP_COST cost
#define FK_OP_CASES cases
#include "fk/define_op.h"
