/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary position embedding on CUDA, in place. Memory-bound: one block a token; a thread keeps its place
 * within the head, and with it 8 (16-bit) or 4 (float) cosines and sines in registers, and turns heads of
 * query and key alike. Pairs of neighbours, odd sizes and unaligned rows take one pair a step. A position
 * outside the table leaves the token as it is. */
#include "core/cuda_op.h"
#include "core/cuda_vec.h"

#define MAX_THREADS 512
#define MANY_TOKENS 1024 /* from here bandwidth counts: few threads with MANY_HEADS heads in flight each */
#define MANY_HEADS 4

namespace
{

struct shape {
    int64_t query_stride, key_stride, cache_stride, num_positions;
    int query_heads, heads; /* heads: of query and key together */
    int head_size, half;    /* half: pairs of a head */
};

/* N consecutive values of the cache as floats; N * sizeof(C) bytes aligned to 16 or their size. */
template <typename C, int N> __device__ __forceinline__ void load_row(const C *p, float (&x)[N])
{
    struct alignas(N * sizeof(C) < 16 ? N * sizeof(C) : 16) group {
        C v[N];
    };
    group g = *(const group *)p;
#pragma unroll
    for (int i = 0; i < N; i++) x[i] = fkd_float(g.v[i]);
}

/* First feature of head `head` of a token, query heads before key heads. */
template <typename T>
__device__ __forceinline__ T *head_at(T *query, T *key, int64_t token, int head, const shape &s)
{
    return head < s.query_heads ? query + token * s.query_stride + (int64_t)head * s.head_size
                                : key + token * s.key_stride + (int64_t)(head - s.query_heads) * s.head_size;
}

/* Halves form pairs. Block: a token; thread (x, y): pairs [x N, x N + N) of heads y, y + blockDim.y, ... HEADS of them are on
 * their way, before the position and then its cosines and sines are known, and are turned together. FULL: HEADS * blockDim.y heads are
 * all there are. */
template <typename T, typename C, typename I, int HEADS, bool FULL>
__global__ void __launch_bounds__(MAX_THREADS)
    rotary_kernel(T *query, T *key, const C *__restrict__ cache, const I *__restrict__ positions, shape s)
{
    constexpr int N = fkd_pack<T>::N;
    int64_t token = blockIdx.x;
    uint4 first[HEADS], second[HEADS];
#pragma unroll
    for (int k = 0; k < HEADS; k++) {
        int head = threadIdx.y + k * blockDim.y;
        if (!FULL && head >= s.heads) continue;
        const T *at = head_at(query, key, token, head, s) + threadIdx.x * N;
        first[k] = fkd_load_stream(at), second[k] = fkd_load_stream(at + s.half);
    }
    int64_t position = positions[token];
    if (position < 0 || position >= s.num_positions) return;
    float c[N], sine[N];
    load_row<C, N>(cache + position * s.cache_stride + threadIdx.x * N, c);
    load_row<C, N>(cache + position * s.cache_stride + s.half + threadIdx.x * N, sine);
    for (int base = threadIdx.y; base < s.heads; base += HEADS * blockDim.y) { /* once when FULL */
#pragma unroll
        for (int k = 0; k < HEADS; k++) {
            int head = base + k * blockDim.y;
            if (!FULL && head >= s.heads) continue;
            T *at = head_at(query, key, token, head, s) + threadIdx.x * N;
            float x[N], y[N];
            fkd_unpack<T>(first[k], x);
            fkd_unpack<T>(second[k], y);
#pragma unroll
            for (int i = 0; i < N; i++) {
                float turned = x[i] * c[i] - y[i] * sine[i];
                y[i] = y[i] * c[i] + x[i] * sine[i];
                x[i] = turned;
            }
            fkd_store(at, fkd_repack<T>(x));
            fkd_store(at + s.half, fkd_repack<T>(y));
            head += HEADS * blockDim.y; /* this place's next head, in its turn */
            if (FULL || head >= s.heads) continue;
            at = head_at(query, key, token, head, s) + threadIdx.x * N;
            first[k] = fkd_load_stream(at), second[k] = fkd_load_stream(at + s.half);
        }
    }
}

/* Any layout: block: a token; threads walk over its pairs. */
template <typename T, typename C, typename I>
__global__ void __launch_bounds__(MAX_THREADS)
    rotary_plain_kernel(T *query, T *key, const C *__restrict__ cache, const I *__restrict__ positions,
                        shape s, bool is_neox)
{
    int64_t token = blockIdx.x, position = positions[token];
    if (position < 0 || position >= s.num_positions) return;
    for (int64_t i = threadIdx.x; i < (int64_t)s.heads * s.half; i += blockDim.x) {
        int head = (int)(i / s.half), pair = (int)(i % s.half);
        T *at = head_at(query, key, token, head, s);
        T *first = at + (is_neox ? pair : 2 * pair), *second = at + (is_neox ? s.half + pair : 2 * pair + 1);
        float c = fkd_float(cache[position * s.cache_stride + pair]);
        float sine = fkd_float(cache[position * s.cache_stride + s.half + pair]);
        float x = fkd_float(*first), y = fkd_float(*second);
        *first = fkd_round<T>(x * c - y * sine);
        *second = fkd_round<T>(y * c + x * sine);
    }
}

template <typename T, typename C, typename I>
void launch(cudaStream_t stream, const fk_rotary_emb_args *a, const shape *s, bool packed)
{
    unsigned tokens = (unsigned)a->positions->shape[0];
    T *query = FK_PTR(T, a->query), *key = FK_PTR(T, a->key);
    const C *cache = FK_PTR(const C, a->cos_sin_cache);
    const I *positions = FK_PTR(const I, a->positions);
    if (packed) {
        unsigned x = (unsigned)(s->half / fkd_pack<T>::N), heads = (unsigned)s->heads;
        unsigned most = MAX_THREADS / x, several = (heads + MANY_HEADS - 1) / MANY_HEADS;
        if (tokens >= MANY_TOKENS && several <= most) {
            auto *kernel = heads == MANY_HEADS * several ? rotary_kernel<T, C, I, MANY_HEADS, true>
                                                         : rotary_kernel<T, C, I, MANY_HEADS, false>;
            kernel<<<tokens, dim3(x, several), 0, stream>>>(query, key, cache, positions, *s);
        } else
            rotary_kernel<T, C, I, 1, false><<<tokens, dim3(x, heads < most ? heads : most), 0, stream>>>(query, key, cache, positions, *s);
    } else {
        int64_t pairs = (int64_t)s->heads * s->half;
        unsigned threads = pairs < MAX_THREADS ? (unsigned)(pairs + 31) / 32 * 32 : MAX_THREADS;
        rotary_plain_kernel<T, C, I>
            <<<tokens, threads, 0, stream>>>(query, key, cache, positions, *s, a->is_neox);
    }
}

} // namespace

extern "C" fk_status fk_rotary_emb_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_rotary_emb_args *a)
{
    int64_t tokens = a->positions->shape[0], size = fk_dtype_bits(a->query->dtype) / 8, per_pack = 16 / size;
    int64_t cache_size = fk_dtype_bits(a->cos_sin_cache->dtype) / 8;
    shape s = {};
    s.query_stride = fk_row_stride(a->query);
    s.key_stride = a->key ? fk_row_stride(a->key) : 0;
    s.cache_stride = fk_row_stride(a->cos_sin_cache);
    s.num_positions = a->cos_sin_cache->shape[0];
    s.query_heads = (int)(a->query->shape[1] / a->head_size);
    s.heads = s.query_heads + (a->key ? (int)(a->key->shape[1] / a->head_size) : 0);
    s.head_size = (int)a->head_size;
    s.half = (int)(a->cos_sin_cache->shape[1] / 2);
    if (tokens == 0 || s.heads == 0 || s.half == 0) return FK_OK;
    bool packed = a->is_neox && s.half % per_pack == 0 && s.half / per_pack <= MAX_THREADS &&
                  s.head_size % per_pack == 0 && fkp_cuda_aligned16(a->query->data, s.query_stride * size) &&
                  (!a->key || fkp_cuda_aligned16(a->key->data, s.key_stride * size)) &&
                  fkp_cuda_aligned16(a->cos_sin_cache->data, s.cache_stride * cache_size) &&
                  s.half * cache_size % 16 == 0;
    FK_DISPATCH_FLOAT(
        a->query->dtype, T,
        FK_DISPATCH_FLOAT(a->cos_sin_cache->dtype, C,
                          FK_DISPATCH_INT(a->positions->dtype, I, (launch<T, C, I>(stream, a, &s, packed)))));
    return fk_cuda_status(ctx, cudaGetLastError(), "rotary_emb");
}

static bool supports(const fk_rotary_emb_args *a)
{
    return a->head_size <= INT32_MAX && fk_tensor_has_rows(a->query) &&
           (!a->key || fk_tensor_has_rows(a->key)) && fk_tensor_has_rows(a->cos_sin_cache) &&
           fk_tensor_is_contiguous(a->positions);
}

FK_CUDA_OP_IF(rotary_emb, supports)
