/* SPDX-License-Identifier: Apache-2.0 */
/* y = x W^T + b on the CPU: up to four rows stream the weights (core/gemv.h), more are a blocked product (core/gemm.h). */
#include "core/cpu_op.h"
#include "core/gemm.h"
#include "core/gemv.h"

#define GRAIN_WEIGHTS 32768 /* below this a second thread costs more than it saves */

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
    job.x = fkp_gemv_input(ctx, a->input, m, k, &job.x_stride);
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
