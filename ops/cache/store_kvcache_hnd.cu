/* SPDX-License-Identifier: Apache-2.0 */
/* Writing into the paged cache on CUDA, HND layout: one block a token copies its heads as bits, 16 bytes a thread where they
 * are aligned. Negative slots and slots past the cache are skipped. */
#include "core/cuda_op.h"
#include "core/cuda_vec.h"

#define THREADS 128

namespace
{

/* Strides and the length of a head, E, in units. */
struct shape {
    int64_t key_token, key_head, value_token, value_head;
    int64_t key_block, key_slot, key_cache_head, value_block, value_slot, value_cache_head;
    int64_t units, heads, block_size, slots;
};

template <typename Unit>
__global__ void __launch_bounds__(THREADS)
    store_kvcache_hnd_kernel(Unit *__restrict__ key_cache, Unit *__restrict__ value_cache, const Unit *__restrict__ key,
                             const Unit *__restrict__ value, const int64_t *__restrict__ slot_mapping, shape s)
{
    const int64_t token = blockIdx.x, slot = slot_mapping[token];
    if (slot < 0 || slot >= s.slots) return;
    const int64_t block = slot / s.block_size, offset = slot % s.block_size;
    for (int64_t i = threadIdx.x; i < s.heads * s.units; i += THREADS) {
        const int64_t head = i / s.units, unit = i % s.units;
        key_cache[block * s.key_block + offset * s.key_slot + head * s.key_cache_head + unit] =
            __ldcg(key + token * s.key_token + head * s.key_head + unit);
        value_cache[block * s.value_block + offset * s.value_slot + head * s.value_cache_head + unit] =
            __ldcg(value + token * s.value_token + head * s.value_head + unit);
    }
}

template <typename Unit>
void launch(cudaStream_t stream, const fk_store_kvcache_hnd_args *a, const shape *elements, int64_t per_unit)
{
    shape s = *elements;
    int64_t *lengths[] = {&s.key_token, &s.key_head, &s.value_token, &s.value_head, &s.key_block, &s.key_slot,
                          &s.key_cache_head, &s.value_block, &s.value_slot, &s.value_cache_head, &s.units};
    for (int64_t *length : lengths) *length /= per_unit;
    store_kvcache_hnd_kernel<Unit><<<(unsigned)a->slot_mapping->shape[0], THREADS, 0, stream>>>(
        FK_PTR(Unit, a->key_cache), FK_PTR(Unit, a->value_cache), FK_PTR(const Unit, a->key), FK_PTR(const Unit, a->value),
        FK_PTR(const int64_t, a->slot_mapping), s);
}

} // namespace

extern "C" fk_status fk_store_kvcache_hnd_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_store_kvcache_hnd_args *a)
{
    const int64_t size = fk_dtype_bits(a->key->dtype) / 8;
    shape s = {};
    s.key_token = a->key->strides[0], s.key_head = a->key->strides[1];
    s.value_token = a->value->strides[0], s.value_head = a->value->strides[1];
    s.key_block = a->key_cache->strides[0], s.key_cache_head = a->key_cache->strides[1], s.key_slot = a->key_cache->strides[2];
    s.value_block = a->value_cache->strides[0], s.value_cache_head = a->value_cache->strides[1];
    s.value_slot = a->value_cache->strides[2];
    s.units = a->key->shape[2], s.heads = a->key->shape[1];
    s.block_size = a->key_cache->shape[2];
    s.slots = a->key_cache->shape[0] * s.block_size;
    if (a->slot_mapping->shape[0] == 0 || s.units * s.heads == 0 || s.slots == 0) return FK_OK;
    const int64_t strides[] = {s.key_token, s.key_head, s.value_token, s.value_head, s.key_block, s.key_slot,
                               s.key_cache_head, s.value_block, s.value_slot, s.value_cache_head, s.units};
    bool packed = true;
    for (int64_t stride : strides) packed = packed && stride * size % 16 == 0;
    const void *data[] = {a->key->data, a->value->data, a->key_cache->data, a->value_cache->data};
    for (const void *at : data) packed = packed && fkp_cuda_aligned16(at, 0);
    if (packed) launch<uint4>(stream, a, &s, 16 / size);
    else if (size == 4) launch<uint32_t>(stream, a, &s, 1);
    else launch<uint16_t>(stream, a, &s, 1);
    return fk_cuda_status(ctx, cudaGetLastError(), "store_kvcache_hnd");
}

static bool dense(const fk_tensor *t)
{
    return t->strides[t->ndim - 1] == 1 || t->shape[t->ndim - 1] == 1;
}

static bool supports(const fk_store_kvcache_hnd_args *a)
{
    return dense(a->key) && dense(a->value) && dense(a->key_cache) && dense(a->value_cache) &&
           fk_tensor_is_contiguous(a->slot_mapping) && a->slot_mapping->shape[0] <= INT32_MAX;
}

FK_CUDA_OP_IF(store_kvcache_hnd, supports)
