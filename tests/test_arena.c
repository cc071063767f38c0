/* SPDX-License-Identifier: Apache-2.0 */
/* Arenas: alignment, growth over chunks, marks that give back what came after them, and requests that cannot be met. */
#include "unit.h"

#include <fk/ctx.h>

#include "core/arena.h"

static fk_arena arena;

static int setup(void **state)
{
    (void)state;
    fk_backend *backend;
    if (fk_backend_get((fk_device){FK_CPU, 0}, &backend) != FK_OK) return 1;
    fk_arena_init(&arena, backend, 4096);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    fk_arena_deinit(&arena);
    return 0;
}

static char *take(size_t bytes)
{
    void *data;
    assert_ok(fk_arena_alloc(&arena, bytes, &data));
    assert_int_equal((uintptr_t)data % 256, 0);
    return data;
}

static void test_allocations_do_not_overlap(void **state)
{
    (void)state;
    char *blocks[200];
    assert_int_equal(fk_arena_reserved(&arena), 0);
    for (int i = 0; i < 200; i++) {
        size_t bytes = (size_t)(i * 37 % 700);
        blocks[i] = take(bytes);
        memset(blocks[i], i, bytes);
    }
    for (int i = 0; i < 200; i++)
        for (int k = 0; k < i * 37 % 700; k++) assert_int_equal((unsigned char)blocks[i][k], i);
}

static void test_marks(void **state)
{
    (void)state;
    char *kept = take(1000);
    memset(kept, 7, 1000);
    fk_mark mark = arena.at;
    char *first = take(3000);
    take(5000); /* a chunk of its own */
    size_t reserved = fk_arena_reserved(&arena);
    for (int step = 0; step < 50; step++) {
        arena.at = mark;
        char *again = take(3000);
        assert_ptr_equal(again, first);
        memset(again, step, 3000);
        take(5000);
    }
    assert_int_equal(fk_arena_reserved(&arena), reserved); /* chunks are used again */
    for (int k = 0; k < 1000; k++) assert_int_equal(kept[k], 7);
    fk_arena_reset(&arena);
    assert_ptr_equal(take(10), kept);
}

static void test_large_after_small(void **state)
{
    (void)state;
    take(100);
    char *large = take(1 << 20);
    memset(large, 1, 1 << 20);
    fk_arena_reset(&arena);
    for (int i = 0; i < 100; i++) memset(take(4000), 2, 4000);
}

static void test_impossible_sizes(void **state)
{
    (void)state;
    void *data;
    fk_tensor t;
    assert_int_equal(fk_arena_alloc(&arena, SIZE_MAX, &data), FK_ERROR_MEMORY);
    assert_int_equal(fk_arena_alloc(&arena, SIZE_MAX / 2, &data), FK_ERROR_MEMORY);
    assert_int_equal(fk_arena_tensor(&arena, FK_F32, 3, (int64_t[]){1 << 30, 1 << 30, 1 << 30}, &t), FK_ERROR_MEMORY);
    assert_message("too large");
    assert_ok(fk_arena_tensor(&arena, FK_BF16, 2, (int64_t[]){3, 5}, &t)); /* still usable */
    assert_true(t.strides[0] == 5 && t.dtype == FK_BF16 && t.device.type == FK_CPU);
}

/* What a context hands out follows the same rules. */
static void test_context(void **state)
{
    (void)state;
    fk_ctx_options options = {.device = {FK_CPU, 0}};
    fk_ctx *ctx;
    assert_ok(fk_ctx_create(&options, &ctx));
    fk_mark mark = fk_ctx_mark(ctx);
    fk_tensor a = fk_ctx_tensor(ctx, FK_F32, 1, (int64_t[]){100});
    fk_ctx_release(ctx, mark);
    fk_tensor b = fk_ctx_tensor(ctx, FK_I64, 1, (int64_t[]){10});
    assert_ptr_equal(a.data, b.data);
    assert_non_null(fk_ctx_scratch(ctx, 0));
    fk_tensor none = fk_ctx_tensor(ctx, FK_F32, 2, (int64_t[]){INT64_C(1) << 40, 1 << 30});
    assert_false(fk_tensor_present(&none));
    assert_int_equal(fk_ctx_status(ctx), FK_ERROR_MEMORY);
    assert_null(fk_ctx_scratch(ctx, 8)); /* the error sticks */
    fk_ctx_clear(ctx);
    assert_non_null(fk_ctx_scratch(ctx, 8));
    fk_ctx_destroy(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_allocations_do_not_overlap, setup, teardown),
        cmocka_unit_test_setup_teardown(test_marks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_large_after_small, setup, teardown),
        cmocka_unit_test_setup_teardown(test_impossible_sizes, setup, teardown),
        cmocka_unit_test(test_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
