/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of a drafted tree, the specification: scores and probabilities in double, one rounding at the end. */
#include <fk/ops.h>

#include "ops/attention/paged_attention.h"

static paged_attention paged_call_of(const fk_tree_attn_prefill_args *a)
{
    return (paged_attention){.q = a->q, .k = a->k, .v = a->v, .seqused_k = a->seqused_k, .block_table = a->block_table,
                             .max_seqlen_k = a->max_seqlen_k, .window_size = -1, .scale = paged_scale(a->softmax_scale, a->q),
                             .softcap = (double)a->softcap};
}

static fk_status reference(fk_ctx *ctx, const fk_tree_attn_prefill_args *a)
{
    paged_attention p = paged_call_of(a);
    fk_tensor mask;
    if (a->qq_bias) {
        mask = paged_mask_of_rows(a->qq_bias, a->q->shape[1]);
        p.mask = &mask;
    }
    return paged_prefill(ctx, &p, a->cu_seqlens_q, a->max_seqlen_q, a->causal, a->out);
}

static fk_status check(fk_ctx *ctx, const fk_tree_attn_prefill_args *a)
{
    if (a->qq_bias && a->qq_bias->shape[0] < a->max_seqlen_q)
        return fk_ctx_fail(ctx, FK_ERROR_INVALID, "qq_bias is for %lld drafts, max_seqlen_q is %lld", (long long)a->qq_bias->shape[0],
                           (long long)a->max_seqlen_q);
    return paged_check(ctx, a->q, a->k);
}

static fk_cost cost(const fk_tree_attn_prefill_args *a)
{
    double pairs, keys;
    paged_work(a->q->shape[0], a->cu_seqlens_q, a->seqused_k, a->max_seqlen_k, a->causal, -1, &pairs, &keys);
    double size = fk_dtype_bits(a->q->dtype) / 8.0;
    return (fk_cost){.read_bytes = (double)fk_tensor_nbytes(a->q) + 2 * keys * (double)(a->k->shape[2] * a->k->shape[3]) * size +
                                   (double)fk_tensor_nbytes(a->cu_seqlens_q) + (double)fk_tensor_nbytes(a->seqused_k) +
                                   (a->qq_bias ? (double)fk_tensor_nbytes(a->qq_bias) : 0),
                     .write_bytes = (double)fk_tensor_nbytes(a->out),
                     .flops = 4 * pairs * (double)(a->q->shape[1] * a->q->shape[2])};
}

/* A random tree: draft 0 is the root, the parent of another one stands before it. */
static void fill(fk_random *random, const fk_tree_attn_prefill_args *a)
{
    paged_limit(a->q);
    paged_limit(a->k);
    paged_fill_cu_seqlens(random, a->cu_seqlens_q, a->q->shape[0], a->max_seqlen_q);
    paged_fill_cache(random, a->cu_seqlens_q, a->seqused_k, a->block_table, a->k->shape[0], a->k->shape[1], a->max_seqlen_k);
    int64_t drafts = a->qq_bias ? a->qq_bias->shape[0] : 0;
    for (int64_t i = 0; i < drafts; i++) {
        int64_t parent = i > 0 ? fkp_random_below(random, i) : -1;
        for (int64_t j = 0; j < drafts; j++) {
            bool seen = j == i || (parent >= 0 && fk_load_element(fkp_at2(a->qq_bias, parent, j), a->qq_bias->dtype) == 0);
            fk_store_element(fkp_at2(a->qq_bias, i, j), a->qq_bias->dtype, seen ? 0 : -INFINITY);
        }
    }
}

#define TREE " softmax_scale=0 causal=False softcap=0"
static const char *const cases[] = {
    "T=0 B=0 H=2 K=1 E=8 N=1 S=4 M=1 Q=1 max_seqlen_q=0 max_seqlen_k=0" TREE,
    "T=1 B=1 H=1 K=1 E=1 N=1 S=1 M=1 Q=1 max_seqlen_q=1 max_seqlen_k=1" TREE,
    "T=9 B=1 H=3 K=1 E=16 N=2 S=8 M=2 Q=9 max_seqlen_q=9 max_seqlen_k=9" TREE,
    "T=17 B=4 H=4 K=2 E=15 N=12 S=16 M=3 Q=8 max_seqlen_q=8 max_seqlen_k=40" TREE,
    "T=33 B=3 H=9 K=3 E=64 N=20 S=16 M=5 Q=25 max_seqlen_q=20 max_seqlen_k=70" TREE,
    "T=64 B=2 H=8 K=2 E=128 N=24 S=16 M=12 Q=60 max_seqlen_q=60 max_seqlen_k=190 softmax_scale=0.05 causal=True softcap=0",
    "T=13 B=2 H=4 K=4 E=32 N=9 S=8 M=4 Q=9 max_seqlen_q=9 max_seqlen_k=30 softmax_scale=0 causal=False softcap=2.5",
    "T=21 B=2 H=4 K=2 E=80 N=11 S=8 M=5 Q=15 max_seqlen_q=15 max_seqlen_k=37 softmax_scale=0 causal=True softcap=0 qq_bias=absent",
    NULL};

#define FK_OP_DEF "attention/tree_attn_prefill.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CHECK check
#define FK_OP_COST cost
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
