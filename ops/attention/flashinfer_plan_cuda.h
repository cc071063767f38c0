/* SPDX-License-Identifier: Apache-2.0 */
/* Making a plan on CUDA: one block of threads, strided over the requests. Numbers that make no sense are cut to what can
 * be read safely. */
#ifndef FK_OPS_FLASHINFER_PLAN_CUDA_H
#define FK_OPS_FLASHINFER_PLAN_CUDA_H

#include "core/cuda_op.h"
#include "ops/attention/flashinfer_plan_call.h"

#define PLAN_THREADS 256

struct plan_header {
    int32_t columns[PLAN_COLUMNS];
};

/* Items of all requests with chunks of so many tokens, for every thread; `total` is shared. */
static __device__ inline int64_t plan_device_items(const int32_t *rows, int requests, int32_t chunk_tokens, unsigned long long *total)
{
    unsigned long long mine = 0;
    for (int r = threadIdx.x; r < requests; r += PLAN_THREADS)
        mine += (unsigned long long)rows[r * PLAN_COLUMNS + PLAN_TILES] * plan_chunks(rows[r * PLAN_COLUMNS + PLAN_LENGTH], chunk_tokens);
    __syncthreads();
    if (threadIdx.x == 0) *total = 0;
    __syncthreads();
    if (mine) atomicAdd(total, mine);
    __syncthreads();
    return (int64_t)*total;
}

/* plan: [1 + requests, PLAN_COLUMNS]. qo_indptr NULL: queries_each. */
static __global__ void __launch_bounds__(PLAN_THREADS)
    plan_kernel(int32_t *plan, plan_header header, const int32_t *qo_indptr, int queries_each, const int32_t *indptr,
                const int32_t *last_page_len, int requests, int all_pages, int page_size, int most_items, bool split)
{
    __shared__ unsigned long long total;
    __shared__ int counts[PLAN_THREADS];
    int32_t *rows = plan + PLAN_COLUMNS;
    for (int r = threadIdx.x; r < requests; r += PLAN_THREADS) {
        int32_t *row = rows + r * PLAN_COLUMNS;
        const int first = qo_indptr ? max(qo_indptr[r], 0) : r * queries_each;
        const int queries = qo_indptr ? max(qo_indptr[r + 1] - first, 0) : queries_each;
        const int first_page = min(max(indptr[r], 0), all_pages), pages = min(max(indptr[r + 1] - first_page, 0), all_pages - first_page);
        const int64_t length = pages ? (int64_t)(pages - 1) * page_size + min(max(last_page_len[r], 1), page_size) : 0;
        row[PLAN_FIRST_QUERY] = first;
        row[PLAN_QUERIES] = queries;
        row[PLAN_LENGTH] = (int32_t)min(length, (int64_t)INT32_MAX);
        row[PLAN_TILES] = plan_ceil(queries, header.columns[PLAN_TILE_QUERIES]);
        row[PLAN_FIRST_PAGE] = first_page;
        row[PLAN_PAGES] = pages;
    }
    __syncthreads();
    int32_t chunk = INT32_MAX;
    if (split && plan_device_items(rows, requests, chunk, &total) < most_items) {
        chunk = PLAN_CHUNK;
        while (chunk < INT32_MAX && plan_device_items(rows, requests, chunk, &total) > most_items)
            chunk = chunk > INT32_MAX / 2 ? INT32_MAX : 2 * chunk;
    }
    int before = 0; /* items of the requests of earlier rounds */
    for (int first = 0; first < requests; first += PLAN_THREADS) {
        const int r = first + threadIdx.x;
        int32_t *row = rows + r * PLAN_COLUMNS;
        const int chunks = r < requests ? plan_chunks(row[PLAN_LENGTH], chunk) : 0, items = r < requests ? row[PLAN_TILES] * chunks : 0;
        counts[threadIdx.x] = items;
        __syncthreads();
        for (int step = 1; step < PLAN_THREADS; step *= 2) { /* sums of all threads up to this one */
            const int more = threadIdx.x >= step ? counts[threadIdx.x - step] : 0;
            __syncthreads();
            counts[threadIdx.x] += more;
            __syncthreads();
        }
        if (r < requests) row[PLAN_CHUNKS] = chunks, row[PLAN_FIRST_ITEM] = before + counts[threadIdx.x] - items;
        before += counts[PLAN_THREADS - 1];
        __syncthreads();
    }
    if (threadIdx.x < PLAN_COLUMNS) {
        header.columns[PLAN_ITEMS] = before;
        header.columns[PLAN_CHUNK_TOKENS] = chunk;
        plan[threadIdx.x] = header.columns[threadIdx.x];
    }
}

static inline fk_status plan_launch(fk_ctx *ctx, cudaStream_t stream, const plan_call *c, const char *op)
{
    plan_header header;
    plan_options(c, header.columns);
    plan_kernel<<<1, PLAN_THREADS, 0, stream>>>(FK_PTR(int32_t, c->plan), header, FK_PTR(const int32_t, c->qo_indptr), (int)c->queries_each,
                                                FK_PTR(const int32_t, c->indptr), FK_PTR(const int32_t, c->last_page_len),
                                                (int)c->last_page_len->shape[0], (int)c->indices->shape[0], (int)c->page_size,
                                                plan_most_items(c->num_kv_heads), !c->disable_split);
    return fk_cuda_status(ctx, cudaGetLastError(), op);
}

static inline bool plan_supported(const plan_call *c)
{
    return (!c->qo_indptr || fk_tensor_is_contiguous(c->qo_indptr)) && fk_tensor_is_contiguous(c->indptr) &&
           fk_tensor_is_contiguous(c->last_page_len) && fk_tensor_is_contiguous(c->plan) && c->indices->shape[0] <= INT32_MAX &&
           c->last_page_len->shape[0] <= INT32_MAX / PLAN_COLUMNS && c->queries_each * c->last_page_len->shape[0] <= INT32_MAX;
}

#endif
