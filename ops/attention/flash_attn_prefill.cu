/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of new tokens over a paged cache on CUDA, in one pass (FlashAttention-2, arXiv:2307.08691): a
 * block holds a tile of queries of one head and walks over tiles of keys, which cp.async brings to shared
 * memory one tile ahead; scores, online softmax and output stay in registers of tensor-core (mma.sync)
 * fragments. float32 and head sizes that are no multiple of 8 take the plain kernel of
 * ops/attention/paged_attention_cuda.h. */
#include "ops/attention/flash_tile_cuda.h"
#include "ops/attention/paged_attention_cuda.h"

#define WARPS 4
#define THREADS (32 * WARPS)

namespace
{

/* Tile sizes: two fragments a warp halve the traffic of keys and values out of shared memory, which else bounds the
 * kernel; at D 256 they do not fit the registers. */
template <int D> using tile = flash_tile<D, D <= 128 ? 2 : 1, D <= 128 ? 64 : 32, WARPS>;

/* One block's sequence, queries and keys. */
struct span {
    int64_t first_token;    /* of the tile */
    int rows;               /* queries of the tile */
    int position;           /* of its first query among the sequence's tokens; may be negative */
    int length, begin, end; /* cached tokens; keys that any query of the tile sees */
    const int32_t *table;
};

/* Keys [begin, end) that the query at `position` sees. */
__device__ __forceinline__ int visible_end(const paged_call &c, int position, int length)
{
    return c.causal && position + 1 < length ? position + 1 : length;
}
__device__ __forceinline__ int visible_begin(const paged_call &c, int position)
{
    return c.window >= 0 && position > c.window ? position - c.window : 0;
}

/* Minus infinity where a query does not see a key. Rows and columns of a lane as core/cuda_mma.h has them. */
template <int D>
__device__ __forceinline__ void mask(float (&s)[tile<D>::MT][tile<D>::BN / 8][4], const paged_call &c,
                                     const span &w, int key)
{
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 * tile<D>::MT + lane / 4;
    key += 2 * (lane % 4);
#pragma unroll
    for (int m = 0; m < tile<D>::MT; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int position = w.position + row + 16 * m + 8 * half;
            int begin = visible_begin(c, position), end = visible_end(c, position, w.length);
#pragma unroll
            for (int n = 0; n < tile<D>::BN / 8; n++)
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    int at = key + 8 * n + i;
                    if (at < begin || at >= end) s[m][n][2 * half + i] = -INFINITY;
                }
        }
}

/* Grid (head, tile, sequence); tiles with most keys first. Block: BM queries of a head, warp w rows [16 MT w,
 * + 16 MT). Shared memory: queries [BM], keys [2][BN], values [2][BN] in rows of PITCH elements, block
 * numbers [2][BN]. In round i the tile of keys i is multiplied while i + 1 is copied and the block numbers of
 * i + 2 are fetched; one barrier a round. */
template <typename T, int D> __global__ void __launch_bounds__(THREADS, 2) prefill_kernel(const paged_call c)
{
    constexpr int MT = tile<D>::MT, BN = tile<D>::BN, BM = tile<D>::BM, PITCH = tile<D>::PITCH;
    extern __shared__ __align__(16) unsigned char shared[];
    T *q_tile = (T *)shared;
    int *blocks = (int *)(shared + (BM + 4 * BN) * PITCH * 2);
    const uint32_t q_at = fkd_shared_address(q_tile), k_at = q_at + BM * PITCH * 2,
                   v_at = k_at + 2 * BN * PITCH * 2;

    const int head = blockIdx.x, sequence = blockIdx.z;
    const int start = c.cu_seqlens_q[sequence], queries = c.cu_seqlens_q[sequence + 1] - start;
    const int first_row = (int)(gridDim.y - 1 - blockIdx.y) * BM;
    if (first_row >= queries) return;
    span w;
    w.first_token = start + first_row;
    w.rows = queries - first_row < BM ? queries - first_row : BM;
    w.length = c.seqused_k[sequence];
    w.position = w.length - queries + first_row;
    w.begin = visible_begin(c, w.position);
    w.end = visible_end(c, w.position + w.rows - 1, w.length);
    w.table = c.block_table + sequence * c.table_stride;
    const int first_tile = w.begin / BN, tiles = w.end > w.begin ? (w.end + BN - 1) / BN - first_tile : 0;
    /* Tiles in between are seen whole by every query. */
    const int whole_begin = visible_begin(c, w.position + w.rows - 1),
              whole_end = visible_end(c, w.position, w.length);

    const T *q = (const T *)c.q + w.first_token * c.q_token + head * c.q_head;
    const T *k = (const T *)c.k + head / c.group * c.k_head, *v = (const T *)c.v + head / c.group * c.v_head;
    auto fetch_blocks = [&](int i) { /* of tile i into slot i % 2 */
                                     int key = (first_tile + i) * BN + threadIdx.x;
                                     if (threadIdx.x < BN && i < tiles && key < w.end)
                                         blocks[i % 2 * BN + threadIdx.x] = paged_block(c, w.table, key);
    };
    auto copy_tile = [&](int i) {
        const int key = (first_tile + i) * BN;
        const int *numbers = blocks + i % 2 * BN;
        auto row_of = [&](const T *base, int64_t block_stride, int64_t slot_stride, int row) -> const T * {
            if (key + row >= w.end || numbers[row] < 0) return nullptr;
            return base + numbers[row] * block_stride + paged_slot(c, key + row) * slot_stride;
        };
        uint32_t buffer = (uint32_t)(i % 2 * BN * PITCH * 2);
        copy_rows<T, tile<D>, BN>(k_at + buffer, c.head_size, k,
                            [&](int row) { return row_of(k, c.k_block, c.k_slot, row); });
        copy_rows<T, tile<D>, BN>(v_at + buffer, c.head_size, v,
                            [&](int row) { return row_of(v, c.v_block, c.v_slot, row); });
    };

    float o[MT][D / 8][4] = {}, l[MT][2] = {}, largest[MT][2];
#pragma unroll
    for (int m = 0; m < MT; m++) largest[m][0] = largest[m][1] = -INFINITY;
    fetch_blocks(0);
    fetch_blocks(1);
    __syncthreads();
    copy_rows<T, tile<D>, BM>(q_at, c.head_size, q,
                        [&](int row) { return row < w.rows ? q + row * c.q_token : nullptr; });
    if (tiles > 0) copy_tile(0);
    fkd_copy_commit();
    const float unit = c.softcap > 0 ? PAGED_LOG2_E : c.scale * PAGED_LOG2_E;
    for (int i = 0; i < tiles; i++) {
        fkd_copy_wait<0>();
        __syncthreads(); /* tile i is there for all, and all are done with tile i - 1 */
        if (i + 1 < tiles) copy_tile(i + 1);
        fkd_copy_commit();
        fetch_blocks(i + 2);
        const uint32_t buffer = (uint32_t)(i % 2 * BN * PITCH * 2);
        float s[MT][BN / 8][4] = {};
        multiply_keys<T, tile<D>>(s, q_at + threadIdx.x / 32 * 16 * MT * PITCH * 2, k_at + buffer);
        if (c.softcap > 0)
#pragma unroll
            for (int m = 0; m < MT; m++)
#pragma unroll
                for (int n = 0; n < BN / 8; n++)
#pragma unroll
                    for (int j = 0; j < 4; j++) s[m][n][j] = paged_capped(s[m][n][j], c.scale, c.softcap);
        const int key = (first_tile + i) * BN;
        if (key < whole_begin || key + BN > whole_end) mask<D>(s, c, w, key);
        soften<tile<D>>(s, o, largest, l, unit);
        multiply_values<T, tile<D>>(o, s, v_at + buffer);
    }
    fkd_copy_wait<0>();
    if (tiles == 0) __syncthreads(); /* no round has waited for the queries that other warps copy to where zeros go now */
    T *out = (T *)c.out + w.first_token * c.out_token + head * c.out_head;
    write_rows<T, tile<D>>(o, l, q_tile, w.rows, c.head_size, [&](int row) { return out + row * c.out_token; });
}

template <typename T, int D>
fk_status launch(fk_ctx *ctx, cudaStream_t stream, const paged_call *c, int64_t max_queries)
{
    constexpr int bytes = tile<D>::SHARED_BYTES;
    int64_t tiles = (max_queries + tile<D>::BM - 1) / tile<D>::BM;
    if (tiles > 65535)
        return fk_fail(FK_ERROR_UNSUPPORTED, "max_seqlen_q %lld is more than a grid holds",
                       (long long)max_queries);
    FK_TRY(fk_cuda_status(
        ctx, cudaFuncSetAttribute(prefill_kernel<T, D>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
        "flash_attn_prefill: shared memory"));
    prefill_kernel<T, D>
        <<<dim3((unsigned)c->heads, (unsigned)tiles, (unsigned)c->sequences), THREADS, bytes, stream>>>(*c);
    return fk_cuda_status(ctx, cudaGetLastError(), "flash_attn_prefill");
}

template <typename T>
fk_status launch_for(fk_ctx *ctx, cudaStream_t stream, const paged_call *c, int64_t max_queries)
{
    if (c->head_size <= 64) return launch<T, 64>(ctx, stream, c, max_queries);
    if (c->head_size <= 80) return launch<T, 80>(ctx, stream, c, max_queries);
    if (c->head_size <= 96) return launch<T, 96>(ctx, stream, c, max_queries);
    if (c->head_size <= 128) return launch<T, 128>(ctx, stream, c, max_queries);
    return launch<T, 256>(ctx, stream, c, max_queries);
}

} // namespace

extern "C" fk_status fk_flash_attn_prefill_cuda(fk_ctx *ctx, cudaStream_t stream,
                                                const fk_flash_attn_prefill_args *a)
{
    if (fk_tensor_numel(a->q) == 0 || a->seqused_k->shape[0] == 0) return FK_OK;
    paged_call c;
    paged_describe(&c, a->q, a->k, a->v, a->out, a->seqused_k, a->block_table, a->softmax_scale,
                   a->window_size, a->softcap);
    c.cu_seqlens_q = FK_PTR(const int32_t, a->cu_seqlens_q);
    c.causal = a->causal;
    if (!paged_takes_tensor_cores(&c, a->q->dtype))
        return paged_launch_plain(ctx, stream, &c, a->q->dtype, a->q->shape[0], "flash_attn_prefill");
    FK_DISPATCH_HALF(a->q->dtype, T, return (launch_for<T>(ctx, stream, &c, a->max_seqlen_q)));
    return FK_OK;
}

static bool supports(const fk_flash_attn_prefill_args *a)
{
    return paged_supported(a->q, a->k, a->v, a->out, a->seqused_k, a->block_table) &&
           fk_tensor_is_contiguous(a->cu_seqlens_q);
}

FK_CUDA_OP_IF(flash_attn_prefill, supports)
