/* SPDX-License-Identifier: Apache-2.0 */
/* LayerNorm on CUDA. Memory-bound: each row is read once into registers, where its mean and then its variance are taken,
 * and written once. Rows that are not aligned to 16 bytes, longer than 32 KiB, or with weights of another dtype take a
 * plain kernel. */
#include "core/cuda_norm.h"
#include "core/cuda_vec.h"

#define PLAIN_THREADS 256

namespace
{

/* output, input [rows, d]: 16-byte aligned rows of `packs` packs. Threads of x share a row, thread x owns packs x,
 * x + blockDim.x, ... VPT of them, in each of ROWS rows. y counts rows side by side, more than 1 only where one warp holds a
 * row. Packs past the end are zeros and are left out of the sums of squares. */
template <typename T, int VPT, int ROWS>
__global__ void __launch_bounds__(fkp_norm_max_threads(VPT))
    layer_norm_kernel(T *__restrict__ output, const T *__restrict__ input, const T *__restrict__ weight, const T *__restrict__ bias,
                      int64_t rows, int packs, fkp_row_place in, fkp_row_place out, float eps)
{
    constexpr int N = fkd_pack<T>::N;
    __shared__ float mean_slots[ROWS][32], square_slots[ROWS][32];
    input += blockIdx.y * in.inner_stride;
    output += blockIdx.y * out.inner_stride;
    const int64_t first = (int64_t)blockIdx.x * blockDim.y * ROWS + threadIdx.y;
    uint4 x[ROWS][VPT], scale_by[VPT], shift_by[VPT];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int k = 0; k < VPT; k++) {
            int p = threadIdx.x + k * blockDim.x;
            int64_t row = first + r * blockDim.y;
            x[r][k] = make_uint4(0, 0, 0, 0);
            if (row < rows && p < packs) x[r][k] = fkd_load_stream(input + row * in.outer_stride + (int64_t)p * N);
        }
#pragma unroll
    for (int k = 0; k < VPT; k++) {
        int p = threadIdx.x + k * blockDim.x;
        scale_by[k] = shift_by[k] = make_uint4(0, 0, 0, 0);
        if (weight && p < packs) scale_by[k] = fkd_load_shared_by_blocks(weight + (int64_t)p * N);
        if (bias && p < packs) shift_by[k] = fkd_load_shared_by_blocks(bias + (int64_t)p * N);
    }
    const float inverse_d = 1.0f / ((float)packs * N);
    float means[ROWS], squares[ROWS];
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        means[r] = 0;
#pragma unroll
        for (int k = 0; k < VPT; k++) {
            float v[N];
            fkd_unpack<T>(x[r][k], v);
#pragma unroll
            for (int i = 0; i < N; i++) means[r] += v[i];
        }
    }
    fkd_row_sums<ROWS>(means, mean_slots);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        means[r] *= inverse_d;
        squares[r] = 0;
#pragma unroll
        for (int k = 0; k < VPT; k++) {
            if ((int)(threadIdx.x + k * blockDim.x) >= packs) continue;
            float v[N];
            fkd_unpack<T>(x[r][k], v);
#pragma unroll
            for (int i = 0; i < N; i++) squares[r] += (v[i] - means[r]) * (v[i] - means[r]);
        }
    }
    fkd_row_sums<ROWS>(squares, square_slots);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        int64_t row = first + r * blockDim.y;
        float scale = rsqrtf(squares[r] * inverse_d + eps);
#pragma unroll
        for (int k = 0; k < VPT; k++) {
            int p = threadIdx.x + k * blockDim.x;
            if (row >= rows || p >= packs) continue;
            float v[N], w[N], b[N];
            fkd_unpack<T>(x[r][k], v);
            fkd_unpack<T>(scale_by[k], w);
            fkd_unpack<T>(shift_by[k], b);
#pragma unroll
            for (int i = 0; i < N; i++) {
                v[i] = (v[i] - means[r]) * scale;
                v[i] = (weight ? v[i] * w[i] : v[i]) + b[i];
            }
            fkd_store(output + row * out.outer_stride + (int64_t)p * N, fkd_repack<T>(v));
        }
    }
}

/* Any layout of rows: one block a row, which is read three times. */
template <typename T>
__global__ void __launch_bounds__(PLAIN_THREADS)
    layer_norm_plain_kernel(T *__restrict__ output, const T *__restrict__ input, const void *__restrict__ weight, int weight_dtype,
                            const void *__restrict__ bias, int bias_dtype, int64_t d, fkp_row_place in, fkp_row_place out, float eps)
{
    __shared__ float mean_slots[32], square_slots[32];
    input += blockIdx.x * in.outer_stride + blockIdx.y * in.inner_stride;
    output += blockIdx.x * out.outer_stride + blockIdx.y * out.inner_stride;
    float sum = 0, squares = 0;
    for (int64_t i = threadIdx.x; i < d; i += PLAIN_THREADS) sum += fkd_float(input[i]);
    const float mean = fkd_block_sum(sum, mean_slots) / (float)d;
    for (int64_t i = threadIdx.x; i < d; i += PLAIN_THREADS) {
        float x = fkd_float(input[i]) - mean;
        squares += x * x;
    }
    const float scale = rsqrtf(fkd_block_sum(squares, square_slots) / (float)d + eps);
    for (int64_t i = threadIdx.x; i < d; i += PLAIN_THREADS) {
        float x = (fkd_float(input[i]) - mean) * scale;
        if (weight) x *= fkd_load_any(weight, weight_dtype, i);
        if (bias) x += fkd_load_any(bias, bias_dtype, i);
        output[i] = fkd_round<T>(x);
    }
}

struct launches {
    template <typename T, int VPT, int ROWS>
    static void packed(const fkp_norm_plan *plan, cudaStream_t stream, const fk_layer_norm_args *a)
    {
        layer_norm_kernel<T, VPT, ROWS><<<fkp_norm_grid(plan, ROWS * plan->block.y), plan->block, 0, stream>>>(
            FK_PTR(T, a->output), FK_PTR(const T, a->input), FK_PTR(const T, a->weight), FK_PTR(const T, a->bias), plan->rows,
            (int)(plan->d / fkd_pack<T>::N), plan->in, plan->out, a->eps);
    }

    template <typename T> static void plain(const fkp_norm_plan *plan, cudaStream_t stream, const fk_layer_norm_args *a)
    {
        layer_norm_plain_kernel<T><<<fkp_norm_grid(plan, 1), PLAIN_THREADS, 0, stream>>>(
            FK_PTR(T, a->output), FK_PTR(const T, a->input), FK_PTR(const void, a->weight), a->weight ? (int)a->weight->dtype : 0,
            FK_PTR(const void, a->bias), a->bias ? (int)a->bias->dtype : 0, plan->d, plan->in, plan->out,
            a->eps);
    }
};

} // namespace

extern "C" fk_status fk_layer_norm_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_layer_norm_args *a)
{
    fkp_norm_plan plan = fkp_norm_plan_for(a->input, a->output, a->weight, a->bias);
    return fkp_norm_launch<launches>(ctx, stream, a, &plan, a->input->dtype, "layer_norm");
}

static bool supports(const fk_layer_norm_args *a)
{
    return fkp_norm_supported(a->input, a->output) &&
           (!a->weight || fk_tensor_is_contiguous(a->weight)) && (!a->bias || fk_tensor_is_contiguous(a->bias));
}

FK_CUDA_OP_IF(layer_norm, supports)
