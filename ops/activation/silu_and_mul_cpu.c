/* SPDX-License-Identifier: Apache-2.0 */
/* SwiGLU's gate on the CPU: one pass, rows split over threads. */
#include "core/cpu_op.h"
#include "core/simd_rows.h"

#define GRAIN_ELEMENTS 8192 /* below this a second thread costs more than it saves */

static void rows_part(void *user, int64_t begin, int64_t end)
{
    const fk_silu_and_mul_args *a = user;
    int64_t rows, d, in_stride = fk_row_stride(a->input), out_stride = fk_row_stride(a->result);
    fk_rows_cols(a->result, &rows, &d);
    fk_dtype dtype = a->input->dtype;
    for (int64_t r = begin; r < end; r++) {
        int64_t in = r * in_stride, out = r * out_stride, i = 0;
        for (; i + FKP_LANES <= d; i += FKP_LANES) {
            fkp_vf gate = fkp_v_load(a->input->data, dtype, in + i);
            fkp_vf value = fkp_v_load(a->input->data, dtype, in + d + i);
            fkp_v_store(a->result->data, dtype, out + i, fkp_v_silu(gate) * value);
        }
        for (; i < d; i++) {
            float gate = fkp_s_load(a->input->data, dtype, in + i), value = fkp_s_load(a->input->data, dtype, in + d + i);
            fkp_s_store(a->result->data, dtype, out + i, gate / (1 + fkp_s_exp(-gate)) * value);
        }
    }
}

static fk_status run(fk_ctx *ctx, const fk_silu_and_mul_args *a)
{
    return fkp_rows_run(ctx, a->result, GRAIN_ELEMENTS, rows_part, a);
}

static bool supports(const fk_silu_and_mul_args *a)
{
    return fk_tensor_has_rows(a->input) && fk_tensor_has_rows(a->result);
}

FK_CPU_OP_IF(silu_and_mul, run, supports);
