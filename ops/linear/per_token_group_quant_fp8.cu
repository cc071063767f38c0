/* SPDX-License-Identifier: Apache-2.0 */
/* Quantising to fp8 by groups on CUDA. */
#include "ops/linear/fp8_quant_cuda.h"

extern "C" fk_status fk_per_token_group_quant_fp8_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_per_token_group_quant_fp8_args *a)
{
    fp8_quant job = {};
    job.input = a->input->data, job.q = FK_PTR(uint8_t, a->output_q), job.scales = FK_PTR(float, a->output_s);
    job.rows = a->input->shape[0], job.cols = a->input->shape[1], job.groups = a->output_s->shape[1], job.group_size = a->group_size;
    job.input_stride = a->input->strides[0], job.q_stride = a->output_q->strides[0];
    job.scale_row = a->output_s->strides[0], job.scale_group = a->output_s->strides[1];
    job.eps = a->eps, job.fp8_min = a->fp8_min, job.fp8_max = a->fp8_max, job.power_of_two = a->scale_ue8m0;
    return fp8_quant_launch(ctx, stream, &job, a->input->dtype, "per_token_group_quant_fp8");
}

static bool supports(const fk_per_token_group_quant_fp8_args *a)
{
    return fk_tensor_has_rows(a->input) && fk_tensor_has_rows(a->output_q);
}

FK_CUDA_OP_IF(per_token_group_quant_fp8, supports)
