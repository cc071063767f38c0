/* SPDX-License-Identifier: Apache-2.0 */
/* What check_ops and the judge rely on: cases refuse wrong texts by name and repeat from their seed; a comparison finds one
 * wrong element, a row that is wrong on the whole, NaN and infinity on one side, and lets rounding pass. */
#include "unit.h"

#include <math.h>

#include "core/case.h"
#include "core/compare.h"
#include "core/dtype.h"

static void refuse(const char *op, const char *text, const char *reason)
{
    fk_case c;
    assert_int_equal(fk_case_create(fk_op_find(op), text, FK_F32, &c), FK_ERROR_INVALID);
    if (!strstr(fk_error_message(), reason)) fail_msg("'%s': %s", text, fk_error_message());
    assert_null(c.args);
}

static void test_wrong_texts(void **state)
{
    (void)state;
    refuse("rms_norm", "T=2 D=4", "epsilon is missing");
    refuse("rms_norm", "T=2 D=4 epsilon=1e-5x", "epsilon=1e-5x does not fit");
    refuse("rms_norm", "T=2 epsilon=1e-5", "D is unknown");
    refuse("rms_norm", "T=2 D=-4 epsilon=1e-5", "D=-4 is not a size");
    refuse("rms_norm", "T=2x D=4 epsilon=1e-5", "T=2x");
    refuse("rms_norm", "T=2 D=4 K=1 epsilon=1e-5", "K is no field and no dimension");
    refuse("rms_norm", "T=2 D=4 D=5 epsilon=1e-5", "D is given twice");
    refuse("rms_norm", "T=2 D", "is not name=value");
    refuse("rms_norm", "T=2 D=4 epsilon=1 input=absent", "input cannot be absent");
    refuse("rms_norm", "T=2 D=4 epsilon=1 weight=i64", "allowed is FK_FLOATS");
    refuse("rms_norm", "T=2 D=4 epsilon=1 weight=half", "neither absent nor a dtype");
    refuse("rms_norm", "T=1000000000 D=1000000000 epsilon=1", "too large");
    refuse("rotary_emb", "T=1 H=1 K=1 head_size=2 P=3 R=2 is_neox=yes", "is_neox=yes");
}

static void test_case_repeats(void **state)
{
    (void)state;
    const char *text = "T=2x3 D=64 epsilon=1e-5 weight=bf16";
    fk_case a, b;
    assert_ok(fk_case_create(fk_op_find("rms_norm"), text, FK_F32, &a));
    assert_ok(fk_case_create(fk_op_find("rms_norm"), text, FK_F32, &b));
    int input = fk_op_field(a.op, "input"), weight = fk_op_field(a.op, "weight");
    assert_int_equal(a.tensors[input].ndim, 3);
    assert_int_equal(a.tensors[weight].dtype, FK_BF16);
    for (int values = FK_VALUES_NORMAL; values <= FK_VALUES_EDGES; values++) {
        size_t bytes = fk_tensor_nbytes(&a.tensors[input]);
        fk_case_fill(&a, 7, (fk_case_values)values);
        fk_case_fill(&b, 7, (fk_case_values)values);
        assert_memory_equal(a.tensors[input].data, b.tensors[input].data, bytes);
        fk_case_fill(&b, 8, (fk_case_values)values);
        assert_memory_not_equal(a.tensors[input].data, b.tensors[input].data, bytes);
    }
    fk_case_destroy(&a);
    fk_case_destroy(&b);
}

enum { ROWS = 5, COLS = 64 };
static float expected_data[ROWS * COLS], actual_data[ROWS * COLS];
static fk_tensor expected, actual;
static fk_tolerance tolerance;
static fk_comparison result;

static int setup(void **state)
{
    (void)state;
    expected = fk_tensor_wrap(expected_data, FK_F32, (fk_device){FK_CPU, 0}, 2, (int64_t[]){ROWS, COLS});
    actual = fk_tensor_wrap(actual_data, FK_F32, (fk_device){FK_CPU, 0}, 2, (int64_t[]){ROWS, COLS});
    for (int i = 0; i < ROWS * COLS; i++) actual_data[i] = expected_data[i] = sinf((float)i);
    fk_case c;
    if (fk_case_create(fk_op_find("rms_norm"), "T=5 D=64 epsilon=1e-5", FK_F32, &c) != FK_OK) return 1;
    tolerance = fk_tolerance_for(c.op, c.args, fk_op_field(c.op, "result"));
    fk_case_destroy(&c);
    return 0;
}

static void test_tolerance(void **state)
{
    (void)state;
    assert_false(tolerance.exact);
    assert_true(tolerance.of_element == 3 * 0x1p-23 && tolerance.of_row == 8 * 8 * 0x1p-24); /* K = D = 64, r = 1 */
    fk_case c;
    assert_ok(fk_case_create(fk_op_find("embedding"), "T=5 V=4 D=64", FK_BF16, &c));
    assert_true(fk_tolerance_for(c.op, c.args, fk_op_field(c.op, "output")).exact);
    fk_case_destroy(&c);
    assert_ok(fk_case_create(fk_op_find("llama_mlp"), "T=5 D=40 I=24", FK_BF16, &c));
    tolerance = fk_tolerance_for(c.op, c.args, fk_op_field(c.op, "output"));
    assert_true(tolerance.of_element == 0x1p-7 && fabs(tolerance.of_row - 8 * (sqrt(2) * 0.29 * 0x1p-7 + 8 * 0x1p-24)) < 1e-12);
    fk_case_destroy(&c);
}

static void test_rounding_passes(void **state)
{
    (void)state;
    for (int i = 0; i < ROWS * COLS; i += 3) actual_data[i] = nextafterf(actual_data[i], 2);
    assert_true(fk_compare(&expected, &actual, &tolerance, &result));
    assert_true(result.max_abs_error > 0 && result.max_rel_error < 1e-6 && fk_comparison_matched(&result) == 1);
    memset(actual_data, 0, sizeof actual_data);
    assert_false(fk_compare(&expected, &actual, &tolerance, &result));
    assert_true(result.mismatched > ROWS * COLS - 5);
}

static void test_one_element(void **state)
{
    (void)state;
    char text[200];
    actual_data[3 * COLS + 17] += 1e-4f;
    assert_false(fk_compare(&expected, &actual, &tolerance, &result));
    assert_int_equal(result.mismatched, 1);
    assert_true(result.mismatches[0].index[0] == 3 && result.mismatches[0].index[1] == 17);
    assert_non_null(strstr(fk_mismatch_format(&result.mismatches[0], 2, text, sizeof text), "[3, 17]: expected "));
}

/* Each element within its own tolerance, all of them off by nearly as much: no rounding does that. */
static void test_whole_row(void **state)
{
    (void)state;
    float off = (float)(0.9 * tolerance.of_row * sqrt(0.5));
    for (int i = 2 * COLS; i < 3 * COLS; i++) actual_data[i] += off;
    assert_false(fk_compare(&expected, &actual, &tolerance, &result));
    assert_int_equal(result.mismatched, 0);
    assert_true(result.bad_rows == 1 && result.first_bad_row == 2);
}

static void test_nan_and_infinity(void **state)
{
    (void)state;
    actual_data[5] = NAN;
    assert_false(fk_compare(&expected, &actual, &tolerance, &result));
    assert_int_equal(result.mismatched, 1);
    actual_data[5] = expected_data[5];
    expected_data[6] = NAN;
    assert_false(fk_compare(&expected, &actual, &tolerance, &result));
    actual_data[6] = NAN;
    assert_true(fk_compare(&expected, &actual, &tolerance, &result));
    actual_data[7] = INFINITY;
    assert_false(fk_compare(&expected, &actual, &tolerance, &result));
    expected_data[7] = INFINITY;
    assert_true(fk_compare(&expected, &actual, &tolerance, &result));
    actual_data[7] = -INFINITY;
    assert_false(fk_compare(&expected, &actual, &tolerance, &result));
    /* An infinity does not widen the tolerance of its row. */
    actual_data[7] = INFINITY;
    actual_data[8] += 1;
    assert_false(fk_compare(&expected, &actual, &tolerance, &result));
    assert_int_equal(result.mismatched, 1);
}

static void test_integers_and_constants(void **state)
{
    (void)state;
    int64_t a[4] = {1, 2, INT64_MAX, 4}, b[4] = {1, 2, INT64_MAX - 1, 4};
    fk_tensor x = fk_tensor_wrap(a, FK_I64, (fk_device){FK_CPU, 0}, 1, (int64_t[]){4}), y = x;
    y.data = b;
    assert_false(fk_compare(&x, &y, &(fk_tolerance){.exact = true}, &result)); /* equal as doubles */
    assert_int_equal(result.mismatched, 1);
    assert_false(fk_tensor_is_constant(&x));
    for (int i = 0; i < 4; i++) a[i] = 9;
    assert_true(fk_tensor_is_constant(&x));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_texts),
        cmocka_unit_test(test_case_repeats),
        cmocka_unit_test_setup(test_tolerance, setup),
        cmocka_unit_test_setup(test_rounding_passes, setup),
        cmocka_unit_test_setup(test_one_element, setup),
        cmocka_unit_test_setup(test_whole_row, setup),
        cmocka_unit_test_setup(test_nan_and_infinity, setup),
        cmocka_unit_test(test_integers_and_constants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
