/* SPDX-License-Identifier: Apache-2.0 */
/* What reference and CPU path of the run operators share: the plan as numbers, checked against the call, and generated
 * calls. */
#ifndef FK_OPS_FLASHINFER_HOST_H
#define FK_OPS_FLASHINFER_HOST_H

#include "ops/attention/flashinfer_call.h"
#include "ops/attention/flashinfer_plan_host.h"
#include "ops/attention/paged_attention.h"

static inline int32_t flashinfer_plan_at(const flashinfer_call *c, int64_t row, int column)
{
    return (int32_t)fkp_int(c->plan, fkp_at2(c->plan, row, column));
}

static inline float flashinfer_plan_float(const flashinfer_call *c, int column)
{
    int32_t bits = flashinfer_plan_at(c, 0, column);
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline fk_status flashinfer_check(fk_ctx *ctx, const fk_tensor *q, const fk_tensor *cache, const char *kv_layout)
{
    if (!kv_layout || (strcmp(kv_layout, "NHD") != 0 && strcmp(kv_layout, "HND") != 0))
        return fk_ctx_fail(ctx, FK_ERROR_INVALID, "kv_layout is '%s', wanted NHD or HND", kv_layout ? kv_layout : "");
    fk_tensor k = flashinfer_pages(cache, kv_layout, 0);
    return paged_check(ctx, q, &k);
}

/* Row of request r, checked against the queries, the page list and the cache. */
static inline fk_status flashinfer_request(fk_ctx *ctx, const flashinfer_call *c, int64_t r, int32_t row[PLAN_COLUMNS])
{
    for (int i = 0; i < PLAN_COLUMNS; i++) row[i] = flashinfer_plan_at(c, r + 1, i);
    int64_t queries = row[PLAN_QUERIES], first = row[PLAN_FIRST_QUERY], pages = row[PLAN_PAGES], first_page = row[PLAN_FIRST_PAGE];
    int64_t expected = r == 0 ? 0 : (int64_t)flashinfer_plan_at(c, r, PLAN_FIRST_QUERY) + flashinfer_plan_at(c, r, PLAN_QUERIES);
    if (queries < 0 || first != expected || first + queries > c->q->shape[0])
        return fk_ctx_fail(ctx, FK_ERROR_INVALID, "the plan gives request %lld queries %lld to %lld of %lld, wanted to go on at %lld",
                           (long long)r, (long long)first, (long long)(first + queries), (long long)c->q->shape[0], (long long)expected);
    if (pages < 0 || first_page < 0 || first_page + pages > c->indices->shape[0] || row[PLAN_LENGTH] < 0 ||
        row[PLAN_LENGTH] > pages * c->k.shape[1] || row[PLAN_CHUNKS] < 1)
        return fk_ctx_fail(ctx, FK_ERROR_INVALID, "the plan gives request %lld %d keys in %lld pages from %lld on, of %lld with room for %lld",
                           (long long)r, (int)row[PLAN_LENGTH], (long long)pages, (long long)first_page, (long long)c->indices->shape[0],
                           (long long)c->k.shape[1]);
    for (int64_t i = first_page; i < first_page + pages; i++)
        if (fkp_int1(c->indices, i) < 0 || fkp_int1(c->indices, i) >= c->k.shape[0])
            return fk_ctx_fail(ctx, FK_ERROR_INVALID, "paged_kv_indices[%lld] is %lld, but the cache has %lld pages", (long long)i,
                               (long long)fkp_int1(c->indices, i), (long long)c->k.shape[0]);
    return FK_OK;
}

/* All queries belong to a request. */
static inline fk_status flashinfer_covered(fk_ctx *ctx, const flashinfer_call *c)
{
    int64_t requests = c->plan->shape[0] - 1;
    int64_t end = requests > 0 ? (int64_t)flashinfer_plan_at(c, requests, PLAN_FIRST_QUERY) + flashinfer_plan_at(c, requests, PLAN_QUERIES) : 0;
    if (end == c->q->shape[0]) return FK_OK;
    return fk_ctx_fail(ctx, FK_ERROR_INVALID, "the plan has %lld queries, q has %lld", (long long)end, (long long)c->q->shape[0]);
}

/* The options of the plan as those of a paged call; the block table is the request's to set. */
static inline paged_attention flashinfer_attention(const flashinfer_call *c)
{
    return (paged_attention){.q = c->q, .k = &c->k, .v = &c->v, .window_size = flashinfer_plan_at(c, 0, PLAN_WINDOW),
                             .scale = (double)flashinfer_plan_float(c, PLAN_SCALE_BITS),
                             .softcap = (double)flashinfer_plan_float(c, PLAN_CAP_BITS)};
}

/* Its pages as a block table of one row. */
static inline fk_tensor flashinfer_table(const flashinfer_call *c, const int32_t row[PLAN_COLUMNS])
{
    fk_tensor pages = fk_tensor_slice(*c->indices, 0, row[PLAN_FIRST_PAGE], row[PLAN_PAGES]);
    pages.ndim = 2;
    pages.shape[1] = pages.shape[0], pages.strides[1] = pages.strides[0];
    pages.shape[0] = 1, pages.strides[0] = 0;
    return pages;
}

/* The specification: every query over its keys, whatever the split. */
static inline fk_status flashinfer_reference(fk_ctx *ctx, const flashinfer_call *c)
{
    paged_attention p = flashinfer_attention(c);
    FK_TRY(flashinfer_covered(ctx, c));
    for (int64_t r = 0; r + 1 < c->plan->shape[0]; r++) {
        int32_t row[PLAN_COLUMNS];
        FK_TRY(flashinfer_request(ctx, c, r, row));
        double *scores = fk_ctx_scratch(ctx, sizeof *scores * ((size_t)row[PLAN_LENGTH] + 1));
        if (!scores) return fk_ctx_status(ctx);
        fk_tensor table = flashinfer_table(c, row);
        p.block_table = &table;
        for (int64_t i = 0; i < row[PLAN_QUERIES]; i++) {
            int64_t begin, end, length = row[PLAN_LENGTH];
            paged_visible(length - row[PLAN_QUERIES] + i, length, flashinfer_plan_at(c, 0, PLAN_CAUSAL) != 0, p.window_size, &begin, &end);
            for (int64_t h = 0; h < c->q->shape[1]; h++) paged_attend(&p, 0, row[PLAN_FIRST_QUERY] + i, h, begin, end, scores, c->out);
        }
    }
    return FK_OK;
}

/* Work, from the plan where the host can read it; else every request counts as having all keys. */
static inline fk_cost flashinfer_cost(const flashinfer_call *c)
{
    double pairs = 0, keys = 0, size = fk_dtype_bits(c->q->dtype) / 8.0, room = (double)(c->indices->shape[0] * c->k.shape[1]);
    bool exact = c->plan->device.type == FK_CPU && c->plan->data;
    for (int64_t r = 0; exact && r + 1 < c->plan->shape[0]; r++) {
        int64_t length = flashinfer_plan_at(c, r + 1, PLAN_LENGTH), queries = flashinfer_plan_at(c, r + 1, PLAN_QUERIES), first = length;
        for (int64_t i = 0; i < queries; i++) {
            int64_t begin, end;
            paged_visible(length - queries + i, length, flashinfer_plan_at(c, 0, PLAN_CAUSAL) != 0, flashinfer_plan_at(c, 0, PLAN_WINDOW),
                          &begin, &end);
            pairs += (double)(end - begin);
            if (begin < first) first = begin;
        }
        keys += (double)(length - first);
    }
    if (!exact) keys = room, pairs = (double)c->q->shape[0] * room / (double)(c->plan->shape[0] > 1 ? c->plan->shape[0] - 1 : 1);
    return (fk_cost){.read_bytes = (double)fk_tensor_nbytes(c->q) + (double)fk_tensor_nbytes(c->plan) + (double)fk_tensor_nbytes(c->indices) +
                                   2 * keys * (double)(c->k.shape[2] * c->k.shape[3]) * size,
                     .write_bytes = (double)fk_tensor_nbytes(c->out),
                     .flops = 4 * pairs * (double)(c->q->shape[1] * c->q->shape[2])};
}

/* A plan for T queries over all pages. Options vary with T, for cases have no field for them. */
static inline void flashinfer_fill(fk_random *random, const flashinfer_call *c, const fk_tensor *cache, bool decode)
{
    int64_t requests = c->plan->shape[0] - 1, tokens = c->q->shape[0], pages = c->indices->shape[0];
    int32_t qo[1024], indptr[1024], last[1024];
    const int64_t prefix[] = {requests + 1}, one[] = {requests};
    assert(requests < 1023);
    fk_tensor qo_tensor = fk_tensor_wrap(qo, FK_I32, (fk_device){FK_CPU, 0}, 1, prefix);
    fk_tensor indptr_tensor = fk_tensor_wrap(indptr, FK_I32, (fk_device){FK_CPU, 0}, 1, prefix);
    fk_tensor last_tensor = fk_tensor_wrap(last, FK_I32, (fk_device){FK_CPU, 0}, 1, one);
    paged_limit(c->q);
    paged_limit(cache);
    if (decode)
        for (int64_t r = 0; r <= requests; r++) qo[r] = (int32_t)(requests ? tokens / requests * r : 0);
    else paged_fill_cu_seqlens(random, &qo_tensor, tokens, requests > 1 ? tokens / 2 + 1 : tokens);
    plan_call p = {.qo_indptr = &qo_tensor, .indptr = &indptr_tensor, .indices = c->indices, .last_page_len = &last_tensor, .plan = c->plan,
                   .num_qo_heads = c->q->shape[1], .num_kv_heads = c->k.shape[2], .head_dim = c->q->shape[2], .page_size = c->k.shape[1],
                   .window_left = tokens % 5 == 2 ? 37 : -1, .soft_cap = tokens % 7 == 3 ? 2.5f : 0, .causal = decode || tokens % 2 != 0};
    plan_fill(random, &p);
    int64_t stride = fkp_random_stride(random, c->k.shape[0]); /* scattered over the cache, which may be larger */
    for (int64_t i = 0; i < pages; i++) fkp_set_int(c->indices, fkp_at1(c->indices, i), c->k.shape[0] - 1 - i * stride % c->k.shape[0]);
    fk_ctx *ctx;
    if (fk_ctx_create(&(fk_ctx_options){.device = {FK_CPU, 0}, .threads = 1, .references_only = true}, &ctx) != FK_OK) return;
    plan_make(ctx, &p);
    fk_ctx_destroy(ctx);
}

#endif
