/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of new tokens over listed pages on the CPU, as the plan splits it. */
#include "ops/attention/flashinfer_cpu.h"

static fk_status run(fk_ctx *ctx, const fk_flashinfer_prefill_run_args *a)
{
    flashinfer_call c = flashinfer_call_prefill(a);
    return flashinfer_run_cpu(ctx, &c);
}

static bool supports(const fk_flashinfer_prefill_run_args *a)
{
    flashinfer_call c = flashinfer_call_prefill(a);
    return attn_supports(c.q, &c.k, &c.v, c.out);
}

FK_CPU_OP_IF(flashinfer_prefill_run, run, supports);
