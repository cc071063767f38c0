/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of new tokens over listed pages on CUDA, as the plan splits it. */
#include "ops/attention/flashinfer_cuda.h"

extern "C" fk_status fk_flashinfer_prefill_run_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_flashinfer_prefill_run_args *a)
{
    flashinfer_call c = flashinfer_call_prefill(a);
    return flashinfer_launch(ctx, stream, &c, "flashinfer_prefill_run");
}

static bool supports(const fk_flashinfer_prefill_run_args *a)
{
    flashinfer_call c = flashinfer_call_prefill(a);
    return flashinfer_supported(&c);
}

FK_CUDA_OP_IF(flashinfer_prefill_run, supports)
