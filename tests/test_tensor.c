/* SPDX-License-Identifier: Apache-2.0 */
/* Views: what slices, splits and reshapes point at, which layouts count as rows, and how tensors print. */
#include "unit.h"

#include <fk/tensor.h>

static const fk_device cpu = {FK_CPU, 0};

static fk_tensor numbered(int32_t *data, int ndim, const int64_t *shape)
{
    fk_tensor t = fk_tensor_wrap(data, FK_I32, cpu, ndim, shape);
    for (int64_t i = 0; i < fk_tensor_numel(&t); i++) data[i] = (int32_t)i;
    return t;
}

static int32_t at(const fk_tensor *t, int64_t index)
{
    return *(int32_t *)fk_tensor_at(t, index);
}

static void test_slices(void **state)
{
    (void)state;
    int32_t data[60];
    fk_tensor t = numbered(data, 3, (int64_t[]){3, 4, 5});
    fk_tensor s = fk_tensor_slice(t, 1, 1, 2); /* [3, 2, 5] */
    assert_int_equal(fk_tensor_numel(&s), 30);
    assert_int_equal(at(&s, 0), 5);
    assert_int_equal(at(&s, 10), 25);
    assert_int_equal(at(&s, 29), 54);
    assert_false(fk_tensor_is_contiguous(&s));
    assert_true(fk_tensor_is_contiguous(&t));
    fk_tensor first = fk_tensor_slice(t, 0, 1, 1);
    assert_true(fk_tensor_is_contiguous(&first) && at(&first, 3) == 23);
    fk_tensor none = fk_tensor_slice(t, 2, 5, 0);
    assert_int_equal(fk_tensor_numel(&none), 0);
    assert_int_equal(fk_tensor_span_bytes(&none), 0);
    fk_tensor absent = fk_tensor_slice(FK_ABSENT, 0, 3, 9); /* poison passes through */
    assert_false(fk_tensor_present(&absent));
}

/* Query heads of one fused product, as attention takes them. */
static void test_heads_of_a_slice(void **state)
{
    (void)state;
    int32_t data[7 * 24];
    fk_tensor qkv = numbered(data, 2, (int64_t[]){7, 24});
    fk_tensor k = fk_tensor_split_last(fk_tensor_slice(qkv, 1, 12, 8), 4); /* [7, 2, 4] */
    assert_int_equal(k.ndim, 3);
    assert_true(k.shape[1] == 2 && k.shape[2] == 4 && k.strides[0] == 24 && k.strides[1] == 4);
    assert_int_equal(at(&k, 0), 12);
    assert_int_equal(at(&k, 4), 16);
    assert_int_equal(at(&k, 8 + 5), 24 + 17);
    assert_false(fk_tensor_has_rows(&k)); /* tokens are further apart than heads */
    assert_int_equal(fk_tensor_span_bytes(&k), (6 * 24 + 8) * 4);
}

static void test_rows(void **state)
{
    (void)state;
    int32_t data[120];
    int64_t rows, cols;
    fk_tensor t = numbered(data, 2, (int64_t[]){6, 20});
    fk_tensor left = fk_tensor_slice(t, 1, 0, 8);
    assert_true(fk_tensor_has_rows(&left));
    fk_rows_cols(&left, &rows, &cols);
    assert_true(rows == 6 && cols == 8 && fk_row_stride(&left) == 20);
    fk_tensor one = fk_tensor_slice(left, 0, 2, 1); /* one row: its stride says nothing */
    assert_true(fk_tensor_has_rows(&one) && fk_tensor_is_contiguous(&one) && fk_row_stride(&one) == 8);
    fk_tensor column = fk_tensor_slice(t, 1, 3, 1);
    assert_true(fk_tensor_has_rows(&column) && !fk_tensor_is_contiguous(&column) && fk_row_stride(&column) == 20);
    fk_tensor turned = t;
    turned.shape[0] = 20, turned.shape[1] = 6, turned.strides[0] = 1, turned.strides[1] = 20;
    assert_false(fk_tensor_has_rows(&turned));
    fk_tensor cube = numbered(data, 3, (int64_t[]){2, 3, 20});
    fk_tensor inner = fk_tensor_slice(cube, 2, 0, 7);
    assert_true(fk_tensor_has_rows(&inner) && fk_row_stride(&inner) == 20);
    fk_tensor outer = fk_tensor_slice(cube, 1, 0, 2);
    assert_false(fk_tensor_has_rows(&outer));
    fk_tensor vector = numbered(data, 1, (int64_t[]){9});
    fk_rows_cols(&vector, &rows, &cols);
    assert_true(rows == 1 && cols == 9 && fk_row_stride(&vector) == 9);
}

static void test_reshape(void **state)
{
    (void)state;
    int32_t data[24];
    fk_tensor t = numbered(data, 2, (int64_t[]){4, 6});
    fk_tensor r = fk_tensor_reshape(t, 3, (int64_t[]){2, 2, 6});
    assert_true(r.data == t.data && at(&r, 13) == 13 && r.strides[0] == 12);
    fk_tensor a = t, b = r;
    assert_false(fk_tensor_same_shape(&a, &b));
    b = fk_tensor_reshape(r, 2, (int64_t[]){4, 6});
    assert_true(fk_tensor_same_shape(&a, &b));
}

static void test_format(void **state)
{
    (void)state;
    char text[64], small[8];
    int32_t data[24];
    fk_tensor t = numbered(data, 2, (int64_t[]){4, 6});
    assert_string_equal(fk_tensor_format(&t, text, sizeof text), "i32[4, 6]");
    fk_tensor s = fk_tensor_slice(t, 1, 0, 2);
    assert_string_equal(fk_tensor_format(&s, text, sizeof text), "i32[4, 2] strides (6, 1)");
    fk_tensor absent = FK_ABSENT;
    assert_string_equal(fk_tensor_format(&absent, text, sizeof text), "absent");
    assert_string_equal(fk_tensor_format(&t, small, sizeof small), "i32[4, ");
    fk_tensor scalar = fk_tensor_wrap(data, FK_I32, cpu, 0, NULL);
    assert_string_equal(fk_tensor_format(&scalar, text, sizeof text), "i32[]");
    assert_int_equal(fk_tensor_numel(&scalar), 1);
    assert_int_equal(fk_tensor_nbytes(&scalar), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_slices), cmocka_unit_test(test_heads_of_a_slice), cmocka_unit_test(test_rows),
                                       cmocka_unit_test(test_reshape), cmocka_unit_test(test_format)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
