/* SPDX-License-Identifier: Apache-2.0 */
/* Addition on CUDA. Memory-bound: a thread adds one pack of 16 bytes, or one element where rows are not aligned. */
#include "core/cuda_op.h"
#include "core/cuda_vec.h"

#define THREADS 256

namespace
{

/* Block b works on THREADS items of row b / parts; an item is a pack of N elements, or one where N is 1. */
template <typename T, int N>
__global__ void __launch_bounds__(THREADS)
    add_kernel(T *__restrict__ output, const T *__restrict__ self, const T *__restrict__ other, int64_t items, int64_t parts,
               int64_t out_stride, int64_t self_stride, int64_t other_stride)
{
    const int64_t row = blockIdx.x / parts, i = blockIdx.x % parts * THREADS + threadIdx.x;
    if (i >= items) return;
    const T *x = self + row * self_stride + i * N, *y = other + row * other_stride + i * N;
    T *out = output + row * out_stride + i * N;
    if constexpr (N == 1) {
        *out = fkd_round<T>(fkd_float(*x) + fkd_float(*y));
    } else {
        const uint4 raw_x = fkd_load_stream(x), raw_y = fkd_load_stream(y);
        float a[N], b[N];
        fkd_unpack<T>(raw_x, a);
        fkd_unpack<T>(raw_y, b);
#pragma unroll
        for (int k = 0; k < N; k++) a[k] += b[k];
        fkd_store(out, fkd_repack<T>(a));
    }
}

} // namespace

extern "C" fk_status fk_add_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_add_args *a)
{
    int64_t rows, d, size = fk_dtype_bits(a->self->dtype) / 8;
    fk_rows_cols(a->self, &rows, &d);
    if (rows == 0 || d == 0) return FK_OK;
    const int64_t out_stride = fk_row_stride(a->output), self_stride = fk_row_stride(a->self), other_stride = fk_row_stride(a->other);
    const bool packed = d * size % 16 == 0 && fkp_cuda_aligned16(a->output->data, out_stride * size) &&
                        fkp_cuda_aligned16(a->self->data, self_stride * size) &&
                        fkp_cuda_aligned16(a->other->data, other_stride * size);
    const int64_t items = packed ? d * size / 16 : d, parts = (items + THREADS - 1) / THREADS;
    if (parts > INT32_MAX / rows)
        return fk_fail(FK_ERROR_UNSUPPORTED, "%lld rows of %lld are more than a grid holds", (long long)rows, (long long)d);
    FK_DISPATCH_FLOAT(a->self->dtype, T, {
        auto *kernel = packed ? add_kernel<T, fkd_pack<T>::N> : add_kernel<T, 1>;
        kernel<<<(unsigned)(rows * parts), THREADS, 0, stream>>>(FK_PTR(T, a->output), FK_PTR(const T, a->self), FK_PTR(const T, a->other),
                                                                 items, parts, out_stride, self_stride, other_stride);
    });
    return fk_cuda_status(ctx, cudaGetLastError(), "add");
}

static bool supports(const fk_add_args *a)
{
    return fk_tensor_has_rows(a->self) && fk_tensor_has_rows(a->other) && fk_tensor_has_rows(a->output);
}

FK_CUDA_OP_IF(add, supports)
