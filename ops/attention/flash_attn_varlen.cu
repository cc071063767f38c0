/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of packed sequences on CUDA: a small kernel writes the tables that make packed keys a paged cache with pages of
 * one token, then the kernels of flash_attn_prefill run. */
#include "core/cuda_op.h"
#include "ops/attention/varlen_pages.h"

#define THREADS 256

extern "C" fk_status fk_flash_attn_prefill_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_flash_attn_prefill_args *a);

namespace
{

/* Grid (chunk of keys, sequence): pages [B, max_seqlen], lengths [B]. Starts and lengths outside the packed keys are cut,
 * so that nothing reads memory of others. */
__global__ void __launch_bounds__(THREADS)
    varlen_tables_kernel(int32_t *__restrict__ lengths, int32_t *__restrict__ pages, const int32_t *__restrict__ cu_seqlens, int num_keys,
                         int max_seqlen)
{
    const int b = blockIdx.y, j = blockIdx.x * THREADS + threadIdx.x;
    const int start = min(max(cu_seqlens[b], 0), num_keys), stop = min(max(cu_seqlens[b + 1], start), num_keys);
    const int length = min(stop - start, max_seqlen);
    if (j == 0) lengths[b] = length;
    if (j < max_seqlen) pages[(int64_t)b * max_seqlen + j] = j < length ? start + j : -1;
}

} // namespace

extern "C" fk_status fk_flash_attn_varlen_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_flash_attn_varlen_args *a)
{
    const int64_t sequences = a->cu_seqlens_k->shape[0] - 1, num_keys = a->k->shape[0];
    const int64_t max_seqlen = a->max_seqlen_k < num_keys ? (a->max_seqlen_k > 0 ? a->max_seqlen_k : 0) : num_keys;
    if (fk_tensor_numel(a->q) == 0 || sequences <= 0) return FK_OK;
    int32_t *lengths = (int32_t *)fk_ctx_scratch(ctx, sizeof(int32_t) * (size_t)sequences);
    int32_t *pages = (int32_t *)fk_ctx_scratch(ctx, sizeof(int32_t) * (size_t)(sequences * max_seqlen + 1));
    if (!lengths || !pages) return fk_ctx_status(ctx);
    varlen_tables_kernel<<<dim3((unsigned)(max_seqlen / THREADS + 1), (unsigned)sequences), THREADS, 0, stream>>>(
        lengths, pages, FK_PTR(const int32_t, a->cu_seqlens_k), (int)num_keys, (int)max_seqlen);
    FK_TRY(fk_cuda_status(ctx, cudaGetLastError(), "flash_attn_varlen: tables"));
    const int64_t table[2] = {sequences, max_seqlen};
    fk_tensor k = varlen_pages(a->k), v = varlen_pages(a->v);
    fk_tensor seqused_k = fk_tensor_wrap(lengths, FK_I32, a->q->device, 1, table);
    fk_tensor block_table = fk_tensor_wrap(pages, FK_I32, a->q->device, 2, table);
    fk_flash_attn_prefill_args paged = {};
    paged.q = a->q, paged.k = &k, paged.v = &v, paged.out = a->out;
    paged.max_seqlen_q = a->max_seqlen_q, paged.cu_seqlens_q = a->cu_seqlens_q;
    paged.max_seqlen_k = a->max_seqlen_k, paged.seqused_k = &seqused_k, paged.block_table = &block_table;
    paged.softmax_scale = a->softmax_scale, paged.causal = a->causal, paged.window_size = a->window_size, paged.softcap = a->softcap;
    return fk_flash_attn_prefill_cuda(ctx, stream, &paged);
}

static bool supports(const fk_flash_attn_varlen_args *a)
{
    const fk_tensor *dense[] = {a->q, a->k, a->v, a->out};
    for (const fk_tensor *t : dense)
        if (t->shape[2] != 1 && t->strides[2] != 1) return false;
    return a->q->shape[2] <= 256 && a->q->shape[1] <= 65535 && a->cu_seqlens_k->shape[0] <= 65535 && a->k->shape[0] <= INT32_MAX &&
           fk_tensor_is_contiguous(a->cu_seqlens_q) && fk_tensor_is_contiguous(a->cu_seqlens_k);
}

FK_CUDA_OP_IF(flash_attn_varlen, supports)
