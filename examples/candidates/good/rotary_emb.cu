/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary embedding on CUDA, in place: one block a token; a thread keeps its place within the head and walks over the heads,
 * queries first, so that it needs its cosines and sines once. Halves of a head that are aligned are turned 16 bytes at a time, whose
 * first vectors are on their way before the token's position is known. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <fk/candidate.h>

#define MAX_THREADS 512

namespace {

template <typename T, int N> struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) pack {
    T v[N];
};

struct shape {
    int64_t query_stride, key_stride, table_stride, position_stride;
    int head_size, query_heads, heads, pairs; /* heads: of query and key; pairs: of one head */
    bool wide_positions, is_neox;
};

/* Thread (x, y): pairs [x N, x N + N) of heads y, y + blockDim.y, ... */
template <typename T, typename C, int N>
__global__ void __launch_bounds__(MAX_THREADS)
    rotate_kernel(T *query, T *key, const void *positions, const C *__restrict__ table, shape s)
{
    int64_t t = blockIdx.x;
    int pair = threadIdx.x * N, second = s.is_neox ? s.pairs : 1;
    query += t * s.query_stride + (s.is_neox ? pair : 2 * pair);
    key += t * s.key_stride + (s.is_neox ? pair : 2 * pair);
    int head = threadIdx.y;
    T *x = head < s.query_heads ? query + (int64_t)head * s.head_size : key + (int64_t)(head - s.query_heads) * s.head_size;
    pack<T, N> u = *(const pack<T, N> *)x, v = *(const pack<T, N> *)(x + second);
    int64_t position = s.wide_positions ? ((const int64_t *)positions)[t * s.position_stride]
                                        : ((const int32_t *)positions)[t * s.position_stride];
    table += position * s.table_stride + pair;
    pack<C, N> cosine = *(const pack<C, N> *)table, sine = *(const pack<C, N> *)(table + s.pairs);
    for (;;) {
        pack<T, N> turned_u, turned_v;
#pragma unroll
        for (int k = 0; k < N; k++) {
            float a = (float)u.v[k], b = (float)v.v[k], c = (float)cosine.v[k], d = (float)sine.v[k];
            turned_u.v[k] = (T)(a * c - b * d);
            turned_v.v[k] = (T)(b * c + a * d);
        }
        *(pack<T, N> *)x = turned_u;
        *(pack<T, N> *)(x + second) = turned_v;
        head += blockDim.y;
        if (head >= s.heads) return;
        x = head < s.query_heads ? query + (int64_t)head * s.head_size : key + (int64_t)(head - s.query_heads) * s.head_size;
        u = *(const pack<T, N> *)x, v = *(const pack<T, N> *)(x + second);
    }
}

bool aligned(const void *data, int64_t stride_bytes)
{
    return ((uintptr_t)data | (uintptr_t)stride_bytes) % 16 == 0;
}

template <typename T, typename C> int launch(const fk_rotary_emb_args *a)
{
    constexpr int N = 16 / sizeof(T);
    shape s = {};
    int64_t tokens = a->positions->shape[0];
    s.pairs = (int)(a->cos_sin_cache->shape[1] / 2);
    s.head_size = (int)a->head_size;
    s.query_heads = (int)(a->query->shape[1] / a->head_size);
    s.heads = s.query_heads + (a->key ? (int)(a->key->shape[1] / a->head_size) : 0);
    s.query_stride = fk_row_stride(a->query);
    s.key_stride = a->key ? fk_row_stride(a->key) : 0;
    s.table_stride = fk_row_stride(a->cos_sin_cache);
    s.position_stride = a->positions->strides[0];
    s.wide_positions = a->positions->dtype == FK_I64;
    s.is_neox = a->is_neox;
    if (tokens == 0 || s.pairs == 0 || s.heads == 0) return 0;
    bool wide = s.is_neox && s.pairs % N == 0 && s.head_size % N == 0 && aligned(a->query->data, s.query_stride * (int64_t)sizeof(T)) &&
                aligned(a->key ? a->key->data : nullptr, s.key_stride * (int64_t)sizeof(T)) &&
                aligned(a->cos_sin_cache->data, s.table_stride * (int64_t)sizeof(C)) && s.pairs * sizeof(C) % 16 == 0;
    int across = wide ? s.pairs / N : s.pairs;
    if (across > MAX_THREADS) return fk_candidate_error("rotary dimension above 1024");
    dim3 block((unsigned)across, (unsigned)(s.heads < MAX_THREADS / across ? s.heads : MAX_THREADS / across));
    auto *kernel = wide ? rotate_kernel<T, C, N> : rotate_kernel<T, C, 1>;
    kernel<<<(unsigned)tokens, block, 0, (cudaStream_t)fk_candidate_stream(a->query)>>>(
        FK_PTR(T, a->query), FK_PTR(T, a->key), a->positions->data, FK_PTR(const C, a->cos_sin_cache), s);
    cudaError_t error = cudaGetLastError();
    return error == cudaSuccess ? 0 : fk_candidate_error(cudaGetErrorString(error));
}

template <typename T> int with_table(const fk_rotary_emb_args *a)
{
    switch (a->cos_sin_cache->dtype) {
    case FK_F32: return launch<T, float>(a);
    case FK_F16: return launch<T, __half>(a);
    default: return launch<T, __nv_bfloat16>(a);
    }
}

} // namespace

FK_CANDIDATE(rotary_emb)
{
    switch (a->query->dtype) {
    case FK_F32: return with_table<float>(a);
    case FK_F16: return with_table<__half>(a);
    default: return with_table<__nv_bfloat16>(a);
    }
}
