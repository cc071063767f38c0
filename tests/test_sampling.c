/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of sampling: Philox against the known answers of its authors, weights against exp, and what the operator
 * draws: the right distribution, cuts that keep what they should, and the cases that have one answer. */
#include "unit.h"

#include <math.h>

#include <fk/ctx.h>
#include <fk/ops.h>

#include "core/sampling.h"

static fk_ctx *ctx;

static int setup(void **state)
{
    (void)state;
    fk_ctx_options options = {.device = {FK_CPU, 0}};
    return fk_ctx_create(&options, &ctx) != FK_OK;
}

static int teardown(void **state)
{
    (void)state;
    fk_ctx_destroy(ctx);
    return 0;
}

/* kat_vectors of Random123, philox4x32 with 10 rounds. */
static void test_philox(void **state)
{
    (void)state;
    static const struct { uint32_t counter[4], key[2], words[4]; } answers[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}, {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (int i = 0; i < 3; i++) {
        uint32_t words[4];
        memcpy(words, answers[i].counter, sizeof words);
        fkp_philox4x32_10(words, answers[i].key[0], answers[i].key[1]);
        assert_memory_equal(words, answers[i].words, sizeof words);
    }
    assert_true(fkp_sample_random(0, 0) == 0xe169c58d6627e8d5u);
}

static void test_weights(void **state)
{
    (void)state;
    assert_true(fkp_sample_weight(0) == UINT64_C(1) << 40);
    for (int i = 0; i < 200000; i++) { /* down to 2^-20, where a unit of the weight is 1e-6 of it */
        float d = (float)i * -6.9e-5f;
        double exact = exp((double)d) * 0x1p40;
        assert_true(fabs((double)fkp_sample_weight(d) - exact) <= 3e-6 * exact);
    }
    assert_true(fkp_sample_weight(-27.4f) > 0 && fkp_sample_weight(-28) == 0 && fkp_sample_weight(-INFINITY) == 0 &&
                fkp_sample_weight(NAN) == 0);
}

static void test_order(void **state)
{
    (void)state;
    static const float falling[] = {INFINITY, 3, 1e-40f, 0, -1e-40f, -2, -INFINITY};
    for (int i = 0; i + 1 < 7; i++) assert_true(fkp_sample_order(falling[i], 900) > fkp_sample_order(falling[i + 1], 0));
    assert_true(fkp_sample_order(1, 4) > fkp_sample_order(1, 5));
    assert_true(fkp_sample_order(-0.0f, 4) == fkp_sample_order(0.0f, 4));
}

/* Draws n tokens from one row of logits, one offset each. */
static void draw_above(const float *logits, int v, float min_p, int top_k, float top_p, float temperature, int n, int *counts)
{
    const fk_device cpu = {FK_CPU, 0};
    for (int i = 0; i < v; i++) counts[i] = 0;
    for (int i = 0; i < n; i++) {
        int32_t k = top_k;
        int64_t seed = 99, offset = i;
        fk_tensor out = fk_sample(ctx, fk_tensor_wrap((void *)(uintptr_t)logits, FK_F32, cpu, 2, (int64_t[]){1, v}),
                                  fk_tensor_wrap(&k, FK_I32, cpu, 1, (int64_t[]){1}), fk_tensor_wrap(&top_p, FK_F32, cpu, 1, (int64_t[]){1}),
                                  fk_tensor_wrap(&seed, FK_I64, cpu, 1, (int64_t[]){1}), fk_tensor_wrap(&offset, FK_I64, cpu, 1, (int64_t[]){1}),
                                  fk_tensor_wrap(&temperature, FK_F32, cpu, 1, (int64_t[]){1}),
                                  fk_tensor_wrap(&min_p, FK_F32, cpu, 1, (int64_t[]){1})).output;
        assert_string_equal(fk_ctx_error(ctx), "");
        int64_t token = *(int64_t *)out.data;
        assert_in_range(token, 0, v - 1);
        counts[token]++;
        fk_ctx_reset(ctx);
    }
}

static void draw(const float *logits, int v, int top_k, float top_p, float temperature, int n, int *counts)
{
    draw_above(logits, v, 0, top_k, top_p, temperature, n, counts);
}

static void test_distribution(void **state)
{
    (void)state;
    enum { V = 8, N = 20000 };
    static const float logits[V] = {0.3f, -1, 2, 0, 1.5f, -3, 0.3f, 1};
    int counts[V];
    double probability[V], sum = 0, chi2 = 0;
    draw(logits, V, 0, 1, 0.8f, N, counts);
    for (int i = 0; i < V; i++) sum += probability[i] = exp((double)logits[i] / 0.8);
    for (int i = 0; i < V; i++) {
        double mean = N * probability[i] / sum;
        chi2 += (counts[i] - mean) * (counts[i] - mean) / mean;
    }
    assert_true(chi2 < 24.3); /* 7 degrees of freedom: one in a thousand; the draw is always the same */
}

static void test_cuts(void **state)
{
    (void)state;
    static const float logits[6] = {1, 3, 2, 3, 0, -1};
    int counts[6];
    draw(logits, 6, 1, 1, 1, 50, counts); /* of two largest the first */
    assert_int_equal(counts[1], 50);
    draw(logits, 6, 3, 1, 1, 400, counts);
    assert_true(counts[1] && counts[3] && counts[2] && counts[0] + counts[4] + counts[5] == 0);
    draw(logits, 6, 0, 0.5f, 1, 400, counts); /* 3 and 3 have probability 0.39 each: two of them reach 0.5 */
    assert_true(counts[1] && counts[3] && counts[1] + counts[3] == 400);
    draw(logits, 6, 0, 0, 1, 50, counts); /* the most probable always stays */
    assert_int_equal(counts[1], 50);
    draw_above(logits, 6, 0.3f, 0, 1, 1, 400, counts); /* e^-1 = 0.37 of the largest stays, e^-2 does not */
    assert_true(counts[1] && counts[3] && counts[2] && counts[0] + counts[4] + counts[5] == 0);
    draw_above(logits, 6, 0.3f, 2, 1, 1, 400, counts); /* of these the first two */
    assert_true(counts[1] && counts[3] && counts[1] + counts[3] == 400);
    draw_above(logits, 6, 0.3f, 5, 0.4f, 1, 400, counts); /* 3 and 3 have 0.42 each of what stays, 0.39 of all */
    assert_int_equal(counts[1], 400);
    draw_above(logits, 6, 0.6f, 0, 1, 2, 400, counts); /* the temperature comes first: e^-0.5 = 0.61 */
    assert_true(counts[2] && counts[0] == 0);
    draw_above(logits, 6, 1, 0, 1, 1, 400, counts); /* as probable as the largest */
    assert_true(counts[1] && counts[3] && counts[1] + counts[3] == 400);
    draw(logits, 6, 0, 1, 0, 50, counts); /* temperature 0 */
    assert_int_equal(counts[1], 50);
    static const float infinite[3] = {INFINITY, 5, INFINITY};
    draw(infinite, 3, 0, 1, 1, 200, counts);
    assert_true(counts[0] && counts[2] && counts[1] == 0);
    static const float none[3] = {-INFINITY, -INFINITY, -INFINITY};
    draw(none, 3, 0, 1, 1, 200, counts);
    assert_true(counts[0] && counts[1] && counts[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_philox), cmocka_unit_test(test_weights), cmocka_unit_test(test_order),
                                       cmocka_unit_test(test_distribution), cmocka_unit_test(test_cuts)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
