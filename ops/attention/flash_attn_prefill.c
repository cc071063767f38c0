/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of new tokens over a paged cache, the specification: scores and probabilities in double, one rounding at the
 * end. With a window, query i sees keys from its own position minus window_size on; causal or not decides about later
 * keys alone. */
#include <fk/ops.h>

#include "ops/attention/paged_attention.h"

static fk_status reference(fk_ctx *ctx, const fk_flash_attn_prefill_args *a)
{
    paged_attention p = {.q = a->q, .k = a->k, .v = a->v, .seqused_k = a->seqused_k, .block_table = a->block_table,
                         .max_seqlen_k = a->max_seqlen_k, .window_size = a->window_size,
                         .scale = paged_scale(a->softmax_scale, a->q), .softcap = (double)a->softcap};
    return paged_prefill(ctx, &p, a->cu_seqlens_q, a->max_seqlen_q, a->causal, a->out);
}

static fk_status check(fk_ctx *ctx, const fk_flash_attn_prefill_args *a)
{
    return paged_check(ctx, a->q, a->k);
}

static fk_cost cost(const fk_flash_attn_prefill_args *a)
{
    double pairs, keys;
    paged_work(a->q->shape[0], a->cu_seqlens_q, a->seqused_k, a->max_seqlen_k, a->causal, a->window_size, &pairs, &keys);
    double size = fk_dtype_bits(a->q->dtype) / 8.0;
    return (fk_cost){.read_bytes = (double)fk_tensor_nbytes(a->q) + 2 * keys * (double)(a->k->shape[2] * a->k->shape[3]) * size +
                                   (double)fk_tensor_nbytes(a->cu_seqlens_q) + (double)fk_tensor_nbytes(a->seqused_k),
                     .write_bytes = (double)fk_tensor_nbytes(a->out),
                     .flops = 4 * pairs * (double)(a->q->shape[1] * a->q->shape[2])};
}

static void fill(fk_random *random, const fk_flash_attn_prefill_args *a)
{
    paged_limit(a->q);
    paged_limit(a->k);
    paged_fill_cu_seqlens(random, a->cu_seqlens_q, a->q->shape[0], a->max_seqlen_q);
    paged_fill_cache(random, a->cu_seqlens_q, a->seqused_k, a->block_table, a->k->shape[0], a->k->shape[1], a->max_seqlen_k);
}

#define DEFAULTS " softmax_scale=0 causal=True window_size=-1 softcap=0"
static const char *const cases[] = {
    "T=0 B=0 H=2 K=1 E=8 N=1 S=4 M=1 max_seqlen_q=0 max_seqlen_k=0" DEFAULTS,
    "T=1 B=1 H=1 K=1 E=1 N=1 S=1 M=1 max_seqlen_q=1 max_seqlen_k=1" DEFAULTS,
    "T=9 B=1 H=3 K=1 E=16 N=2 S=8 M=2 max_seqlen_q=9 max_seqlen_k=9" DEFAULTS,
    "T=17 B=4 H=4 K=2 E=15 N=12 S=16 M=3 max_seqlen_q=8 max_seqlen_k=40" DEFAULTS,
    "T=33 B=3 H=9 K=3 E=64 N=20 S=16 M=5 max_seqlen_q=20 max_seqlen_k=70" DEFAULTS,
    "T=65 B=1 H=9 K=3 E=64 N=6 S=16 M=5 max_seqlen_q=65 max_seqlen_k=65" DEFAULTS,
    "T=20 B=2 H=8 K=2 E=128 N=9 S=16 M=4 max_seqlen_q=12 max_seqlen_k=60 softmax_scale=0.05 causal=True window_size=-1 softcap=0",
    "T=13 B=2 H=4 K=4 E=32 N=9 S=8 M=4 max_seqlen_q=9 max_seqlen_k=30 softmax_scale=0 causal=False window_size=-1 softcap=0",
    "T=21 B=2 H=4 K=2 E=32 N=11 S=8 M=5 max_seqlen_q=15 max_seqlen_k=37 softmax_scale=0 causal=True window_size=7 softcap=0",
    "T=11 B=2 H=2 K=1 E=32 N=7 S=8 M=3 max_seqlen_q=8 max_seqlen_k=20 softmax_scale=0 causal=False window_size=3 softcap=2.5",
    NULL};

#define FK_OP_DEF "attention/flash_attn_prefill.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CHECK check
#define FK_OP_COST cost
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
