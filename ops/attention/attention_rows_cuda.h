/* SPDX-License-Identifier: Apache-2.0 */
/* Attention on CUDA over rows and keys that a source describes: dense, paged by index lists, under a tree's mask. The rows
 * of a KV head are its queries, query by query, the heads of its group side by side, so that a group shares the keys that
 * a block reads. Two kernels: tensor cores for 16-bit floats in aligned rows, and a plain one, slow, for the rest.
 *
 * A source is a struct, passed by value, with a base of attention_rows and these members:
 *   bool begin(int rows)      finds the block's work from blockIdx, at most `rows` rows of it; false: none
 *   const T *query(int row), T *result(int row), const T *key(int j), *value(int j)    NULL: a key that counts as zeros
 *   float *partial(int row)   NULL, or where head_size sums, the largest score (times log2 e) and the total go, for a join
 *   bool biased(int first, int count), float bias(int row, int j)     added to the scaled score */
#ifndef FK_OPS_ATTENTION_ROWS_CUDA_H
#define FK_OPS_ATTENTION_ROWS_CUDA_H

#include "ops/attention/flash_tile_cuda.h"

#define ROWS_WARPS 4
#define ROWS_THREADS (32 * ROWS_WARPS)
#define ROWS_BLOCK (16 * ROWS_WARPS) /* rows of a block on tensor cores */
#define ROWS_PLAIN ROWS_WARPS        /* of the plain kernel: one a warp */
#define ROWS_MAX_HEAD_SIZE 256
#define ROWS_LOG2_E 1.4426950408889634f

/* What both kernels need to know of a block's work; `begin` fills it in. */
struct attention_rows {
    int head_size, group;
    int rows, first_row; /* of the block, and the first one's number in its sequence */
    int position;        /* key number of query 0 of the sequence; may be negative */
    int length;          /* keys of the sequence */
    int first_key, end_key; /* that the block looks at */
    float scale, softcap;
    int window; /* negative: none */
    bool causal;

    __device__ __forceinline__ int visible_begin(int row) const
    {
        int at = position + (first_row + row) / group;
        return window >= 0 && at > window ? at - window : 0;
    }
    __device__ __forceinline__ int visible_end(int row) const
    {
        int at = position + (first_row + row) / group;
        return causal && at + 1 < length ? (at < 0 ? 0 : at + 1) : length;
    }
    /* Narrows the keys to those that any row of the block sees. */
    __device__ __forceinline__ void narrow()
    {
        first_key = max(first_key, visible_begin(0));
        end_key = min(end_key, visible_end(rows - 1));
    }
    __device__ __forceinline__ float finished(float score) const
    {
        return softcap > 0 ? softcap * tanhf(score * scale / softcap) : score * scale;
    }
};

template <int D> using rows_tile = flash_tile<D, 1, D <= 128 ? 64 : 32, ROWS_WARPS>;

/* Scales, caps, biases and masks the scores of one tile of keys from `first` on. */
template <typename Tile, typename Source>
static __device__ __forceinline__ void rows_finish_scores(float (&s)[1][Tile::BN / 8][4], const Source &w, int first)
{
    const int lane = threadIdx.x % 32, column = first + 2 * (lane % 4);
    const bool biased = w.biased(first, Tile::BN);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = threadIdx.x / 32 * 16 + lane / 4 + 8 * half;
        const int begin = max(w.first_key, w.visible_begin(row)), end = row < w.rows ? min(w.end_key, w.visible_end(row)) : 0;
#pragma unroll
        for (int n = 0; n < Tile::BN / 8; n++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                float &score = s[0][n][2 * half + i];
                const int j = column + 8 * n + i;
                if (j < begin || j >= end) score = -INFINITY;
                else score = biased ? w.finished(score) + w.bias(row, j) : w.finished(score);
            }
    }
}

/* Sums, largest scores and totals to where a join finds them. */
template <typename Tile, typename Source>
static __device__ __forceinline__ void rows_write_partial(const float (&o)[1][Tile::D / 8][4], const float (&l)[1][2],
                                                          const float (&largest)[1][2], const Source &w)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int row = threadIdx.x / 32 * 16 + lane / 4 + 8 * half;
        float sum = l[0][half];
        sum += __shfl_xor_sync(~0u, sum, 1);
        sum += __shfl_xor_sync(~0u, sum, 2);
        if (row >= w.rows) continue;
        float *to = w.partial(row);
#pragma unroll
        for (int d = 0; d < Tile::D / 8; d++)
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int e = 8 * d + 2 * (lane % 4) + i;
                if (e < w.head_size) to[e] = o[0][d][2 * half + i];
            }
        if (lane % 4 == 0) to[w.head_size] = largest[0][half] * ROWS_LOG2_E, to[w.head_size + 1] = sum;
    }
}

/* Block: ROWS_BLOCK rows, warp w rows [16 w, 16 w + 16). Shared memory: queries, keys and values twice. In round i the
 * tile of keys i is multiplied while tile i + 1 is copied; one barrier a round. */
template <typename T, int D, typename Source>
static __global__ void __launch_bounds__(ROWS_THREADS, 2) rows_kernel(Source w)
{
    using Tile = rows_tile<D>;
    constexpr int BN = Tile::BN, PITCH = Tile::PITCH;
    extern __shared__ __align__(16) unsigned char rows_shared[];
    if (!w.begin(ROWS_BLOCK)) return;
    T *q_tile = (T *)rows_shared;
    const uint32_t q_at = fkd_shared_address(q_tile), k_at = q_at + ROWS_BLOCK * PITCH * 2, v_at = k_at + 2 * BN * PITCH * 2;
    const int first_tile = w.first_key / BN, tiles = w.end_key > w.first_key ? (w.end_key + BN - 1) / BN - first_tile : 0;
    const T *anywhere = w.query(0);
    auto copy_tile = [&](int i) {
        const int first = (first_tile + i) * BN;
        const uint32_t buffer = (uint32_t)(i % 2 * BN * PITCH * 2);
        auto inside = [&](int row) { return first + row >= w.first_key && first + row < w.end_key; };
        copy_rows<T, Tile, BN>(k_at + buffer, w.head_size, anywhere,
                               [&](int row) -> const T * { return inside(row) ? w.key(first + row) : nullptr; });
        copy_rows<T, Tile, BN>(v_at + buffer, w.head_size, anywhere,
                               [&](int row) -> const T * { return inside(row) ? w.value(first + row) : nullptr; });
    };
    float o[1][D / 8][4] = {}, l[1][2] = {}, largest[1][2] = {{-INFINITY, -INFINITY}};
    copy_rows<T, Tile, ROWS_BLOCK>(q_at, w.head_size, anywhere,
                                   [&](int row) -> const T * { return row < w.rows ? w.query(row) : nullptr; });
    if (tiles > 0) copy_tile(0);
    fkd_copy_commit();
    for (int i = 0; i < tiles; i++) {
        fkd_copy_wait<0>();
        __syncthreads(); /* tile i is there for all, and all are done with tile i - 1 */
        if (i + 1 < tiles) copy_tile(i + 1);
        fkd_copy_commit();
        const uint32_t buffer = (uint32_t)(i % 2 * BN * PITCH * 2);
        float s[1][BN / 8][4] = {};
        multiply_keys<T, Tile>(s, q_at + threadIdx.x / 32 * 16 * PITCH * 2, k_at + buffer);
        rows_finish_scores<Tile>(s, w, (first_tile + i) * BN);
        soften<Tile>(s, o, largest, l, ROWS_LOG2_E);
        multiply_values<T, Tile>(o, s, v_at + buffer);
    }
    fkd_copy_wait<0>();
    if (tiles == 0) __syncthreads(); /* no round has waited for the queries, over which results go */
    if (w.partial(0)) rows_write_partial<Tile>(o, l, largest, w);
    else write_rows<T, Tile>(o, l, q_tile, w.rows, w.head_size, [&](int row) { return w.result(row); });
}

/* Any float dtype and alignment. Block: one row a warp, lanes over the features, all keys one after another. */
template <typename T, typename Source> static __global__ void __launch_bounds__(ROWS_THREADS) rows_plain_kernel(Source w)
{
    constexpr int PER_LANE = ROWS_MAX_HEAD_SIZE / 32;
    if (!w.begin(ROWS_PLAIN)) return;
    const int row = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (row >= w.rows) return;
    const T *q = w.query(row);
    float query[PER_LANE], value[PER_LANE], m = -INFINITY, l = 0;
#pragma unroll
    for (int i = 0; i < PER_LANE; i++) {
        query[i] = lane + 32 * i < w.head_size ? fkd_float(q[lane + 32 * i]) : 0.0f;
        value[i] = 0;
    }
    const int begin = max(w.first_key, w.visible_begin(row)), end = min(w.end_key, w.visible_end(row));
    for (int j = begin; j < end; j++) {
        const T *k = w.key(j), *v = w.value(j);
        float score = 0;
#pragma unroll
        for (int i = 0; i < PER_LANE; i++)
            if (k && lane + 32 * i < w.head_size) score += query[i] * fkd_float(k[lane + 32 * i]);
        score = w.finished(fkd_warp_sum(score));
        if (w.biased(j, 1)) score += w.bias(row, j);
        if (score == -INFINITY) continue;
        const float next = fmaxf(m, score), keep = expf(m - next), p = expf(score - next);
        m = next;
        l = l * keep + p;
#pragma unroll
        for (int i = 0; i < PER_LANE; i++)
            if (lane + 32 * i < w.head_size) value[i] = value[i] * keep + (v ? p * fkd_float(v[lane + 32 * i]) : 0.0f);
    }
    float *partial = w.partial(row);
    T *out = partial ? nullptr : w.result(row);
    const float inverse = l > 0 ? 1.0f / l : 0.0f;
#pragma unroll
    for (int i = 0; i < PER_LANE; i++) {
        const int e = lane + 32 * i;
        if (e >= w.head_size) continue;
        if (partial) partial[e] = value[i];
        else out[e] = fkd_round<T>(value[i] * inverse);
    }
    if (partial && lane == 0) partial[w.head_size] = m * ROWS_LOG2_E, partial[w.head_size + 1] = l;
}

template <typename T, int D, typename Source>
static fk_status rows_launch(fk_ctx *ctx, cudaStream_t stream, const Source &source, dim3 grid, const char *op)
{
    constexpr int bytes = rows_tile<D>::SHARED_BYTES;
    FK_TRY(fk_cuda_status(ctx, cudaFuncSetAttribute(rows_kernel<T, D, Source>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                          op));
    rows_kernel<T, D, Source><<<grid, ROWS_THREADS, bytes, stream>>>(source);
    return fk_cuda_status(ctx, cudaGetLastError(), op);
}

/* On tensor cores, head sizes padded to the next one there is. */
template <typename T, typename Source>
static fk_status rows_launch_tiles(fk_ctx *ctx, cudaStream_t stream, const Source &source, dim3 grid, const char *op)
{
    if (source.head_size <= 64) return rows_launch<T, 64>(ctx, stream, source, grid, op);
    if (source.head_size <= 128) return rows_launch<T, 128>(ctx, stream, source, grid, op);
    return rows_launch<T, 256>(ctx, stream, source, grid, op);
}

template <typename T, typename Source>
static fk_status rows_launch_plain(fk_ctx *ctx, cudaStream_t stream, const Source &source, dim3 grid, const char *op)
{
    rows_plain_kernel<T, Source><<<grid, ROWS_THREADS, 0, stream>>>(source);
    return fk_cuda_status(ctx, cudaGetLastError(), op);
}

/* What the tensor-core kernel asks of a tensor: 16-byte aligned rows whatever the indices of the other dims. */
static inline bool rows_aligned(const fk_tensor *t)
{
    for (int i = 0; i + 1 < t->ndim; i++)
        if (t->shape[i] > 1 && t->strides[i] % 8 != 0) return false;
    return fk_dtype_bits(t->dtype) == 16 && t->shape[t->ndim - 1] % 8 == 0 && fkp_cuda_aligned16(t->data, 0);
}

static inline bool rows_dense(const fk_tensor *t)
{
    return t->shape[t->ndim - 1] == 1 || t->strides[t->ndim - 1] == 1;
}

#endif
