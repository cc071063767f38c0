/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of a drafted tree on CUDA: one block for 64 rows of a KV head of a sequence, all its keys
 * (attention_rows_cuda.h). Few sequences with long caches leave most of the device idle: the keys are not split. */
#include "ops/attention/attention_rows_cuda.h"

namespace
{

/* Grid (block of rows, KV head, sequence). Strides in elements. */
template <typename T> struct tree_source : attention_rows {
    const T *q, *k, *v;
    T *out;
    int64_t q_token, q_head, out_token, out_head, k_block, k_slot, k_head, v_block, v_slot, v_head, table_stride;
    const int32_t *cu_seqlens_q, *seqused_k, *block_table;
    int num_tokens, num_blocks, block_size, entries;
    const void *bias_data; /* NULL: none */
    int bias_dtype, drafts;
    int64_t bias_stride[2];

    __device__ __forceinline__ bool begin(int most)
    {
        const int sequence = blockIdx.z, start = min(max(cu_seqlens_q[sequence], 0), num_tokens);
        const int64_t head = blockIdx.y;
        queries = min(max(cu_seqlens_q[sequence + 1] - start, 0), num_tokens - start);
        first_row = (int)blockIdx.x * most;
        rows = min(most, queries * group - first_row);
        length = max(seqused_k[sequence], 0);
        position = length - queries;
        table = block_table + sequence * table_stride;
        q += start * q_token + head * group * q_head;
        out += start * out_token + head * group * out_head;
        k += head * k_head;
        v += head * v_head;
        first_key = 0, end_key = length;
        if (rows > 0) narrow();
        return rows > 0;
    }
    __device__ __forceinline__ const T *query(int row) const
    {
        return q + (first_row + row) / group * q_token + (first_row + row) % group * q_head;
    }
    __device__ __forceinline__ T *result(int row) const
    {
        return out + (first_row + row) / group * out_token + (first_row + row) % group * out_head;
    }
    __device__ __forceinline__ float *partial(int) const { return nullptr; }
    __device__ __forceinline__ int block(int j) const
    {
        const int entry = j / block_size, number = entry < entries ? table[entry] : -1;
        return number < num_blocks ? number : -1;
    }
    __device__ __forceinline__ const T *key(int j) const
    {
        const int64_t number = block(j);
        return number < 0 ? nullptr : k + number * k_block + j % block_size * k_slot;
    }
    __device__ __forceinline__ const T *value(int j) const
    {
        const int64_t number = block(j);
        return number < 0 ? nullptr : v + number * v_block + j % block_size * v_slot;
    }
    __device__ __forceinline__ bool biased(int first, int count) const { return bias_data && first + count > position; }
    __device__ __forceinline__ float bias(int row, int j) const
    {
        const int i = (first_row + row) / group, draft = j - position;
        if (draft < 0 || draft >= drafts || i >= drafts) return 0;
        return fkd_load_any(bias_data, bias_dtype, i * bias_stride[0] + draft * bias_stride[1]);
    }

  private:
    const int32_t *table;
    int queries;
};

template <typename T> fk_status launch(fk_ctx *ctx, cudaStream_t stream, const fk_tree_attn_prefill_args *a)
{
    tree_source<T> s = {};
    s.q = FK_PTR(const T, a->q), s.k = FK_PTR(const T, a->k), s.v = FK_PTR(const T, a->v), s.out = FK_PTR(T, a->out);
    s.q_token = a->q->strides[0], s.q_head = a->q->strides[1], s.out_token = a->out->strides[0], s.out_head = a->out->strides[1];
    s.k_block = a->k->strides[0], s.k_slot = a->k->strides[1], s.k_head = a->k->strides[2];
    s.v_block = a->v->strides[0], s.v_slot = a->v->strides[1], s.v_head = a->v->strides[2];
    s.cu_seqlens_q = FK_PTR(const int32_t, a->cu_seqlens_q), s.seqused_k = FK_PTR(const int32_t, a->seqused_k);
    s.block_table = FK_PTR(const int32_t, a->block_table), s.table_stride = a->block_table->strides[0];
    s.num_tokens = (int)a->q->shape[0], s.num_blocks = (int)a->k->shape[0], s.block_size = (int)a->k->shape[1];
    s.entries = (int)a->block_table->shape[1];
    if (a->qq_bias) {
        s.bias_data = a->qq_bias->data, s.bias_dtype = a->qq_bias->dtype, s.drafts = (int)a->qq_bias->shape[0];
        s.bias_stride[0] = a->qq_bias->strides[0], s.bias_stride[1] = a->qq_bias->strides[1];
    }
    s.head_size = (int)a->q->shape[2];
    s.group = (int)(a->q->shape[1] / a->k->shape[2]);
    s.scale = a->softmax_scale != 0 ? a->softmax_scale : 1.0f / sqrtf((float)s.head_size);
    s.softcap = a->softcap, s.window = -1, s.causal = a->causal;
    const bool tensor_cores = rows_aligned(a->q) && rows_aligned(a->k) && rows_aligned(a->v) && rows_aligned(a->out);
    const int64_t most = tensor_cores ? ROWS_BLOCK : ROWS_PLAIN, rows = (a->max_seqlen_q < a->q->shape[0] ? a->max_seqlen_q : a->q->shape[0]) * s.group;
    const dim3 grid((unsigned)((rows + most - 1) / most), (unsigned)a->k->shape[2], (unsigned)a->seqused_k->shape[0]);
    if (grid.x == 0) return FK_OK;
    if constexpr (sizeof(T) == 2)
        if (tensor_cores) return rows_launch_tiles<T>(ctx, stream, s, grid, "tree_attn_prefill");
    return rows_launch_plain<T>(ctx, stream, s, grid, "tree_attn_prefill");
}

} // namespace

extern "C" fk_status fk_tree_attn_prefill_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_tree_attn_prefill_args *a)
{
    if (fk_tensor_numel(a->q) == 0 || a->seqused_k->shape[0] == 0) return FK_OK;
    FK_DISPATCH_FLOAT(a->q->dtype, T, return launch<T>(ctx, stream, a));
    return FK_OK;
}

static bool supports(const fk_tree_attn_prefill_args *a)
{
    return rows_dense(a->q) && rows_dense(a->k) && rows_dense(a->v) && rows_dense(a->out) && rows_dense(a->block_table) &&
           fk_tensor_is_contiguous(a->cu_seqlens_q) && fk_tensor_is_contiguous(a->seqused_k) && a->q->shape[2] <= ROWS_MAX_HEAD_SIZE &&
           a->k->shape[2] <= 65535 && a->seqused_k->shape[0] <= 65535 && a->k->shape[0] <= INT32_MAX && a->k->shape[1] <= INT32_MAX &&
           a->q->shape[0] * a->q->shape[1] <= INT32_MAX / 2 && a->max_seqlen_k <= INT32_MAX / 2;
}

FK_CUDA_OP_IF(tree_attn_prefill, supports)
