/* SPDX-License-Identifier: Apache-2.0 */
/* What the CUDA kernels of attention over a paged cache share: the description of a call, the address of a
 * cached token, and a plain kernel for every dtype and head size that the tensor-core kernels do not take. */
#ifndef FK_OPS_PAGED_ATTENTION_CUDA_H
#define FK_OPS_PAGED_ATTENTION_CUDA_H

#include <math.h>

#include "core/cuda_mma.h"
#include "core/cuda_op.h"
#include "core/cuda_vec.h"

#define PAGED_MAX_HEAD_SIZE 256
#define PAGED_PLAIN_WARPS 4
#define PAGED_LOG2_E 1.4426950408889634f

/* Strides in elements; the last dim of every tensor is dense. */
struct paged_call {
    const void *q, *k, *v;
    void *out;
    int64_t q_token, q_head, out_token, out_head;
    int64_t k_block, k_slot, k_head, v_block, v_slot, v_head;
    const int32_t *cu_seqlens_q; /* NULL: one query a sequence */
    const int32_t *seqused_k, *block_table;
    int64_t table_stride;
    int table_entries, num_blocks, block_size;
    int block_shift; /* log2 of block_size; -1 where it is no power of two */
    int sequences, heads, kv_heads, group, head_size;
    float scale, softcap;
    int window; /* negative: none */
    bool causal;
};

static inline void paged_describe(paged_call *c, const fk_tensor *q, const fk_tensor *k, const fk_tensor *v,
                                  const fk_tensor *out, const fk_tensor *seqused_k,
                                  const fk_tensor *block_table, float softmax_scale, int64_t window_size,
                                  float softcap)
{
    *c = paged_call{};
    c->q = q->data, c->k = k->data, c->v = v->data, c->out = out->data;
    c->q_token = q->strides[0], c->q_head = q->strides[1];
    c->out_token = out->strides[0], c->out_head = out->strides[1];
    c->k_block = k->strides[0], c->k_slot = k->strides[1], c->k_head = k->strides[2];
    c->v_block = v->strides[0], c->v_slot = v->strides[1], c->v_head = v->strides[2];
    c->seqused_k = FK_PTR(const int32_t, seqused_k);
    c->block_table = FK_PTR(const int32_t, block_table);
    c->table_stride = block_table->strides[0];
    c->table_entries = (int)block_table->shape[1];
    c->num_blocks = (int)k->shape[0];
    c->block_size = (int)k->shape[1];
    c->block_shift = -1;
    for (int shift = 0; shift < 31; shift++)
        if (c->block_size == 1 << shift) c->block_shift = shift;
    c->sequences = (int)seqused_k->shape[0];
    c->heads = (int)q->shape[1], c->kv_heads = (int)k->shape[2];
    c->group = c->heads / c->kv_heads;
    c->head_size = (int)q->shape[2];
    c->scale = softmax_scale != 0 ? softmax_scale : 1.0f / sqrtf((float)c->head_size);
    c->softcap = softcap;
    c->window = window_size < 0 ? -1 : window_size > INT32_MAX ? INT32_MAX : (int)window_size;
}

/* Last dims dense, tables plain, sizes that fit the kernels' integers. */
static inline bool paged_supported(const fk_tensor *q, const fk_tensor *k, const fk_tensor *v,
                                   const fk_tensor *out, const fk_tensor *seqused_k,
                                   const fk_tensor *block_table)
{
    const fk_tensor *dense[] = {q, k, v, out, block_table};
    for (const fk_tensor *t : dense)
        if (t->shape[t->ndim - 1] != 1 && t->strides[t->ndim - 1] != 1) return false;
    return fk_tensor_is_contiguous(seqused_k) && q->shape[2] <= PAGED_MAX_HEAD_SIZE && q->shape[1] <= 65535 &&
           seqused_k->shape[0] <= 65535 && k->shape[0] <= INT32_MAX && k->shape[1] <= INT32_MAX &&
           block_table->shape[1] <= INT32_MAX;
}

/* What the tensor-core kernels ask for: 16-bit floats, 16-byte aligned rows, a positive scale. */
static inline bool paged_takes_tensor_cores(const paged_call *c, fk_dtype dtype)
{
    const int64_t strides[] = {c->q_token, c->q_head, c->out_token, c->out_head, c->k_block,
                               c->k_slot,  c->k_head, c->v_block,   c->v_slot,   c->v_head};
    for (int64_t stride : strides)
        if (stride % 8 != 0) return false;
    return dtype != FK_F32 && c->head_size % 8 == 0 && c->scale > 0 && fkp_cuda_aligned16(c->q, 0) &&
           fkp_cuda_aligned16(c->k, 0) && fkp_cuda_aligned16(c->v, 0) && fkp_cuda_aligned16(c->out, 0);
}

/* Number of the block that holds token `key`, -1 when the table or the cache has none: such keys count as
 * zeros rather than reading memory of others. */
static __device__ __forceinline__ int paged_block(const paged_call &c, const int32_t *table, int key)
{
    int entry = c.block_shift >= 0 ? key >> c.block_shift : key / c.block_size;
    if (entry >= c.table_entries) return -1;
    int block = table[entry];
    return block >= 0 && block < c.num_blocks ? block : -1;
}
static __device__ __forceinline__ int paged_slot(const paged_call &c, int key)
{
    return c.block_shift >= 0 ? key & (c.block_size - 1) : key % c.block_size;
}

/* A score with its scale and cap, in units of log2. */
static __device__ __forceinline__ float paged_capped(float score, float scale, float softcap)
{
    return softcap * tanhf(score * scale / softcap);
}

/* Block (head, query): four warps share the keys, lanes the features; an online softmax a warp, merged at the
 * end. */
template <typename T>
static __global__ void __launch_bounds__(32 * PAGED_PLAIN_WARPS) paged_plain_kernel(paged_call c)
{
    constexpr int PER_LANE = PAGED_MAX_HEAD_SIZE / 32;
    __shared__ float largest[PAGED_PLAIN_WARPS], sums[PAGED_PLAIN_WARPS],
        values[PAGED_PLAIN_WARPS][PAGED_MAX_HEAD_SIZE];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, head = blockIdx.x;
    const int64_t token = blockIdx.y;
    int sequence = (int)token, from_end = 1; /* queries of the sequence from this one on */
    if (c.cu_seqlens_q) {                    /* the last sequence that starts at or before the token */
        int low = 0, high = c.sequences - 1;
        while (low < high) {
            int middle = (low + high + 1) / 2;
            if (c.cu_seqlens_q[middle] <= token)
                low = middle;
            else
                high = middle - 1;
        }
        sequence = low;
        from_end = c.cu_seqlens_q[low + 1] - (int)token;
    }
    const int length = c.seqused_k[sequence], position = length - from_end;
    const int end = c.causal && position + 1 < length ? position + 1 : length;
    const int begin = c.window >= 0 && position > c.window ? position - c.window : 0;
    const int32_t *table = c.block_table + sequence * c.table_stride;
    const T *q = (const T *)c.q + token * c.q_token + head * c.q_head;
    const T *k = (const T *)c.k + head / c.group * c.k_head, *v = (const T *)c.v + head / c.group * c.v_head;
    float query[PER_LANE], value[PER_LANE], m = -INFINITY, l = 0;
#pragma unroll
    for (int i = 0; i < PER_LANE; i++) {
        query[i] = lane + 32 * i < c.head_size ? fkd_float(q[lane + 32 * i]) : 0.0f;
        value[i] = 0;
    }
    for (int key = begin + warp; key < end; key += PAGED_PLAIN_WARPS) {
        int block = paged_block(c, table, key), slot = paged_slot(c, key);
        if (block < 0) continue;
        const T *key_row = k + block * c.k_block + slot * c.k_slot,
                *value_row = v + block * c.v_block + slot * c.v_slot;
        float score = 0;
#pragma unroll
        for (int i = 0; i < PER_LANE; i++)
            if (lane + 32 * i < c.head_size) score += query[i] * fkd_float(key_row[lane + 32 * i]);
        score = fkd_warp_sum(score);
        score = c.softcap > 0 ? paged_capped(score, c.scale, c.softcap) : score * c.scale;
        float next = fmaxf(m, score), keep = expf(m - next), p = expf(score - next);
        m = next;
        l = l * keep + p;
#pragma unroll
        for (int i = 0; i < PER_LANE; i++)
            if (lane + 32 * i < c.head_size)
                value[i] = value[i] * keep + p * fkd_float(value_row[lane + 32 * i]);
    }
    if (lane == 0) largest[warp] = m, sums[warp] = l;
#pragma unroll
    for (int i = 0; i < PER_LANE; i++) values[warp][lane + 32 * i] = value[i];
    __syncthreads();
    float top = -INFINITY, sum = 0;
    for (int w = 0; w < PAGED_PLAIN_WARPS; w++) top = fmaxf(top, largest[w]);
    for (int w = 0; w < PAGED_PLAIN_WARPS; w++)
        if (sums[w] > 0) sum += sums[w] * expf(largest[w] - top);
    T *out = (T *)c.out + token * c.out_token + head * c.out_head;
    for (int e = threadIdx.x; e < c.head_size; e += blockDim.x) {
        float x = 0;
        for (int w = 0; w < PAGED_PLAIN_WARPS; w++)
            if (sums[w] > 0) x += values[w][e] * expf(largest[w] - top);
        out[e] = fkd_round<T>(sum > 0 ? x / sum : 0.0f);
    }
}

/* Launches the plain kernel. */
static inline fk_status paged_launch_plain(fk_ctx *ctx, cudaStream_t stream, const paged_call *call,
                                           fk_dtype dtype, int64_t tokens, const char *op)
{
    if (tokens > 65535)
        return fk_fail(FK_ERROR_UNSUPPORTED,
                       "%lld queries of %s with head size %d are more than the plain kernel takes",
                       (long long)tokens, fk_dtype_name(dtype), call->head_size);
    FK_DISPATCH_FLOAT(
        dtype, T,
        paged_plain_kernel<T>
        <<<dim3((unsigned)call->heads, (unsigned)tokens), 32 * PAGED_PLAIN_WARPS, 0, stream>>>(*call));
    return fk_cuda_status(ctx, cudaGetLastError(), op);
}

#endif
