/* SPDX-License-Identifier: Apache-2.0 */
/* fp8, fp4, e8m0 and packed integers against ml_dtypes: all patterns, all halfway cases with their neighbours, overflow:
 * tests/goldens/small_floats.safetensors, made by tools/reference/small_floats.py. */
#include "golden.h"

#include <math.h>

#include "core/dtype.h"
#include "core/small_float.h"

static int open_golden(void **state)
{
    (void)state;
    golden_open("small_floats.safetensors");
    return 0;
}

static void check_float(fk_dtype dtype)
{
    int64_t patterns, n, m;
    const float *values = golden_about("widen", dtype, &patterns), *inputs = golden_about("input", dtype, &n);
    const uint8_t *narrow = golden_about("narrow", dtype, &m);
    assert_int_equal(patterns, 1 << fk_dtype_bits(dtype));
    assert_true(n == m && n > 3 * patterns);
    size_t count = (size_t)n;
    for (int64_t p = 0; p < patterns; p++) {
        float value = fkp_f32_from_small((uint8_t)p, dtype);
        bool nan = isnan(values[p]);
        if (nan ? !isnan(value) : memcmp(&value, &values[p], sizeof value) != 0)
            fail_msg("%s 0x%02x is %a, not %a", fk_dtype_name(dtype), (unsigned)p, (double)value, (double)values[p]);
    }
    for (size_t i = 0; i < count; i++) {
        uint8_t bits = fkp_small_from_f64((double)inputs[i], dtype);
        if (bits != narrow[i])
            fail_msg("%s of %a is 0x%02x, not 0x%02x", fk_dtype_name(dtype), (double)inputs[i], bits, narrow[i]);
    }
    /* Arrays, packed where two share a byte, go through the same rules. */
    uint8_t *packed = malloc(count);
    float *back = malloc(count * sizeof *back);
    fk_convert_from_f32(packed, dtype, inputs, n);
    fk_convert_to_f32(back, packed, dtype, n);
    for (size_t i = 0; i < count; i++) {
        float expected = values[narrow[i]];
        assert_true(isnan(expected) ? isnan(back[i]) : memcmp(&back[i], &expected, sizeof expected) == 0);
    }
    free(packed);
    free(back);
}

static void test_f8_e4m3(void **state)
{
    (void)state;
    check_float(FK_F8_E4M3);
}

static void test_f8_e5m2(void **state)
{
    (void)state;
    check_float(FK_F8_E5M2);
}

static void test_f4_e2m1(void **state)
{
    (void)state;
    check_float(FK_F4_E2M1);
}

static void test_e8m0(void **state)
{
    (void)state;
    check_float(FK_E8M0);
}

/* A double beside a tie must not be rounded to float32 first. */
static void test_double_rounds_once(void **state)
{
    (void)state;
    assert_int_equal(fkp_small_from_f64(1.0625 * (1 + 0x1p-45), FK_F8_E4M3), 0x39);
    assert_int_equal(fkp_small_from_f64(1.0625, FK_F8_E4M3), 0x38);
    assert_int_equal(fkp_small_from_f64(464 * (1 + 0x1p-45), FK_F8_E4M3), 0x7f);
    assert_int_equal(fkp_small_from_f64(1e300, FK_F8_E5M2), 0x7c);
    assert_int_equal(fkp_small_from_f64(1e-300, FK_E8M0), 0);
}

static void check_packed(fk_dtype dtype)
{
    int64_t n;
    const int32_t *expected = golden_about("unpack", dtype, &n);
    uint8_t bytes[256], again[256];
    for (int i = 0; i < 256; i++) bytes[i] = (uint8_t)i;
    assert_int_equal(n, 256 * fkp_values_per_byte(dtype));
    memset(again, 0x5a, sizeof again);
    for (int64_t i = 0; i < n; i++) {
        int value = fkp_load_packed_int(bytes, dtype, i);
        if (value != expected[i]) fail_msg("%s integer %lld is %d, not %d", fk_dtype_name(dtype), (long long)i, value, expected[i]);
        fkp_store_packed_int(again, dtype, i, value + 256); /* the low bits count */
    }
    assert_memory_equal(again, bytes, sizeof bytes);
}

static void test_packed_integers(void **state)
{
    (void)state;
    check_packed(FK_INT4X2);
    check_packed(FK_INT2X4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f8_e4m3), cmocka_unit_test(test_f8_e5m2),
        cmocka_unit_test(test_f4_e2m1), cmocka_unit_test(test_e8m0),
        cmocka_unit_test(test_double_rounds_once), cmocka_unit_test(test_packed_integers),
    };
    return cmocka_run_group_tests(tests, open_golden, golden_close);
}
