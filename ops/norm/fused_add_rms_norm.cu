/* SPDX-License-Identifier: Apache-2.0 */
/* Residual addition and RMSNorm on CUDA, in place: two reads and two writes an element, the sum staying in registers (its
 * storage-dtype bits, which the norm is taken of). The same division of rows and the same layouts as ops/norm/rms_norm.cu. */
#include "core/cuda_norm.h"
#include "core/cuda_vec.h"

#define PLAIN_THREADS 256

namespace
{

/* input, residual [rows, d]: 16-byte aligned rows of `packs` packs; ownership as in rms_norm_kernel, one row a thread. */
template <typename T, int VPT>
__global__ void __launch_bounds__(fkp_norm_max_threads(VPT))
    fused_add_rms_norm_kernel(T *input, T *residual, const T *__restrict__ weight, int64_t rows, int packs,
                              int64_t in_stride, int64_t residual_stride, float epsilon)
{
    constexpr int N = fkd_pack<T>::N;
    __shared__ float slots[1][32];
    const int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    uint4 x[VPT], added[VPT], scale_by[VPT];
#pragma unroll
    for (int k = 0; k < VPT; k++) {
        int p = threadIdx.x + k * blockDim.x;
        x[k] = added[k] = make_uint4(0, 0, 0, 0);
        if (row >= rows || p >= packs) continue;
        x[k] = fkd_load_stream(input + row * in_stride + p * N);
        added[k] = fkd_load_stream(residual + row * residual_stride + p * N);
    }
#pragma unroll
    for (int k = 0; k < VPT; k++) {
        int p = threadIdx.x + k * blockDim.x;
        scale_by[k] = make_uint4(0, 0, 0, 0);
        if (weight && p < packs) scale_by[k] = fkd_load_shared_by_blocks(weight + p * N);
    }
    float sum[1] = {0};
#pragma unroll
    for (int k = 0; k < VPT; k++) { /* packs past the end are zeros */
        int p = threadIdx.x + k * blockDim.x;
        float v[N], r[N];
        fkd_unpack<T>(x[k], v);
        fkd_unpack<T>(added[k], r);
#pragma unroll
        for (int i = 0; i < N; i++) v[i] += r[i];
        x[k] = fkd_repack<T>(v);
        fkd_unpack<T>(x[k], v); /* the rounded sum is what the norm is taken of */
#pragma unroll
        for (int i = 0; i < N; i++) sum[0] += v[i] * v[i];
        if (row < rows && p < packs) fkd_store(residual + row * residual_stride + p * N, x[k]);
    }
    fkd_row_sums<1>(sum, slots);
    float scale = rsqrtf(sum[0] / (float)(packs * N) + epsilon);
#pragma unroll
    for (int k = 0; k < VPT; k++) {
        int p = threadIdx.x + k * blockDim.x;
        if (row >= rows || p >= packs) continue;
        float v[N], w[N];
        fkd_unpack<T>(x[k], v);
        fkd_unpack<T>(scale_by[k], w);
#pragma unroll
        for (int i = 0; i < N; i++) v[i] = weight ? v[i] * scale * w[i] : v[i] * scale;
        fkd_store(input + row * in_stride + p * N, fkd_repack<T>(v));
    }
}

/* Any layout of rows: one block a row; each thread reads again what it wrote itself. */
template <typename T>
__global__ void __launch_bounds__(PLAIN_THREADS)
    fused_add_rms_norm_plain_kernel(T *input, T *residual, const void *__restrict__ weight, int weight_dtype,
                                    int64_t d, int64_t in_stride, int64_t residual_stride, float epsilon)
{
    __shared__ float slots[32];
    input += blockIdx.x * in_stride;
    residual += blockIdx.x * residual_stride;
    float sum = 0;
    for (int64_t i = threadIdx.x; i < d; i += PLAIN_THREADS) {
        T rounded = fkd_round<T>(fkd_float(input[i]) + fkd_float(residual[i]));
        residual[i] = rounded;
        sum += fkd_float(rounded) * fkd_float(rounded);
    }
    float scale = rsqrtf(fkd_block_sum(sum, slots) / (float)d + epsilon);
    for (int64_t i = threadIdx.x; i < d; i += PLAIN_THREADS) {
        float w = weight ? fkd_load_any(weight, weight_dtype, i) : 1.0f;
        input[i] = fkd_round<T>(fkd_float(residual[i]) * scale * w);
    }
}

struct launches {
    template <typename T, int VPT, int> /* one row a thread: it holds two of them */
    static void packed(const fkp_norm_plan *plan, cudaStream_t stream, const fk_fused_add_rms_norm_args *a)
    {
        fused_add_rms_norm_kernel<T, VPT><<<fkp_norm_grid(plan, plan->block.y), plan->block, 0, stream>>>(
            FK_PTR(T, a->input), FK_PTR(T, a->residual), FK_PTR(const T, a->weight), plan->rows, (int)(plan->d / fkd_pack<T>::N),
            fk_row_stride(a->input), fk_row_stride(a->residual), a->epsilon);
    }

    template <typename T> static void plain(const fkp_norm_plan *plan, cudaStream_t stream, const fk_fused_add_rms_norm_args *a)
    {
        fused_add_rms_norm_plain_kernel<T><<<(unsigned)plan->rows, PLAIN_THREADS, 0, stream>>>(
            FK_PTR(T, a->input), FK_PTR(T, a->residual), FK_PTR(const void, a->weight), a->weight ? (int)a->weight->dtype : 0, plan->d,
            fk_row_stride(a->input), fk_row_stride(a->residual), a->epsilon);
    }
};

} // namespace

extern "C" fk_status fk_fused_add_rms_norm_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_fused_add_rms_norm_args *a)
{
    fkp_norm_plan plan = fkp_norm_plan_for(a->input, a->residual, a->weight, nullptr);
    return fkp_norm_launch<launches>(ctx, stream, a, &plan, a->input->dtype, "fused_add_rms_norm");
}

static bool supports(const fk_fused_add_rms_norm_args *a)
{
    return fk_tensor_has_rows(a->input) && fk_tensor_has_rows(a->residual) &&
           (!a->weight || fk_tensor_is_contiguous(a->weight));
}

FK_CUDA_OP_IF(fused_add_rms_norm, supports)
