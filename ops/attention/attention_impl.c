/* SPDX-License-Identifier: Apache-2.0 */
/* Attention over a paged cache: stores the new tokens, then attends. One new token in every sequence: the decode operator;
 * anything else: the prefill operator, which handles a mixed batch too. A sliding window counts the query's own key, the
 * operators' window_size only those before it. */
#include "core/composition.h"
#include "ops/attention/paged_attention.h"

/* The operators' window_size for a sliding window. */
static int64_t window_size(int64_t sliding_window)
{
    return sliding_window > 0 ? sliding_window - 1 : -1;
}

static fk_status reference(fk_ctx *ctx, const fk_attention_impl_args *a)
{
    int64_t window = window_size(a->per_layer_sliding_window);
    fk_tensor q = fk_tensor_split_last(*a->query, a->head_size);    /* [T, H, E] */
    fk_tensor k = fk_tensor_split_last(*a->key, a->head_size);      /* [T, K, E] */
    fk_tensor v = fk_tensor_split_last(*a->value, a->head_size);    /* [T, K, E] */
    fk_tensor out = fk_tensor_split_last(*a->output, a->head_size); /* [T, H, E] */
    fk_store_kvcache(ctx, k, v, *a->key_cache, *a->value_cache, *a->slot_mapping);
    if (a->max_seqlen_q == 1 && q.shape[0] == a->seqused_k->shape[0])
        fk_flash_attn_decode_out(ctx, q, *a->key_cache, *a->value_cache, a->max_seqlen_k, *a->seqused_k, a->scale, window,
                                 a->logits_soft_cap, *a->block_table, out);
    else
        fk_flash_attn_prefill_out(ctx, q, *a->key_cache, *a->value_cache, a->max_seqlen_q, *a->cu_seqlens_q, a->max_seqlen_k,
                                  *a->seqused_k, a->scale, true, window, a->logits_soft_cap, *a->block_table, out);
    return fk_ctx_status(ctx);
}

static fk_status check(fk_ctx *ctx, const fk_attention_impl_args *a)
{
    if (a->head_size <= 0) return fk_ctx_fail(ctx, FK_ERROR_INVALID, "head_size is %lld", (long long)a->head_size);
    if (a->per_layer_sliding_window >= 0) return FK_OK;
    return fk_ctx_fail(ctx, FK_ERROR_INVALID, "per_layer_sliding_window is %lld", (long long)a->per_layer_sliding_window);
}

static fk_cost cost(const fk_attention_impl_args *a)
{
    double pairs, keys, row = (double)(a->num_kv_heads * a->head_size), size = fk_dtype_bits(a->query->dtype) / 8.0;
    paged_work(a->query->shape[0], a->cu_seqlens_q, a->seqused_k, a->max_seqlen_k, true, window_size(a->per_layer_sliding_window), &pairs, &keys);
    return (fk_cost){.read_bytes = fkp_bytes(a->query) + fkp_bytes(a->key) + fkp_bytes(a->value) + fkp_bytes(a->slot_mapping) +
                                   2 * (keys - (double)a->key->shape[0] > 0 ? keys - (double)a->key->shape[0] : 0) * row * size,
                     .write_bytes = fkp_bytes(a->output) + fkp_bytes(a->key) + fkp_bytes(a->value),
                     .flops = 4 * pairs * (double)(a->num_heads * a->head_size)};
}

static void fill(fk_random *random, const fk_attention_impl_args *a)
{
    paged_limit(a->query);
    paged_limit(a->key);
    paged_limit(a->key_cache);
    paged_fill_cu_seqlens(random, a->cu_seqlens_q, a->query->shape[0], a->max_seqlen_q);
    paged_fill_cache(random, a->cu_seqlens_q, a->seqused_k, a->block_table, a->key_cache->shape[0], a->key_cache->shape[1],
                     a->max_seqlen_k);
    paged_fill_tokens(a->cu_seqlens_q, a->seqused_k, a->block_table, a->key_cache->shape[1], NULL, a->slot_mapping);
}

static const char *const cases[] = {
    "T=1 num_heads=2 num_kv_heads=1 head_size=16 scale=0.25 logits_soft_cap=0 per_layer_sliding_window=0 B=1 N=2 S=4 M=2 max_seqlen_q=1 max_seqlen_k=6",
    "T=5 num_heads=4 num_kv_heads=2 head_size=32 scale=0.177 logits_soft_cap=0 per_layer_sliding_window=0 B=5 N=20 S=8 M=4 max_seqlen_q=1 max_seqlen_k=30",
    "T=19 num_heads=3 num_kv_heads=1 head_size=20 scale=0.22 logits_soft_cap=0 per_layer_sliding_window=0 B=3 N=12 S=8 M=4 max_seqlen_q=9 max_seqlen_k=30",
    "T=3 num_heads=2 num_kv_heads=2 head_size=16 scale=0.25 logits_soft_cap=0 per_layer_sliding_window=0 B=4 N=8 S=8 M=2 max_seqlen_q=1 max_seqlen_k=16",
    "T=33 num_heads=9 num_kv_heads=3 head_size=64 scale=0.125 logits_soft_cap=0 per_layer_sliding_window=0 B=2 N=8 S=16 M=4 max_seqlen_q=30 max_seqlen_k=60",
    "T=5 num_heads=4 num_kv_heads=2 head_size=32 scale=0.177 logits_soft_cap=0 per_layer_sliding_window=7 B=5 N=20 S=8 M=4 max_seqlen_q=1 max_seqlen_k=30",
    "T=19 num_heads=4 num_kv_heads=2 head_size=32 scale=0.177 logits_soft_cap=2.5 per_layer_sliding_window=9 B=3 N=12 S=8 M=4 max_seqlen_q=9 max_seqlen_k=30",
    NULL};

#define FK_OP_DEF "attention/attention_impl.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CHECK check
#define FK_OP_COST cost
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
