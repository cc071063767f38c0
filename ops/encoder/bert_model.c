/* SPDX-License-Identifier: Apache-2.0 */
/* BERT (arXiv:1810.04805): embeddings, then the layers. */
#include "ops/encoder/bert_layer.h"
#include "ops/encoder/encoder_embeddings.h"

static fk_status reference(fk_ctx *ctx, const fk_bert_model_args *a)
{
    fk_bert_embeddings_module embeddings = {
        .layer_norm_eps = a->layer_norm_eps, .word_embeddings = *a->word_embeddings,
        .position_embeddings = *a->position_embeddings, .token_type_embeddings = *a->token_type_embeddings,
        .layer_norm = *a->embeddings_norm, .layer_norm_bias = *a->embeddings_norm_bias};
    fk_bert_encoder_module encoder = {
        .num_attention_heads = a->num_attention_heads, .layer_norm_eps = a->layer_norm_eps,
        .qkv = *a->qkv,
        .qkv_bias = *a->qkv_bias,
        .attention_dense = *a->attention_dense,
        .attention_dense_bias = *a->attention_dense_bias,
        .attention_norm = *a->attention_norm,
        .attention_norm_bias = *a->attention_norm_bias,
        .intermediate = *a->intermediate,
        .intermediate_bias = *a->intermediate_bias,
        .output_dense = *a->output_dense,
        .output_dense_bias = *a->output_dense_bias,
        .output_norm = *a->output_norm,
        .output_norm_bias = *a->output_norm_bias,
    };
    fk_tensor h = fk_bert_embeddings(ctx, &embeddings, *a->input_ids, *a->position_ids, *a->token_type_ids).output; /* [T, D] */
    fk_bert_encoder_out(ctx, &encoder, *a->output, h, *a->cu_seqlens, a->max_seqlen);
    return fk_ctx_status(ctx);
}

static fk_status check(fk_ctx *ctx, const fk_bert_model_args *a)
{
    return bert_check(ctx, a->word_embeddings->shape[1], a->num_attention_heads);
}

static fk_cost cost(const fk_bert_model_args *a)
{
    int64_t t = a->input_ids->shape[0];
    double out = fkp_bytes(a->output);
    double weights = fkp_bytes(a->qkv) + fkp_bytes(a->qkv_bias) + fkp_bytes(a->attention_dense) +
                     fkp_bytes(a->attention_dense_bias) + fkp_bytes(a->attention_norm) +
                     fkp_bytes(a->attention_norm_bias) + fkp_bytes(a->intermediate) +
                     fkp_bytes(a->intermediate_bias) + fkp_bytes(a->output_dense) +
                     fkp_bytes(a->output_dense_bias) + fkp_bytes(a->output_norm) + fkp_bytes(a->output_norm_bias);
    return (fk_cost){.read_bytes = 3 * out + fkp_bytes(a->input_ids) + fkp_bytes(a->position_ids) + fkp_bytes(a->token_type_ids) +
                                   fkp_bytes(a->cu_seqlens) + weights,
                     .write_bytes = out,
                     .flops = bert_flops((double)a->qkv->shape[0], (double)t, (double)a->word_embeddings->shape[1],
                                         (double)a->intermediate->shape[1], bert_pairs(a->cu_seqlens, t, a->max_seqlen))};
}

static void fill(fk_random *random, const fk_bert_model_args *a)
{
    bert_fill_norm(a->attention_norm);
    bert_fill_norm(a->output_norm);
    fill_ids(random, a->input_ids, a->word_embeddings->shape[0]);
    fill_ids(random, a->token_type_ids, a->token_type_embeddings->shape[0]);
    paged_fill_cu_seqlens(random, a->cu_seqlens, a->input_ids->shape[0], a->max_seqlen);
    fill_ids(random, a->position_ids, a->position_embeddings->shape[0]);
}

static const char *const cases[] = {
    "T=0 D=8 I=16 L=2 V=5 P=4 Y=1 B=0 num_attention_heads=2 max_seqlen=0 layer_norm_eps=1e-12",
    "T=3 D=24 I=65 L=1 V=9 P=3 Y=2 B=1 num_attention_heads=2 max_seqlen=3 layer_norm_eps=1e-5 input_ids=i32",
    "T=17 D=64 I=176 L=3 V=100 P=16 Y=2 B=4 num_attention_heads=4 max_seqlen=8 layer_norm_eps=1e-12", NULL};

#define FK_OP_DEF "encoder/bert_model.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CHECK check
#define FK_OP_COST cost
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
