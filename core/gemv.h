/* SPDX-License-Identifier: Apache-2.0 */
/* Products of one to four rows, the decode step: output [M, N] = input [M, K] weight [N, K]^T + bias. The weights are read
 * once and used at once, so memory sets the pace: each thread streams its own contiguous part of them, several rows side by
 * side, eight running sums in registers. A pair of input row and weight row has one vector of sums over k, whatever M is,
 * so that a row's result depends neither on its neighbours nor on the number of threads. Included by CPU kernels, once an
 * instruction-set level. */
#ifndef FK_CORE_GEMV_H
#define FK_CORE_GEMV_H

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

static inline __attribute__((always_inline)) void fkp_gemv_range(const fkp_gemv_job *job, const int inputs, const fk_dtype dtype,
                                                                 int64_t begin, int64_t end)
{
    const int rows = inputs == 1 ? 8 : inputs == 2 ? 4 : 2;
    float sums[FKP_GEMV_SUMS];
    for (int64_t n = begin; n < end;) {
        int step = n + rows <= end ? rows : 1;
        int64_t first = n * job->weight_stride;
        if (step == rows)
            fkp_gemv_dots(inputs, rows, dtype, job->k, job->weight, first, job->weight_stride, job->x, job->x_stride, sums);
        else fkp_gemv_dots(inputs, 1, dtype, job->k, job->weight, first, job->weight_stride, job->x, job->x_stride, sums);
        for (int r = 0; r < step; r++) {
            float bias = job->bias ? fkp_s_load(job->bias, job->bias_dtype, n + r) : 0;
            for (int m = 0; m < inputs; m++)
                fkp_s_store(job->output, job->output_dtype, m * job->output_stride + n + r, sums[r * inputs + m] + bias);
        }
        n += step;
    }
}

static inline __attribute__((always_inline)) void fkp_gemv_rows(const fkp_gemv_job *job, const fk_dtype dtype, int64_t begin, int64_t end)
{
    if (job->m == 1) fkp_gemv_range(job, 1, dtype, begin, end);
    else if (job->m == 2) fkp_gemv_range(job, 2, dtype, begin, end);
    else if (job->m == 3) fkp_gemv_range(job, 3, dtype, begin, end);
    else fkp_gemv_range(job, 4, dtype, begin, end);
}

/* Outputs [begin, end) of every row; for fkp_parallel_for. */
static void fkp_gemv_part(void *user, int64_t begin, int64_t end)
{
    const fkp_gemv_job *job = user;
    if (job->weight_dtype == FK_F32) fkp_gemv_rows(job, FK_F32, begin, end);
    else if (job->weight_dtype == FK_BF16) fkp_gemv_rows(job, FK_BF16, begin, end);
    else fkp_gemv_rows(job, FK_F16, begin, end);
}

#endif
