/* SPDX-License-Identifier: Apache-2.0 */
/* The linear layer in fp8 on CUDA: one kernel quantises the input, one multiplies (ops/linear/fp8_gemm_cuda.h). */
#include "ops/linear/fp8_gemm_cuda.h"
#include "ops/linear/fp8_quant_cuda.h"

extern "C" fk_status fk_fp8_linear_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_fp8_linear_args *a)
{
    const int64_t m = a->input->shape[0], k = a->input->shape[1], groups = (k + FP8_BLOCK - 1) / FP8_BLOCK;
    const int64_t q_stride = (k + 15) / 16 * 16; /* rows stay aligned */
    if (m == 0 || a->weight->shape[0] == 0) return FK_OK;
    uint8_t *q = (uint8_t *)fk_ctx_scratch(ctx, (size_t)(m * q_stride + 16));
    float *scales = (float *)fk_ctx_scratch(ctx, sizeof(float) * (size_t)(m * groups + 1));
    if (!q || !scales) return fk_ctx_status(ctx);
    fp8_quant quant = {};
    quant.input = a->input->data, quant.input_stride = a->input->strides[0];
    quant.q = q, quant.q_stride = q_stride;
    quant.scales = scales, quant.scale_row = groups, quant.scale_group = 1;
    quant.rows = m, quant.cols = k, quant.groups = groups, quant.group_size = FP8_BLOCK;
    quant.eps = FP8_EPS, quant.fp8_min = -FP8_MAX, quant.fp8_max = FP8_MAX;
    FK_TRY(fp8_quant_launch(ctx, stream, &quant, a->input->dtype, "fp8_linear: quantising"));
    fp8_gemm g = {};
    g.a = q, g.a_stride = q_stride, g.a_scale = scales, g.a_scale_row = groups, g.a_scale_group = 1;
    g.b = FK_PTR(const uint8_t, a->weight), g.b_stride = a->weight->strides[0];
    g.b_scale = FK_PTR(const float, a->weight_scale), g.b_scale_row = a->weight_scale->strides[0], g.b_scale_group = a->weight_scale->strides[1];
    g.out = a->out->data, g.out_stride = a->out->strides[0];
    g.m = m, g.n = a->weight->shape[0], g.k = k, g.num_experts = 1;
    return fp8_gemm_launch(ctx, stream, &g, a->out->dtype, "fp8_linear");
}

static bool supports(const fk_fp8_linear_args *a)
{
    return fkp_cuda_capability() >= 89 && fk_tensor_has_rows(a->input) && fk_tensor_has_rows(a->weight) && fk_tensor_has_rows(a->out);
}

FK_CUDA_OP_IF(fp8_linear, supports)
