/* SPDX-License-Identifier: Apache-2.0 */
/* Llama's attention block (arXiv:2302.13971, section 2.2). The scale of the scores is 1/sqrt(head_size). Query, key and
 * value are views into one product, and the rotation works in them in place; normalized heads (Qwen3, arXiv:2505.09388) are
 * tensors of their own. */
#include <math.h>

#include "core/composition.h"
#include "ops/attention/paged_attention.h"
#include "ops/rotary/cos_sin_cache.h"

/* x [T, H E] with each of its heads normalized; x itself without a weight. */
static fk_tensor norm_heads(fk_ctx *ctx, fk_tensor x, const fk_tensor *weight, int64_t head_size, float eps)
{
    if (!weight) return x;
    fk_tensor heads = fk_rms_norm(ctx, fk_tensor_split_last(x, head_size), *weight, eps).result; /* [T, H, E] */
    return fk_tensor_reshape(heads, 2, x.shape);
}

static fk_status reference(fk_ctx *ctx, const fk_attention_args *a)
{
    int64_t q_size = a->num_heads * a->head_size, kv_size = a->num_kv_heads * a->head_size;
    fk_qkv_parallel_linear_module qkv_proj = {.head_size = a->head_size, .total_num_heads = a->num_heads,
                                              .total_num_kv_heads = a->num_kv_heads, .weight = *a->qkv_proj,
                                              .bias_weight = fkp_optional(a->qkv_bias)};
    fk_attention_impl_module impl = {.num_heads = a->num_heads, .head_size = a->head_size,
                                     .scale = (float)(1 / sqrt((double)a->head_size)), .num_kv_heads = a->num_kv_heads,
                                     .per_layer_sliding_window = a->sliding_window};
    fk_row_parallel_linear_module o_proj = {.weight = *a->o_proj, .bias_weight = fkp_optional(a->o_bias)};

    fk_tensor qkv = fk_qkv_parallel_linear(ctx, &qkv_proj, *a->hidden_states).output; /* [T, (H + 2 K) E] */
    fk_tensor q = fk_tensor_slice(qkv, 1, 0, q_size);                                 /* [T, H E] */
    fk_tensor k = fk_tensor_slice(qkv, 1, q_size, kv_size);                           /* [T, K E] */
    fk_tensor v = fk_tensor_slice(qkv, 1, q_size + kv_size, kv_size);                 /* [T, K E] */
    q = norm_heads(ctx, q, a->q_norm, a->head_size, a->rms_norm_eps);
    k = norm_heads(ctx, k, a->k_norm, a->head_size, a->rms_norm_eps);
    fk_rotary_emb(ctx, *a->positions, q, k, a->head_size, *a->cos_sin_cache, true);
    fk_tensor h = fk_attention_impl(ctx, &impl, q, k, v, *a->key_cache, *a->value_cache, *a->slot_mapping, *a->cu_seqlens_q,
                                    *a->seqused_k, *a->block_table, a->max_seqlen_q, a->max_seqlen_k).output; /* [T, H E] */
    fk_row_parallel_linear_out(ctx, &o_proj, *a->output, h);
    return fk_ctx_status(ctx);
}

static fk_status check(fk_ctx *ctx, const fk_attention_args *a)
{
    if (a->head_size > 0 && a->num_kv_heads > 0 && a->num_heads % a->num_kv_heads == 0) return FK_OK;
    return fk_ctx_fail(ctx, FK_ERROR_INVALID, "%lld query heads over %lld KV heads of %lld features", (long long)a->num_heads,
                       (long long)a->num_kv_heads, (long long)a->head_size);
}

static fk_cost cost(const fk_attention_args *a)
{
    double pairs, keys, size = fk_dtype_bits(a->hidden_states->dtype) / 8.0, t = (double)a->positions->shape[0];
    double kv = 2 * (double)(a->num_kv_heads * a->head_size) * size;
    paged_work(a->positions->shape[0], a->cu_seqlens_q, a->seqused_k, a->max_seqlen_k, true, a->sliding_window > 0 ? a->sliding_window - 1 : -1, &pairs, &keys);
    return (fk_cost){.read_bytes = fkp_bytes(a->hidden_states) + fkp_bytes(a->qkv_proj) + fkp_bytes(a->qkv_bias) +
                                   fkp_bytes(a->o_proj) + fkp_bytes(a->o_bias) + fkp_bytes(a->q_norm) + fkp_bytes(a->k_norm) +
                                   (keys > t ? keys - t : 0) * kv,
                     .write_bytes = fkp_bytes(a->output) + t * kv,
                     .flops = 2 * t * (double)(fk_tensor_numel(a->qkv_proj) + fk_tensor_numel(a->o_proj)) +
                              4 * pairs * (double)(a->num_heads * a->head_size)};
}

static void fill(fk_random *random, const fk_attention_args *a)
{
    paged_limit(a->hidden_states);
    paged_limit(a->key_cache);
    fill_cos_sin_cache(a->cos_sin_cache);
    paged_fill_cu_seqlens(random, a->cu_seqlens_q, a->positions->shape[0], a->max_seqlen_q);
    paged_fill_cache(random, a->cu_seqlens_q, a->seqused_k, a->block_table, a->key_cache->shape[0], a->key_cache->shape[1],
                     a->max_seqlen_k);
    paged_fill_tokens(a->cu_seqlens_q, a->seqused_k, a->block_table, a->key_cache->shape[1], a->positions, a->slot_mapping);
}

static const char *const cases[] = {
    "T=5 D=32 num_heads=4 num_kv_heads=2 head_size=16 sliding_window=0 rms_norm_eps=1e-6 P=32 R=16 B=5 N=20 S=8 M=4 max_seqlen_q=1 max_seqlen_k=30 q_norm=absent k_norm=absent",
    "T=19 D=60 num_heads=3 num_kv_heads=1 head_size=20 sliding_window=0 rms_norm_eps=1e-6 P=40 R=20 B=3 N=12 S=8 M=4 max_seqlen_q=9 max_seqlen_k=30 o_bias=absent q_norm=absent k_norm=absent",
    "T=21 D=576 num_heads=9 num_kv_heads=3 head_size=64 sliding_window=0 rms_norm_eps=1e-6 P=64 R=64 B=2 N=8 S=16 M=4 max_seqlen_q=18 max_seqlen_k=60 qkv_bias=absent o_bias=absent cos_sin_cache=f32 q_norm=absent k_norm=absent",
    "T=19 D=60 num_heads=3 num_kv_heads=1 head_size=20 sliding_window=6 rms_norm_eps=1e-6 P=40 R=20 B=3 N=12 S=8 M=4 max_seqlen_q=9 max_seqlen_k=30 o_bias=absent q_norm=absent k_norm=absent",
    "T=21 D=64 num_heads=4 num_kv_heads=2 head_size=32 sliding_window=0 rms_norm_eps=1e-6 P=64 R=32 B=2 N=8 S=16 M=4 max_seqlen_q=18 max_seqlen_k=60 qkv_bias=absent o_bias=absent",
    "T=5 D=32 num_heads=4 num_kv_heads=2 head_size=16 sliding_window=5 rms_norm_eps=1e-5 P=32 R=16 B=5 N=20 S=8 M=4 max_seqlen_q=1 max_seqlen_k=30 qkv_bias=absent o_bias=absent cos_sin_cache=f32",
    NULL};

#define FK_OP_DEF "attention/attention.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CHECK check
#define FK_OP_COST cost
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
