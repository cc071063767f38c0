/* SPDX-License-Identifier: Apache-2.0 */
/* The shape language: binding, solving, evaluating, and reasons for refusal. */
#include "unit.h"

#include <fk/ops.h>

#include "core/shape.h"

static bool match(fkp_bindings *b, const char *spec, int ndim, const int64_t *shape, char why[160])
{
    why[0] = 0;
    return fkp_shape_match(b, spec, ndim, shape, why, 160);
}

static void test_binding_and_checking(void **state)
{
    (void)state;
    fkp_bindings b;
    char why[160];
    int64_t d = 0;
    fkp_bindings_init(&b);
    assert_true(match(&b, "[T, 2*D]", 2, (int64_t[]){7, 10}, why));
    assert_true(fkp_bindings_get(&b, "D", &d) && d == 5);
    assert_true(match(&b, "[D]", 1, (int64_t[]){5}, why));
    assert_false(match(&b, "[D]", 1, (int64_t[]){6}, why));
    assert_string_equal(why, "D is 5, not 6");
    assert_false(match(&b, "[D, T]", 1, (int64_t[]){5}, why));
    assert_non_null(strstr(why, "1 dims, not 2"));
}

static void test_solving(void **state)
{
    (void)state;
    static const struct { const char *spec; int64_t size, value; bool fits; } cases[] = {
        {"[2*X]", 8, 4, true},           {"[2*X]", 7, 0, false},            {"[X + 1]", 9, 8, true},       {"[X + 1]", 0, 0, false},
        {"[3 + X*n]", 23, 4, true},      {"[(n + 2)*X]", 14, 2, true},      {"[n*X - 1]", 9, 2, true},     {"[X*(n + 1)/3]", 4, 0, false},
        {"[n*n]", 25, -1, true},         {"[n*n]", 24, -1, false},          {"[(n + 1)/2*X]", 12, 4, true}, {"[X*X]", 9, 0, false},
        {"[X*]", 9, 0, false},           {"[(X]", 9, 0, false},             {"[?]", 77, -1, true},          {"[n/0]", 1, 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fkp_bindings b;
        char why[160];
        int64_t x = -1;
        fkp_bindings_init(&b);
        fkp_bindings_set(&b, "n", 5);
        bool fits = match(&b, cases[i].spec, 1, &cases[i].size, why);
        if (fits != cases[i].fits) fail_msg("%s against %lld", cases[i].spec, (long long)cases[i].size);
        if (!fits) assert_true(why[0] != 0);
        if (fits && cases[i].value >= 0) assert_true(fkp_bindings_get(&b, "X", &x) && x == cases[i].value);
    }
}

static void test_leading_dims(void **state)
{
    (void)state;
    fkp_bindings b;
    char why[160];
    int ndim;
    int64_t shape[FK_MAX_NDIM];
    fkp_bindings_init(&b);
    assert_true(match(&b, "[..., D]", 3, (int64_t[]){2, 3, 64}, why));
    assert_true(match(&b, "[...]", 2, (int64_t[]){2, 3}, why));
    assert_false(match(&b, "[..., D]", 2, (int64_t[]){6, 64}, why));
    assert_non_null(strstr(why, "leading dims"));
    assert_false(match(&b, "[..., A, B, C]", 2, (int64_t[]){1, 1}, why));
    assert_true(fkp_shape_evaluate(&b, "[..., D/2]", &ndim, shape, why, sizeof why));
    assert_int_equal(ndim, 3);
    assert_true(shape[0] == 2 && shape[1] == 3 && shape[2] == 32);
    assert_false(fkp_shape_evaluate(&b, "[..., 1, 1, 1, 1, 1]", &ndim, shape, why, sizeof why));
    fkp_bindings_init(&b); /* no leading dims at all */
    assert_true(match(&b, "[..., D]", 1, (int64_t[]){64}, why));
    assert_true(fkp_shape_evaluate(&b, "[..., D]", &ndim, shape, why, sizeof why) && ndim == 1);
}

static void test_evaluation(void **state)
{
    (void)state;
    fkp_bindings b;
    char why[160];
    int ndim;
    int64_t value, shape[FK_MAX_NDIM];
    fkp_bindings_init(&b);
    fkp_bindings_set(&b, "num_heads", 9);
    fkp_bindings_set(&b, "head_size", 64);
    assert_true(fkp_expression_evaluate(&b, "(num_heads + 2*3)*head_size", &value) && value == 960);
    assert_false(fkp_expression_evaluate(&b, "num_heads*unknown", &value));
    assert_false(fkp_expression_evaluate(&b, "num_heads)", &value));
    assert_false(fkp_shape_evaluate(&b, "[num_heads - 10]", &ndim, shape, why, sizeof why));
    assert_non_null(strstr(why, "negative"));
}

/* Scalars of a call are anybody's numbers: a size beyond int64 is refused, not wrapped. */
static void test_large_values(void **state)
{
    (void)state;
    static const char *const beyond[] = {"n*n", "n*2", "n + n", "n + 1", "0 - n - 2", "least/(0 - 1)", "least - 1"};
    fkp_bindings b;
    char why[160];
    int ndim;
    int64_t value, shape[FK_MAX_NDIM];
    fkp_bindings_init(&b);
    fkp_bindings_set(&b, "n", INT64_MAX);
    fkp_bindings_set(&b, "least", INT64_MIN);
    for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++)
        if (fkp_expression_evaluate(&b, beyond[i], &value)) fail_msg("%s is %lld", beyond[i], (long long)value);
    assert_true(fkp_expression_evaluate(&b, "n - 1 + 1", &value) && value == INT64_MAX);
    assert_false(fkp_shape_evaluate(&b, "[2*n]", &ndim, shape, why, sizeof why));
    assert_string_equal(why, "2*n is unknown, negative or too large");
    assert_false(match(&b, "[n*X*n]", 1, (int64_t[]){5}, why));
    assert_false(match(&b, "[X + least]", 1, (int64_t[]){5}, why)); /* X would be 5 + 2^63 */
    assert_string_equal(why, "5 does not fit X + least");
}

/* Scalars of a call stand in its shapes; those that are no integers do not. */
static void test_scalars_of_a_call(void **state)
{
    (void)state;
    const fk_op *op = fk_op_find("rotary_emb");
    fk_rotary_emb_args args = {.head_size = 64, .is_neox = true};
    fkp_bindings b;
    char why[160];
    int64_t value;
    fkp_bindings_init(&b);
    fkp_bindings_add_scalars(&b, op, &args);
    assert_true(fkp_bindings_get(&b, "head_size", &value) && value == 64);
    assert_false(fkp_bindings_get(&b, "is_neox", &value));
    assert_true(match(&b, "[T, H*head_size]", 2, (int64_t[]){5, 576}, why));
    assert_true(fkp_bindings_get(&b, "H", &value) && value == 9);
    assert_false(match(&b, "[T, K*head_size]", 2, (int64_t[]){5, 100}, why));
    assert_string_equal(why, "100 does not fit K*head_size");
    assert_false(match(&b, "[head_size]", 1, (int64_t[]){63}, why));
    assert_string_equal(why, "head_size is 64, not 63");
}

static void test_full_table(void **state)
{
    (void)state;
    fkp_bindings b;
    char name[16];
    fkp_bindings_init(&b);
    for (int i = 0; i < FKP_MAX_BINDINGS; i++) {
        snprintf(name, sizeof name, "d%d", i);
        assert_true(fkp_bindings_set(&b, name, i));
    }
    assert_false(fkp_bindings_set(&b, "one_more", 1));
    assert_true(fkp_bindings_set(&b, "d3", 33));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_binding_and_checking), cmocka_unit_test(test_solving),
                                       cmocka_unit_test(test_leading_dims), cmocka_unit_test(test_evaluation),
                                       cmocka_unit_test(test_large_values), cmocka_unit_test(test_scalars_of_a_call),
                                       cmocka_unit_test(test_full_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
