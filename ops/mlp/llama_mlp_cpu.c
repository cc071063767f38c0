/* SPDX-License-Identifier: Apache-2.0 */
/* The SwiGLU block of one to four rows on the CPU, fused: a thread computes a gate and an up row side by side and keeps only
 * silu(gate) * up, in float32; then all threads multiply by the down projection. One write and one wait for the other
 * threads less than the composition has, whose intermediate roundings it leaves out. More rows take the composition. */
#include "core/cpu_op.h"
#include "core/gemv.h"
#include "core/threads.h"

#define GRAIN_WEIGHTS 32768 /* below this a second thread costs more than it saves */

typedef struct mlp_job {
    fkp_gemv_job gate_up; /* n is I: row i is the gate of feature i, row I + i its up */
    float *hidden;        /* [m, I] */
} mlp_job;

static void hidden_part(void *user, int64_t begin, int64_t end)
{
    const mlp_job *job = user;
    int64_t features = job->gate_up.n;
    int inputs = (int)job->gate_up.m, most = fkp_gemv_step(inputs), step;
    for (int64_t i = begin; i < end; i += step) {
        float gate[FKP_GEMV_SUMS], up[FKP_GEMV_SUMS];
        step = i + most <= end ? most : 1;
        fkp_gemv_group(&job->gate_up, i, step == most, gate);
        fkp_gemv_group(&job->gate_up, features + i, step == most, up);
        for (int s = 0; s < step * inputs; s++)
            job->hidden[s % inputs * features + i + s / inputs] = gate[s] / (1 + fkp_s_exp(-gate[s])) * up[s];
    }
}

static fk_status run(fk_ctx *ctx, const fk_llama_mlp_args *a)
{
    int64_t m, d, features = a->down_proj->shape[1];
    fk_rows_cols(a->x, &m, &d);
    if (m == 0 || d == 0) return FK_OK;
    mlp_job job = {.gate_up = {.m = m, .n = features, .k = d, .weight = a->gate_up_proj->data,
                               .weight_dtype = a->gate_up_proj->dtype, .weight_stride = fk_row_stride(a->gate_up_proj)},
                   .hidden = fk_ctx_scratch(ctx, sizeof(float) * (size_t)(m * features + 1))};
    job.gate_up.x = fkp_gemv_input(ctx, a->x, m, d, &job.gate_up.x_stride);
    if (fk_ctx_status(ctx) != FK_OK) return fk_ctx_status(ctx);
    fkp_gemv_job down = {.m = m, .n = d, .k = features, .x = job.hidden, .x_stride = features, .weight = a->down_proj->data,
                         .weight_dtype = a->down_proj->dtype, .weight_stride = fk_row_stride(a->down_proj),
                         .output = a->output->data, .output_dtype = a->output->dtype,
                         .output_stride = fk_row_stride(a->output)};
    fkp_parallel_for(fk_ctx_threads(ctx), features, 1 + GRAIN_WEIGHTS / d, hidden_part, &job);
    fkp_parallel_for(fk_ctx_threads(ctx), d, 1 + GRAIN_WEIGHTS / (features + 1), fkp_gemv_part, &down);
    return FK_OK;
}

static bool supports(const fk_llama_mlp_args *a)
{
    int64_t m, d;
    fk_rows_cols(a->x, &m, &d);
    return m <= FKP_GEMV_MAX_ROWS && fk_tensor_has_rows(a->x) && fk_tensor_has_rows(a->gate_up_proj) &&
           fk_tensor_has_rows(a->down_proj) && fk_tensor_has_rows(a->output);
}

FK_CPU_OP_FUSED(llama_mlp, run, supports);
