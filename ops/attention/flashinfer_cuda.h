/* SPDX-License-Identifier: Apache-2.0 */
/* Attention over listed pages on CUDA: a block does one item of the plan for one KV head (attention_rows_cuda.h); where keys
 * are split, partial results are joined by a second kernel. The plan stays on the device: the host launches as many blocks
 * as there can be items. */
#ifndef FK_OPS_FLASHINFER_CUDA_H
#define FK_OPS_FLASHINFER_CUDA_H

#include "ops/attention/attention_rows_cuda.h"
#include "ops/attention/flashinfer_call.h"

#define FLASHINFER_JOIN_THREADS 128

/* Grid (item, KV head, block of the item's rows). Strides in elements. */
template <typename T> struct flashinfer_source : attention_rows {
    const T *q, *k, *v;
    T *out;
    int64_t q_token, q_head, out_token, out_head, k_page, k_slot, k_head, v_page, v_slot, v_head;
    const int32_t *plan, *indices;
    int requests, num_tokens, num_indices, num_pages, page_size;
    float *partials; /* [item][KV head][row of the tile][head_size + 2]; NULL: no plan of this call splits keys */
    int tile_rows;

    __device__ __forceinline__ bool begin(int most)
    {
        const int item = blockIdx.x;
        if (item >= plan[PLAN_ITEMS]) return false;
        int low = 0, high = requests - 1; /* the last request that begins at or before the item */
        while (low < high) {
            const int middle = (low + high + 1) / 2;
            if (plan[(1 + middle) * PLAN_COLUMNS + PLAN_FIRST_ITEM] <= item) low = middle;
            else high = middle - 1;
        }
        const int32_t *row = plan + (1 + low) * PLAN_COLUMNS;
        const int chunks = row[PLAN_CHUNKS], tile = (item - row[PLAN_FIRST_ITEM]) / chunks, chunk = (item - row[PLAN_FIRST_ITEM]) % chunks;
        const int queries = max(0, min(row[PLAN_QUERIES], num_tokens - row[PLAN_FIRST_QUERY]));
        const int before = (int)blockIdx.z * most; /* rows of the tile in earlier blocks */
        const float *options = (const float *)plan;
        first_row = tile * tile_rows + before;
        rows = min(min(most, tile_rows - before), queries * group - first_row);
        length = row[PLAN_LENGTH];
        position = length - row[PLAN_QUERIES];
        causal = plan[PLAN_CAUSAL] != 0, window = plan[PLAN_WINDOW];
        scale = options[PLAN_SCALE_BITS], softcap = options[PLAN_CAP_BITS];
        const int64_t head = blockIdx.y, each = (length + chunks - 1) / chunks;
        first_key = (int)min((int64_t)length, chunk * each), end_key = (int)min((int64_t)length, (chunk + 1) * each);
        table = indices + row[PLAN_FIRST_PAGE];
        pages = min(row[PLAN_PAGES], num_indices - row[PLAN_FIRST_PAGE]);
        q += row[PLAN_FIRST_QUERY] * q_token + head * group * q_head;
        out += row[PLAN_FIRST_QUERY] * out_token + head * group * out_head;
        k += head * k_head;
        v += head * v_head;
        to = chunks > 1 && partials ? partials + ((item * gridDim.y + head) * tile_rows + before) * (head_size + 2) : nullptr;
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
    __device__ __forceinline__ float *partial(int row) const { return to ? to + (int64_t)row * (head_size + 2) : nullptr; }
    __device__ __forceinline__ int page(int j) const
    {
        const int entry = j / page_size, number = entry < pages ? table[entry] : -1;
        return number < num_pages ? number : -1;
    }
    __device__ __forceinline__ const T *key(int j) const
    {
        const int64_t number = page(j);
        return number < 0 ? nullptr : k + number * k_page + j % page_size * k_slot;
    }
    __device__ __forceinline__ const T *value(int j) const
    {
        const int64_t number = page(j);
        return number < 0 ? nullptr : v + number * v_page + j % page_size * v_slot;
    }
    __device__ __forceinline__ bool biased(int, int) const { return false; }
    __device__ __forceinline__ float bias(int, int) const { return 0; }

  private:
    const int32_t *table;
    float *to;
    int pages;
};

/* Grid (item, KV head): blocks of first chunks join the chunks of their tile, row after row. */
template <typename T> static __global__ void __launch_bounds__(FLASHINFER_JOIN_THREADS) flashinfer_join_kernel(flashinfer_source<T> w)
{
    const int item = blockIdx.x, stride = w.head_size + 2;
    if (!w.begin(INT32_MAX) || !w.partial(0)) return;
    const int32_t *row_of_item = w.plan + PLAN_COLUMNS;
    int low = 0, high = w.requests - 1;
    while (low < high) {
        const int middle = (low + high + 1) / 2;
        if (row_of_item[middle * PLAN_COLUMNS + PLAN_FIRST_ITEM] <= item) low = middle;
        else high = middle - 1;
    }
    const int32_t *row = row_of_item + low * PLAN_COLUMNS;
    const int chunks = row[PLAN_CHUNKS];
    if ((item - row[PLAN_FIRST_ITEM]) % chunks != 0) return;
    const int64_t next = (int64_t)gridDim.y * w.tile_rows * stride; /* from an item to the next one */
    for (int r = 0; r < w.rows; r++) {
        const float *from = w.partial(r);
        float top = -INFINITY, total = 0;
        for (int i = 0; i < chunks; i++) top = fmaxf(top, from[i * next + w.head_size]);
        if (top == -INFINITY) top = 0; /* no key: all sums are 0 */
        for (int i = 0; i < chunks; i++) total += from[i * next + w.head_size + 1] * fkd_exp2(from[i * next + w.head_size] - top);
        const float inverse = total > 0 ? 1.0f / total : 0.0f;
        T *out = w.result(r);
        for (int e = threadIdx.x; e < w.head_size; e += FLASHINFER_JOIN_THREADS) {
            float sum = 0;
            for (int i = 0; i < chunks; i++) sum += from[i * next + e] * fkd_exp2(from[i * next + w.head_size] - top);
            out[e] = fkd_round<T>(sum * inverse);
        }
    }
}

template <typename T> static fk_status flashinfer_launch_as(fk_ctx *ctx, cudaStream_t stream, const flashinfer_call *c, const char *op)
{
    flashinfer_source<T> s = {};
    s.q = FK_PTR(const T, c->q), s.k = (const T *)c->k.data, s.v = (const T *)c->v.data, s.out = FK_PTR(T, c->out);
    s.q_token = c->q->strides[0], s.q_head = c->q->strides[1], s.out_token = c->out->strides[0], s.out_head = c->out->strides[1];
    s.k_page = c->k.strides[0], s.k_slot = c->k.strides[1], s.k_head = c->k.strides[2];
    s.v_page = c->v.strides[0], s.v_slot = c->v.strides[1], s.v_head = c->v.strides[2];
    s.plan = FK_PTR(const int32_t, c->plan), s.indices = FK_PTR(const int32_t, c->indices);
    s.requests = (int)c->plan->shape[0] - 1, s.num_tokens = (int)c->q->shape[0];
    s.num_indices = (int)c->indices->shape[0], s.num_pages = (int)c->k.shape[0], s.page_size = (int)c->k.shape[1];
    s.head_size = (int)c->q->shape[2];
    const int64_t kv_heads = c->k.shape[2], most = plan_most_items(kv_heads);
    s.group = (int)(c->q->shape[1] / kv_heads);
    const int tile_queries = plan_tile_queries(s.group);
    s.tile_rows = tile_queries * s.group;
    /* Every request has at most one tile that is not full; keys are split where tiles are fewer than `most`, to no more. */
    int64_t items = c->q->shape[0] / tile_queries + s.requests;
    const bool may_split = (c->q->shape[0] + tile_queries - 1) / tile_queries < most;
    if (may_split && items < most) items = most;
    if (may_split) {
        s.partials = (float *)fk_ctx_scratch(ctx, sizeof(float) * (size_t)(items * kv_heads * s.tile_rows * (s.head_size + 2)));
        if (!s.partials) return fk_ctx_status(ctx);
    }
    const bool tensor_cores = rows_aligned(c->q) && rows_aligned(&c->k) && rows_aligned(&c->v) && rows_aligned(c->out);
    const int rows = tensor_cores ? ROWS_BLOCK : ROWS_PLAIN;
    const dim3 grid((unsigned)items, (unsigned)kv_heads, (unsigned)((s.tile_rows + rows - 1) / rows));
    if constexpr (sizeof(T) == 2) {
        if (tensor_cores) FK_TRY(rows_launch_tiles<T>(ctx, stream, s, grid, op));
    }
    if (!tensor_cores) FK_TRY(rows_launch_plain<T>(ctx, stream, s, grid, op));
    if (!may_split) return FK_OK;
    flashinfer_join_kernel<T><<<dim3(grid.x, grid.y), FLASHINFER_JOIN_THREADS, 0, stream>>>(s);
    return fk_cuda_status(ctx, cudaGetLastError(), op);
}

static inline fk_status flashinfer_launch(fk_ctx *ctx, cudaStream_t stream, const flashinfer_call *c, const char *op)
{
    if (fk_tensor_numel(c->q) == 0 || c->plan->shape[0] < 2) return FK_OK;
    FK_DISPATCH_FLOAT(c->q->dtype, T, return flashinfer_launch_as<T>(ctx, stream, c, op));
    return FK_OK;
}

static inline bool flashinfer_supported(const flashinfer_call *c)
{
    return rows_dense(c->q) && rows_dense(&c->k) && rows_dense(&c->v) && rows_dense(c->out) && fk_tensor_is_contiguous(c->plan) &&
           fk_tensor_is_contiguous(c->indices) && c->q->shape[2] <= ROWS_MAX_HEAD_SIZE && c->k.shape[2] <= 65535 &&
           c->k.shape[0] <= INT32_MAX && c->k.shape[1] <= INT32_MAX && c->q->shape[0] * c->q->shape[1] <= INT32_MAX / 2 &&
           c->indices->shape[0] <= INT32_MAX && c->plan->shape[0] <= INT32_MAX / PLAN_COLUMNS;
}

#endif
