/* SPDX-License-Identifier: Apache-2.0 */
/* One layer of BERT (arXiv:1810.04805), a composition of its three blocks. */
#include "ops/encoder/bert_layer.h"

static fk_status reference(fk_ctx *ctx, const fk_bert_layer_args *a)
{
    fk_encoder_attention_module attention = {
        .num_attention_heads = a->num_attention_heads, .layer_norm_eps = a->layer_norm_eps, .qkv = *a->qkv, .qkv_bias = *a->qkv_bias,
        .dense = *a->attention_dense, .dense_bias = *a->attention_dense_bias, .layer_norm = *a->attention_norm,
        .layer_norm_bias = *a->attention_norm_bias};
    fk_encoder_intermediate_module intermediate = {.dense = *a->intermediate, .dense_bias = *a->intermediate_bias};
    fk_encoder_output_module output = {.dense = *a->output_dense, .dense_bias = *a->output_dense_bias, .layer_norm = *a->output_norm,
                                       .layer_norm_bias = *a->output_norm_bias, .layer_norm_eps = a->layer_norm_eps};
    fk_tensor h = fk_encoder_attention(ctx, &attention, *a->hidden_states, *a->cu_seqlens, a->max_seqlen).output; /* [T, D] */
    fk_tensor wide = fk_encoder_intermediate(ctx, &intermediate, h).output;                                       /* [T, I] */
    fk_encoder_output_out(ctx, &output, *a->output, wide, h);
    return fk_ctx_status(ctx);
}

static fk_status check(fk_ctx *ctx, const fk_bert_layer_args *a)
{
    return bert_check(ctx, a->hidden_states->shape[1], a->num_attention_heads);
}

static fk_cost cost(const fk_bert_layer_args *a)
{
    int64_t t = a->hidden_states->shape[0];
    double weights = fkp_bytes(a->qkv) + fkp_bytes(a->qkv_bias) + fkp_bytes(a->attention_dense) +
                     fkp_bytes(a->attention_dense_bias) + fkp_bytes(a->attention_norm) +
                     fkp_bytes(a->attention_norm_bias) + fkp_bytes(a->intermediate) +
                     fkp_bytes(a->intermediate_bias) + fkp_bytes(a->output_dense) +
                     fkp_bytes(a->output_dense_bias) + fkp_bytes(a->output_norm) + fkp_bytes(a->output_norm_bias);
    return (fk_cost){.read_bytes = fkp_bytes(a->hidden_states) + fkp_bytes(a->cu_seqlens) + weights,
                     .write_bytes = fkp_bytes(a->output),
                     .flops = bert_flops(1, (double)t, (double)a->hidden_states->shape[1], (double)a->intermediate->shape[0],
                                         bert_pairs(a->cu_seqlens, t, a->max_seqlen))};
}

static void fill(fk_random *random, const fk_bert_layer_args *a)
{
    paged_limit(a->hidden_states);
    paged_fill_cu_seqlens(random, a->cu_seqlens, a->hidden_states->shape[0], a->max_seqlen);
}

static const char *const cases[] = {"T=0 D=8 I=16 B=0 num_attention_heads=2 max_seqlen=0 layer_norm_eps=1e-12",
                                    "T=3 D=24 I=65 B=1 num_attention_heads=2 max_seqlen=3 layer_norm_eps=1e-5",
                                    "T=17 D=64 I=176 B=4 num_attention_heads=4 max_seqlen=8 layer_norm_eps=1e-12",
                                    "T=20 D=384 I=1536 B=3 num_attention_heads=12 max_seqlen=10 layer_norm_eps=1e-12", NULL};

#define FK_OP_DEF "encoder/bert_layer.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CHECK check
#define FK_OP_COST cost
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
