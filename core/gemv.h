/* SPDX-License-Identifier: Apache-2.0 */
/* Products of one to four rows, the decode step: output [M, N] = input [M, K] weight [N, K]^T + bias. The weights are read
 * once and used at once, so memory sets the pace: each thread streams its own contiguous part of them, several rows side by
 * side, eight running sums in registers. A pair of input row and weight row has one vector of sums over k, whatever M is,
 * so that a row's result depends neither on its neighbours nor on the number of threads. Included by CPU kernels, once an
 * instruction-set level. */
#ifndef FK_CORE_GEMV_H
#define FK_CORE_GEMV_H

#include <fk/ctx.h>

#include "core/simd.h"

#define FKP_GEMV_MAX_ROWS 4
#define FKP_GEMV_SUMS 8

/* sums[w * inputs + m] = weight row w . input row m. `inputs` * `rows` is at most FKP_GEMV_SUMS; both and the dtype are constants at each call.
 * x: float32, [inputs] rows of stride x_stride. */
static inline __attribute__((always_inline)) void fkp_gemv_dots(const int inputs, const int rows, const fk_dtype dtype, int64_t k,
                                                                const void *weight, int64_t first, int64_t weight_stride,
                                                                const float *x, int64_t x_stride, float *sums)
{
    fkp_vf acc[FKP_GEMV_SUMS];
#pragma GCC unroll 8
    for (int i = 0; i < rows * inputs; i++) acc[i] = fkp_v_set(0);
    int64_t i = 0;
    for (; i + FKP_LANES <= k; i += FKP_LANES) {
        fkp_vf in[FKP_GEMV_MAX_ROWS];
#pragma GCC unroll 4
        for (int m = 0; m < inputs; m++) in[m] = fkp_v_load_f32(x + m * x_stride + i);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            fkp_vf w = fkp_v_load(weight, dtype, first + r * weight_stride + i);
#pragma GCC unroll 4
            for (int m = 0; m < inputs; m++) acc[r * inputs + m] += w * in[m];
        }
    }
#pragma GCC unroll 8
    for (int s = 0; s < rows * inputs; s++) sums[s] = fkp_v_sum(acc[s]);
    for (; i < k; i++)
        for (int r = 0; r < rows; r++) {
            float w = fkp_s_load(weight, dtype, first + r * weight_stride + i);
            for (int m = 0; m < inputs; m++) sums[r * inputs + m] += w * x[m * x_stride + i];
        }
}

typedef struct fkp_gemv_job {
    int64_t m, n, k;
    int64_t x_stride, weight_stride, output_stride; /* in elements */
    const float *x;                                 /* [m, k] */
    const void *weight, *bias;                      /* bias NULL: none */
    void *output;
    fk_dtype weight_dtype, bias_dtype, output_dtype;
} fkp_gemv_job;

/* Input rows as float32: in place, or converted to scratch when they are of another type. NULL with the context's error. */
static inline const float *fkp_gemv_input(fk_ctx *ctx, const fk_tensor *input, int64_t m, int64_t k, int64_t *stride)
{
    int64_t from = fk_row_stride(input);
    *stride = input->dtype == FK_F32 ? from : k;
    if (input->dtype == FK_F32) return input->data;
    float *x = fk_ctx_scratch(ctx, sizeof(float) * (size_t)(m * k + 1));
    for (int64_t row = 0; x && row < m; row++)
        for (int64_t i = 0; i < k; i++) x[row * k + i] = fkp_s_load(input->data, input->dtype, row * from + i);
    return x;
}

/* Weight rows that are done side by side. */
static inline int fkp_gemv_step(int64_t m)
{
    return m == 1 ? 8 : m == 2 ? 4 : 2;
}

static inline __attribute__((always_inline)) void fkp_gemv_typed(const fkp_gemv_job *job, const fk_dtype dtype, const bool whole,
                                                                 int64_t n, float *sums)
{
    int64_t first = n * job->weight_stride;
    if (job->m == 1)
        fkp_gemv_dots(1, whole ? 8 : 1, dtype, job->k, job->weight, first, job->weight_stride, job->x, job->x_stride, sums);
    else if (job->m == 2)
        fkp_gemv_dots(2, whole ? 4 : 1, dtype, job->k, job->weight, first, job->weight_stride, job->x, job->x_stride, sums);
    else if (job->m == 3)
        fkp_gemv_dots(3, whole ? 2 : 1, dtype, job->k, job->weight, first, job->weight_stride, job->x, job->x_stride, sums);
    else
        fkp_gemv_dots(4, whole ? 2 : 1, dtype, job->k, job->weight, first, job->weight_stride, job->x, job->x_stride, sums);
}

/* sums[row * m + input] of weight rows from n on: fkp_gemv_step(m) of them when `whole`, else one. */
static inline void fkp_gemv_group(const fkp_gemv_job *job, int64_t n, bool whole, float sums[FKP_GEMV_SUMS])
{
    if (whole && job->weight_dtype == FK_F32) fkp_gemv_typed(job, FK_F32, true, n, sums);
    else if (whole && job->weight_dtype == FK_BF16) fkp_gemv_typed(job, FK_BF16, true, n, sums);
    else if (whole) fkp_gemv_typed(job, FK_F16, true, n, sums);
    else fkp_gemv_typed(job, job->weight_dtype, false, n, sums);
}

/* Outputs [begin, end) of every row; for fkp_parallel_for. */
static void fkp_gemv_part(void *user, int64_t begin, int64_t end)
{
    const fkp_gemv_job *job = user;
    int inputs = (int)job->m, most = fkp_gemv_step(job->m), step;
    float sums[FKP_GEMV_SUMS];
    for (int64_t n = begin; n < end; n += step) {
        step = n + most <= end ? most : 1;
        fkp_gemv_group(job, n, step == most, sums);
        for (int r = 0; r < step; r++) {
            float bias = job->bias ? fkp_s_load(job->bias, job->bias_dtype, n + r) : 0;
            for (int m = 0; m < inputs; m++)
                fkp_s_store(job->output, job->output_dtype, m * job->output_stride + n + r, sums[r * inputs + m] + bias);
        }
    }
}

#endif
