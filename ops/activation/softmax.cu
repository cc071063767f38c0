/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax on CUDA. Along the last dim a block takes a row and keeps maximum and sum while it reads it once (the sum is
 * rescaled when the maximum grows: arXiv:1805.02867), then reads it again, out of cache where it fits. Along another dim a
 * thread takes a column, threads side by side, so that reads coalesce. */
#include <math.h>

#include "core/cuda_op.h"
#include "core/cuda_vec.h"
#include "ops/activation/softmax_dim.h"

#define THREADS 256

namespace
{

/* Largest value so far, and the sum of e^(x - largest). */
struct partial {
    float largest, sum;
};

__device__ __forceinline__ void join(partial &p, float largest, float sum)
{
    float top = fmaxf(p.largest, largest);
    /* A side that has seen nothing, or minus infinity alone, counts as it is: no inf - inf. */
    float own = p.largest == top ? p.sum : p.sum * expf(p.largest - top);
    p.sum = own + (largest == top ? sum : sum * expf(largest - top));
    p.largest = top;
}

/* x joins; NaN makes the sum NaN. */
__device__ __forceinline__ void join(partial &p, float x)
{
    if (x == -INFINITY) return;
    join(p, x != x ? p.largest : x, x != x ? x : 1.0f);
}

/* Block: one row of n elements; rows are a stride apart. The same in every thread at the end: e^(x - largest) / sum. A row
 * of minus infinities gives 0 / 0. */
template <typename T> __global__ void __launch_bounds__(THREADS) row_kernel(T *__restrict__ out, const T *__restrict__ in, int64_t n, int64_t out_stride,
                                                                        int64_t in_stride)
{
    constexpr int WARPS = THREADS / 32;
    __shared__ partial slots[WARPS];
    in += blockIdx.x * in_stride;
    out += blockIdx.x * out_stride;
    partial p = {-INFINITY, 0};
    for (int64_t i = threadIdx.x; i < n; i += THREADS) join(p, fkd_float(in[i]));
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        float largest = __shfl_xor_sync(~0u, p.largest, distance), sum = __shfl_xor_sync(~0u, p.sum, distance);
        join(p, largest, sum);
    }
    if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = p;
    __syncthreads();
    p = slots[0];
    for (int w = 1; w < WARPS; w++) join(p, slots[w].largest, slots[w].sum);
    const float inverse = 1.0f / p.sum;
    for (int64_t i = threadIdx.x; i < n; i += THREADS) {
        float x = fkd_float(in[i]);
        out[i] = fkd_round<T>((p.sum == 0 ? NAN : expf(x - p.largest)) * inverse);
    }
}

/* Thread: one column of n elements. A tensor is rows of `width` elements, a stride apart; `rows` of them lie between
 * neighbours in a column; columns are [outer, rows, width]. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    column_kernel(T *__restrict__ out, const T *__restrict__ in, int64_t columns, int64_t n, int64_t rows, int64_t width,
                  int64_t out_stride, int64_t in_stride)
{
    const int64_t column = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (column >= columns) return;
    const int64_t row = column / (rows * width) * n * rows + column / width % rows, at = column % width;
    in += row * in_stride + at;
    out += row * out_stride + at;
    partial p = {-INFINITY, 0};
    for (int64_t i = 0; i < n; i++) join(p, fkd_float(in[i * rows * in_stride]));
    const float inverse = 1.0f / p.sum;
    for (int64_t i = 0; i < n; i++) {
        float x = fkd_float(in[i * rows * in_stride]);
        out[i * rows * out_stride] = fkd_round<T>((p.sum == 0 ? NAN : expf(x - p.largest)) * inverse);
    }
}

} // namespace

extern "C" fk_status fk_softmax_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_softmax_args *a)
{
    softmax_dim s = softmax_dim_of(a->self, a->dim);
    if (s.outer == 0 || s.n == 0 || s.inner == 0) return FK_OK;
    const int64_t width = a->self->ndim > 0 ? a->self->shape[a->self->ndim - 1] : 1;
    const bool last = s.n == width && s.inner == 1; /* else inner is whole rows, or columns of one element each */
    const int64_t columns = s.outer * s.inner, blocks = last ? columns : (columns + THREADS - 1) / THREADS;
    if (blocks > INT32_MAX) return fk_fail(FK_ERROR_UNSUPPORTED, "%lld rows are more than a grid holds", (long long)columns);
    const int64_t in_stride = fk_row_stride(a->self), out_stride = fk_row_stride(a->output);
    FK_DISPATCH_FLOAT(a->self->dtype, T, {
        if (last)
            row_kernel<T><<<(unsigned)blocks, THREADS, 0, stream>>>(FK_PTR(T, a->output), FK_PTR(const T, a->self), s.n, out_stride, in_stride);
        else
            column_kernel<T><<<(unsigned)blocks, THREADS, 0, stream>>>(FK_PTR(T, a->output), FK_PTR(const T, a->self), columns, s.n,
                                                                       s.inner / width, width, out_stride, in_stride);
    });
    return fk_cuda_status(ctx, cudaGetLastError(), "softmax");
}

static bool supports(const fk_softmax_args *a)
{
    return fk_tensor_has_rows(a->self) && fk_tensor_has_rows(a->output);
}

FK_CUDA_OP_IF(softmax, supports)
