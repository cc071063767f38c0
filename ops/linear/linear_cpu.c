/* SPDX-License-Identifier: Apache-2.0 */
/* y = x W^T + b on the CPU: up to four rows stream the weights (core/gemv.h), more are a blocked product (core/gemm.h). */
#include "core/cpu_op.h"
#include "core/gemm.h"
#include "core/gemv.h"

#define GRAIN_WEIGHTS 32768 /* below this a second thread costs more than it saves */

/* Input rows as float32, contiguous or strided; converted to scratch when they are of another type. */
static const float *float_rows(fk_ctx *ctx, const fk_tensor *input, int64_t m, int64_t k, int64_t *stride)
{
    *stride = fk_row_stride(input);
    if (input->dtype == FK_F32) return input->data;
    float *x = fk_ctx_scratch(ctx, sizeof(float) * (size_t)(m * k));
    for (int64_t row = 0; x && row < m; row++)
        for (int64_t i = 0; i < k; i++) x[row * k + i] = fkp_s_load(input->data, input->dtype, row * *stride + i);
    *stride = k;
    return x;
}

static fk_status run(fk_ctx *ctx, const fk_linear_args *a)
{
    int64_t m, k, n = a->weight->shape[0];
    fk_rows_cols(a->input, &m, &k);
    if (m == 0 || n == 0) return FK_OK;
    const void *bias = a->bias ? a->bias->data : NULL;
    fk_dtype bias_dtype = a->bias ? a->bias->dtype : FK_NONE;
    if (m >= FKP_GEMM_MIN_ROWS) {
        fkp_gemm_job job = {.m = m, .n = n, .k = k,
                            .input = a->input->data, .input_dtype = a->input->dtype, .input_stride = fk_row_stride(a->input),
                            .weight = a->weight->data, .weight_dtype = a->weight->dtype,
                            .weight_stride = fk_row_stride(a->weight), .bias = bias, .bias_dtype = bias_dtype,
                            .output = a->output->data, .output_stride = fk_row_stride(a->output)};
        return fkp_gemm(ctx, &job);
    }
    fkp_gemv_job job = {.m = m, .n = n, .k = k, .weight = a->weight->data, .weight_dtype = a->weight->dtype,
                        .weight_stride = fk_row_stride(a->weight), .bias = bias, .bias_dtype = bias_dtype,
                        .output = a->output->data, .output_dtype = a->output->dtype,
                        .output_stride = fk_row_stride(a->output)};
    job.x = float_rows(ctx, a->input, m, k, &job.x_stride);
    if (fk_ctx_status(ctx) != FK_OK) return fk_ctx_status(ctx);
    fkp_parallel_for(fk_ctx_threads(ctx), n, 1 + GRAIN_WEIGHTS / (k + 1), fkp_gemv_part, &job);
    return FK_OK;
}

static bool supports(const fk_linear_args *a)
{
    return fk_tensor_has_rows(a->input) && fk_tensor_has_rows(a->weight) && fk_tensor_has_rows(a->output) &&
           (!a->bias || fk_tensor_is_contiguous(a->bias));
}

FK_CPU_OP_IF(linear, run, supports);
