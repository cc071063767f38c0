/* SPDX-License-Identifier: Apache-2.0 */
/* RMSNorm on CUDA. Memory-bound: each row is read once into registers and written once. Rows that are not aligned to 16
 * bytes, longer than 32 KiB, or with a weight of another dtype take a plain kernel. */
#include "core/cuda_norm.h"
#include "core/cuda_vec.h"

#define PLAIN_THREADS 256

namespace
{

/* result, input [rows, d]: 16-byte aligned rows of `packs` packs. Threads of x share a row, thread x owns packs x,
 * x + blockDim.x, ... VPT of them, in each of ROWS rows, all of which are on their way before the first is reduced. FULL: every thread and
 * row has its packs, and there is a weight: no conditions between the loads. y counts rows
 * side by side, more than 1 only where one warp holds a row. */
template <typename T, int VPT, int ROWS, bool FULL>
__global__ void __launch_bounds__(fkp_norm_max_threads(VPT))
    rms_norm_kernel(T *__restrict__ result, const T *__restrict__ input, const T *__restrict__ weight,
                    int64_t rows, int packs, fkp_row_place in, fkp_row_place out, float epsilon)
{
    constexpr int N = fkd_pack<T>::N;
    __shared__ float slots[ROWS][32];
    input += blockIdx.y * in.inner_stride;
    result += blockIdx.y * out.inner_stride;
    const int64_t first = (int64_t)blockIdx.x * blockDim.y * ROWS + threadIdx.y;
    uint4 x[ROWS][VPT], scale_by[VPT];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int k = 0; k < VPT; k++) {
            int p = threadIdx.x + k * blockDim.x;
            int64_t row = first + r * blockDim.y;
            x[r][k] = make_uint4(0, 0, 0, 0);
            if (FULL || (row < rows && p < packs)) x[r][k] = fkd_load_stream(input + row * in.outer_stride + p * N);
        }
#pragma unroll
    for (int k = 0; k < VPT; k++) {
        int p = threadIdx.x + k * blockDim.x;
        scale_by[k] = make_uint4(0, 0, 0, 0);
        if (FULL || (weight && p < packs)) scale_by[k] = fkd_load_shared_by_blocks(weight + p * N);
    }
    float sums[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        sums[r] = 0;
#pragma unroll
        for (int k = 0; k < VPT; k++) { /* packs past the end are zeros */
            float v[N];
            fkd_unpack<T>(x[r][k], v);
#pragma unroll
            for (int i = 0; i < N; i++) sums[r] += v[i] * v[i];
        }
    }
    fkd_row_sums<ROWS>(sums, slots);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        int64_t row = first + r * blockDim.y;
        float scale = rsqrtf(sums[r] / (float)(packs * N) + epsilon);
#pragma unroll
        for (int k = 0; k < VPT; k++) {
            int p = threadIdx.x + k * blockDim.x;
            if (!FULL && (row >= rows || p >= packs)) continue;
            float v[N], w[N];
            fkd_unpack<T>(x[r][k], v);
            fkd_unpack<T>(scale_by[k], w);
#pragma unroll
            for (int i = 0; i < N; i++) v[i] = FULL || weight ? v[i] * scale * w[i] : v[i] * scale;
            fkd_store(result + row * out.outer_stride + p * N, fkd_repack<T>(v));
        }
    }
}

/* Any layout of rows: one block a row, which is read twice. */
template <typename T>
__global__ void __launch_bounds__(PLAIN_THREADS)
    rms_norm_plain_kernel(T *__restrict__ result, const T *__restrict__ input,
                          const void *__restrict__ weight, int weight_dtype, int64_t d, fkp_row_place in,
                          fkp_row_place out, float epsilon)
{
    __shared__ float slots[32];
    input += blockIdx.x * in.outer_stride + blockIdx.y * in.inner_stride;
    result += blockIdx.x * out.outer_stride + blockIdx.y * out.inner_stride;
    float sum = 0;
    for (int64_t i = threadIdx.x; i < d; i += PLAIN_THREADS) sum += fkd_float(input[i]) * fkd_float(input[i]);
    float scale = rsqrtf(fkd_block_sum(sum, slots) / (float)d + epsilon);
    for (int64_t i = threadIdx.x; i < d; i += PLAIN_THREADS) {
        float w = weight ? fkd_load_any(weight, weight_dtype, i) : 1.0f;
        result[i] = fkd_round<T>(fkd_float(input[i]) * scale * w);
    }
}

struct launches {
    template <typename T, int VPT, int ROWS>
    static void packed(const fkp_norm_plan *plan, cudaStream_t stream, const fk_rms_norm_args *a)
    {
        int packs = (int)(plan->d / fkd_pack<T>::N);
        bool full = a->weight && packs == VPT * (int)plan->block.x && plan->rows % (ROWS * plan->block.y) == 0;
        auto *kernel = full ? rms_norm_kernel<T, VPT, ROWS, true> : rms_norm_kernel<T, VPT, ROWS, false>;
        kernel<<<fkp_norm_grid(plan, ROWS * plan->block.y), plan->block, 0, stream>>>(
            FK_PTR(T, a->result), FK_PTR(const T, a->input), FK_PTR(const T, a->weight), plan->rows, packs, plan->in,
            plan->out, a->epsilon);
    }

    template <typename T> static void plain(const fkp_norm_plan *plan, cudaStream_t stream, const fk_rms_norm_args *a)
    {
        rms_norm_plain_kernel<T><<<fkp_norm_grid(plan, 1), PLAIN_THREADS, 0, stream>>>(
            FK_PTR(T, a->result), FK_PTR(const T, a->input), FK_PTR(const void, a->weight), a->weight ? (int)a->weight->dtype : 0, plan->d,
            plan->in, plan->out, a->epsilon);
    }
};

} // namespace

extern "C" fk_status fk_rms_norm_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_rms_norm_args *a)
{
    fkp_norm_plan plan = fkp_norm_plan_for(a->input, a->result, a->weight, nullptr);
    return fkp_norm_launch<launches>(ctx, stream, a, &plan, a->input->dtype, "rms_norm");
}

static bool supports(const fk_rms_norm_args *a)
{
    return fkp_norm_supported(a->input, a->result) &&
           (!a->weight || fk_tensor_is_contiguous(a->weight));
}

FK_CUDA_OP_IF(rms_norm, supports)
