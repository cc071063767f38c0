/* SPDX-License-Identifier: Apache-2.0 */
/* The vectors of core/simd.h at each instruction-set level that this machine has: the bounds that their comments state,
 * conversions equal to core/dtype.h on all 65,536 patterns, shuffles. */
#include "unit.h"

#include <math.h>

#include "core/cpu_features.h"
#include "tests/simd_level.h"

#define STEP 61 /* a prime: 36 million of the two billion floats with a normal result, at all phases of the mantissa */

static const fkp_simd_level *const all_levels[FKP_CPU_LEVELS] = {&fkp_simd_scalar, &fkp_simd_avx2, &fkp_simd_avx512};

/* The levels that can run here. */
#define FOR_EACH_LEVEL(level)                                                                                        \
    for (int level##_index = 0; level##_index <= (int)fkp_cpu_level_detected(); level##_index++)                     \
        for (const fkp_simd_level *level = all_levels[level##_index]; level; level = NULL)

static void test_exp_bound(void **state)
{
    (void)state;
    FOR_EACH_LEVEL(level)
    {
        double error = level->exp_error(STEP);
        print_message("%d lanes: exp within %.3g\n", level->lanes, error);
        assert_true(error < 1e-7);
    }
}

static void test_exp_edges(void **state)
{
    (void)state;
    FOR_EACH_LEVEL(level)
    {
        assert_true(level->exp_of(0.0f) == 1.0f && level->exp_of(-0.0f) == 1.0f);
        assert_true(level->exp_of(-INFINITY) == 0.0f && level->exp_of(-88.0f) == 0.0f);
        assert_true(isinf(level->exp_of(INFINITY)) && isinf(level->exp_of(89.0f)));
        assert_true(isfinite(level->exp_of(88.722f)) && level->exp_of(88.722f) > 3.39e38f);
        assert_true(isnan(level->exp_of(NAN)));
    }
}

static void test_tanh_bound(void **state)
{
    (void)state;
    FOR_EACH_LEVEL(level)
    {
        double error = level->tanh_error(STEP);
        print_message("%d lanes: tanh within %.3g\n", level->lanes, error);
        assert_true(error < 2e-7);
        assert_true(level->tanh_of(INFINITY) == 1.0f && level->tanh_of(-INFINITY) == -1.0f && isnan(level->tanh_of(NAN)));
        assert_true(level->tanh_of(0.0f) == 0.0f);
    }
}

static void test_conversions(void **state)
{
    (void)state;
    FOR_EACH_LEVEL(level)
    {
        assert_int_equal(level->bad_loads(FK_BF16), 0);
        assert_int_equal(level->bad_loads(FK_F16), 0);
        assert_int_equal(level->bad_stores(FK_BF16), 0);
        assert_int_equal(level->bad_stores(FK_F16), 0);
    }
}

static void test_shuffles(void **state)
{
    (void)state;
    FOR_EACH_LEVEL(level) assert_true(level->shuffles_are_right());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exp_bound),   cmocka_unit_test(test_exp_edges), cmocka_unit_test(test_tanh_bound),
        cmocka_unit_test(test_conversions), cmocka_unit_test(test_shuffles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
