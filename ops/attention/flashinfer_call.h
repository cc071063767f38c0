/* SPDX-License-Identifier: Apache-2.0 */
/* A call of either run operator, which differ in name only, and its cache as [N, page_size, K, E] views; C and CUDA. */
#ifndef FK_OPS_FLASHINFER_CALL_H
#define FK_OPS_FLASHINFER_CALL_H

#include <string.h>

#include <fk/ops.h>

#include "ops/attention/flashinfer_plan.h"

typedef struct flashinfer_call {
    const fk_tensor *q, *plan, *indices, *out;
    fk_tensor k, v;
} flashinfer_call;

/* Keys (part 0) or values (part 1) of the cache; the layout is a matter of strides. */
static inline fk_tensor flashinfer_pages(const fk_tensor *cache, const char *kv_layout, int part)
{
    fk_tensor view = *cache;
    int slot = strcmp(kv_layout, "HND") == 0 ? 3 : 2, head = 5 - slot;
    view.ndim = 4;
    if (cache->data) view.data = (char *)cache->data + part * cache->strides[1] * (fk_dtype_bits(cache->dtype) / 8);
    view.shape[1] = cache->shape[slot], view.strides[1] = cache->strides[slot];
    view.shape[2] = cache->shape[head], view.strides[2] = cache->strides[head];
    view.shape[3] = cache->shape[4], view.strides[3] = cache->strides[4];
    return view;
}

#define FLASHINFER_CALL(a)                                                                                           \
    {                                                                                                                \
        (a)->q, (a)->plan, (a)->paged_kv_indices, (a)->out, flashinfer_pages((a)->paged_kv_cache, (a)->kv_layout, 0), \
            flashinfer_pages((a)->paged_kv_cache, (a)->kv_layout, 1)                                                 \
    }

static inline flashinfer_call flashinfer_call_decode(const fk_flashinfer_decode_run_args *a)
{
    flashinfer_call c = FLASHINFER_CALL(a);
    return c;
}

static inline flashinfer_call flashinfer_call_prefill(const fk_flashinfer_prefill_run_args *a)
{
    flashinfer_call c = FLASHINFER_CALL(a);
    return c;
}

#endif
