/* SPDX-License-Identifier: Apache-2.0 */
/* Medians, the interval of their ratio, and verdicts, on data whose answer is known. */
#include <stdarg.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>

#include <cmocka.h>

#include "bench/statistics.h"
#include "core/random.h"

#define N 600
#define BLOCK 20

static double baseline[N], candidate[N];

/* Times of two sides: a state of the machine that a block shares, noise of each call, and the true speedup. */
static void simulate(fk_random *random, double speedup, double block_noise, double call_noise)
{
    double state = 0;
    for (int i = 0; i < N; i++) {
        if (i % BLOCK == 0) state = block_noise * fkp_random_normal(random);
        baseline[i] = 1e-5 * exp(state + call_noise * fkp_random_normal(random));
        candidate[i] = 1e-5 / speedup * exp(call_noise * fkp_random_normal(random));
    }
}

static void test_median(void **unused)
{
    (void)unused;
    double odd[] = {5, 1, 4, 2, 3}, even[] = {4, 1, 3, 2}, one[] = {7}, ties[] = {2, 2, 1, 2, 2, 9};
    assert_true(fkp_median(odd, 5) == 3);
    assert_true(fkp_median(even, 4) == 2.5);
    assert_true(fkp_median(one, 1) == 7);
    assert_true(fkp_median(ties, 6) == 2);
    fk_random random = {1};
    for (int n = 1; n < 60; n++) { /* against sorting by insertion */
        double values[60], sorted[60];
        for (int i = 0; i < n; i++) {
            values[i] = (double)fkp_random_below(&random, 20);
            int at = i;
            for (; at > 0 && sorted[at - 1] > values[i]; at--) sorted[at] = sorted[at - 1];
            sorted[at] = values[i];
        }
        assert_true(fkp_median(values, n) == 0.5 * (sorted[(n - 1) / 2] + sorted[n / 2]));
    }
}

static void test_interval_covers_the_truth(void **unused)
{
    (void)unused;
    static const double truths[] = {1, 1.3, 0.7};
    fk_random random = {2};
    for (int k = 0; k < 3; k++) {
        int covered = 0;
        for (int run = 0; run < 100; run++) {
            fkp_ratio r;
            simulate(&random, truths[k], 0.02, 0.05);
            assert_true(fkp_ratio_of_medians(baseline, candidate, N, BLOCK, (uint64_t)run, &r));
            assert_true(r.low <= r.ratio && r.ratio <= r.high);
            covered += r.low <= truths[k] && truths[k] <= r.high;
        }
        assert_in_range(covered, 85, 100); /* 95 wanted; the percentile method is a little narrow */
    }
}

/* Noise that a block shares must widen the interval: treating pairs as independent would miss the truth. */
static void test_blocks_are_resampled_together(void **unused)
{
    (void)unused;
    fk_random random = {3};
    fkp_ratio blocks, pairs;
    simulate(&random, 1, 0.1, 0.001);
    assert_true(fkp_ratio_of_medians(baseline, candidate, N, BLOCK, 1, &blocks));
    assert_true(fkp_ratio_of_medians(baseline, candidate, N, 1, 1, &pairs));
    assert_true(blocks.high - blocks.low > 2 * (pairs.high - pairs.low));
}

static void test_equal_data_is_the_same(void **unused)
{
    (void)unused;
    fk_random random = {4};
    fkp_ratio r, again;
    simulate(&random, 1, 0.02, 0.02);
    assert_true(fkp_ratio_of_medians(baseline, baseline, N, BLOCK, 1, &r));
    assert_true(r.ratio == 1 && r.low == 1 && r.high == 1);
    assert_int_equal(fkp_ratio_verdict(&r), FKP_SAME);
    assert_true(fkp_ratio_of_medians(baseline, candidate, N, BLOCK, 9, &r));
    assert_true(fkp_ratio_of_medians(baseline, candidate, N, BLOCK, 9, &again));
    assert_true(r.low == again.low && r.high == again.high);
}

static void test_verdicts(void **unused)
{
    (void)unused;
    assert_int_equal(fkp_ratio_verdict(&(fkp_ratio){1.0, 0.985, 1.015}), FKP_SAME);
    assert_int_equal(fkp_ratio_verdict(&(fkp_ratio){1.01, 1.005, 1.015}), FKP_SAME); /* surely faster, by nothing that matters */
    assert_int_equal(fkp_ratio_verdict(&(fkp_ratio){1.1, 1.01, 1.2}), FKP_FASTER);
    assert_int_equal(fkp_ratio_verdict(&(fkp_ratio){0.9, 0.8, 0.97}), FKP_SLOWER);
    assert_int_equal(fkp_ratio_verdict(&(fkp_ratio){1.0, 0.97, 1.01}), FKP_UNDECIDED);
    assert_int_equal(fkp_ratio_verdict(&(fkp_ratio){1.03, 0.99, 1.07}), FKP_UNDECIDED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_median),
        cmocka_unit_test(test_interval_covers_the_truth),
        cmocka_unit_test(test_blocks_are_resampled_together),
        cmocka_unit_test(test_equal_data_is_the_same),
        cmocka_unit_test(test_verdicts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
