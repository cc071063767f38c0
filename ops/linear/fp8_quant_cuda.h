/* SPDX-License-Identifier: Apache-2.0 */
/* Quantising to fp8 by groups on CUDA: a warp does one group. */
#ifndef FK_OPS_FP8_QUANT_CUDA_H
#define FK_OPS_FP8_QUANT_CUDA_H

#include <cuda_fp8.h>

#include "core/cuda_op.h"
#include "core/cuda_vec.h"
#include "ops/linear/fp8_group.h"

#define FP8_QUANT_WARPS 8

/* Strides in elements; the numbers of a row are dense. The last group of a row may be shorter than group_size. */
struct fp8_quant {
    const void *input;
    uint8_t *q;
    float *scales;
    int64_t rows, cols, groups, input_stride, q_stride, scale_row, scale_group, group_size;
    float eps, fp8_min, fp8_max;
    bool power_of_two;
};

template <typename T> static __global__ void __launch_bounds__(32 * FP8_QUANT_WARPS) fp8_quant_kernel(fp8_quant a)
{
    const int64_t item = (int64_t)blockIdx.x * FP8_QUANT_WARPS + threadIdx.x / 32, row = item / a.groups, group = item % a.groups;
    const int lane = threadIdx.x % 32;
    if (row >= a.rows) return;
    const int64_t first = group * a.group_size, n = min(a.group_size, a.cols - first);
    const T *from = (const T *)a.input + row * a.input_stride + first;
    float largest = 0;
    for (int64_t i = lane; i < n; i += 32) largest = fmaxf(largest, fabsf(fkd_float(from[i])));
#pragma unroll
    for (int step = 16; step > 0; step /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, step));
    const float scale = fp8_scale(largest, a.eps, a.fp8_max, a.power_of_two);
    if (lane == 0) a.scales[row * a.scale_row + group * a.scale_group] = scale;
    uint8_t *to = a.q + row * a.q_stride + first;
    for (int64_t i = lane; i < n; i += 32)
        to[i] = __nv_cvt_float_to_fp8(fp8_scaled(fkd_float(from[i]), scale, a.fp8_min, a.fp8_max), __NV_SATFINITE, __NV_E4M3);
}

static inline fk_status fp8_quant_launch(fk_ctx *ctx, cudaStream_t stream, const fp8_quant *a, fk_dtype dtype, const char *op)
{
    if (a->rows == 0 || a->groups == 0) return FK_OK;
    const int64_t blocks = (a->rows * a->groups + FP8_QUANT_WARPS - 1) / FP8_QUANT_WARPS;
    if (blocks > INT32_MAX)
        return fk_fail(FK_ERROR_UNSUPPORTED, "%lld groups are more than a grid holds", (long long)(a->rows * a->groups));
    FK_DISPATCH_FLOAT(dtype, T, fp8_quant_kernel<T><<<(unsigned)blocks, 32 * FP8_QUANT_WARPS, 0, stream>>>(*a));
    return fk_cuda_status(ctx, cudaGetLastError(), op);
}

#endif
