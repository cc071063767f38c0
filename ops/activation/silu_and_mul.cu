/* SPDX-License-Identifier: Apache-2.0 */
/* SwiGLU's gate on CUDA. Memory-bound: two reads and one write an element; each thread has 2 packs of 16
 * bytes of gate and of value in flight. Rows that are not aligned to 16 bytes take single elements. */
#include "core/cuda_op.h"
#include "core/cuda_vec.h"

#define THREADS 256
#define PACKS 2 /* a thread: 64 bytes in flight, 128 KiB a multiprocessor */

namespace
{

/* x / (1 + e^-x). The fast exponential is good to 2 units plus 1.2 |x| of float32: below the rounding of
 * 16-bit types. */
template <typename T> __device__ __forceinline__ float silu(float x)
{
    if constexpr (sizeof(T) == 4)
        return x / (1.0f + expf(-x));
    else
        return __fdividef(x, 1.0f + __expf(-x));
}

/* input [rows, 2 d], result [rows, d], aligned rows of d = packs * N. Block b works on THREADS * PACKS packs
 * of row b / parts. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    silu_and_mul_kernel(T *__restrict__ result, const T *__restrict__ input, int packs, int parts,
                        int64_t in_stride, int64_t out_stride)
{
    constexpr int N = fkd_pack<T>::N;
    int64_t row = blockIdx.x / (unsigned)parts;
    int first = (int)(blockIdx.x % (unsigned)parts) * THREADS * PACKS + threadIdx.x;
    const T *gates = input + row * in_stride, *values = gates + (int64_t)packs * N;
    uint4 gate[PACKS], value[PACKS];
#pragma unroll
    for (int k = 0; k < PACKS; k++) {
        int p = first + k * THREADS;
        if (p >= packs) continue;
        gate[k] = fkd_load_stream(gates + (int64_t)p * N);
        value[k] = fkd_load_stream(values + (int64_t)p * N);
    }
#pragma unroll
    for (int k = 0; k < PACKS; k++) {
        int p = first + k * THREADS;
        if (p >= packs) continue;
        float g[N], v[N];
        fkd_unpack<T>(gate[k], g);
        fkd_unpack<T>(value[k], v);
#pragma unroll
        for (int i = 0; i < N; i++) v[i] *= silu<T>(g[i]);
        fkd_store(result + row * out_stride + (int64_t)p * N, fkd_repack<T>(v));
    }
}

/* Any layout of rows: block b works on THREADS elements of row b / parts. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    silu_and_mul_plain_kernel(T *__restrict__ result, const T *__restrict__ input, int64_t d, int parts,
                              int64_t in_stride, int64_t out_stride)
{
    int64_t row = blockIdx.x / (unsigned)parts,
            i = (int64_t)(blockIdx.x % (unsigned)parts) * THREADS + threadIdx.x;
    if (i >= d) return;
    float gate = fkd_float(input[row * in_stride + i]), value = fkd_float(input[row * in_stride + d + i]);
    result[row * out_stride + i] = fkd_round<T>(silu<T>(gate) * value);
}

} // namespace

extern "C" fk_status fk_silu_and_mul_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_silu_and_mul_args *a)
{
    int64_t rows, d, size = fk_dtype_bits(a->input->dtype) / 8;
    fk_rows_cols(a->result, &rows, &d);
    if (rows == 0 || d == 0) return FK_OK;
    int64_t in_stride = fk_row_stride(a->input), out_stride = fk_row_stride(a->result);
    bool packed = d * size % 16 == 0 && fkp_cuda_aligned16(a->input->data, in_stride * size) &&
                  fkp_cuda_aligned16(a->result->data, out_stride * size);
    int64_t piece = packed ? THREADS * PACKS * (16 / size) : THREADS, parts = (d + piece - 1) / piece;
    if (rows * parts > INT32_MAX)
        return fk_fail(FK_ERROR_UNSUPPORTED, "%lld rows of %lld are more than a grid holds", (long long)rows,
                       (long long)d);
    FK_DISPATCH_FLOAT(a->input->dtype, T, {
        if (packed)
            silu_and_mul_kernel<T><<<(unsigned)(rows * parts), THREADS, 0, stream>>>(
                FK_PTR(T, a->result), FK_PTR(const T, a->input), (int)(d / fkd_pack<T>::N), (int)parts,
                in_stride, out_stride);
        else
            silu_and_mul_plain_kernel<T><<<(unsigned)(rows * parts), THREADS, 0, stream>>>(
                FK_PTR(T, a->result), FK_PTR(const T, a->input), d, (int)parts, in_stride, out_stride);
    });
    return fk_cuda_status(ctx, cudaGetLastError(), "silu_and_mul");
}

static bool supports(const fk_silu_and_mul_args *a)
{
    return fk_tensor_has_rows(a->input) && fk_tensor_has_rows(a->result);
}

FK_CUDA_OP_IF(silu_and_mul, supports)
