/* SPDX-License-Identifier: Apache-2.0 */
/* Mean over tokens on CUDA. Memory-bound, each element is read once. A block owns 32 features of one sequence; its warps take
 * rows in turn and meet in shared memory. Bounds outside [0, T] are cut to it. */
#include "core/cuda_op.h"
#include "core/cuda_vec.h"

#define WARPS 8

namespace
{

/* Grid: x pieces of 32 features, y sequences (more than 65535 in steps). Block: 32 x WARPS. */
template <typename T>
__global__ void __launch_bounds__(32 * WARPS)
    mean_pool_kernel(T *__restrict__ output, const T *__restrict__ hidden_states, const int32_t *__restrict__ cu_seqlens,
                     int64_t sequences, int64_t tokens, int64_t d, int64_t in_stride, int64_t out_stride)
{
    __shared__ float sums[WARPS][33];
    const int64_t i = (int64_t)blockIdx.x * 32 + threadIdx.x;
    for (int64_t b = blockIdx.y; b < sequences; b += gridDim.y) {
        int64_t start = max((int64_t)cu_seqlens[b], (int64_t)0), stop = min((int64_t)cu_seqlens[b + 1], tokens);
        float sum = 0;
        if (i < d)
            for (int64_t t = start + threadIdx.y; t < stop; t += WARPS) sum += fkd_float(hidden_states[t * in_stride + i]);
        sums[threadIdx.y][threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.y == 0 && i < d) {
            float total = 0;
#pragma unroll
            for (int w = 0; w < WARPS; w++) total += sums[w][threadIdx.x];
            output[b * out_stride + i] = fkd_round<T>(stop > start ? total / (float)(stop - start) : 0.0f);
        }
        __syncthreads();
    }
}

} // namespace

extern "C" fk_status fk_mean_pool_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_mean_pool_args *a)
{
    int64_t sequences = a->output->shape[0], d = a->output->shape[1];
    if (sequences == 0 || d == 0) return FK_OK;
    dim3 grid((unsigned)((d + 31) / 32), (unsigned)(sequences < 65535 ? sequences : 65535));
    FK_DISPATCH_FLOAT(a->hidden_states->dtype, T,
                      mean_pool_kernel<T><<<grid, dim3(32, WARPS), 0, stream>>>(
                          FK_PTR(T, a->output), FK_PTR(const T, a->hidden_states), FK_PTR(const int32_t, a->cu_seqlens), sequences,
                          a->hidden_states->shape[0], d, fk_row_stride(a->hidden_states), fk_row_stride(a->output)));
    return fk_cuda_status(ctx, cudaGetLastError(), "mean_pool");
}

static bool supports(const fk_mean_pool_args *a)
{
    return fk_tensor_has_rows(a->hidden_states) && fk_tensor_has_rows(a->output) && fk_tensor_is_contiguous(a->cu_seqlens);
}

FK_CUDA_OP_IF(mean_pool, supports)
