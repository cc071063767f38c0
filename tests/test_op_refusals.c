/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that dense attention, the fp8 operators and the HND cache refuse, each with the thing and the value. */
#include "unit.h"

#include <fk/ctx.h>
#include <fk/ops.h>

static fk_ctx *ctx;
static float memory[1 << 14];
static const fk_device cpu = {FK_CPU, 0};

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

/* A view of the zeros in `memory`, which no test here needs to be anything else. */
static fk_tensor zeros(fk_dtype dtype, int ndim, const int64_t *shape)
{
    return fk_tensor_wrap(memory, dtype, cpu, ndim, shape);
}
#define ZEROS(dtype, ...) zeros(dtype, (int)(sizeof(int64_t[]){__VA_ARGS__} / sizeof(int64_t)), (int64_t[]){__VA_ARGS__})

static void assert_refused(const char *what)
{
    assert_int_equal(fk_ctx_status(ctx), FK_ERROR_INVALID);
    if (!strstr(fk_ctx_error(ctx), what)) fail_msg("'%s' does not name '%s'", fk_ctx_error(ctx), what);
    fk_ctx_clear(ctx);
}

static void test_dense_attention(void **state)
{
    (void)state;
    fk_tensor q = ZEROS(FK_F32, 2, 4, 5, 8), k = ZEROS(FK_F32, 2, 4, 6, 8), k2 = ZEROS(FK_F32, 2, 2, 6, 8), k3 = ZEROS(FK_F32, 2, 3, 6, 8);
    fk_dense_attention(ctx, q, k2, k2, FK_ABSENT, false, 0, false);
    assert_refused("4 query heads with 2 key heads");
    fk_dense_attention(ctx, q, k3, k3, FK_ABSENT, false, 0, true);
    assert_refused("4 query heads with 3 key heads");
    fk_dense_attention(ctx, q, k, k, ZEROS(FK_F32, 1, 1, 1, 6), true, 0, false);
    assert_refused("attn_mask and is_causal");
    fk_dense_attention(ctx, q, k, k, ZEROS(FK_I32, 1, 1, 1, 6), false, 0, false);
    assert_refused("attn_mask is i32");
    fk_dense_attention(ctx, q, k, k, ZEROS(FK_BOOL, 1, 3, 1, 6), false, 0, false);
    assert_refused("attn_mask has 3 in dim 1, wanted 1 or 4");
    fk_dense_attention(ctx, q, k, k, ZEROS(FK_BOOL, 2, 4, 5, 6), false, 0, false);
    assert_ok(fk_ctx_status(ctx));
}

static void test_tree_attn_prefill(void **state)
{
    (void)state;
    int32_t starts[] = {0, 4}, length = 4, block = 0;
    fk_tensor q = ZEROS(FK_F32, 4, 2, 8), cache = ZEROS(FK_F32, 1, 4, 2, 8), cu = fk_tensor_wrap(starts, FK_I32, cpu, 1, (int64_t[]){2});
    fk_tensor used = fk_tensor_wrap(&length, FK_I32, cpu, 1, (int64_t[]){1}), table = fk_tensor_wrap(&block, FK_I32, cpu, 2, (int64_t[]){1, 1});
    fk_tree_attn_prefill(ctx, q, cache, cache, cu, 4, used, 4, 0, false, table, 0, ZEROS(FK_F32, 3, 3));
    assert_refused("qq_bias is for 3 drafts, max_seqlen_q is 4");
    fk_tree_attn_prefill(ctx, q, cache, cache, cu, 4, used, 4, 0, false, table, 0, ZEROS(FK_F32, 4, 4));
    assert_ok(fk_ctx_status(ctx));
}

static void test_fp8(void **state)
{
    (void)state;
    fk_tensor rows = ZEROS(FK_F32, 3, 200);
    fk_per_token_group_quant_fp8(ctx, rows, 128, 1e-10f, -448, 448, false);
    assert_refused("200 numbers are no multiple of group_size 128");
    fk_per_token_group_quant_fp8(ctx, rows, 100, 1e-10f, -448, 480, false);
    assert_refused("fp8_max 480");
    fk_fp8_linear(ctx, rows, ZEROS(FK_F8_E4M3, 130, 200), ZEROS(FK_F32, 1, 2));
    assert_refused("weight_scale");
    int32_t experts[] = {0, -1, 2};
    fk_tensor indices = fk_tensor_wrap(experts, FK_I32, cpu, 1, (int64_t[]){3}), a = ZEROS(FK_F8_E4M3, 3, 64), b = ZEROS(FK_F8_E4M3, 2, 5, 64);
    fk_fp8_grouped_gemm_contiguous(ctx, a, b, ZEROS(FK_F32, 3, 1), ZEROS(FK_F32, 2, 1, 1), indices);
    assert_refused("m_indices[2] is 2, but there are 2 experts");
}

static void test_store_kvcache_hnd(void **state)
{
    (void)state;
    int64_t slot = 8;
    fk_tensor key = ZEROS(FK_F32, 1, 2, 8), cache = ZEROS(FK_F32, 2, 2, 4, 8);
    fk_store_kvcache_hnd(ctx, key, key, cache, cache, fk_tensor_wrap(&slot, FK_I64, cpu, 1, (int64_t[]){1}));
    assert_refused("slot_mapping[0] is 8, but the cache has 8 slots");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_dense_attention, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tree_attn_prefill, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fp8, setup, teardown),
        cmocka_unit_test_setup_teardown(test_store_kvcache_hnd, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
