/* SPDX-License-Identifier: Apache-2.0 */
/* Conversions of the 16-bit floats against numpy and ml_dtypes, over all patterns: tests/goldens/dtypes.safetensors. The
 * inputs are made here by the rule that tools/reference/dtypes.py states. */
#include "golden.h"

#include <math.h>

#include "core/dtype.h"
#include "core/seeded.h"

static int open_golden(void **state)
{
    (void)state;
    golden_open("dtypes.safetensors");
    return 0;
}

static float widen(uint16_t bits, fk_dtype dtype)
{
    return dtype == FK_F16 ? fk_f32_from_f16(bits) : fk_f32_from_bf16(bits);
}

/* NaN in the golden's form. */
static uint16_t narrow(float value, fk_dtype dtype)
{
    uint16_t bits = dtype == FK_F16 ? fk_f16_from_f32(value) : fk_bf16_from_f32(value);
    if (isnan(value)) {
        assert_true(isnan(widen(bits, dtype)));
        return dtype == FK_F16 ? 0x7e00 : 0x7fc0;
    }
    return bits;
}

static void check_widening(fk_dtype dtype)
{
    int64_t blocks;
    const int64_t *expected = golden_about("widen", dtype, &blocks);
    assert_int_equal(blocks, 256);
    for (int b = 0; b < 256; b++) {
        uint32_t bits[256];
        for (int i = 0; i < 256; i++) {
            float value = widen((uint16_t)(256 * b + i), dtype);
            bits[i] = isnan(value) ? 0x7fc00000u : fk_bits_from_f32(value);
        }
        if ((int64_t)fkp_fnv1a64(bits, sizeof bits) != expected[b]) fail_msg("%s patterns from %d", fk_dtype_name(dtype), 256 * b);
    }
}

/* value, and the floats around the middle between it and the next pattern */
static void rounding_inputs(uint16_t pattern, fk_dtype dtype, float out[4])
{
    float value = widen(pattern, dtype);
    for (int i = 0; i < 4; i++) out[i] = value;
    if (!isfinite(value)) return;
    double following = widen((uint16_t)(pattern + 1), dtype), beyond = dtype == FK_F16 ? 0x1p16 : 0x1p128;
    if (isinf(following)) following = copysign(beyond, following);
    uint32_t middle = fk_bits_from_f32((float)(((double)value + following) / 2));
    out[1] = fk_f32_from_bits(middle - 1);
    out[2] = fk_f32_from_bits(middle);
    out[3] = fk_f32_from_bits(middle + 1);
}

static void check_rounding(fk_dtype dtype)
{
    int64_t blocks;
    const int64_t *expected = golden_about("round", dtype, &blocks);
    for (int b = 0; b < 256; b++) {
        uint16_t results[1024];
        for (int i = 0; i < 256; i++) {
            float inputs[4];
            rounding_inputs((uint16_t)(256 * b + i), dtype, inputs);
            for (int k = 0; k < 4; k++) results[4 * i + k] = narrow(inputs[k], dtype);
        }
        if ((int64_t)fkp_fnv1a64(results, sizeof results) != expected[b]) fail_msg("%s rounding from %d", fk_dtype_name(dtype), 256 * b);
    }
}

static void check_hard(fk_dtype dtype)
{
    int64_t n, m;
    const float *inputs = golden_about("hard", FK_F32, &n);
    const uint16_t *expected = golden_about("hard", dtype, &m);
    assert_true(n == m && n > 100);
    for (int64_t i = 0; i < n; i++) {
        if (isnan(inputs[i])) assert_true(isnan(widen(narrow(inputs[i], dtype), dtype)));
        else if (narrow(inputs[i], dtype) != expected[i])
            fail_msg("%s of %a is 0x%04x, not 0x%04x", fk_dtype_name(dtype), (double)inputs[i], narrow(inputs[i], dtype), expected[i]);
    }
}

static void test_f16(void **state)
{
    (void)state;
    check_widening(FK_F16);
    check_rounding(FK_F16);
    check_hard(FK_F16);
}

static void test_bf16(void **state)
{
    (void)state;
    check_widening(FK_BF16);
    check_rounding(FK_BF16);
    check_hard(FK_BF16);
}

/* Arrays go through the same rules as single values. */
static void test_arrays(void **state)
{
    (void)state;
    int64_t n;
    const float *inputs = golden_about("hard", FK_F32, &n);
    uint16_t bits[512];
    float back[512];
    assert_true(n <= 512);
    for (int d = 0; d < 2; d++) {
        fk_dtype dtype = d ? FK_BF16 : FK_F16;
        fk_convert_from_f32(bits, dtype, inputs, n);
        fk_convert_to_f32(back, bits, dtype, n);
        for (int64_t i = 0; i < n; i++) {
            assert_int_equal(narrow(widen(bits[i], dtype), dtype), narrow(inputs[i], dtype));
            if (!isnan(inputs[i])) assert_true(back[i] == widen(bits[i], dtype));
        }
    }
}

/* A double a little off the middle of two 16-bit values must not be rounded to float32 first. */
static void test_double_rounds_once(void **state)
{
    (void)state;
    for (int d = 0; d < 2; d++) {
        fk_dtype dtype = d ? FK_BF16 : FK_F16;
        for (uint32_t p = 0; p < 65535; p += 7) {
            float inputs[4];
            rounding_inputs((uint16_t)p, dtype, inputs);
            double middle = inputs[2];
            if (!isfinite(inputs[0]) || middle == 0) continue;
            uint16_t below, above;
            fk_store_element(&below, dtype, middle * (1 - 0x1p-40));
            fk_store_element(&above, dtype, middle * (1 + 0x1p-40));
            if (below != p || above != p + 1) fail_msg("%s beside the middle after 0x%04x: 0x%04x, 0x%04x", fk_dtype_name(dtype), p, below, above);
        }
    }
}

static void test_names(void **state)
{
    (void)state;
    for (int d = FK_NONE + 1; d < FK_DTYPE_COUNT; d++) assert_int_equal(fk_dtype_parse(fk_dtype_name((fk_dtype)d)), d);
    assert_int_equal(fk_dtype_parse("float"), FK_NONE);
    assert_int_equal(fk_dtype_bits(FK_BF16), 16);
    assert_int_equal(fk_dtype_bits((fk_dtype)999), 0);
    assert_string_equal(fk_dtype_name((fk_dtype)-1), "unknown");
    assert_true(fk_dtype_is_float(FK_F8_E4M3) && !fk_dtype_is_float(FK_BOOL));
}

static void test_elements(void **state)
{
    (void)state;
    static const fk_dtype dtypes[] = {FK_F64, FK_F32, FK_F16, FK_BF16, FK_I64, FK_I32, FK_I8, FK_U8};
    for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++) {
        unsigned char room[8];
        fk_store_element(room, dtypes[i], 93);
        assert_true(fk_load_element(room, dtypes[i]) == 93);
    }
    int64_t large = 0;
    fk_store_element(&large, FK_I64, -0x1p53);
    assert_true(large == -(INT64_C(1) << 53));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f16),   cmocka_unit_test(test_bf16),  cmocka_unit_test(test_arrays), cmocka_unit_test(test_double_rounds_once),
        cmocka_unit_test(test_names), cmocka_unit_test(test_elements),
    };
    return cmocka_run_group_tests(tests, open_golden, golden_close);
}
