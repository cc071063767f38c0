/* SPDX-License-Identifier: Apache-2.0 */
/* Writing into the paged cache on the CPU, for both layouts: heads of keys and values are copied whole. Threads share the
 * heads, not the tokens, so that of two tokens with one slot the later one always wins. */
#ifndef FK_OPS_STORE_KVCACHE_CPU_H
#define FK_OPS_STORE_KVCACHE_CPU_H

#include <string.h>

#include "core/cpu_op.h"
#include "core/threads.h"

#define STORE_GRAIN_BYTES 65536 /* below this a second thread costs more than it saves */

static inline int64_t store_slot_at(const fk_tensor *slots, int64_t t)
{
    return ((const int64_t *)slots->data)[t * slots->strides[0]];
}

/* Heads [begin, end) of the keys, then of the values. */
static inline void store_heads_part(void *user, int64_t begin, int64_t end)
{
    const fk_store_kvcache_args *a = user;
    int64_t tokens = a->slot_mapping->shape[0], num_heads = a->key->shape[1], block_size = a->key_cache->shape[1];
    int64_t size = fk_dtype_bits(a->key->dtype) / 8;
    for (int64_t t = 0; t < tokens; t++) {
        int64_t slot = store_slot_at(a->slot_mapping, t);
        if (slot < 0) continue;
        for (int64_t i = begin; i < end; i++) {
            const fk_tensor *from = i < num_heads ? a->key : a->value, *to = i < num_heads ? a->key_cache : a->value_cache;
            int64_t head = i % num_heads;
            memcpy((char *)to->data + (slot / block_size * to->strides[0] + slot % block_size * to->strides[1] + head * to->strides[2]) * size,
                   (const char *)from->data + (t * from->strides[0] + head * from->strides[1]) * size,
                   (size_t)(from->shape[2] * size));
        }
    }
}

/* Into caches of any strides but the last. */
static inline fk_status store_kvcache_cpu(fk_ctx *ctx, const fk_store_kvcache_args *a)
{
    int64_t slots = a->key_cache->shape[0] * a->key_cache->shape[1], tokens = a->slot_mapping->shape[0];
    for (int64_t t = 0; t < tokens; t++) {
        int64_t slot = store_slot_at(a->slot_mapping, t);
        if (slot >= slots)
            return fk_ctx_fail(ctx, FK_ERROR_INVALID, "slot_mapping[%lld] is %lld, but the cache has %lld slots", (long long)t,
                               (long long)slot, (long long)slots);
    }
    int64_t head_bytes = tokens * a->key->shape[2] * fk_dtype_bits(a->key->dtype) / 8;
    if (head_bytes == 0) return FK_OK;
    fkp_parallel_for(fk_ctx_threads(ctx), 2 * a->key->shape[1], 1 + STORE_GRAIN_BYTES / head_bytes, store_heads_part, (void *)(uintptr_t)a);
    return FK_OK;
}

static inline bool store_dense(const fk_tensor *t)
{
    return t->strides[t->ndim - 1] == 1 || t->shape[t->ndim - 1] == 1;
}

static inline bool store_kvcache_supports(const fk_store_kvcache_args *a)
{
    return store_dense(a->key) && store_dense(a->value) && store_dense(a->key_cache) && store_dense(a->value_cache);
}

#endif
