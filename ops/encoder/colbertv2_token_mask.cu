/* SPDX-License-Identifier: Apache-2.0 */
/* ColBERTv2's mask of tokens on CUDA: a thread an id; the list is short and comes from cache. */
#include "core/cuda_op.h"

#define THREADS 256

namespace
{

template <typename I>
__global__ void token_mask_kernel(uint8_t *__restrict__ mask, const I *__restrict__ ids, int64_t n, int64_t pad_token_id,
                                  const I *__restrict__ skiplist, int64_t skips)
{
    int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    I id = ids[i];
    bool counts = (int64_t)id != pad_token_id;
    for (int64_t s = 0; s < skips; s++) counts = counts && id != __ldg(skiplist + s);
    mask[i] = counts;
}

} // namespace

extern "C" fk_status fk_colbertv2_token_mask_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_colbertv2_token_mask_args *a)
{
    int64_t n = fk_tensor_numel(a->input_ids);
    if (n == 0) return FK_OK;
    FK_DISPATCH_INT(a->input_ids->dtype, I,
                    token_mask_kernel<I><<<(unsigned)((n + THREADS - 1) / THREADS), THREADS, 0, stream>>>(
                        FK_PTR(uint8_t, a->mask), FK_PTR(const I, a->input_ids), n, a->pad_token_id, FK_PTR(const I, a->skiplist),
                        a->skiplist ? a->skiplist->shape[0] : 0));
    return fk_cuda_status(ctx, cudaGetLastError(), "colbertv2_token_mask");
}

static bool supports(const fk_colbertv2_token_mask_args *a)
{
    return fk_tensor_is_contiguous(a->input_ids) && fk_tensor_is_contiguous(a->mask) &&
           (!a->skiplist || fk_tensor_is_contiguous(a->skiplist)) && fk_tensor_numel(a->input_ids) <= (int64_t)INT32_MAX * THREADS;
}

FK_CUDA_OP_IF(colbertv2_token_mask, supports)
