/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of BERT, the specification: no rounding of its own. Without layers the output is the input. */
#include "ops/encoder/bert_layer.h"

static fk_bert_layer_module layer_module(const fk_bert_encoder_args *a, int64_t l)
{
    fk_bert_layer_module layer = {
        .num_attention_heads = a->num_attention_heads, .layer_norm_eps = a->layer_norm_eps,
        .qkv = bert_layer_of(a->qkv, l),
        .qkv_bias = bert_layer_of(a->qkv_bias, l),
        .attention_dense = bert_layer_of(a->attention_dense, l),
        .attention_dense_bias = bert_layer_of(a->attention_dense_bias, l),
        .attention_norm = bert_layer_of(a->attention_norm, l),
        .attention_norm_bias = bert_layer_of(a->attention_norm_bias, l),
        .intermediate = bert_layer_of(a->intermediate, l),
        .intermediate_bias = bert_layer_of(a->intermediate_bias, l),
        .output_dense = bert_layer_of(a->output_dense, l),
        .output_dense_bias = bert_layer_of(a->output_dense_bias, l),
        .output_norm = bert_layer_of(a->output_norm, l),
        .output_norm_bias = bert_layer_of(a->output_norm_bias, l),
    };
    return layer;
}

static fk_status reference(fk_ctx *ctx, const fk_bert_encoder_args *a)
{
    fk_tensor h = *a->hidden_states; /* [T, D] */
    int64_t layers = a->qkv->shape[0];
    if (layers == 0) fk_ctx_copy(ctx, *a->output, h);
    for (int64_t l = 0; l < layers; l++) {
        fk_bert_layer_module layer = layer_module(a, l);
        if (l + 1 < layers) h = fk_bert_layer(ctx, &layer, h, *a->cu_seqlens, a->max_seqlen).output;
        else fk_bert_layer_out(ctx, &layer, *a->output, h, *a->cu_seqlens, a->max_seqlen);
    }
    return fk_ctx_status(ctx);
}

static fk_status check(fk_ctx *ctx, const fk_bert_encoder_args *a)
{
    return bert_check(ctx, a->hidden_states->shape[1], a->num_attention_heads);
}

static fk_cost cost(const fk_bert_encoder_args *a)
{
    int64_t t = a->hidden_states->shape[0];
    double weights = fkp_bytes(a->qkv) + fkp_bytes(a->qkv_bias) + fkp_bytes(a->attention_dense) +
                     fkp_bytes(a->attention_dense_bias) + fkp_bytes(a->attention_norm) +
                     fkp_bytes(a->attention_norm_bias) + fkp_bytes(a->intermediate) +
                     fkp_bytes(a->intermediate_bias) + fkp_bytes(a->output_dense) +
                     fkp_bytes(a->output_dense_bias) + fkp_bytes(a->output_norm) + fkp_bytes(a->output_norm_bias);
    return (fk_cost){.read_bytes = fkp_bytes(a->hidden_states) + fkp_bytes(a->cu_seqlens) + weights,
                     .write_bytes = fkp_bytes(a->output),
                     .flops = bert_flops((double)a->qkv->shape[0], (double)t, (double)a->hidden_states->shape[1],
                                         (double)a->intermediate->shape[1], bert_pairs(a->cu_seqlens, t, a->max_seqlen))};
}

static void fill(fk_random *random, const fk_bert_encoder_args *a)
{
    paged_limit(a->hidden_states);
    bert_fill_norm(a->attention_norm);
    bert_fill_norm(a->output_norm);
    paged_fill_cu_seqlens(random, a->cu_seqlens, a->hidden_states->shape[0], a->max_seqlen);
}

static const char *const cases[] = {"T=0 D=8 I=16 L=2 B=0 num_attention_heads=2 max_seqlen=0 layer_norm_eps=1e-12",
                                    "T=3 D=24 I=65 L=1 B=1 num_attention_heads=2 max_seqlen=3 layer_norm_eps=1e-5",
                                    "T=17 D=64 I=176 L=3 B=4 num_attention_heads=4 max_seqlen=8 layer_norm_eps=1e-12", NULL};

#define FK_OP_DEF "encoder/bert_encoder.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CHECK check
#define FK_OP_COST cost
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
