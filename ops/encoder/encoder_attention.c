/* SPDX-License-Identifier: Apache-2.0 */
/* BERT's attention block (arXiv:1810.04805, arXiv:1706.03762 section 3.2). The scale of the scores is 1/sqrt(head size).
 * Query, key and value are views into one product. */
#include "core/composition.h"
#include "ops/attention/paged_attention.h"

static fk_status reference(fk_ctx *ctx, const fk_encoder_attention_args *a)
{
    int64_t d = a->hidden_states->shape[1], head_size = d / a->num_attention_heads;
    fk_encoder_output_module end = {.dense = *a->dense, .dense_bias = *a->dense_bias, .layer_norm = *a->layer_norm,
                                    .layer_norm_bias = *a->layer_norm_bias, .layer_norm_eps = a->layer_norm_eps};
    fk_tensor qkv = fk_linear(ctx, *a->hidden_states, *a->qkv, *a->qkv_bias).output; /* [T, 3 D] */
    fk_tensor q = fk_tensor_split_last(fk_tensor_slice(qkv, 1, 0, d), head_size);    /* [T, H, E] */
    fk_tensor k = fk_tensor_split_last(fk_tensor_slice(qkv, 1, d, d), head_size);
    fk_tensor v = fk_tensor_split_last(fk_tensor_slice(qkv, 1, 2 * d, d), head_size);
    fk_tensor h = fk_flash_attn_varlen(ctx, q, k, v, a->max_seqlen, *a->cu_seqlens, a->max_seqlen, *a->cu_seqlens, 0, false, -1, 0).out;
    h = fk_tensor_reshape(h, 2, a->hidden_states->shape); /* [T, D] */
    fk_encoder_output_out(ctx, &end, *a->output, h, *a->hidden_states);
    return fk_ctx_status(ctx);
}

static fk_status check(fk_ctx *ctx, const fk_encoder_attention_args *a)
{
    int64_t d = a->hidden_states->shape[1];
    if (a->num_attention_heads > 0 && d % a->num_attention_heads == 0) return FK_OK;
    return fk_ctx_fail(ctx, FK_ERROR_INVALID, "%lld features are no multiple of %lld heads", (long long)d, (long long)a->num_attention_heads);
}

static fk_cost cost(const fk_encoder_attention_args *a)
{
    double t = (double)a->hidden_states->shape[0], d = (double)a->hidden_states->shape[1], pairs = t * (double)a->max_seqlen;
    if (a->cu_seqlens->device.type == FK_CPU && a->cu_seqlens->data) {
        pairs = 0;
        for (int64_t b = 0; b + 1 < a->cu_seqlens->shape[0]; b++) {
            double n = (double)(fkp_int1(a->cu_seqlens, b + 1) - fkp_int1(a->cu_seqlens, b));
            pairs += n * n;
        }
    }
    return (fk_cost){.read_bytes = fkp_bytes(a->hidden_states) + fkp_bytes(a->qkv) + fkp_bytes(a->qkv_bias) + fkp_bytes(a->dense) +
                                   fkp_bytes(a->dense_bias) + fkp_bytes(a->layer_norm) + fkp_bytes(a->layer_norm_bias) +
                                   fkp_bytes(a->cu_seqlens),
                     .write_bytes = fkp_bytes(a->output),
                     .flops = 8 * t * d * d + 4 * pairs * d + 8 * t * d};
}

static void fill(fk_random *random, const fk_encoder_attention_args *a)
{
    paged_limit(a->hidden_states);
    paged_fill_cu_seqlens(random, a->cu_seqlens, a->hidden_states->shape[0], a->max_seqlen);
}

static const char *const cases[] = {"T=0 D=8 B=0 num_attention_heads=2 max_seqlen=0 layer_norm_eps=1e-12",
                                    "T=3 D=24 B=1 num_attention_heads=2 max_seqlen=3 layer_norm_eps=1e-5",
                                    "T=17 D=64 B=4 num_attention_heads=4 max_seqlen=8 layer_norm_eps=1e-12",
                                    "T=40 D=384 B=3 num_attention_heads=12 max_seqlen=20 layer_norm_eps=1e-12", NULL};

#define FK_OP_DEF "encoder/encoder_attention.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CHECK check
#define FK_OP_COST cost
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
