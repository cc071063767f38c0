/* SPDX-License-Identifier: Apache-2.0 */
/* Penalties on CUDA: a block a row counts the tokens of both lists in memory, then meets each once more and takes its count: whoever takes
 * a count that is not 0 changes the logit. Only logits of tokens in the lists are touched. */
#include "core/cuda_op.h"
#include "core/cuda_vec.h"
#include "ops/sampling/penalty.h"

#define THREADS 256

namespace
{

struct token_list {
    const int64_t *tokens;
    int64_t count, row_stride, stride;
};

token_list list_of(const fk_tensor *t)
{
    return token_list{FK_PTR(const int64_t, t), t->shape[1], t->strides[0], t->strides[1]};
}

__device__ __forceinline__ int64_t token_at(const token_list &list, int64_t i)
{
    return list.tokens[blockIdx.x * list.row_stride + i * list.stride];
}

template <typename T>
__device__ __forceinline__ void take_tokens(const token_list &list, T *logits, int64_t v, int64_t stride, int *counts, float presence,
                                            float frequency, float repetition)
{
    for (int64_t i = threadIdx.x; i < list.count; i += THREADS) {
        const int64_t token = token_at(list, i);
        if (token < 0 || token >= v) continue;
        const int count = atomicExch(counts + token, 0);
        if (count == 0) continue;
        T *at = logits + token * stride;
        *at = fkd_round<T>(penalized(fkd_float(*at), count, presence, frequency, repetition));
    }
}

/* Grid: rows. counts [B, V], all 0 before and after. */
template <typename T>
__global__ void __launch_bounds__(THREADS)
    apply_penalties_kernel(T *logits, int64_t v, int64_t row_stride, int64_t stride, const token_list prompt, const token_list answer,
                           const float *presence, const float *frequency, const float *repetition, int *counts)
{
    const int64_t b = blockIdx.x;
    counts += b * v;
    for (int64_t i = threadIdx.x; i < prompt.count; i += THREADS) {
        const int64_t token = token_at(prompt, i);
        if (token >= 0 && token < v) atomicOr(counts + token, PENALTY_PROMPT);
    }
    for (int64_t i = threadIdx.x; i < answer.count; i += THREADS) {
        const int64_t token = token_at(answer, i);
        if (token >= 0 && token < v) atomicAdd(counts + token, PENALTY_ANSWER);
    }
    __syncthreads();
    take_tokens(prompt, logits + b * row_stride, v, stride, counts, presence[b], frequency[b], repetition[b]);
    take_tokens(answer, logits + b * row_stride, v, stride, counts, presence[b], frequency[b], repetition[b]);
}

} // namespace

extern "C" fk_status fk_apply_penalties_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_apply_penalties_args *a)
{
    const int64_t rows = a->logits->shape[0], v = a->logits->shape[1];
    if (rows == 0 || v == 0) return FK_OK;
    const size_t bytes = sizeof(int) * (size_t)rows * (size_t)v;
    int *counts = (int *)fk_ctx_scratch(ctx, bytes);
    if (!counts) return fk_ctx_status(ctx);
    FK_TRY(fk_cuda_status(ctx, cudaMemsetAsync(counts, 0, bytes, stream), "apply_penalties"));
    FK_DISPATCH_FLOAT(a->logits->dtype, T,
                      apply_penalties_kernel<T><<<(unsigned)rows, THREADS, 0, stream>>>(
                          FK_PTR(T, a->logits), v, a->logits->strides[0], a->logits->strides[1], list_of(a->prompt_tokens_tensor),
                          list_of(a->output_tokens_tensor), FK_PTR(const float, a->presence_penalties),
                          FK_PTR(const float, a->frequency_penalties), FK_PTR(const float, a->repetition_penalties), counts));
    return fk_cuda_status(ctx, cudaGetLastError(), "apply_penalties");
}

static bool supports(const fk_apply_penalties_args *a)
{
    return fk_tensor_is_contiguous(a->presence_penalties) && fk_tensor_is_contiguous(a->frequency_penalties) &&
           fk_tensor_is_contiguous(a->repetition_penalties);
}

FK_CUDA_OP_IF(apply_penalties, supports)
