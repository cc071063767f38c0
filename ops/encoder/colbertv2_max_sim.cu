/* SPDX-License-Identifier: Apache-2.0 */
/* MaxSim on CUDA. A block owns a document: its query vectors stand in shared memory in float32, a warp takes tokens of the
 * document in turn, loads a token's vector once into registers and meets all query vectors with it; the maxima of a warp live
 * in shared memory, those of the warps meet at the end. No similarity goes to memory. */
#include "core/cuda_op.h"
#include "core/cuda_vec.h"

#define WARPS 8
#define MAX_PER_LANE 8 /* features a lane holds: D up to 256 */
#define MAX_SHARED (160 * 1024)

namespace
{

__device__ __forceinline__ float larger(float a, float b)
{
    return a > b || a != a ? a : b;
}

/* Grid: documents. Shared: queries [Q][D], best [WARPS][Q]. */
template <typename T>
__global__ void __launch_bounds__(32 * WARPS)
    max_sim_kernel(T *__restrict__ scores, int64_t score_stride, const T *__restrict__ query_vecs, int64_t query_stride,
                   int64_t query_row, const T *__restrict__ doc_vecs, int64_t doc_stride, int64_t doc_row,
                   const uint8_t *__restrict__ doc_mask, int64_t mask_stride, int queries, int tokens, int d)
{
    extern __shared__ float shared[];
    __shared__ float totals[WARPS];
    float *query = shared, *best = shared + queries * d;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    query_vecs += blockIdx.x * query_stride;
    doc_vecs += blockIdx.x * doc_stride;
    doc_mask += blockIdx.x * mask_stride;
    for (int i = threadIdx.x; i < queries * d; i += 32 * WARPS) query[i] = fkd_float(query_vecs[i / d * query_row + i % d]);
    for (int i = threadIdx.x; i < queries * WARPS; i += 32 * WARPS) best[i] = -INFINITY;
    __syncthreads();
    for (int t = warp; t < tokens; t += WARPS) {
        const bool counts = doc_mask[t];
        float x[MAX_PER_LANE];
#pragma unroll
        for (int k = 0; k < MAX_PER_LANE; k++) {
            int i = lane + 32 * k;
            x[k] = counts && i < d ? fkd_float(doc_vecs[t * doc_row + i]) : 0.0f;
        }
        for (int q = 0; q < queries; q++) {
            float sum = 0;
#pragma unroll
            for (int k = 0; k < MAX_PER_LANE; k++)
                if (lane + 32 * k < d) sum += x[k] * query[q * d + lane + 32 * k];
#pragma unroll
            for (int bit = 16; bit; bit /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, bit);
            if (lane == 0) best[warp * queries + q] = larger(counts ? sum : -9999.0f, best[warp * queries + q]);
        }
    }
    __syncthreads();
    float total = 0;
    for (int q = threadIdx.x; q < queries; q += 32 * WARPS) {
        float top = best[q];
        for (int w = 1; w < WARPS; w++) top = larger(best[w * queries + q], top);
        total += top;
    }
#pragma unroll
    for (int bit = 16; bit; bit /= 2) total += __shfl_xor_sync(0xffffffffu, total, bit);
    if (lane == 0) totals[warp] = total;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int w = 1; w < WARPS; w++) total += totals[w];
        scores[blockIdx.x * score_stride] = fkd_round<T>(total);
    }
}

size_t shared_bytes(const fk_colbertv2_max_sim_args *a)
{
    return sizeof(float) * (size_t)a->query_vecs->shape[1] * (size_t)(a->query_vecs->shape[2] + WARPS);
}

} // namespace

extern "C" fk_status fk_colbertv2_max_sim_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_colbertv2_max_sim_args *a)
{
    const fk_tensor *q = a->query_vecs, *d = a->doc_vecs;
    if (d->shape[0] == 0) return FK_OK;
    size_t bytes = shared_bytes(a);
    FK_DISPATCH_FLOAT(d->dtype, T, {
        if (bytes + sizeof(float[WARPS]) > 48 * 1024) /* with the totals, which are static */
            FK_TRY(fk_cuda_status(ctx, cudaFuncSetAttribute(max_sim_kernel<T>, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes),
                                  "colbertv2_max_sim"));
        max_sim_kernel<T><<<(unsigned)d->shape[0], 32 * WARPS, bytes, stream>>>(
            FK_PTR(T, a->scores), a->scores->strides[0], FK_PTR(const T, q), q->shape[0] == 1 ? 0 : q->strides[0], q->strides[1],
            FK_PTR(const T, d), d->strides[0], d->strides[1], FK_PTR(const uint8_t, a->doc_mask), a->doc_mask->strides[0],
            (int)q->shape[1], (int)d->shape[1], (int)d->shape[2]);
    });
    return fk_cuda_status(ctx, cudaGetLastError(), "colbertv2_max_sim");
}

static bool supports(const fk_colbertv2_max_sim_args *a)
{
    const fk_tensor *q = a->query_vecs, *d = a->doc_vecs;
    return d->shape[2] <= 32 * MAX_PER_LANE && shared_bytes(a) <= MAX_SHARED && d->shape[0] <= INT32_MAX && d->shape[1] <= INT32_MAX &&
           (d->shape[2] < 2 || (d->strides[2] == 1 && q->strides[2] == 1)) && (d->shape[1] < 2 || a->doc_mask->strides[1] == 1);
}

FK_CUDA_OP_IF(colbertv2_max_sim, supports)
