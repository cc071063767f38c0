/* SPDX-License-Identifier: Apache-2.0 */
/* How each block of BERT ends: norm(W x + b + residual). */
#include "core/composition.h"

static fk_status reference(fk_ctx *ctx, const fk_encoder_output_args *a)
{
    fk_tensor h = fk_linear(ctx, *a->hidden_states, *a->dense, *a->dense_bias).output; /* [..., D] */
    h = fk_add(ctx, h, *a->input_tensor).output;
    fk_layer_norm_out(ctx, *a->output, h, *a->layer_norm, *a->layer_norm_bias, a->layer_norm_eps);
    return fk_ctx_status(ctx);
}

static fk_cost cost(const fk_encoder_output_args *a)
{
    double n = (double)fk_tensor_numel(a->output);
    return (fk_cost){.read_bytes = fkp_bytes(a->hidden_states) + fkp_bytes(a->input_tensor) + fkp_bytes(a->dense) +
                                   fkp_bytes(a->dense_bias) + fkp_bytes(a->layer_norm) + fkp_bytes(a->layer_norm_bias),
                     .write_bytes = fkp_bytes(a->output),
                     .flops = n * (2 * (double)a->dense->shape[1] + 8)};
}

static const char *const cases[] = {"T=0 D=8 I=16 layer_norm_eps=1e-12",    "T=1 D=64 I=176 layer_norm_eps=1e-12",
                                    "T=3 D=63 I=65 layer_norm_eps=1e-5",    "T=2x3 D=64 I=128 layer_norm_eps=1e-5",
                                    "T=9 D=384 I=1536 layer_norm_eps=1e-12", NULL};

#define FK_OP_DEF "encoder/encoder_output.def"
#define FK_OP_REFERENCE reference
#define FK_OP_COST cost
#define FK_OP_CASES cases
#include "fk/define_op.h"
