/* SPDX-License-Identifier: Apache-2.0 */
/* Addition on the CPU: one pass, rows split over threads. */
#include "core/cpu_op.h"
#include "core/simd_rows.h"

#define GRAIN_ELEMENTS 16384 /* below this a second thread costs more than it saves */

static void rows_part(void *user, int64_t begin, int64_t end)
{
    const fk_add_args *a = user;
    int64_t rows, d;
    fk_rows_cols(a->self, &rows, &d);
    fk_dtype dtype = a->self->dtype;
    for (int64_t r = begin; r < end; r++) {
        int64_t x = r * fk_row_stride(a->self), y = r * fk_row_stride(a->other), out = r * fk_row_stride(a->output), i = 0;
        for (; i + FKP_LANES <= d; i += FKP_LANES)
            fkp_v_store(a->output->data, dtype, out + i,
                        fkp_v_load(a->self->data, dtype, x + i) + fkp_v_load(a->other->data, dtype, y + i));
        for (; i < d; i++)
            fkp_s_store(a->output->data, dtype, out + i,
                        fkp_s_load(a->self->data, dtype, x + i) + fkp_s_load(a->other->data, dtype, y + i));
    }
}

static fk_status run(fk_ctx *ctx, const fk_add_args *a)
{
    return fkp_rows_run(ctx, a->self, GRAIN_ELEMENTS, rows_part, a);
}

static bool supports(const fk_add_args *a)
{
    return fk_tensor_has_rows(a->self) && fk_tensor_has_rows(a->other) && fk_tensor_has_rows(a->output);
}

FK_CPU_OP_IF(add, run, supports);
