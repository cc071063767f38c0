/* SPDX-License-Identifier: Apache-2.0 */
/* Quantising to fp8 by groups on the CPU: two passes over a group, which the first brings into the cache. */
#include "core/cpu_op.h"
#include "core/threads.h"
#include "ops/linear/fp8_quant_cpu.h"

#define GRAIN_ELEMENTS 8192 /* below this a second thread costs more than it saves */

static void rows_part(void *user, int64_t begin, int64_t end)
{
    const fk_per_token_group_quant_fp8_args *a = user;
    for (int64_t t = begin; t < end; t++)
        for (int64_t g = 0; g < a->output_s->shape[1]; g++) {
            int64_t at = t * a->input->strides[0] + g * a->group_size;
            float scale = fp8_scale(fp8_largest(a->input->data, a->input->dtype, at, a->group_size), a->eps, a->fp8_max, a->scale_ue8m0);
            ((float *)a->output_s->data)[t * a->output_s->strides[0] + g * a->output_s->strides[1]] = scale;
            fp8_quantize(a->input->data, a->input->dtype, at, a->group_size, scale, a->fp8_min, a->fp8_max,
                         (uint8_t *)a->output_q->data + t * a->output_q->strides[0] + g * a->group_size);
        }
}

static fk_status run(fk_ctx *ctx, const fk_per_token_group_quant_fp8_args *a)
{
    if (fk_tensor_numel(a->input) == 0) return FK_OK;
    fkp_parallel_for(fk_ctx_threads(ctx), a->input->shape[0], 1 + GRAIN_ELEMENTS / a->input->shape[1], rows_part, (void *)(uintptr_t)a);
    return FK_OK;
}

static bool supports(const fk_per_token_group_quant_fp8_args *a)
{
    return fk_tensor_has_rows(a->input) && fk_tensor_has_rows(a->output_q);
}

FK_CPU_OP_IF(per_token_group_quant_fp8, run, supports);
