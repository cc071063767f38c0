/* SPDX-License-Identifier: Apache-2.0 */
/* LayerNorm on the CPU: three passes over a row, which stays in cache between them. Rows are split over threads. */
#include <math.h>

#include "core/cpu_op.h"
#include "core/simd_rows.h"

#define GRAIN_ELEMENTS 16384 /* below this a second thread costs more than it saves */

static void rows_part(void *user, int64_t begin, int64_t end)
{
    const fk_layer_norm_args *a = user;
    int64_t rows, d, in_stride = fk_row_stride(a->input), out_stride = fk_row_stride(a->output);
    fk_rows_cols(a->input, &rows, &d);
    for (int64_t r = begin; r < end; r++) {
        int64_t in = r * in_stride;
        float mean = fkp_row_sum(a->input->data, a->input->dtype, in, d) / (float)d;
        float variance = fkp_row_sum_squares(a->input->data, a->input->dtype, in, d, mean) / (float)d;
        fkp_row_scale(a->output, r * out_stride, a->input, in, d, mean, 1 / sqrtf(variance + a->eps), a->weight, a->bias);
    }
}

static fk_status run(fk_ctx *ctx, const fk_layer_norm_args *a)
{
    return fkp_rows_run(ctx, a->input, GRAIN_ELEMENTS, rows_part, a);
}

static bool supports(const fk_layer_norm_args *a)
{
    return fk_tensor_has_rows(a->input) && fk_tensor_has_rows(a->output) &&
           (!a->weight || fk_tensor_is_contiguous(a->weight)) && (!a->bias || fk_tensor_is_contiguous(a->bias));
}

FK_CPU_OP_IF(layer_norm, run, supports);
