/* SPDX-License-Identifier: Apache-2.0 */
/* RMSNorm on the CPU: two passes over a row, which stays in cache between them; four partial sums hide the latency of the
 * additions. Rows are split over threads. */
#include <math.h>

#include "core/cpu_op.h"
#include "core/simd.h"
#include "core/threads.h"

#define GRAIN_ELEMENTS 16384 /* below this a second thread costs more than it saves */

static void rows_part(void *user, int64_t begin, int64_t end)
{
    const fk_rms_norm_args *a = user;
    int64_t rows, d, in_stride = fk_row_stride(a->input), out_stride = fk_row_stride(a->result);
    fk_rows_cols(a->input, &rows, &d);
    fk_dtype dtype = a->input->dtype;
    for (int64_t r = begin; r < end; r++) {
        int64_t in = r * in_stride, out = r * out_stride, i = 0;
        fkp_vf sums[4] = {{0}};
        for (; i + 4 * FKP_LANES <= d; i += 4 * FKP_LANES)
            for (int k = 0; k < 4; k++) {
                fkp_vf x = fkp_v_load(a->input->data, dtype, in + i + k * FKP_LANES);
                sums[k] += x * x;
            }
        float sum = fkp_v_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
        for (; i < d; i++) {
            float x = fkp_s_load(a->input->data, dtype, in + i);
            sum += x * x;
        }
        float scale = 1 / sqrtf(sum / (float)d + a->epsilon);
        for (i = 0; i + FKP_LANES <= d; i += FKP_LANES) {
            fkp_vf x = fkp_v_load(a->input->data, dtype, in + i) * scale;
            if (a->weight) x *= fkp_v_load(a->weight->data, a->weight->dtype, i);
            fkp_v_store(a->result->data, dtype, out + i, x);
        }
        for (; i < d; i++) {
            float x = fkp_s_load(a->input->data, dtype, in + i) * scale;
            if (a->weight) x *= fkp_s_load(a->weight->data, a->weight->dtype, i);
            fkp_s_store(a->result->data, dtype, out + i, x);
        }
    }
}

static fk_status run(fk_ctx *ctx, const fk_rms_norm_args *a)
{
    int64_t rows, d;
    fk_rows_cols(a->input, &rows, &d);
    if (rows == 0 || d == 0) return FK_OK;
    fkp_parallel_for(fk_ctx_threads(ctx), rows, 1 + GRAIN_ELEMENTS / d, rows_part, (void *)(uintptr_t)a);
    return FK_OK;
}

static bool supports(const fk_rms_norm_args *a)
{
    return fk_tensor_has_rows(a->input) && fk_tensor_has_rows(a->result) &&
           (!a->weight || fk_tensor_is_contiguous(a->weight));
}

FK_CPU_OP_IF(rms_norm, run, supports);
