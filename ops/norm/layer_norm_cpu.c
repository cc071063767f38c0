/* SPDX-License-Identifier: Apache-2.0 */
/* LayerNorm on the CPU: three passes over a row, which stays in cache between them. Rows are split over threads. */
#include <math.h>

#include "core/cpu_op.h"
#include "core/simd_rows.h"
#include "core/threads.h"

#define GRAIN_ELEMENTS 16384 /* below this a second thread costs more than it saves */

static void rows_part(void *user, int64_t begin, int64_t end)
{
    const fk_layer_norm_args *a = user;
    int64_t rows, d, in_stride = fk_row_stride(a->input), out_stride = fk_row_stride(a->output);
    fk_rows_cols(a->input, &rows, &d);
    fk_dtype dtype = a->input->dtype;
    for (int64_t r = begin; r < end; r++) {
        int64_t in = r * in_stride, out = r * out_stride, i = 0;
        float mean = fkp_row_sum(a->input->data, dtype, in, d) / (float)d;
        float scale = 1 / sqrtf(fkp_row_sum_squares(a->input->data, dtype, in, d, mean) / (float)d + a->eps);
        for (; i + FKP_LANES <= d; i += FKP_LANES) {
            fkp_vf x = (fkp_v_load(a->input->data, dtype, in + i) - mean) * scale;
            if (a->weight) x *= fkp_v_load(a->weight->data, a->weight->dtype, i);
            if (a->bias) x += fkp_v_load(a->bias->data, a->bias->dtype, i);
            fkp_v_store(a->output->data, dtype, out + i, x);
        }
        for (; i < d; i++) {
            float x = (fkp_s_load(a->input->data, dtype, in + i) - mean) * scale;
            if (a->weight) x *= fkp_s_load(a->weight->data, a->weight->dtype, i);
            if (a->bias) x += fkp_s_load(a->bias->data, a->bias->dtype, i);
            fkp_s_store(a->output->data, dtype, out + i, x);
        }
    }
}

static fk_status run(fk_ctx *ctx, const fk_layer_norm_args *a)
{
    int64_t rows, d;
    fk_rows_cols(a->input, &rows, &d);
    if (rows == 0 || d == 0) return FK_OK;
    fkp_parallel_for(fk_ctx_threads(ctx), rows, 1 + GRAIN_ELEMENTS / d, rows_part, (void *)(uintptr_t)a);
    return FK_OK;
}

static bool supports(const fk_layer_norm_args *a)
{
    return fk_tensor_has_rows(a->input) && fk_tensor_has_rows(a->output) &&
           (!a->weight || fk_tensor_is_contiguous(a->weight)) && (!a->bias || fk_tensor_is_contiguous(a->bias));
}

FK_CPU_OP_IF(layer_norm, run, supports);
