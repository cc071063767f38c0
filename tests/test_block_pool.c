/* SPDX-License-Identifier: Apache-2.0 */
/* The free list of cache blocks under random events, against a plain table of who has which block. */
#include "unit.h"

#include "core/seeded.h"
#include "runtime/block_pool.h"

static void test_random_events(void **state)
{
    (void)state;
    enum { BLOCKS = 57, OWNERS = 9, EVENTS = 20000 };
    fk_block_pool pool;
    assert_int_equal(fk_block_pool_init(&pool, BLOCKS), FK_OK);
    int32_t held[OWNERS][BLOCKS];
    int64_t count[OWNERS] = {0};
    int owner_of[BLOCKS];
    memset(owner_of, -1, sizeof owner_of);
    int64_t refused = 0;
    for (uint64_t event = 0; event < EVENTS; event++) {
        uint64_t random = fkp_mix64(event + 1);
        int owner = (int)(random % OWNERS);
        int64_t n = (int64_t)(random >> 8) % 12, free_before = pool.num_free;
        if (random >> 40 & 1) { /* give some back, the last taken first */
            if (n > count[owner]) n = count[owner];
            count[owner] -= n;
            for (int64_t i = 0; i < n; i++) owner_of[held[owner][count[owner] + i]] = -1;
            fk_block_pool_give(&pool, held[owner] + count[owner], n);
            assert_int_equal(pool.num_free, free_before + n);
        } else if (fk_block_pool_take(&pool, n, held[owner] + count[owner])) {
            assert_true(n <= free_before);
            for (int64_t i = 0; i < n; i++) {
                int32_t block = held[owner][count[owner] + i];
                assert_in_range(block, 0, BLOCKS - 1);
                assert_int_equal(owner_of[block], -1); /* nobody else has it */
                owner_of[block] = owner;
            }
            count[owner] += n;
            assert_int_equal(pool.num_free, free_before - n);
        } else {
            assert_true(n > free_before);
            assert_int_equal(pool.num_free, free_before); /* all or nothing */
            refused++;
        }
    }
    assert_true(refused > 100); /* the pool was really short at times */
    for (int owner = 0; owner < OWNERS; owner++) fk_block_pool_give(&pool, held[owner], count[owner]);
    assert_int_equal(pool.num_free, BLOCKS);
    fk_block_pool_deinit(&pool);
}

static void test_sizes(void **state)
{
    (void)state;
    fk_block_pool pool;
    assert_int_equal(fk_block_pool_init(&pool, 0), FK_ERROR_INVALID);
    assert_int_equal(fk_block_pool_init(&pool, (int64_t)1 << 31), FK_ERROR_INVALID);
    assert_message("2147483648");
    assert_int_equal(fk_block_pool_init(&pool, 1), FK_OK);
    int32_t block;
    assert_true(fk_block_pool_take(&pool, 0, &block));
    assert_true(fk_block_pool_take(&pool, 1, &block));
    assert_false(fk_block_pool_take(&pool, 1, &block));
    fk_block_pool_deinit(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_events), cmocka_unit_test(test_sizes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
