/* SPDX-License-Identifier: Apache-2.0 */
/* One layer of Llama (arXiv:2302.13971): h += attention(norm(h)); h += mlp(norm(h)), where the second addition is left to
 * the head of the next layer (or the last norm), as production code fuses it there. */
#include "core/composition.h"
#include "ops/attention/paged_attention.h"
#include "ops/rotary/cos_sin_cache.h"

static fk_status reference(fk_ctx *ctx, const fk_llama_decoder_args *a)
{
    fk_attention_module self_attn = {
        .num_heads = a->num_heads, .num_kv_heads = a->num_kv_heads, .head_size = a->head_size,
        .sliding_window = a->sliding_window, .rms_norm_eps = a->rms_norm_eps, .qkv_proj = *a->qkv_proj,
        .qkv_bias = fkp_optional(a->qkv_bias), .q_norm = fkp_optional(a->q_norm), .k_norm = fkp_optional(a->k_norm), .o_proj = *a->o_proj, .o_bias = fkp_optional(a->o_bias),
        .cos_sin_cache = *a->cos_sin_cache};
    fk_llama_mlp_module mlp = {.gate_up_proj = *a->gate_up_proj, .down_proj = *a->down_proj};

    fk_tensor x = *a->hidden_states;
    if (a->is_first_layer) {
        fk_ctx_copy(ctx, *a->residual, x);
        x = fk_rms_norm(ctx, x, *a->input_layernorm, a->rms_norm_eps).result;
    } else { /* residual += x; x = norm(residual) */
        fk_fused_add_rms_norm(ctx, x, *a->residual, *a->input_layernorm, a->rms_norm_eps);
    }
    fk_tensor h = fk_attention(ctx, &self_attn, *a->positions, x, *a->key_cache, *a->value_cache, *a->slot_mapping,
                               *a->cu_seqlens_q, *a->seqused_k, *a->block_table, a->max_seqlen_q, a->max_seqlen_k).output;
    fk_fused_add_rms_norm(ctx, h, *a->residual, *a->post_attention_layernorm, a->rms_norm_eps);
    fk_llama_mlp_out(ctx, &mlp, *a->hidden_states, h);
    return fk_ctx_status(ctx);
}

static fk_status check(fk_ctx *ctx, const fk_llama_decoder_args *a)
{
    if (a->head_size > 0 && a->num_kv_heads > 0 && a->num_heads % a->num_kv_heads == 0) return FK_OK;
    return fk_ctx_fail(ctx, FK_ERROR_INVALID, "%lld query heads over %lld KV heads of %lld features", (long long)a->num_heads,
                       (long long)a->num_kv_heads, (long long)a->head_size);
}

static fk_cost cost(const fk_llama_decoder_args *a)
{
    double pairs, keys, size = fk_dtype_bits(a->hidden_states->dtype) / 8.0, t = (double)a->positions->shape[0];
    double kv = 2 * (double)(a->num_kv_heads * a->head_size) * size, stream = 2 * fkp_bytes(a->hidden_states);
    paged_work(a->positions->shape[0], a->cu_seqlens_q, a->seqused_k, a->max_seqlen_k, true, a->sliding_window > 0 ? a->sliding_window - 1 : -1, &pairs, &keys);
    double weights = fkp_bytes(a->input_layernorm) + fkp_bytes(a->qkv_proj) + fkp_bytes(a->qkv_bias) + fkp_bytes(a->o_proj) +
                     fkp_bytes(a->o_bias) + fkp_bytes(a->q_norm) + fkp_bytes(a->k_norm) + fkp_bytes(a->post_attention_layernorm) + fkp_bytes(a->gate_up_proj) +
                     fkp_bytes(a->down_proj);
    double products = (double)(fk_tensor_numel(a->qkv_proj) + fk_tensor_numel(a->o_proj) + fk_tensor_numel(a->gate_up_proj) +
                               fk_tensor_numel(a->down_proj));
    return (fk_cost){.read_bytes = stream + weights + (keys > t ? keys - t : 0) * kv,
                     .write_bytes = stream + t * kv,
                     .flops = 2 * t * products + 4 * pairs * (double)(a->num_heads * a->head_size) +
                              10 * (double)fk_tensor_numel(a->hidden_states)};
}

static void fill(fk_random *random, const fk_llama_decoder_args *a)
{
    paged_limit(a->key_cache);
    fill_cos_sin_cache(a->cos_sin_cache);
    paged_fill_cu_seqlens(random, a->cu_seqlens_q, a->positions->shape[0], a->max_seqlen_q);
    paged_fill_cache(random, a->cu_seqlens_q, a->seqused_k, a->block_table, a->key_cache->shape[0], a->key_cache->shape[1],
                     a->max_seqlen_k);
    paged_fill_tokens(a->cu_seqlens_q, a->seqused_k, a->block_table, a->key_cache->shape[1], a->positions, a->slot_mapping);
}

static const char *const cases[] = {
    "T=4 D=32 I=40 num_heads=4 num_kv_heads=2 head_size=16 sliding_window=3 rms_norm_eps=1e-5 is_first_layer=False P=32 R=16 B=2 N=8 S=8 M=4 max_seqlen_q=3 max_seqlen_k=30",
    "T=5 D=32 I=88 num_heads=4 num_kv_heads=2 head_size=16 sliding_window=0 rms_norm_eps=1e-5 is_first_layer=True P=32 R=16 B=5 N=20 S=8 M=4 max_seqlen_q=1 max_seqlen_k=30 q_norm=absent k_norm=absent",
    "T=19 D=60 I=65 num_heads=3 num_kv_heads=1 head_size=20 sliding_window=0 rms_norm_eps=1e-5 is_first_layer=False P=40 R=20 B=3 N=12 S=8 M=4 max_seqlen_q=9 max_seqlen_k=30 q_norm=absent k_norm=absent",
    "T=11 D=576 I=1536 num_heads=9 num_kv_heads=3 head_size=64 sliding_window=0 rms_norm_eps=1e-5 is_first_layer=False P=64 R=64 B=2 N=8 S=16 M=4 max_seqlen_q=8 max_seqlen_k=60 qkv_bias=absent o_bias=absent cos_sin_cache=f32 q_norm=absent k_norm=absent",
    "T=19 D=64 I=65 num_heads=4 num_kv_heads=2 head_size=16 sliding_window=7 rms_norm_eps=1e-6 is_first_layer=False P=40 R=16 B=3 N=12 S=8 M=4 max_seqlen_q=9 max_seqlen_k=30 qkv_bias=absent o_bias=absent",
    NULL};

#define FK_OP_DEF "decoder/llama_decoder.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CHECK check
#define FK_OP_COST cost
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
