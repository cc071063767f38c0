/* SPDX-License-Identifier: Apache-2.0 */
/* Sampling on CUDA, bit-equal to the reference: core/sampling.h defines the arithmetic, whose sums are
 * integers and so the same in any order. One block a row, no sort: a histogram over the distance from the
 * largest logit names the bin that a cut falls into, the tokens of that bin are gathered and bisected, and of
 * equal logits at the cut the first by index stay. The token is found by sums over consecutive segments, one
 * a warp. */
#include "core/cuda_op.h"
#include "core/cuda_vec.h"
#include "core/sampling.h"

#define THREADS 1024
#define WARPS (THREADS / 32)
#define BINS 1024      /* of distance: the last one for tokens without weight */
#define FARTHEST 27.5f /* distance beyond which fkp_sample_weight is 0 */
#define LISTED 4096    /* tokens of a bin that shared memory holds; of a fuller bin the row is walked again */

namespace
{

struct arguments {
    int64_t *output;
    const void *logits;
    int64_t v, stride;
    const int32_t *top_k;
    const float *top_p, *min_p, *temperature;
    const int64_t *seed, *offset;
};

/* Which tokens stay: larger keys than `key`, and of equal ones the first `ties` by index. Key 0: all. */
struct cut {
    uint32_t key;
    uint64_t ties;
};

struct workspace {
    unsigned long long bins[BINS];
    unsigned long long sums[WARPS]; /* of the warps' segments */
    unsigned long long total, above;
    uint32_t keys[LISTED];
    uint32_t ties[WARPS];
    uint32_t listed, bin;
    float largest[WARPS];
    int bad[WARPS];
};

template <typename T> struct row_view {
    const T *data;
    int64_t v;
    float z_max, temperature;

    __device__ __forceinline__ float at(int64_t i) const
    {
        return fkd_float(data[i]);
    }
    __device__ __forceinline__ float distance(float z) const
    {
        return fkp_sample_distance(z, z_max, temperature);
    }
    __device__ __forceinline__ uint64_t weight(float z) const
    {
        return fkp_sample_weight(distance(z));
    }
    /* Bin of a distance: larger logits never have a larger bin. */
    __device__ __forceinline__ uint32_t bin(float z) const
    {
        float d = distance(z);
        return d > -FARTHEST ? (uint32_t)(-d * ((BINS - 2) / FARTHEST)) : BINS - 1;
    }
};

/* Order of logits as unsigned, and back. */
__device__ __forceinline__ uint32_t key_of(float z)
{
    return (uint32_t)(fkp_sample_order(z, 0) >> 32);
}
__device__ __forceinline__ float logit_of(uint32_t key)
{
    return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

__device__ __forceinline__ uint64_t warp_total(uint64_t x)
{
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) x += __shfl_xor_sync(~0u, x, distance);
    return x;
}

/* Sum over the block, in every thread. */
__device__ __forceinline__ uint64_t block_total(uint64_t x, workspace &w)
{
    x = warp_total(x);
    __syncthreads(); /* the sums of the call before have been read */
    if (threadIdx.x % 32 == 0) w.sums[threadIdx.x / 32] = x;
    __syncthreads();
    return warp_total(w.sums[threadIdx.x % 32]);
}

/* What a token adds to a cut: its weight, or one. */
template <bool WEIGHED, typename T>
__device__ __forceinline__ uint64_t amount(const row_view<T> &row, float z)
{
    return WEIGHED ? row.weight(z) : 1;
}

/* Largest logit, or true in *bad when the row has a NaN; in every thread. */
template <typename T> __device__ float largest_logit(const T *data, int64_t v, workspace &w, bool *bad)
{
    float top = -INFINITY;
    int nan = 0;
    for (int64_t i = threadIdx.x; i < v; i += THREADS) {
        float z = fkd_float(data[i]);
        nan |= isnan(z);
        top = fmaxf(top, z);
    }
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        top = fmaxf(top, __shfl_xor_sync(~0u, top, distance));
    nan = __any_sync(~0u, nan);
    if (threadIdx.x % 32 == 0) w.largest[threadIdx.x / 32] = top, w.bad[threadIdx.x / 32] = nan;
    __syncthreads();
    *bad = false;
    for (int i = 0; i < WARPS; i++) {
        top = fmaxf(top, w.largest[i]);
        *bad = *bad || w.bad[i];
    }
    return top;
}

/* The shortest prefix, by order, whose amounts reach `target` (at least 1). All tokens when those with weight
 * do not. */
template <bool WEIGHED, typename T>
__device__ cut find_cut(const row_view<T> &row, uint64_t target, workspace &w)
{
    __syncthreads();
    for (int i = threadIdx.x; i < BINS; i += THREADS) w.bins[i] = 0;
    if (threadIdx.x == 0) w.listed = 0, w.bin = BINS - 1;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < row.v; i += THREADS) {
        float z = row.at(i);
        uint32_t bin = row.bin(z);
        if (bin < BINS - 1) atomicAdd(&w.bins[bin], (unsigned long long)amount<WEIGHED>(row, z));
    }
    __syncthreads();
    /* Warp 0 finds the bin in which the running sum reaches the target: 32 bins a lane, then one by one. */
    if (threadIdx.x < 32) {
        constexpr int EACH = BINS / 32;
        uint64_t own = 0, before = 0;
        for (int i = 0; i < EACH; i++) own += w.bins[threadIdx.x * EACH + i];
        for (int lane = 0; lane < 31; lane++) {
            uint64_t other = __shfl_sync(~0u, own, lane);
            if (lane < (int)threadIdx.x) before += other;
        }
        if (before < target && before + own >= target) {
            int bin = threadIdx.x * EACH;
            while (before + w.bins[bin] < target) before += w.bins[bin++];
            w.bin = bin;
            w.above = before;
        }
    }
    __syncthreads();
    const uint32_t bin = w.bin;
    if (bin == BINS - 1) return cut{0, 0};
    const uint64_t above = w.above;
    for (int64_t i = threadIdx.x; i < row.v; i += THREADS) {
        float z = row.at(i);
        if (row.bin(z) != bin) continue;
        uint32_t place = atomicAdd(&w.listed, 1u);
        if (place < LISTED) w.keys[place] = key_of(z);
    }
    __syncthreads();
    const uint32_t listed = w.listed;
    /* Amount of the bin's tokens with keys of `least` and above. */
    auto reaching = [&](uint32_t least) {
        uint64_t sum = 0;
        if (listed <= LISTED) {
            for (uint32_t i = threadIdx.x; i < listed; i += THREADS)
                if (w.keys[i] >= least) sum += amount<WEIGHED>(row, logit_of(w.keys[i]));
        } else {
            for (int64_t i = threadIdx.x; i < row.v; i += THREADS) {
                float z = row.at(i);
                if (row.bin(z) == bin && key_of(z) >= least) sum += amount<WEIGHED>(row, z);
            }
        }
        return block_total(sum, w);
    };
    uint32_t key = 0; /* the largest with which the target is reached */
    for (uint32_t bit = 0x80000000u; bit; bit >>= 1)
        if (above + reaching(key | bit) >= target) key |= bit;
    uint64_t rest = target - above - reaching(key + 1), each = amount<WEIGHED>(row, logit_of(key));
    return cut{key, (rest + each - 1) / each};
}

/* Tokens of at least that weight. */
template <typename T> __device__ uint64_t count_above(const row_view<T> &row, uint64_t least, workspace &w)
{
    uint64_t count = 0;
    for (int64_t i = threadIdx.x; i < row.v; i += THREADS) count += row.weight(row.at(i)) >= least;
    return block_total(count, w);
}

/* The warp's segment of consecutive tokens. */
struct segment {
    int64_t begin, end;
};
__device__ __forceinline__ segment own_segment(int64_t v)
{
    int64_t length = (v + WARPS - 1) / WARPS, begin = threadIdx.x / 32 * length;
    if (begin > v) begin = v;
    return segment{begin, begin + length < v ? begin + length : v};
}

/* Weight of this lane's token of 32 consecutive ones, 0 when it does not stay. `ties` counts equal keys so
 * far. */
template <typename T>
__device__ __forceinline__ uint64_t kept_weight(const row_view<T> &row, const cut &c, int64_t i, int64_t end,
                                                uint64_t &ties)
{
    float z = i < end ? row.at(i) : -INFINITY;
    uint32_t key = key_of(z);
    bool tie = i < end && key == c.key;
    uint32_t others = __ballot_sync(~0u, tie);
    bool stays =
        i < end && (key > c.key || (tie && ties + __popc(others & ((1u << threadIdx.x % 32) - 1)) < c.ties));
    ties += __popc(others);
    return stays ? row.weight(z) : 0;
}

/* Equal keys before the warp's segment. */
template <typename T> __device__ uint64_t ties_before(const row_view<T> &row, const cut &c, workspace &w)
{
    if (c.key == 0) return 0;
    segment s = own_segment(row.v);
    uint32_t count = 0;
    for (int64_t i = s.begin + threadIdx.x % 32; i < s.end; i += 32) count += key_of(row.at(i)) == c.key;
    count = __reduce_add_sync(~0u, count);
    __syncthreads();
    if (threadIdx.x % 32 == 0) w.ties[threadIdx.x / 32] = count;
    __syncthreads();
    uint64_t before = 0;
    for (unsigned i = 0; i < threadIdx.x / 32; i++) before += w.ties[i];
    return before;
}

/* Weight of what stays; w.sums keeps that of each segment. */
template <typename T>
__device__ uint64_t kept_total(const row_view<T> &row, const cut &c, uint64_t ties, workspace &w)
{
    segment s = own_segment(row.v);
    uint64_t sum = 0;
    for (int64_t i = s.begin; i < s.end; i += 32)
        sum += kept_weight(row, c, i + threadIdx.x % 32, s.end, ties);
    return block_total(sum, w);
}

/* Writes the first token by index whose running weight is above the target. */
template <typename T>
__device__ void write_token(const row_view<T> &row, const cut &c, uint64_t ties, uint64_t target,
                            int64_t *output, const workspace &w)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    uint64_t running = 0;
    for (int i = 0; i < warp; i++) running += w.sums[i];
    if (running > target || running + w.sums[warp] <= target) return;
    segment s = own_segment(row.v);
    for (int64_t i = s.begin; i < s.end; i += 32) {
        uint64_t sum = kept_weight(row, c, i + lane, s.end, ties);
#pragma unroll
        for (int distance = 1; distance < 32; distance *= 2) {
            uint64_t other = __shfl_up_sync(~0u, sum, distance);
            if (lane >= distance) sum += other;
        }
        uint32_t past = __ballot_sync(~0u, running + sum > target);
        if (past) {
            if (lane == 0) *output = i + __ffs(past) - 1;
            return;
        }
        running += __shfl_sync(~0u, sum, 31);
    }
}

/* Lowest index of the largest logit. */
template <typename T> __device__ void write_largest(const row_view<T> &row, int64_t *output, workspace &w)
{
    if (threadIdx.x == 0) w.total = ~0ull;
    __syncthreads();
    for (int64_t i = threadIdx.x; i < row.v; i += THREADS)
        if (row.at(i) == row.z_max) {
            atomicMin(&w.total, (unsigned long long)i);
            break; /* this thread's later ones are larger */
        }
    __syncthreads();
    if (threadIdx.x == 0) *output = (int64_t)w.total;
}

/* Block: a row. */
template <typename T> __global__ void __launch_bounds__(THREADS) sample_kernel(const arguments a)
{
    __shared__ workspace w;
    const int64_t b = blockIdx.x;
    row_view<T> row = {(const T *)a.logits + b * a.stride, a.v, 0, a.temperature[b]};
    bool bad = false;
    row.z_max = largest_logit(row.data, a.v, w, &bad);
    if (bad) {
        if (threadIdx.x == 0) a.output[b] = -1;
        return;
    }
    if (!(row.temperature > 0)) {
        write_largest(row, a.output + b, w);
        return;
    }
    cut c = {0, 0};
    int64_t k = a.top_k[b];
    const uint64_t least = fkp_sample_floor(a.min_p[b]);
    if (least) {
        const int64_t above = (int64_t)count_above(row, least, w);
        if (k <= 0 || k > above) k = above;
    }
    if (k > 0 && k < a.v) c = find_cut<false>(row, (uint64_t)k, w);
    uint64_t ties = ties_before(row, c, w), sum = kept_total(row, c, ties, w);
    float top_p = a.top_p[b];
    if (top_p < 1) {
        uint64_t reach = fkp_sample_cut(top_p, sum);
        c = find_cut<true>(row, reach ? reach : 1, w); /* one token at least */
        ties = ties_before(row, c, w);
        sum = kept_total(row, c, ties, w);
    }
    write_token(row, c, ties, fkp_sample_target(fkp_sample_random(a.seed[b], a.offset[b]), sum), a.output + b,
                w);
}

} // namespace

extern "C" fk_status fk_sample_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_sample_args *x)
{
    int64_t rows = x->logits->shape[0];
    if (rows == 0) return FK_OK;
    arguments a = {};
    a.output = FK_PTR(int64_t, x->output);
    a.logits = x->logits->data;
    a.v = x->logits->shape[1];
    a.stride = fk_row_stride(x->logits);
    a.top_k = FK_PTR(const int32_t, x->top_k);
    a.top_p = FK_PTR(const float, x->top_p);
    a.min_p = FK_PTR(const float, x->min_p);
    a.temperature = FK_PTR(const float, x->temperature);
    a.seed = FK_PTR(const int64_t, x->seed);
    a.offset = FK_PTR(const int64_t, x->offset);
    FK_DISPATCH_FLOAT(x->logits->dtype, T, sample_kernel<T><<<(unsigned)rows, THREADS, 0, stream>>>(a));
    return fk_cuda_status(ctx, cudaGetLastError(), "sample");
}

static bool supports(const fk_sample_args *a)
{
    const fk_tensor *flat[] = {a->output, a->top_k, a->top_p, a->min_p, a->temperature, a->seed, a->offset};
    for (const fk_tensor *t : flat)
        if (!fk_tensor_is_contiguous(t)) return false;
    return fk_tensor_has_rows(a->logits);
}

FK_CUDA_OP_IF(sample, supports)
