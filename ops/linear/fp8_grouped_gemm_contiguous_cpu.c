/* SPDX-License-Identifier: Apache-2.0 */
/* Grouped product in fp8 on the CPU: every run of rows with one expert is a blocked product (core/gemm.h). */
#include "core/cpu_op.h"
#include "core/gemm.h"
#include "ops/linear/fp8_quant_cpu.h"

static int64_t index_at(const fk_fp8_grouped_gemm_contiguous_args *a, int64_t t)
{
    return ((const int32_t *)a->m_indices->data)[t * a->m_indices->strides[0]];
}

/* Rows [first, first + m), which have one expert. */
static fk_status run_rows(fk_ctx *ctx, const fk_fp8_grouped_gemm_contiguous_args *a, int64_t first, int64_t m, int64_t expert)
{
    int64_t k = a->a->shape[1];
    float *rows = fk_ctx_scratch(ctx, sizeof(float) * (size_t)(m * k + 1));
    if (!rows) return fk_ctx_status(ctx);
    for (int64_t t = 0; t < m; t++)
        for (int64_t i = 0; i < k; i += FP8_BLOCK)
            fp8_dequantize((const uint8_t *)a->a->data + (first + t) * fk_row_stride(a->a) + i, k - i < FP8_BLOCK ? k - i : FP8_BLOCK,
                           ((const float *)a->a_scale->data)[(first + t) * a->a_scale->strides[0] + i / FP8_BLOCK * a->a_scale->strides[1]],
                           rows + t * k + i);
    fkp_gemm_job job = {.m = m, .n = a->b->shape[1], .k = k, .input = rows, .input_dtype = FK_F32, .input_stride = k,
                        .weight = (const uint8_t *)a->b->data + expert * a->b->strides[0], .weight_dtype = FK_F8_E4M3,
                        .weight_stride = a->b->strides[1],
                        .weight_scale = (const float *)a->b_scale->data + expert * a->b_scale->strides[0],
                        .weight_scale_stride = a->b_scale->strides[1],
                        .output = (uint16_t *)a->out->data + first * fk_row_stride(a->out), .output_dtype = FK_BF16,
                        .output_stride = fk_row_stride(a->out)};
    return fkp_gemm(ctx, &job);
}

static fk_status run(fk_ctx *ctx, const fk_fp8_grouped_gemm_contiguous_args *a)
{
    int64_t rows = a->a->shape[0], features = a->b->shape[1];
    for (int64_t t = 0; t < rows; t++)
        if (index_at(a, t) >= a->b->shape[0])
            return fk_ctx_fail(ctx, FK_ERROR_INVALID, "m_indices[%lld] is %lld, but there are %lld experts", (long long)t,
                               (long long)index_at(a, t), (long long)a->b->shape[0]);
    for (int64_t first = 0, end; first < rows && features > 0; first = end) {
        int64_t expert = index_at(a, first);
        for (end = first + 1; end < rows && index_at(a, end) == expert;) end++;
        if (expert < 0) {
            for (int64_t t = first; t < end; t++)
                memset((uint16_t *)a->out->data + t * fk_row_stride(a->out), 0, sizeof(uint16_t) * (size_t)features);
            continue;
        }
        fk_mark mark = fk_ctx_mark(ctx);
        FK_TRY(run_rows(ctx, a, first, end - first, expert));
        fk_ctx_release(ctx, mark);
    }
    return FK_OK;
}

static bool supports(const fk_fp8_grouped_gemm_contiguous_args *a)
{
    return fk_tensor_has_rows(a->a) && fk_tensor_has_rows(a->out) && (a->b->strides[2] == 1 || a->b->shape[2] <= 1) &&
           (a->b_scale->strides[2] == 1 || a->b_scale->shape[2] <= 1);
}

FK_CPU_OP_IF(fp8_grouped_gemm_contiguous, run, supports);
