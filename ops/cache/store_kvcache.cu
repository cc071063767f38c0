/* SPDX-License-Identifier: Apache-2.0 */
/* Writing into the paged cache on CUDA: one block a token copies its key and value as bits, 16 bytes a thread
 * where the rows are aligned. Negative slots and slots past the cache are skipped. */
#include "core/cuda_op.h"
#include "core/cuda_vec.h"

#define MAX_THREADS 256

namespace
{

/* Strides and the row length, K E, in units; a block of the cache has block_size slots of one row. */
struct shape {
    int64_t key_stride, value_stride, key_block_stride, value_block_stride, units, block_size, slots;
};

template <typename Unit>
__global__ void __launch_bounds__(MAX_THREADS)
    store_kvcache_kernel(Unit *__restrict__ key_cache, Unit *__restrict__ value_cache,
                         const Unit *__restrict__ key, const Unit *__restrict__ value,
                         const int64_t *__restrict__ slot_mapping, shape s)
{
    int64_t token = blockIdx.x, slot = slot_mapping[token];
    if (slot < 0 || slot >= s.slots) return;
    int64_t block = slot / s.block_size, offset = slot % s.block_size;
    Unit *to_key = key_cache + block * s.key_block_stride + offset * s.units;
    Unit *to_value = value_cache + block * s.value_block_stride + offset * s.units;
    for (int64_t i = threadIdx.x; i < s.units; i += blockDim.x) {
        Unit k = __ldcg(key + token * s.key_stride + i), v = __ldcg(value + token * s.value_stride + i);
        to_key[i] = k;
        to_value[i] = v;
    }
}

template <typename Unit>
void launch(cudaStream_t stream, const fk_store_kvcache_args *a, const shape *elements, int64_t per_unit)
{
    shape s = *elements;
    s.key_stride /= per_unit, s.value_stride /= per_unit;
    s.key_block_stride /= per_unit, s.value_block_stride /= per_unit;
    s.units /= per_unit;
    unsigned threads = s.units < MAX_THREADS ? (unsigned)(s.units + 31) / 32 * 32 : MAX_THREADS;
    store_kvcache_kernel<Unit><<<(unsigned)a->slot_mapping->shape[0], threads, 0, stream>>>(
        FK_PTR(Unit, a->key_cache), FK_PTR(Unit, a->value_cache), FK_PTR(const Unit, a->key),
        FK_PTR(const Unit, a->value), FK_PTR(const int64_t, a->slot_mapping), s);
}

} // namespace

extern "C" fk_status fk_store_kvcache_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_store_kvcache_args *a)
{
    int64_t size = fk_dtype_bits(a->key->dtype) / 8;
    shape s = {};
    s.key_stride = a->key->strides[0], s.value_stride = a->value->strides[0];
    s.key_block_stride = a->key_cache->strides[0], s.value_block_stride = a->value_cache->strides[0];
    s.units = a->key->shape[1] * a->key->shape[2];
    s.block_size = a->key_cache->shape[1];
    s.slots = a->key_cache->shape[0] * s.block_size;
    if (a->slot_mapping->shape[0] == 0 || s.units == 0 || s.slots == 0) return FK_OK;
    bool packed = s.units * size % 16 == 0 && fkp_cuda_aligned16(a->key->data, s.key_stride * size) &&
                  fkp_cuda_aligned16(a->value->data, s.value_stride * size) &&
                  fkp_cuda_aligned16(a->key_cache->data, s.key_block_stride * size) &&
                  fkp_cuda_aligned16(a->value_cache->data, s.value_block_stride * size);
    if (packed)
        launch<uint4>(stream, a, &s, 16 / size);
    else if (size == 4)
        launch<uint32_t>(stream, a, &s, 1);
    else
        launch<uint16_t>(stream, a, &s, 1);
    return fk_cuda_status(ctx, cudaGetLastError(), "store_kvcache");
}

static bool supports(const fk_store_kvcache_args *a)
{
    return fkp_cuda_dense_after(a->key, 0) && fkp_cuda_dense_after(a->value, 0) &&
           fkp_cuda_dense_after(a->key_cache, 0) && fkp_cuda_dense_after(a->value_cache, 0) &&
           fk_tensor_is_contiguous(a->slot_mapping);
}

FK_CUDA_OP_IF(store_kvcache, supports)
