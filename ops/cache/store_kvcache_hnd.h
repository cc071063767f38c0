/* SPDX-License-Identifier: Apache-2.0 */
/* The HND cache as a view [N, S, K, E], so that both layouts are one piece of code. */
#ifndef FK_OPS_STORE_KVCACHE_HND_H
#define FK_OPS_STORE_KVCACHE_HND_H

#include <fk/ops.h>

typedef struct store_kvcache_view {
    fk_tensor key_cache, value_cache;
    fk_store_kvcache_args args;
} store_kvcache_view;

static inline fk_tensor store_slots_first(const fk_tensor *cache)
{
    fk_tensor view = *cache;
    view.shape[1] = cache->shape[2], view.strides[1] = cache->strides[2];
    view.shape[2] = cache->shape[1], view.strides[2] = cache->strides[1];
    return view;
}

/* The call on views; `view` must stay where it is. */
static inline const fk_store_kvcache_args *store_kvcache_view_of(const fk_store_kvcache_hnd_args *a, store_kvcache_view *view)
{
    view->key_cache = store_slots_first(a->key_cache);
    view->value_cache = store_slots_first(a->value_cache);
    view->args.key = a->key, view->args.value = a->value, view->args.slot_mapping = a->slot_mapping;
    view->args.key_cache = &view->key_cache, view->args.value_cache = &view->value_cache;
    return &view->args;
}

#endif
