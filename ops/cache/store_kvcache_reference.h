/* SPDX-License-Identifier: Apache-2.0 */
/* Writing into the paged cache, the specification for both layouts: elements are copied bit for bit; slots that no token
 * names keep what they hold. Two tokens with one slot: undefined in production, the later one wins here. */
#ifndef FK_OPS_STORE_KVCACHE_REFERENCE_H
#define FK_OPS_STORE_KVCACHE_REFERENCE_H

#include <fk/ctx.h>
#include <fk/ops.h>

#include "core/element.h"
#include "core/random.h"

static inline fk_status store_kvcache_reference(fk_ctx *ctx, const fk_store_kvcache_args *a)
{
    int64_t block_size = a->key_cache->shape[1], slots = a->key_cache->shape[0] * block_size;
    size_t size = (size_t)fk_dtype_bits(a->key->dtype) / 8;
    for (int64_t t = 0; t < a->slot_mapping->shape[0]; t++) {
        int64_t slot = fkp_int1(a->slot_mapping, t);
        if (slot < 0) continue;
        if (slot >= slots)
            return fk_ctx_fail(ctx, FK_ERROR_INVALID, "slot_mapping[%lld] is %lld, but the cache has %lld slots",
                               (long long)t, (long long)slot, (long long)slots);
        for (int64_t h = 0; h < a->key->shape[1]; h++)
            for (int64_t e = 0; e < a->key->shape[2]; e++) {
                memcpy(fkp_at4(a->key_cache, slot / block_size, slot % block_size, h, e), fkp_at3(a->key, t, h, e), size);
                memcpy(fkp_at4(a->value_cache, slot / block_size, slot % block_size, h, e), fkp_at3(a->value, t, h, e), size);
            }
    }
    return FK_OK;
}

static inline fk_status store_kvcache_check(fk_ctx *ctx, const fk_store_kvcache_args *a)
{
    if (a->slot_mapping->shape[0] <= a->key->shape[0]) return FK_OK;
    return fk_ctx_fail(ctx, FK_ERROR_INVALID, "slot_mapping names %lld slots for %lld tokens",
                       (long long)a->slot_mapping->shape[0], (long long)a->key->shape[0]);
}

/* As if no row were padding. */
static inline fk_cost store_kvcache_cost(const fk_store_kvcache_args *a)
{
    double m = (double)a->slot_mapping->shape[0];
    double bytes = 2 * m * (double)(a->key->shape[1] * a->key->shape[2]) * fk_dtype_bits(a->key->dtype) / 8;
    return (fk_cost){.read_bytes = bytes + (double)fk_tensor_nbytes(a->slot_mapping), .write_bytes = bytes};
}

/* Distinct slots in scattered order, the last one first. About one row in five is padding. */
static inline void store_kvcache_fill(fk_random *random, const fk_store_kvcache_args *a)
{
    int64_t slots = a->key_cache->shape[0] * a->key_cache->shape[1], m = a->slot_mapping->shape[0];
    int64_t stride = fkp_random_stride(random, slots);
    for (int64_t t = 0; t < m; t++) {
        bool padding = t >= slots || (t > 0 && fkp_random_below(random, 5) == 0);
        fkp_set_int(a->slot_mapping, fkp_at1(a->slot_mapping, t), padding ? -1 : slots - 1 - t * stride % slots);
    }
}

#endif
