/* SPDX-License-Identifier: Apache-2.0 */
/* LayerNorm on the CPU: three passes over a row, which stays in cache between them. Rows are split over threads. */
#include <math.h>

#include "core/cpu_op.h"
#include "core/row_place.h"
#include "core/simd_rows.h"

#define GRAIN_ELEMENTS 16384 /* below this a second thread costs more than it saves */

static void rows_part(void *user, int64_t begin, int64_t end)
{
    const fk_layer_norm_args *a = user;
    int64_t rows, d;
    fkp_row_place in, out;
    fk_rows_cols(a->input, &rows, &d);
    fkp_row_places(a->input, a->output, &in, &out);
    for (int64_t r = begin; r < end; r++) {
        int64_t at = fkp_row_at(&in, r);
        float mean = fkp_row_sum(a->input->data, a->input->dtype, at, d) / (float)d;
        float variance = fkp_row_sum_squares(a->input->data, a->input->dtype, at, d, mean) / (float)d;
        fkp_row_scale(a->output, fkp_row_at(&out, r), a->input, at, d, mean, 1 / sqrtf(variance + a->eps), a->weight, a->bias);
    }
}

static fk_status run(fk_ctx *ctx, const fk_layer_norm_args *a)
{
    return fkp_rows_run(ctx, a->input, GRAIN_ELEMENTS, rows_part, a);
}

static bool supports(const fk_layer_norm_args *a)
{
    fkp_row_place in, out;
    return fkp_row_places(a->input, a->output, &in, &out) &&
           (!a->weight || fk_tensor_is_contiguous(a->weight)) && (!a->bias || fk_tensor_is_contiguous(a->bias));
}

FK_CPU_OP_IF(layer_norm, run, supports);
