/* SPDX-License-Identifier: Apache-2.0 */
/* Medians, the interval of their ratio, and verdicts, on data whose answer is known. */
#include "unit.h"

#include <math.h>

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
        for (int run = 0; run < 200; run++) {
            fkp_ratio r;
            simulate(&random, truths[k], 0.02, 0.05);
            assert_true(fkp_ratio_of_blocks(baseline, candidate, N, BLOCK, &r));
            assert_true(r.low <= r.ratio && r.ratio <= r.high);
            covered += r.low <= truths[k] && truths[k] <= r.high;
        }
        assert_in_range(covered, 182, 199); /* 190 wanted, give or take 2.6 deviations */
    }
}

static void test_midmean(void **unused)
{
    (void)unused;
    double one[] = {7}, two[] = {1, 2}, four[] = {100, 2, 1, 4}, eight[] = {8, 1, 7, 2, 6, 3, 500, 4};
    assert_true(fkp_midmean(one, 1) == 7);
    assert_true(fkp_midmean(two, 2) == 1.5);
    assert_true(fkp_midmean(four, 4) == 3);
    assert_true(fkp_midmean(eight, 8) == 5);
}

/* Noise that a block shares must widen the interval: treating pairs as independent would miss the truth. */
static void test_what_a_block_shares_counts(void **unused)
{
    (void)unused;
    fk_random random = {3};
    fkp_ratio blocks, pairs;
    simulate(&random, 1, 0.1, 0.001);
    assert_true(fkp_ratio_of_blocks(baseline, candidate, N, BLOCK, &blocks));
    assert_true(fkp_ratio_of_blocks(baseline, candidate, N, 1, &pairs));
    assert_true(blocks.high - blocks.low > 2 * (pairs.high - pairs.low));
}

/* A clock that ticks in 1/100 of the time: medians jump by a whole percent where the truth is a tenth of it. */
static void test_ticks_average_out(void **unused)
{
    (void)unused;
    fk_random random = {5};
    fkp_ratio r;
    for (int i = 0; i < N; i++) {
        baseline[i] = 1e-7 * floor(100.45 + (double)fkp_random_below(&random, 1000) / 1000);
        candidate[i] = 1e-7 * floor(100.55 + (double)fkp_random_below(&random, 1000) / 1000);
    }
    assert_true(fkp_ratio_of_blocks(baseline, candidate, N, BLOCK, &r));
    assert_true(fabs(r.ratio - 100.45 / 100.55) < 0.002);
    assert_true(r.low < r.ratio && r.ratio < r.high && r.high - r.low < 0.006);
    assert_true(fkp_median(baseline, N) < 0.995 * fkp_median(candidate, N));
}

/* One block in which somebody else used the machine moves nothing. */
static void test_a_disturbed_block(void **unused)
{
    (void)unused;
    fk_random random = {6};
    fkp_ratio r;
    simulate(&random, 1, 0.001, 0.01);
    for (int i = 0; i < BLOCK; i++) candidate[i] *= 3;
    assert_true(fkp_ratio_of_blocks(baseline, candidate, N, BLOCK, &r));
    assert_int_equal(fkp_ratio_verdict(&r), FKP_SAME);
}

static void test_equal_data_is_the_same(void **unused)
{
    (void)unused;
    fk_random random = {4};
    fkp_ratio r;
    simulate(&random, 1, 0.02, 0.02);
    assert_true(fkp_ratio_of_blocks(baseline, baseline, N, BLOCK, &r));
    assert_true(r.ratio == 1 && r.low == 1 && r.high == 1);
    assert_int_equal(fkp_ratio_verdict(&r), FKP_SAME);
}

static void test_one_and_two_processes(void **unused)
{
    (void)unused;
    fkp_ratio parts[] = {{1.03, 1.025, 1.035}, {0.99, 0.985, 0.995}}, both;
    fkp_ratio_join(parts, 1, &both);
    assert_true(fabs(both.ratio - (1.03)) <= 1e-12);
    assert_true(fabs(both.low - (1.025)) <= 1e-12);
    assert_true(fabs(both.high - (1.035)) <= 1e-12);
    fkp_ratio_join(parts, 2, &both);
    assert_true(fabs(both.low - (0.985)) <= 1e-12);
    assert_true(fabs(both.high - (1.035)) <= 1e-12);
    assert_true(fabs(both.ratio - (sqrt(1.03 * 0.99))) <= 1e-12);
    assert_int_equal(fkp_ratio_verdict(&both), FKP_UNDECIDED);
}

/* Half width by hand: t(3) = 3.182 times the standard deviation of the logarithms, 0.0115470, over 2. */
static void test_several_processes(void **unused)
{
    (void)unused;
    fkp_ratio parts[4], all;
    for (int i = 0; i < 4; i++) {
        double at = i % 2 ? 0.01 : -0.01;
        parts[i] = (fkp_ratio){exp(at), exp(at - 0.004), exp(at + 0.004)};
    }
    fkp_ratio_join(parts, 4, &all);
    assert_true(fabs(all.ratio - (1)) <= 1e-12);
    assert_true(fabs(log(all.high) - (0.018371)) <= 1e-5);
    assert_true(fabs(log(all.low) - (-0.018371)) <= 1e-5);
    for (int i = 0; i < 4; i++) parts[i] = (fkp_ratio){1, exp(-0.02), exp(0.02)}; /* equal by chance: their own intervals remain */
    fkp_ratio_join(parts, 4, &all);
    assert_true(fabs(log(all.high) - (0.01)) <= 1e-12);
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
        cmocka_unit_test(test_midmean),
        cmocka_unit_test(test_what_a_block_shares_counts),
        cmocka_unit_test(test_ticks_average_out),
        cmocka_unit_test(test_a_disturbed_block),
        cmocka_unit_test(test_one_and_two_processes),
        cmocka_unit_test(test_several_processes),
        cmocka_unit_test(test_equal_data_is_the_same),
        cmocka_unit_test(test_verdicts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
