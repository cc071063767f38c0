/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of one new token per sequence over its paged cache on CUDA. Bound by reading the cache, so each
 * key and value is read once: the query heads of one KV head are the rows of a tensor-core tile (up to 16 of
 * them). Sequences are split over blocks until the device is full, a block's keys over its warps; each warp
 * runs its own ring of asynchronous copies. Partial results meet in fixed order, in shared memory and then in
 * a second kernel, so that the result is the same every time. float32 and head sizes that are no multiple of
 * 8 take the plain kernel of ops/attention/paged_attention_cuda.h. */
#include "ops/attention/paged_attention_cuda.h"

#define WARPS 4
#define THREADS (32 * WARPS)
#define ROWS 16  /* query heads of one KV head in a tile */
#define KEYS 16  /* of one step of a warp */
#define STAGES 3 /* steps in the ring: two on the way while one is multiplied */
#define MAX_SPLITS 128
#define COMBINE_THREADS 128
#define FULL_ENOUGH 0.85 /* of the best filling of the device: take the fewest splits that reach it */

namespace
{

template <int D> struct ring {
    static constexpr int PITCH = D + 8; /* an odd number of 16-byte units: ldmatrix meets every bank once */
    static constexpr int STAGE_BYTES = 2 * KEYS * PITCH * 2; /* keys, then values */
    static constexpr int SHARED_BYTES = WARPS * STAGES * STAGE_BYTES;
    static_assert(SHARED_BYTES >= WARPS * ROWS * (D + 2) * 4, "the warps' results take the ring's place");
};

/* Results of the splits: value [sequences, heads, splits, D], each divided by its sum; weight, log2 of that
 * sum. */
struct partials {
    float *value, *weight;
    int splits;
};

/* Block numbers of a step's 16 keys, key i in lanes i and i + 16. */
__device__ __forceinline__ int step_blocks(const paged_call &c, const int32_t *table, int key, int end)
{
    key += threadIdx.x % KEYS;
    return key < end ? paged_block(c, table, key) : -1;
}

/* Copies a step's keys and values into a stage; missing keys and features past head_size become zeros. */
template <typename T, int D>
__device__ __forceinline__ void copy_step(const paged_call &c, uint32_t stage, const T *k, const T *v,
                                          int key, int blocks)
{
    constexpr int CHUNKS = D / 8, PITCH = ring<D>::PITCH;
    static_assert(KEYS * CHUNKS % 32 == 0, "every lane copies the same number of chunks");
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < KEYS * CHUNKS / 32; i++) {
        int item = lane + 32 * i, row = item / CHUNKS, chunk = item % CHUNKS;
        int block = __shfl_sync(~0u, blocks, row), slot = paged_slot(c, key + row);
        bool valid = block >= 0 && 8 * chunk < c.head_size;
        uint32_t to = stage + (row * PITCH + 8 * chunk) * 2;
        fkd_copy_async(to, valid ? k + block * c.k_block + slot * c.k_slot + 8 * chunk : k, valid);
        fkd_copy_async(to + KEYS * PITCH * 2, valid ? v + block * c.v_block + slot * c.v_slot + 8 * chunk : v,
                       valid);
    }
}

/* Query heads [first, first + rows) as left operands: lane l holds rows l/4 and l/4 + 8. */
template <typename T, int D>
__device__ __forceinline__ void load_queries(uint32_t (&a)[D / 16][4], const paged_call &c, const T *q,
                                             int rows)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int step = 0; step < D / 16; step++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            int row = lane / 4 + i % 2 * 8, feature = step * 16 + i / 2 * 8 + 2 * (lane % 4);
            bool valid = row < rows && feature < c.head_size;
            a[step][i] = valid ? *(const uint32_t *)(q + row * c.q_head + feature) : 0;
        }
}

/* One step: scores, online softmax, weighted values. Keys from `valid` on are masked. */
template <typename T, int D>
__device__ __forceinline__ void attend_step(const paged_call &c, const uint32_t (&q)[D / 16][4],
                                            uint32_t stage, int valid, float unit, float (&o)[D / 8][4],
                                            float (&largest)[2], float (&l)[2])
{
    constexpr int PITCH = ring<D>::PITCH;
    const int lane = threadIdx.x % 32;
    const uint32_t k_lane = stage + ((lane / 16 * 8 + lane % 8) * PITCH + lane / 8 % 2 * 8) * 2;
    const uint32_t v_lane = stage + ((KEYS + lane % 16) * PITCH + lane / 16 * 8) * 2;
    float s[2][4] = {};
#pragma unroll
    for (int step = 0; step < D / 16; step++) {
        uint32_t b[4];
        fkd_ldmatrix(b, k_lane + step * 16 * 2);
        fkd_mma<T>(s[0], q[step], b[0], b[1]);
        fkd_mma<T>(s[1], q[step], b[2], b[3]);
    }
#pragma unroll
    for (int n = 0; n < 2; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (c.softcap > 0) s[n][i] = paged_capped(s[n][i], c.scale, c.softcap);
            if (8 * n + 2 * (lane % 4) + i % 2 >= valid) s[n][i] = -INFINITY;
        }
    float keep[2];
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float top =
            fmaxf(fmaxf(s[0][2 * half], s[0][2 * half + 1]), fmaxf(s[1][2 * half], s[1][2 * half + 1]));
        top = fmaxf(top, largest[half]);
        top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
        top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
        float base = top * unit, sum = 0; /* finite: a step has one key at least */
        keep[half] = fkd_exp2(largest[half] * unit - base);
        largest[half] = top;
#pragma unroll
        for (int n = 0; n < 2; n++)
#pragma unroll
            for (int i = 2 * half; i < 2 * half + 2; i++) {
                s[n][i] = fkd_exp2(s[n][i] * unit - base);
                sum += s[n][i];
            }
        l[half] = l[half] * keep[half] + sum;
    }
    const uint32_t p[4] = {fkd_pack2<T>(s[0][0], s[0][1]), fkd_pack2<T>(s[0][2], s[0][3]),
                           fkd_pack2<T>(s[1][0], s[1][1]), fkd_pack2<T>(s[1][2], s[1][3])};
#pragma unroll
    for (int d = 0; d < D / 16; d++) {
        uint32_t b[4];
        fkd_ldmatrix_transposed(b, v_lane + d * 16 * 2);
#pragma unroll
        for (int n = 2 * d; n < 2 * d + 2; n++) {
            o[n][0] *= keep[0], o[n][1] *= keep[0], o[n][2] *= keep[1], o[n][3] *= keep[1];
        }
        fkd_mma<T>(o[2 * d], p, b[0], b[1]);
        fkd_mma<T>(o[2 * d + 1], p, b[2], b[3]);
    }
}

/* Merges the warps' results in the order of the warps and writes them: rounded to `out`, or to the partials
 * of this split. Shared memory: value [WARPS][ROWS][D], largest score and sum [WARPS][ROWS] each, in floats.
 */
template <typename T, int D>
__device__ __forceinline__ void write_result(const paged_call &c, const partials &part, float *shared,
                                             const float (&o)[D / 8][4], const float (&largest)[2],
                                             float (&l)[2], float unit, int head, int rows)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, sequence = blockIdx.z;
    float *value = shared, *tops = shared + WARPS * ROWS * D, *sums = tops + WARPS * ROWS;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        int row = lane / 4 + 8 * half;
        l[half] += __shfl_xor_sync(~0u, l[half], 1);
        l[half] += __shfl_xor_sync(~0u, l[half], 2);
        if (row >= rows) continue;
        if (lane % 4 == 0) tops[warp * ROWS + row] = largest[half] * unit, sums[warp * ROWS + row] = l[half];
        float *to = value + (warp * ROWS + row) * D + 2 * (lane % 4);
#pragma unroll
        for (int n = 0; n < D / 8; n++)
            *(float2 *)(to + 8 * n) = make_float2(o[n][2 * half], o[n][2 * half + 1]);
    }
    __syncthreads();
    for (int item = threadIdx.x; item < rows * D; item += THREADS) {
        int row = item / D, feature = item % D;
        float top = -INFINITY, sum = 0, x = 0;
#pragma unroll
        for (int w = 0; w < WARPS; w++) top = fmaxf(top, tops[w * ROWS + row]);
#pragma unroll
        for (int w = 0; w < WARPS; w++) {
            if (!(sums[w * ROWS + row] > 0)) continue; /* a warp without keys */
            float factor = fkd_exp2(tops[w * ROWS + row] - top);
            sum += sums[w * ROWS + row] * factor;
            x += value[(w * ROWS + row) * D + feature] * factor;
        }
        if (feature >= c.head_size) continue;
        x = sum > 0 ? x / sum : 0.0f;
        int64_t at = ((int64_t)sequence * c.heads + head + row) * part.splits + blockIdx.x;
        if (part.splits == 1)
            ((T *)c.out)[sequence * c.out_token + (head + row) * c.out_head + feature] = fkd_round<T>(x);
        else
            part.value[at * D + feature] = x;
        if (part.splits > 1 && feature == 0) part.weight[at] = sum > 0 ? top + log2f(sum) : -INFINITY;
    }
}

/* Grid (split, KV head and tile of its query heads, sequence). A split has an equal share of the sequence's
 * keys, rounded up to whole rounds of the warps; warp w takes steps w, w + WARPS, ... of it. */
template <typename T, int D>
__global__ void __launch_bounds__(THREADS) decode_kernel(const paged_call c, const partials part)
{
    extern __shared__ __align__(16) unsigned char shared[];
    const int warp = threadIdx.x / 32, sequence = blockIdx.z;
    const int tiles = (c.group + ROWS - 1) / ROWS, kv_head = blockIdx.y / tiles, tile = blockIdx.y % tiles;
    const int head = kv_head * c.group + tile * ROWS,
              rows = c.group - tile * ROWS < ROWS ? c.group - tile * ROWS : ROWS;
    const int length = c.seqused_k[sequence];
    const int first = c.window >= 0 && length - 1 > c.window ? length - 1 - c.window : 0;
    const int round = KEYS * WARPS,
              share = ((length - first + part.splits - 1) / part.splits + round - 1) / round * round;
    const int64_t from = first + (int64_t)blockIdx.x * share;
    const int begin = (int)(from < length ? from : length),
              end = length - begin > share ? begin + share : length;
    const int steps = end > begin + warp * KEYS ? (end - begin - warp * KEYS + round - 1) / round : 0;

    const int32_t *table = c.block_table + sequence * c.table_stride;
    const T *k = (const T *)c.k + kv_head * c.k_head, *v = (const T *)c.v + kv_head * c.v_head;
    const uint32_t stages = fkd_shared_address(shared) + warp * STAGES * ring<D>::STAGE_BYTES;
    const float unit = c.softcap > 0 ? PAGED_LOG2_E : c.scale * PAGED_LOG2_E;
    auto key_of = [&](int step) { return begin + warp * KEYS + step * round; };

    /* The block numbers of all first steps are asked for before any is needed. */
    int blocks[STAGES];
#pragma unroll
    for (int i = 0; i < STAGES; i++) blocks[i] = i < steps ? step_blocks(c, table, key_of(i), end) : -1;
    uint32_t q[D / 16][4];
    load_queries<T, D>(q, c, (const T *)c.q + sequence * c.q_token + head * c.q_head, rows);
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++) {
        if (i < steps) copy_step<T, D>(c, stages + i * ring<D>::STAGE_BYTES, k, v, key_of(i), blocks[i]);
        fkd_copy_commit();
    }
    int next = blocks[STAGES - 1];
    float o[D / 8][4] = {}, largest[2] = {-INFINITY, -INFINITY}, l[2] = {};
    for (int i = 0, stage = 0, free_stage = STAGES - 1; i < steps; i++) {
        fkd_copy_wait<STAGES - 2>();
        __syncwarp(); /* step i is there for all lanes, and all are done with step i - 1 */
        int ahead = i + STAGES - 1;
        if (ahead < steps)
            copy_step<T, D>(c, stages + free_stage * ring<D>::STAGE_BYTES, k, v, key_of(ahead), next);
        fkd_copy_commit();
        next = ahead + 1 < steps ? step_blocks(c, table, key_of(ahead + 1), end) : -1;
        attend_step<T, D>(c, q, stages + stage * ring<D>::STAGE_BYTES, end - key_of(i), unit, o, largest, l);
        stage = stage + 1 == STAGES ? 0 : stage + 1;
        free_stage = free_stage + 1 == STAGES ? 0 : free_stage + 1;
    }
    fkd_copy_wait<0>();
    __syncthreads(); /* the ring becomes the place of the results */
    write_result<T, D>(c, part, (float *)shared, o, largest, l, unit, head, rows);
}

/* Grid (head, sequence): the splits' results, weighted by their sums, in the order of the splits. */
template <typename T, int D>
__global__ void __launch_bounds__(COMBINE_THREADS) combine_kernel(const paged_call c, const partials part)
{
    __shared__ float factors[MAX_SPLITS];
    const int64_t first = ((int64_t)blockIdx.y * c.heads + blockIdx.x) * part.splits;
    float top = -INFINITY, sum = 0;
    for (int s = 0; s < part.splits; s++) top = fmaxf(top, part.weight[first + s]);
    if (top > -INFINITY)
        for (int s = 0; s < part.splits; s++) sum += fkd_exp2(part.weight[first + s] - top);
    for (int s = threadIdx.x; s < part.splits; s += COMBINE_THREADS)
        factors[s] = sum > 0 ? fkd_exp2(part.weight[first + s] - top) / sum : 0.0f;
    __syncthreads();
    for (int e = threadIdx.x; e < c.head_size; e += COMBINE_THREADS) {
        float x = 0;
        for (int s = 0; s < part.splits; s++)
            if (factors[s] > 0) x += factors[s] * part.value[(first + s) * D + e];
        ((T *)c.out)[blockIdx.y * c.out_token + blockIdx.x * c.out_head + e] = fkd_round<T>(x);
    }
}

/* Splits of every sequence: the fewest that fill the device's places nearly as evenly as any number does. */
int choose_splits(int64_t blocks, int64_t places, int64_t keys)
{
    int64_t most = keys / (KEYS * WARPS); /* a split is worth one step of each warp at least */
    if (most > MAX_SPLITS) most = MAX_SPLITS;
    double best = 0;
    auto filling = [&](int64_t splits) {
        double waves = (double)(blocks * splits) / (double)places;
        return waves / ceil(waves);
    };
    for (int64_t splits = 1; splits <= most; splits++) best = fmax(best, filling(splits));
    for (int64_t splits = 1; splits <= most; splits++)
        if (filling(splits) >= FULL_ENOUGH * best) return (int)splits;
    return 1;
}

template <typename T, int D>
fk_status launch(fk_ctx *ctx, cudaStream_t stream, const paged_call *c, int64_t max_keys)
{
    constexpr int bytes = ring<D>::SHARED_BYTES;
    const void *kernel = (const void *)decode_kernel<T, D>;
    FK_TRY(fk_cuda_status(ctx,
                          cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                          "flash_attn_decode: shared memory"));
    int64_t tiles = (int64_t)c->kv_heads * ((c->group + ROWS - 1) / ROWS);
    if (c->window >= 0 && max_keys > c->window + 1) max_keys = c->window + 1;
    int64_t places = (int64_t)fkp_cuda_sm_count() * fkp_cuda_blocks_per_sm(kernel, THREADS, bytes);
    partials part = {};
    part.splits = choose_splits(tiles * c->sequences, places, max_keys);
    if (part.splits > 1) {
        int64_t rows = (int64_t)c->sequences * c->heads * part.splits;
        part.value = (float *)fk_ctx_scratch(ctx, (size_t)(rows * (D + 1)) * sizeof(float));
        if (!part.value) return fk_ctx_status(ctx);
        part.weight = part.value + rows * D;
    }
    decode_kernel<T, D>
        <<<dim3((unsigned)part.splits, (unsigned)tiles, (unsigned)c->sequences), THREADS, bytes, stream>>>(
            *c, part);
    FK_TRY(fk_cuda_status(ctx, cudaGetLastError(), "flash_attn_decode"));
    if (part.splits > 1)
        combine_kernel<T, D>
            <<<dim3((unsigned)c->heads, (unsigned)c->sequences), COMBINE_THREADS, 0, stream>>>(*c, part);
    return fk_cuda_status(ctx, cudaGetLastError(), "flash_attn_decode");
}

template <typename T>
fk_status launch_for(fk_ctx *ctx, cudaStream_t stream, const paged_call *c, int64_t max_keys)
{
    if (c->head_size <= 64) return launch<T, 64>(ctx, stream, c, max_keys);
    if (c->head_size <= 96) return launch<T, 96>(ctx, stream, c, max_keys);
    if (c->head_size <= 128) return launch<T, 128>(ctx, stream, c, max_keys);
    return launch<T, 256>(ctx, stream, c, max_keys);
}

} // namespace

extern "C" fk_status fk_flash_attn_decode_cuda(fk_ctx *ctx, cudaStream_t stream,
                                               const fk_flash_attn_decode_args *a)
{
    if (fk_tensor_numel(a->q) == 0) return FK_OK;
    paged_call c;
    paged_describe(&c, a->q, a->k, a->v, a->out, a->seqused_k, a->block_table, a->softmax_scale,
                   a->window_size, a->softcap);
    c.causal = true;
    if (!paged_takes_tensor_cores(&c, a->q->dtype))
        return paged_launch_plain(ctx, stream, &c, a->q->dtype, a->q->shape[0], "flash_attn_decode");
    FK_DISPATCH_HALF(a->q->dtype, T, return (launch_for<T>(ctx, stream, &c, a->max_seqlen_k)));
    return FK_OK;
}

static bool supports(const fk_flash_attn_decode_args *a)
{
    return paged_supported(a->q, a->k, a->v, a->out, a->seqused_k, a->block_table) && a->k->shape[2] <= 65535;
}

FK_CUDA_OP_IF(flash_attn_decode, supports)
