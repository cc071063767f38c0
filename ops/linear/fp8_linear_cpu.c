/* SPDX-License-Identifier: Apache-2.0 */
/* The linear layer in fp8 on the CPU: the input goes through fp8 and back to float32, then it is the blocked product of
 * core/gemm.h, which takes weights with block scales. */
#include "core/cpu_op.h"
#include "core/gemm.h"
#include "ops/linear/fp8_quant_cpu.h"

typedef struct quantize_job {
    const fk_tensor *input;
    float *rows;
} quantize_job;

static void quantize_part(void *user, int64_t begin, int64_t end)
{
    const quantize_job *job = user;
    int64_t depth = job->input->shape[1];
    uint8_t q[FP8_BLOCK];
    for (int64_t t = begin; t < end; t++)
        for (int64_t first = 0; first < depth; first += FP8_BLOCK) {
            int64_t n = depth - first < FP8_BLOCK ? depth - first : FP8_BLOCK, at = t * fk_row_stride(job->input) + first;
            float scale = fp8_scale(fp8_largest(job->input->data, job->input->dtype, at, n), FP8_EPS, FP8_MAX, false);
            fp8_quantize(job->input->data, job->input->dtype, at, n, scale, -FP8_MAX, FP8_MAX, q);
            fp8_dequantize(q, n, scale, job->rows + t * depth + first);
        }
}

static fk_status run(fk_ctx *ctx, const fk_fp8_linear_args *a)
{
    int64_t m = a->input->shape[0], k = a->input->shape[1], n = a->weight->shape[0];
    if (m == 0 || n == 0) return FK_OK;
    quantize_job quantize = {.input = a->input, .rows = fk_ctx_scratch(ctx, sizeof(float) * (size_t)(m * k + 1))};
    if (!quantize.rows) return fk_ctx_status(ctx);
    fkp_parallel_for(fk_ctx_threads(ctx), m, 1 + 16384 / (k + 1), quantize_part, &quantize);
    fkp_gemm_job job = {.m = m, .n = n, .k = k, .input = quantize.rows, .input_dtype = FK_F32, .input_stride = k,
                        .weight = a->weight->data, .weight_dtype = FK_F8_E4M3, .weight_stride = fk_row_stride(a->weight),
                        .weight_scale = a->weight_scale->data, .weight_scale_stride = fk_row_stride(a->weight_scale),
                        .output = a->out->data, .output_dtype = a->out->dtype, .output_stride = fk_row_stride(a->out)};
    return fkp_gemm(ctx, &job);
}

static bool supports(const fk_fp8_linear_args *a)
{
    return fk_tensor_has_rows(a->input) && fk_tensor_has_rows(a->weight) && fk_tensor_has_rows(a->weight_scale) &&
           fk_tensor_has_rows(a->out);
}

FK_CPU_OP_IF(fp8_linear, run, supports);
