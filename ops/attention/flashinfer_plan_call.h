/* SPDX-License-Identifier: Apache-2.0 */
/* A call of either plan operator, which have different names for the same things; C and CUDA. */
#ifndef FK_OPS_FLASHINFER_PLAN_CALL_H
#define FK_OPS_FLASHINFER_PLAN_CALL_H

#include <math.h>

#include <fk/ops.h>

#include "ops/attention/flashinfer_plan.h"

typedef struct plan_call {
    const fk_tensor *qo_indptr; /* NULL: queries_each for every request */
    int64_t queries_each;
    const fk_tensor *indptr, *indices, *last_page_len, *plan;
    int64_t num_qo_heads, num_kv_heads, head_dim, page_size, window_left;
    float sm_scale, soft_cap;
    bool causal, disable_split;
} plan_call;

/* Queries of a decode step are the last tokens of their request, as causal ones are. */
static inline plan_call plan_call_decode(const fk_flashinfer_decode_plan_args *a)
{
    plan_call c = {.qo_indptr = NULL, .queries_each = a->q_len_per_req, .indptr = a->indptr, .indices = a->indices,
                   .last_page_len = a->last_page_len, .plan = a->plan, .num_qo_heads = a->num_qo_heads,
                   .num_kv_heads = a->num_kv_heads, .head_dim = a->head_dim, .page_size = a->page_size,
                   .window_left = a->window_left, .sm_scale = a->sm_scale, .soft_cap = a->logits_soft_cap, .causal = true,
                   .disable_split = a->disable_split_kv};
    return c;
}

static inline plan_call plan_call_prefill(const fk_flashinfer_prefill_plan_args *a)
{
    plan_call c = {.qo_indptr = a->qo_indptr, .queries_each = 0, .indptr = a->paged_kv_indptr, .indices = a->paged_kv_indices,
                   .last_page_len = a->paged_kv_last_page_len, .plan = a->plan, .num_qo_heads = a->num_qo_heads,
                   .num_kv_heads = a->num_kv_heads, .head_dim = a->head_dim_qk, .page_size = a->page_size,
                   .window_left = a->window_left, .sm_scale = a->sm_scale, .soft_cap = a->logits_soft_cap, .causal = a->causal,
                   .disable_split = a->disable_split_kv};
    return c;
}

/* Row 0 without its number of items and the chunk size. */
static inline void plan_options(const plan_call *c, int32_t header[PLAN_COLUMNS])
{
    float scale = c->sm_scale != 0 ? c->sm_scale : (float)(1 / sqrt((double)c->head_dim));
    header[PLAN_ITEMS] = 0;
    header[PLAN_CHUNK_TOKENS] = INT32_MAX;
    header[PLAN_TILE_QUERIES] = plan_tile_queries(c->num_qo_heads / c->num_kv_heads);
    header[PLAN_CAUSAL] = c->causal;
    header[PLAN_WINDOW] = c->window_left < 0 ? -1 : c->window_left > INT32_MAX ? INT32_MAX : (int32_t)c->window_left;
    header[PLAN_SCALE_BITS] = plan_bits(scale);
    header[PLAN_CAP_BITS] = plan_bits(c->soft_cap);
    header[PLAN_REQUESTS] = (int32_t)c->last_page_len->shape[0];
}

#endif
