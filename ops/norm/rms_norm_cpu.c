/* SPDX-License-Identifier: Apache-2.0 */
/* RMSNorm on the CPU: two passes over a row, which stays in cache between them. Rows are split over threads. */
#include <math.h>

#include "core/cpu_op.h"
#include "core/row_place.h"
#include "core/simd_rows.h"

#define GRAIN_ELEMENTS 16384 /* below this a second thread costs more than it saves */

static void rows_part(void *user, int64_t begin, int64_t end)
{
    const fk_rms_norm_args *a = user;
    int64_t rows, d;
    fkp_row_place in, out;
    fk_rows_cols(a->input, &rows, &d);
    fkp_row_places(a->input, a->result, &in, &out);
    for (int64_t r = begin; r < end; r++) {
        int64_t at = fkp_row_at(&in, r);
        float mean_square = fkp_row_sum_squares(a->input->data, a->input->dtype, at, d, 0) / (float)d;
        fkp_row_scale(a->result, fkp_row_at(&out, r), a->input, at, d, 0, 1 / sqrtf(mean_square + a->epsilon), a->weight, NULL);
    }
}

static fk_status run(fk_ctx *ctx, const fk_rms_norm_args *a)
{
    return fkp_rows_run(ctx, a->input, GRAIN_ELEMENTS, rows_part, a);
}

static bool supports(const fk_rms_norm_args *a)
{
    fkp_row_place in, out;
    return fkp_row_places(a->input, a->result, &in, &out) &&
           (!a->weight || fk_tensor_is_contiguous(a->weight));
}

FK_CPU_OP_IF(rms_norm, run, supports);
