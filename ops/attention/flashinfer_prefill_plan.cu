/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of attention of new tokens on CUDA. */
#include "ops/attention/flashinfer_plan_cuda.h"

extern "C" fk_status fk_flashinfer_prefill_plan_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_flashinfer_prefill_plan_args *a)
{
    plan_call c = plan_call_prefill(a);
    return plan_launch(ctx, stream, &c, "flashinfer_prefill_plan");
}

static bool supports(const fk_flashinfer_prefill_plan_args *a)
{
    plan_call c = plan_call_prefill(a);
    return plan_supported(&c);
}

FK_CUDA_OP_IF(flashinfer_prefill_plan, supports)
