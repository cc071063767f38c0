/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise functions on CUDA: memory-bound, one read and one write an element. Each thread has two packs of 16 bytes in
 * flight; rows that are not aligned to 16 bytes take single elements. Contiguous tensors count as one row. A function is
 * a type with `template <typename T> static __device__ float of(float x)`; T is the storage type, for functions whose
 * precision may follow it. */
#ifndef FK_CORE_CUDA_MAP_H
#define FK_CORE_CUDA_MAP_H

#include "core/cuda_op.h"
#include "core/cuda_vec.h"

#define FKP_MAP_THREADS 256
#define FKP_MAP_PACKS 2

/* out, in [rows, packs * N]: block b works on FKP_MAP_THREADS * FKP_MAP_PACKS packs of row b / parts. */
template <typename F, typename T>
static __global__ void __launch_bounds__(FKP_MAP_THREADS)
    fkp_map_kernel(T *__restrict__ out, const T *__restrict__ in, int64_t packs, int64_t parts, int64_t in_stride, int64_t out_stride)
{
    constexpr int N = fkd_pack<T>::N;
    const int64_t row = blockIdx.x / parts,
                  first = blockIdx.x % parts * (FKP_MAP_THREADS * FKP_MAP_PACKS) + threadIdx.x;
    uint4 raw[FKP_MAP_PACKS];
#pragma unroll
    for (int k = 0; k < FKP_MAP_PACKS; k++) {
        int64_t p = first + k * FKP_MAP_THREADS;
        if (p < packs) raw[k] = fkd_load_stream(in + row * in_stride + p * N);
    }
#pragma unroll
    for (int k = 0; k < FKP_MAP_PACKS; k++) {
        int64_t p = first + k * FKP_MAP_THREADS;
        if (p >= packs) continue;
        float x[N];
        fkd_unpack<T>(raw[k], x);
#pragma unroll
        for (int i = 0; i < N; i++) x[i] = F::template of<T>(x[i]);
        fkd_store(out + row * out_stride + p * N, fkd_repack<T>(x));
    }
}

/* Any layout of rows: block b works on FKP_MAP_THREADS elements of row b / parts. */
template <typename F, typename T>
static __global__ void __launch_bounds__(FKP_MAP_THREADS)
    fkp_map_plain_kernel(T *__restrict__ out, const T *__restrict__ in, int64_t cols, int64_t parts, int64_t in_stride,
                         int64_t out_stride)
{
    const int64_t row = blockIdx.x / parts, i = blockIdx.x % parts * FKP_MAP_THREADS + threadIdx.x;
    if (i < cols) out[row * out_stride + i] = fkd_round<T>(F::template of<T>(fkd_float(in[row * in_stride + i])));
}

/* Precondition: both have rows (fkp_cuda_map_supports). */
template <typename F>
static inline fk_status fkp_cuda_map(fk_ctx *ctx, cudaStream_t stream, const fk_tensor *out, const fk_tensor *in, const char *op)
{
    int64_t rows, cols, size = fk_dtype_bits(in->dtype) / 8;
    int64_t in_stride = fk_row_stride(in), out_stride = fk_row_stride(out);
    fk_rows_cols(in, &rows, &cols);
    if (rows == 0 || cols == 0) return FK_OK;
    if (fk_tensor_is_contiguous(in) && fk_tensor_is_contiguous(out)) {
        cols *= rows;
        rows = 1;
        in_stride = out_stride = 0; /* not used: there is row 0 only */
    }
    bool packed = cols * size % 16 == 0 && fkp_cuda_aligned16(in->data, in_stride * size) &&
                  fkp_cuda_aligned16(out->data, out_stride * size);
    int64_t piece = packed ? FKP_MAP_THREADS * FKP_MAP_PACKS * (16 / size) : FKP_MAP_THREADS;
    int64_t parts = (cols + piece - 1) / piece;
    if (parts > INT32_MAX / rows)
        return fk_fail(FK_ERROR_UNSUPPORTED, "%lld rows of %lld are more than a grid holds", (long long)rows, (long long)cols);
    FK_DISPATCH_FLOAT(in->dtype, T, {
        if (packed)
            fkp_map_kernel<F, T><<<(unsigned)(rows * parts), FKP_MAP_THREADS, 0, stream>>>(
                FK_PTR(T, out), FK_PTR(const T, in), cols / fkd_pack<T>::N, parts, in_stride, out_stride);
        else
            fkp_map_plain_kernel<F, T><<<(unsigned)(rows * parts), FKP_MAP_THREADS, 0, stream>>>(
                FK_PTR(T, out), FK_PTR(const T, in), cols, parts, in_stride, out_stride);
    });
    return fk_cuda_status(ctx, cudaGetLastError(), op);
}

static inline bool fkp_cuda_map_supports(const fk_tensor *out, const fk_tensor *in)
{
    return fk_tensor_has_rows(in) && fk_tensor_has_rows(out);
}

#endif
