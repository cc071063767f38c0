/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of a drafted tree on the CPU: that of prefill with a mask. */
#include "ops/attention/paged_prefill_cpu.h"

static fk_status run(fk_ctx *ctx, const fk_tree_attn_prefill_args *a)
{
    paged_attention p = {.q = a->q, .k = a->k, .v = a->v, .seqused_k = a->seqused_k, .block_table = a->block_table,
                         .max_seqlen_k = a->max_seqlen_k, .window_size = -1, .scale = paged_scale(a->softmax_scale, a->q),
                         .softcap = (double)a->softcap};
    fk_tensor mask;
    if (a->qq_bias) {
        mask = paged_mask_of_rows(a->qq_bias, a->q->shape[1]);
        p.mask = &mask;
    }
    return paged_prefill_cpu(ctx, &p, a->cu_seqlens_q, a->max_seqlen_q, a->causal, a->out);
}

static bool supports(const fk_tree_attn_prefill_args *a)
{
    return attn_supports(a->q, a->k, a->v, a->out);
}

FK_CPU_OP_FUSED(tree_attn_prefill, run, supports);
