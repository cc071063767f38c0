/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary embedding on CUDA, in place: one block a token, whose threads walk over all pairs of all its heads, queries first; the
 * token's cosines and sines are staged in shared memory once. */
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <fk/candidate.h>

#define MAX_PAIRS 256 /* rot_dim up to 512: 2 KiB of shared memory */

namespace {

template <typename T, typename C>
__global__ void rotate_kernel(T *query, T *key, const void *positions, bool wide_positions, int64_t position_stride,
                              const C *__restrict__ table, int64_t table_stride, int pairs, int head_size, int query_heads,
                              int key_heads, int64_t query_stride, int64_t key_stride, bool is_neox)
{
    __shared__ float cosine[MAX_PAIRS], sine[MAX_PAIRS];
    int64_t t = blockIdx.x;
    int64_t position = wide_positions ? ((const int64_t *)positions)[t * position_stride]
                                      : ((const int32_t *)positions)[t * position_stride];
    for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
        cosine[i] = (float)table[position * table_stride + i];
        sine[i] = (float)table[position * table_stride + pairs + i];
    }
    __syncthreads();
    for (int index = threadIdx.x; index < (query_heads + key_heads) * pairs; index += blockDim.x) {
        int head = index / pairs, i = index % pairs;
        T *x = head < query_heads ? query + t * query_stride + (int64_t)head * head_size
                                  : key + t * key_stride + (int64_t)(head - query_heads) * head_size;
        int first = is_neox ? i : 2 * i, second = is_neox ? i + pairs : 2 * i + 1;
        float u = (float)x[first], v = (float)x[second];
        x[first] = (T)(u * cosine[i] - v * sine[i]);
        x[second] = (T)(v * cosine[i] + u * sine[i]);
    }
}

template <typename T, typename C> int launch(const fk_rotary_emb_args *a)
{
    int64_t tokens = a->positions->shape[0], pairs = a->cos_sin_cache->shape[1] / 2;
    int64_t query_heads = a->query->shape[1] / a->head_size, key_heads = a->key ? a->key->shape[1] / a->head_size : 0;
    if (pairs > MAX_PAIRS) return fk_candidate_error("rotary dimension above 512");
    if (tokens == 0 || pairs == 0 || query_heads + key_heads == 0) return 0;
    int64_t work = (query_heads + key_heads) * pairs;
    int threads = work >= 1024 ? 512 : work >= 256 ? 256 : 64;
    rotate_kernel<T, C><<<(unsigned)tokens, threads, 0, (cudaStream_t)fk_candidate_stream(a->query)>>>(
        FK_PTR(T, a->query), FK_PTR(T, a->key), a->positions->data, a->positions->dtype == FK_I64, a->positions->strides[0],
        FK_PTR(const C, a->cos_sin_cache), fk_row_stride(a->cos_sin_cache), (int)pairs, (int)a->head_size, (int)query_heads,
        (int)key_heads, fk_row_stride(a->query), a->key ? fk_row_stride(a->key) : 0, a->is_neox);
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
