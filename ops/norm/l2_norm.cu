/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of length 1 on CUDA. Rows are short (heads, embeddings): a warp holds one, several to a block, and reads it a second
 * time from cache; long rows take all warps of a block. */
#include "core/cuda_op.h"
#include "core/cuda_vec.h"

#define WARPS 8
#define WARP_ROW 1024 /* elements up to which one warp takes a row */

namespace
{

/* Grid: rows over blockDim.y; x: 32 threads a row, or 256 where y is 1. */
template <typename T>
__global__ void __launch_bounds__(32 * WARPS)
    l2_norm_kernel(T *__restrict__ output, const T *__restrict__ input, int64_t rows, int64_t d, int64_t in_stride, int64_t out_stride,
                   float eps)
{
    __shared__ float slots[1][32];
    const int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    const bool valid = row < rows; /* a whole warp each, or the whole block */
    input += row * in_stride;
    output += row * out_stride;
    float sums[1] = {0};
    if (valid)
        for (int64_t i = threadIdx.x; i < d; i += blockDim.x) {
            float x = fkd_float(input[i]);
            sums[0] += x * x;
        }
    fkd_row_sums<1>(sums, slots);
    const float scale = 1.0f / fmaxf(sqrtf(sums[0]), eps);
    if (valid)
        for (int64_t i = threadIdx.x; i < d; i += blockDim.x) output[i] = fkd_round<T>(fkd_float(input[i]) * scale);
}

} // namespace

extern "C" fk_status fk_l2_norm_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_l2_norm_args *a)
{
    int64_t rows, d;
    fk_rows_cols(a->input, &rows, &d);
    if (rows == 0 || d == 0) return FK_OK;
    const dim3 block = d <= WARP_ROW ? dim3(32, WARPS) : dim3(32 * WARPS, 1);
    const int64_t blocks = (rows + block.y - 1) / block.y;
    if (blocks > INT32_MAX) return fk_fail(FK_ERROR_UNSUPPORTED, "%lld rows are more than a grid holds", (long long)rows);
    FK_DISPATCH_FLOAT(a->input->dtype, T,
                      l2_norm_kernel<T><<<(unsigned)blocks, block, 0, stream>>>(FK_PTR(T, a->output), FK_PTR(const T, a->input), rows, d,
                                                                                fk_row_stride(a->input), fk_row_stride(a->output), a->eps));
    return fk_cuda_status(ctx, cudaGetLastError(), "l2_norm");
}

static bool supports(const fk_l2_norm_args *a)
{
    return fk_tensor_has_rows(a->input) && fk_tensor_has_rows(a->output);
}

FK_CUDA_OP_IF(l2_norm, supports)
