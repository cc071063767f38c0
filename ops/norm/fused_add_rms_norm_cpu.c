/* SPDX-License-Identifier: Apache-2.0 */
/* Residual addition and RMSNorm on the CPU: the first pass over a row stores the rounded sum and adds up its squares, the
 * second, with the row in cache, scales. Rows are split over threads. */
#include <math.h>

#include "core/cpu_op.h"
#include "core/simd_rows.h"

#define GRAIN_ELEMENTS 8192 /* below this a second thread costs more than it saves */

/* residual += input for one row; the sum of squares of the rounded result. */
static float add_row(const fk_fused_add_rms_norm_args *a, int64_t in, int64_t sum_at, int64_t d)
{
    fk_dtype dtype = a->input->dtype;
    fkp_vf sums[4] = {{0}};
    int64_t i = 0;
    for (; i + 4 * FKP_LANES <= d; i += 4 * FKP_LANES)
        for (int k = 0; k < 4; k++) {
            int64_t at = i + k * FKP_LANES;
            fkp_vf x = fkp_v_load(a->input->data, dtype, in + at) + fkp_v_load(a->residual->data, dtype, sum_at + at);
            fkp_v_store(a->residual->data, dtype, sum_at + at, x);
            if (dtype != FK_F32) x = fkp_v_load(a->residual->data, dtype, sum_at + at);
            sums[k] += x * x;
        }
    float sum = fkp_v_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
    for (; i < d; i++) {
        float x = fkp_s_load(a->input->data, dtype, in + i) + fkp_s_load(a->residual->data, dtype, sum_at + i);
        fkp_s_store(a->residual->data, dtype, sum_at + i, x);
        x = fkp_s_load(a->residual->data, dtype, sum_at + i);
        sum += x * x;
    }
    return sum;
}

static void rows_part(void *user, int64_t begin, int64_t end)
{
    const fk_fused_add_rms_norm_args *a = user;
    int64_t rows, d, in_stride = fk_row_stride(a->input), sum_stride = fk_row_stride(a->residual);
    fk_rows_cols(a->input, &rows, &d);
    for (int64_t r = begin; r < end; r++) {
        int64_t in = r * in_stride, sum_at = r * sum_stride;
        float scale = 1 / sqrtf(add_row(a, in, sum_at, d) / (float)d + a->epsilon);
        fkp_row_scale(a->input, in, a->residual, sum_at, d, 0, scale, a->weight, NULL);
    }
}

static fk_status run(fk_ctx *ctx, const fk_fused_add_rms_norm_args *a)
{
    return fkp_rows_run(ctx, a->input, GRAIN_ELEMENTS, rows_part, a);
}

static bool supports(const fk_fused_add_rms_norm_args *a)
{
    return fk_tensor_has_rows(a->input) && fk_tensor_has_rows(a->residual) &&
           (!a->weight || fk_tensor_is_contiguous(a->weight));
}

FK_CPU_OP_IF(fused_add_rms_norm, run, supports);
