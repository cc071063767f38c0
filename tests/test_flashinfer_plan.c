/* SPDX-License-Identifier: Apache-2.0 */
/* How flashinfer's plans split work, by examples counted by hand, and what a plan or a run that does not fit is told. */
#include "unit.h"

#include <fk/ctx.h>
#include <fk/ops.h>

#include "ops/attention/flashinfer_plan.h"

static fk_ctx *ctx;

static int setup(void **state)
{
    (void)state;
    return fk_ctx_create(&(fk_ctx_options){.device = {FK_CPU, 0}, .threads = 1}, &ctx) != FK_OK;
}

static int teardown(void **state)
{
    (void)state;
    fk_ctx_destroy(ctx);
    return 0;
}

static fk_tensor ints(int32_t *values, int64_t n)
{
    return fk_tensor_wrap(values, FK_I32, (fk_device){FK_CPU, 0}, 1, &n);
}

static void assert_row(fk_tensor plan, int row, const int32_t *expected, int columns)
{
    for (int i = 0; i < columns; i++)
        if (((const int32_t *)plan.data)[row * PLAN_COLUMNS + i] != expected[i])
            fail_msg("row %d column %d is %d, wanted %d", row, i, ((const int32_t *)plan.data)[row * PLAN_COLUMNS + i], expected[i]);
}

/* Requests of `pages` full pages of 16 tokens, one query each. */
static fk_tensor decode_plan(int requests, int pages, int64_t heads, int64_t kv_heads, bool disable)
{
    static int32_t indptr[16], last[16], indices[4096];
    for (int r = 0; r <= requests; r++) indptr[r] = r * pages;
    for (int r = 0; r < requests; r++) last[r] = 16;
    return fk_flashinfer_decode_plan(ctx, ints(indptr, requests + 1), ints(indices, requests * pages), ints(last, requests), heads, kv_heads,
                                     128, 16, -1, 0, 0.5f, disable, 1)
        .plan;
}

static void test_decode(void **state)
{
    (void)state;
    /* 4800 keys, 8 KV heads: room for 64 items, 19 chunks of 256. Tiles take 16 queries of 4 heads. */
    fk_tensor plan = decode_plan(1, 300, 32, 8, false);
    assert_ok(fk_ctx_status(ctx));
    assert_row(plan, 0, (int32_t[]){19, 256, 16, 1, -1, plan_bits(0.5f), 0, 1}, 8);
    assert_row(plan, 1, (int32_t[]){0, 1, 4800, 19, 0, 1, 0, 300}, 8);
    /* 64 KV heads: room for 8; 19 and 10 chunks are too many, 5 of 1024 are not. */
    assert_row(decode_plan(1, 300, 64, 64, false), 0, (int32_t[]){5, 1024, 64}, 3);
    /* Three requests of 4800 share the 64: 57 chunks fit. */
    plan = decode_plan(3, 300, 32, 8, false);
    assert_row(plan, 0, (int32_t[]){57, 256}, 2);
    assert_row(plan, 3, (int32_t[]){2, 1, 4800, 19, 38, 1, 600, 300}, 8);
    assert_row(decode_plan(1, 300, 32, 8, true), 0, (int32_t[]){1, INT32_MAX}, 2);
    assert_row(decode_plan(9, 300, 64, 64, false), 0, (int32_t[]){9, INT32_MAX}, 2); /* as many tiles as room: no split */
    assert_ok(fk_ctx_status(ctx));
}

static void test_prefill(void **state)
{
    (void)state;
    int32_t qo[] = {0, 40, 40, 41}, indptr[] = {0, 20, 20, 60}, indices[60] = {0}, last[] = {3, 9, 16};
    fk_tensor plan = fk_flashinfer_prefill_plan(ctx, ints(qo, 4), ints(indptr, 4), ints(indices, 60), ints(last, 3), 4, 2, 64, 16, true, 0, 7,
                                                30, false)
                         .plan;
    assert_ok(fk_ctx_status(ctx));
    /* Tiles of 32 queries: 2 of 307 keys in 2 chunks, none, 1 of 640 keys in 3. */
    assert_row(plan, 0, (int32_t[]){7, 256, 32, 1, 7, plan_bits(0.125f), plan_bits(30), 3}, 8);
    assert_row(plan, 1, (int32_t[]){0, 40, 307, 2, 0, 2, 0, 20}, 8);
    assert_row(plan, 2, (int32_t[]){40, 0, 0, 1, 4, 0, 20, 0}, 8);
    assert_row(plan, 3, (int32_t[]){40, 1, 640, 3, 4, 1, 20, 40}, 8);
}

static void assert_refused(const char *what)
{
    assert_int_equal(fk_ctx_status(ctx), FK_ERROR_INVALID);
    if (!strstr(fk_ctx_error(ctx), what)) fail_msg("'%s' does not name '%s'", fk_ctx_error(ctx), what);
    fk_ctx_clear(ctx);
}

static void plan_one(int32_t first_page, int32_t pages, int32_t last, int64_t heads)
{
    int32_t indptr[] = {first_page, pages}, indices[4] = {0};
    fk_flashinfer_decode_plan(ctx, ints(indptr, 2), ints(indices, 4), ints(&last, 1), heads, 2, 64, 16, -1, 0, 0, false, 1);
}

static void test_refusals(void **state)
{
    (void)state;
    plan_one(0, 4, 17, 4);
    assert_refused("last_page_len[0] is 17");
    plan_one(0, 5, 1, 4);
    assert_refused("0, 5 for request 0");
    plan_one(1, 4, 1, 4);
    assert_refused("1, 4 for request 0");
    plan_one(0, 4, 16, 5);
    assert_refused("num_qo_heads 5");
    /* Two queries for a plan of one; a page that the cache has not; an unknown layout. */
    int32_t numbers[16] = {1, 256, 16, 1, -1, plan_bits(1), 0, 1, 0, 1, 3, 1, 0, 1, 0, 1}, page = 2;
    float memory[4096] = {0};
    const fk_device cpu = {FK_CPU, 0};
    fk_tensor plan = fk_tensor_wrap(numbers, FK_I32, cpu, 2, (int64_t[]){2, 8});
    fk_tensor q2 = fk_tensor_wrap(memory, FK_F32, cpu, 3, (int64_t[]){2, 4, 8}), q1 = fk_tensor_slice(q2, 0, 0, 1);
    fk_tensor cache = fk_tensor_wrap(memory, FK_F32, cpu, 5, (int64_t[]){2, 2, 4, 2, 8});
    fk_flashinfer_decode_run(ctx, q2, cache, plan, ints(&page, 1), "NHD");
    assert_refused("the plan has 1 queries, q has 2");
    fk_flashinfer_decode_run(ctx, q1, cache, plan, ints(&page, 1), "NHD");
    assert_refused("paged_kv_indices[0] is 2");
    fk_flashinfer_decode_run(ctx, q1, cache, plan, ints(&page, 1), "NDH");
    assert_refused("'NDH'");
    page = 1;
    fk_flashinfer_decode_run(ctx, q1, cache, plan, ints(&page, 1), "NHD");
    assert_ok(fk_ctx_status(ctx));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_decode, setup, teardown),
        cmocka_unit_test_setup_teardown(test_prefill, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
