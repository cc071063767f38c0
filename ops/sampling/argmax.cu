/* SPDX-License-Identifier: Apache-2.0 */
/* Argmax on CUDA in two passes: pieces of rows over the whole device, then the pieces of each row. A value
 * and its index are one 64-bit key whose order is the operator's: larger value first, NaN above all, then the
 * lower index; so that the result depends on no order of evaluation. */
#include "core/cuda_op.h"
#include "core/cuda_vec.h"

#define THREADS 256
#define MIN_PIECE 4096 /* elements: below this the second pass costs more than the spread gains */
#define BLOCKS_PER_SM 4

namespace
{

/* Order of the float bits as unsigned; -0 counts as +0. */
__device__ __forceinline__ uint64_t key_of(float x, int64_t index)
{
    uint32_t bits = __float_as_uint(x + 0.0f);
    uint32_t order = isnan(x) ? ~0u : bits & 0x80000000u ? ~bits : bits | 0x80000000u;
    return (uint64_t)order << 32 | (uint32_t) ~(uint32_t)index;
}

__device__ __forceinline__ uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Largest key of the block, in thread 0. */
__device__ __forceinline__ uint64_t block_max(uint64_t key)
{
    __shared__ uint64_t slots[THREADS / 32];
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        key = larger(key, __shfl_xor_sync(~0u, key, distance));
    if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = key;
    __syncthreads();
    if (threadIdx.x == 0)
        for (int w = 1; w < THREADS / 32; w++) key = larger(key, slots[w]);
    return key;
}

/* Block (piece, row): rows [b, v], elements [piece * length, + length); packs where rows are aligned to 16
 * bytes. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    pieces_kernel(uint64_t *__restrict__ keys, int64_t *__restrict__ output, const T *__restrict__ input,
                  int64_t v, int64_t length, int64_t stride, bool packed)
{
    constexpr int N = fkd_pack<T>::N;
    const T *row = input + blockIdx.y * stride;
    int64_t begin = blockIdx.x * length, end = begin + length < v ? begin + length : v;
    uint64_t best = 0;
    int64_t at = begin;
    if (packed) { /* length is a multiple of N, so that pieces stay aligned */
        int64_t packs_end = begin + (end - begin) / N * N;
        for (int64_t i = begin + threadIdx.x * N; i < packs_end; i += THREADS * N) {
            float x[N];
            fkd_unpack<T>(fkd_load_stream(row + i), x);
#pragma unroll
            for (int j = 0; j < N; j++) best = larger(best, key_of(x[j], i + j));
        }
        at = packs_end;
    }
    for (int64_t i = at + threadIdx.x; i < end; i += THREADS)
        best = larger(best, key_of(fkd_float(row[i]), i));
    best = block_max(best);
    if (threadIdx.x != 0) return;
    if (gridDim.x == 1)
        output[blockIdx.y] = (int64_t)(uint32_t) ~(uint32_t)best;
    else
        keys[blockIdx.y * (int64_t)gridDim.x + blockIdx.x] = best;
}

/* Block: a row. */
__global__ void __launch_bounds__(THREADS)
    rows_kernel(int64_t *__restrict__ output, const uint64_t *__restrict__ keys, int pieces)
{
    uint64_t best = 0;
    for (int i = threadIdx.x; i < pieces; i += THREADS)
        best = larger(best, keys[blockIdx.x * (int64_t)pieces + i]);
    best = block_max(best);
    if (threadIdx.x == 0) output[blockIdx.x] = (int64_t)(uint32_t) ~(uint32_t)best;
}

} // namespace

extern "C" fk_status fk_argmax_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_argmax_args *a)
{
    int64_t rows = a->self->shape[0], v = a->self->shape[1], size = fk_dtype_bits(a->self->dtype) / 8;
    int64_t stride = fk_row_stride(a->self), per_pack = 16 / size;
    if (rows == 0) return FK_OK;
    int64_t spread = ((int64_t)fkp_cuda_sm_count() * BLOCKS_PER_SM + rows - 1) / rows, most = v / MIN_PIECE;
    int64_t pieces = spread < most ? spread : most;
    if (pieces < 1) pieces = 1;
    int64_t length = ((v + pieces - 1) / pieces + per_pack - 1) / per_pack * per_pack;
    pieces = (v + length - 1) / length;
    uint64_t *keys = nullptr;
    if (pieces > 1) {
        keys = (uint64_t *)fk_ctx_scratch(ctx, (size_t)(rows * pieces) * sizeof *keys);
        if (!keys) return fk_ctx_status(ctx);
    }
    bool packed = fkp_cuda_aligned16(a->self->data, stride * size);
    int64_t *output = FK_PTR(int64_t, a->output);
    FK_DISPATCH_FLOAT(a->self->dtype, T,
                      pieces_kernel<T><<<dim3((unsigned)pieces, (unsigned)rows), THREADS, 0, stream>>>(
                          keys, output, FK_PTR(const T, a->self), v, length, stride, packed));
    FK_TRY(fk_cuda_status(ctx, cudaGetLastError(), "argmax"));
    if (pieces > 1) {
        rows_kernel<<<(unsigned)rows, THREADS, 0, stream>>>(output, keys, (int)pieces);
        FK_TRY(fk_cuda_status(ctx, cudaGetLastError(), "argmax"));
    }
    return FK_OK;
}

/* An index must fit half a key, and rows are the grid's second dimension. */
static bool supports(const fk_argmax_args *a)
{
    return a->self->shape[1] > 0 && a->self->shape[1] <= UINT32_MAX && a->self->shape[0] <= 65535 &&
           fk_tensor_has_rows(a->self) && fk_tensor_is_contiguous(a->output);
}

FK_CUDA_OP_IF(argmax, supports)
