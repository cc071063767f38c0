/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of packed sequences on the CPU: that of prefill over pages of one token. */
#include "ops/attention/paged_prefill_cpu.h"
#include "ops/attention/varlen_as_paged.h"

static fk_status run(fk_ctx *ctx, const fk_flash_attn_varlen_args *a)
{
    varlen_paged p;
    FK_TRY(varlen_to_paged(ctx, a, &p));
    return paged_prefill_cpu(ctx, &p.attention, a->cu_seqlens_q, a->max_seqlen_q, a->causal, a->out);
}

static bool supports(const fk_flash_attn_varlen_args *a)
{
    fk_tensor k = varlen_pages(a->k), v = varlen_pages(a->v);
    return attn_supports(a->q, &k, &v, a->out);
}

FK_CPU_OP_IF(flash_attn_varlen, run, supports);
