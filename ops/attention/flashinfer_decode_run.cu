/* SPDX-License-Identifier: Apache-2.0 */
/* Decoding over listed pages on CUDA, as the plan splits it. */
#include "ops/attention/flashinfer_cuda.h"

extern "C" fk_status fk_flashinfer_decode_run_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_flashinfer_decode_run_args *a)
{
    flashinfer_call c = flashinfer_call_decode(a);
    return flashinfer_launch(ctx, stream, &c, "flashinfer_decode_run");
}

static bool supports(const fk_flashinfer_decode_run_args *a)
{
    flashinfer_call c = flashinfer_call_decode(a);
    return flashinfer_supported(&c);
}

FK_CUDA_OP_IF(flashinfer_decode_run, supports)
