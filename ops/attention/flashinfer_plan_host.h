/* SPDX-License-Identifier: Apache-2.0 */
/* Making a plan on the host: the specification of both plan operators, which have different names for the same things. */
#ifndef FK_OPS_FLASHINFER_PLAN_HOST_H
#define FK_OPS_FLASHINFER_PLAN_HOST_H

#include <fk/ctx.h>

#include "core/element.h"
#include "core/random.h"
#include "ops/attention/flashinfer_plan_call.h"

static inline fk_status plan_check(fk_ctx *ctx, const plan_call *c)
{
    if (c->num_kv_heads < 1 || c->num_qo_heads < 1 || c->num_qo_heads % c->num_kv_heads != 0)
        return fk_ctx_fail(ctx, FK_ERROR_INVALID, "num_qo_heads %lld is no multiple of num_kv_heads %lld", (long long)c->num_qo_heads,
                           (long long)c->num_kv_heads);
    if (c->page_size < 1 || c->page_size > INT32_MAX)
        return fk_ctx_fail(ctx, FK_ERROR_INVALID, "page_size is %lld", (long long)c->page_size);
    if (c->head_dim < 1) return fk_ctx_fail(ctx, FK_ERROR_INVALID, "head_dim is %lld", (long long)c->head_dim);
    if (!c->qo_indptr && c->queries_each < 1)
        return fk_ctx_fail(ctx, FK_ERROR_INVALID, "q_len_per_req is %lld", (long long)c->queries_each);
    return FK_OK;
}

/* A step of a prefix array, checked. */
static inline fk_status plan_step(fk_ctx *ctx, const fk_tensor *indptr, const char *name, int64_t r, int64_t limit, int64_t *from,
                                  int64_t *count)
{
    int64_t to = fkp_int1(indptr, r + 1);
    *from = fkp_int1(indptr, r);
    *count = to - *from;
    if (*from >= 0 && *count >= 0 && to <= limit && (r > 0 || *from == 0)) return FK_OK;
    return fk_ctx_fail(ctx, FK_ERROR_INVALID, "%s has %lld, %lld for request %lld, wanted rising numbers from 0 up to %lld", name,
                       (long long)*from, (long long)to, (long long)r, (long long)limit);
}

static inline fk_status plan_request(fk_ctx *ctx, const plan_call *c, int64_t r, int32_t row[PLAN_COLUMNS])
{
    int64_t first_query = r * c->queries_each, queries = c->queries_each, first_page, pages, length = 0;
    if (c->qo_indptr) FK_TRY(plan_step(ctx, c->qo_indptr, "qo_indptr", r, INT32_MAX, &first_query, &queries));
    FK_TRY(plan_step(ctx, c->indptr, "kv indptr", r, c->indices->shape[0], &first_page, &pages));
    if (pages > 0) {
        int64_t last = fkp_int1(c->last_page_len, r);
        length = (pages - 1) * c->page_size + last;
        if (last < 1 || last > c->page_size || length > INT32_MAX)
            return fk_ctx_fail(ctx, FK_ERROR_INVALID, "last_page_len[%lld] is %lld, with %lld pages of %lld", (long long)r, (long long)last,
                               (long long)pages, (long long)c->page_size);
    }
    row[PLAN_FIRST_QUERY] = (int32_t)first_query;
    row[PLAN_QUERIES] = (int32_t)queries;
    row[PLAN_LENGTH] = (int32_t)length;
    row[PLAN_TILES] = plan_ceil(queries, plan_tile_queries(c->num_qo_heads / c->num_kv_heads));
    row[PLAN_FIRST_PAGE] = (int32_t)first_page;
    row[PLAN_PAGES] = (int32_t)pages;
    return FK_OK;
}

/* Items of all requests with chunks of so many tokens. */
static inline int64_t plan_items(const int32_t (*rows)[PLAN_COLUMNS], int64_t requests, int32_t chunk_tokens)
{
    int64_t items = 0;
    for (int64_t r = 0; r < requests; r++) items += (int64_t)rows[r][PLAN_TILES] * plan_chunks(rows[r][PLAN_LENGTH], chunk_tokens);
    return items;
}

static inline fk_status plan_make(fk_ctx *ctx, const plan_call *c)
{
    int64_t requests = c->last_page_len->shape[0], most = plan_most_items(c->num_kv_heads), item = 0;
    int32_t(*rows)[PLAN_COLUMNS] = fk_ctx_scratch(ctx, sizeof *rows * (size_t)(requests + 1));
    if (!rows) return fk_ctx_status(ctx);
    plan_options(c, rows[0]);
    for (int64_t r = 0; r < requests; r++) FK_TRY(plan_request(ctx, c, r, rows[r + 1]));
    if (!c->disable_split && plan_items((const int32_t(*)[PLAN_COLUMNS])rows + 1, requests, INT32_MAX) < most) {
        int32_t chunk = PLAN_CHUNK;
        while (chunk < INT32_MAX && plan_items((const int32_t(*)[PLAN_COLUMNS])rows + 1, requests, chunk) > most)
            chunk = chunk > INT32_MAX / 2 ? INT32_MAX : 2 * chunk;
        rows[0][PLAN_CHUNK_TOKENS] = chunk;
    }
    for (int64_t r = 1; r <= requests; r++) {
        rows[r][PLAN_CHUNKS] = plan_chunks(rows[r][PLAN_LENGTH], rows[0][PLAN_CHUNK_TOKENS]);
        rows[r][PLAN_FIRST_ITEM] = (int32_t)item;
        item += (int64_t)rows[r][PLAN_TILES] * rows[r][PLAN_CHUNKS];
        if (item > INT32_MAX) return fk_ctx_fail(ctx, FK_ERROR_INVALID, "request %lld is beyond 2^31 items of work", (long long)r - 1);
    }
    rows[0][PLAN_ITEMS] = (int32_t)item;
    for (int64_t r = 0; r <= requests; r++)
        for (int i = 0; i < PLAN_COLUMNS; i++) fkp_set_int(c->plan, fkp_at2(c->plan, r, i), rows[r][i]);
    return FK_OK;
}

/* Requests with at least as many keys as queries where the pages last; of four or more one has none. */
static inline void plan_fill(fk_random *random, const plan_call *c)
{
    int64_t requests = c->last_page_len->shape[0], pages = c->indices->shape[0], page_size = c->page_size, used = 0;
    int64_t stride = fkp_random_stride(random, pages > 0 ? pages : 1);
    for (int64_t i = 0; i < pages; i++) fkp_set_int(c->indices, fkp_at1(c->indices, i), i * stride % pages);
    fkp_set_int(c->indptr, fkp_at1(c->indptr, 0), 0);
    for (int64_t r = 0; r < requests; r++) {
        int64_t most = (pages - used) / (requests - r), count = r == 0 || most < 1 ? most : 1 + fkp_random_below(random, most);
        if (requests >= 4 && r == 1) count = 0;
        if (r == requests - 1) count = pages - used;
        used += count;
        fkp_set_int(c->indptr, fkp_at1(c->indptr, r + 1), used);
        fkp_set_int(c->last_page_len, fkp_at1(c->last_page_len, r), 1 + fkp_random_below(random, page_size));
    }
}

#endif
