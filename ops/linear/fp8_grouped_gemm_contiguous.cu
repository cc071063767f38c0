/* SPDX-License-Identifier: Apache-2.0 */
/* Grouped product in fp8 on CUDA (ops/linear/fp8_gemm_cuda.h): a tile of 64 rows reads the weights of each expert in it. */
#include "ops/linear/fp8_gemm_cuda.h"

extern "C" fk_status fk_fp8_grouped_gemm_contiguous_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_fp8_grouped_gemm_contiguous_args *a)
{
    fp8_gemm g = {};
    g.a = FK_PTR(const uint8_t, a->a), g.a_stride = a->a->strides[0];
    g.a_scale = FK_PTR(const float, a->a_scale), g.a_scale_row = a->a_scale->strides[0], g.a_scale_group = a->a_scale->strides[1];
    g.b = FK_PTR(const uint8_t, a->b), g.b_expert = a->b->strides[0], g.b_stride = a->b->strides[1];
    g.b_scale = FK_PTR(const float, a->b_scale), g.b_scale_expert = a->b_scale->strides[0];
    g.b_scale_row = a->b_scale->strides[1], g.b_scale_group = a->b_scale->strides[2];
    g.experts = FK_PTR(const int32_t, a->m_indices), g.num_experts = (int)a->b->shape[0];
    g.out = a->out->data, g.out_stride = a->out->strides[0];
    g.m = a->a->shape[0], g.n = a->b->shape[1], g.k = a->a->shape[1];
    return fp8_gemm_launch(ctx, stream, &g, FK_BF16, "fp8_grouped_gemm_contiguous");
}

static bool supports(const fk_fp8_grouped_gemm_contiguous_args *a)
{
    return fkp_cuda_capability() >= 89 && fk_tensor_has_rows(a->a) && fk_tensor_has_rows(a->out) &&
           (a->b->strides[2] == 1 || a->b->shape[2] <= 1) && fk_tensor_is_contiguous(a->m_indices) && a->b->shape[0] <= INT32_MAX;
}

FK_CUDA_OP_IF(fp8_grouped_gemm_contiguous, supports)
