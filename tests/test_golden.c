/* SPDX-License-Identifier: Apache-2.0 */
/* Expected values of compositions: what stands between their operators is never rounded. So the dtype that tensors are stored in
 * makes no difference but the last rounding, and the result is not that of the operators one by one. */
#include "unit.h"

#include <fk/door.h>
#include <fk/ops.h>

#include "core/case.h"
#include "core/dtype.h"
#include "core/golden.h"

static fk_ctx *ctx;

static void create(const fk_op *op, const char *text, fk_dtype dtype, fk_case *c)
{
    assert_ok(fk_case_create(op, text, dtype, c));
    for (int i = 0; i < op->num_fields; i++)
        if (fk_tensor_present(&c->tensors[i])) memset(c->tensors[i].data, 0, fk_tensor_nbytes(&c->tensors[i]));
}

/* Contents of one case in the dtypes of another. */
static void copy_values(const fk_case *from, const fk_case *to)
{
    for (int i = 0; i < from->op->num_fields; i++) {
        const fk_tensor *x = &from->tensors[i], *y = &to->tensors[i];
        if (!fk_tensor_present(x)) continue;
        if (x->dtype == y->dtype) memcpy(y->data, x->data, fk_tensor_nbytes(x));
        else
            for (int64_t k = 0; k < fk_tensor_numel(x); k++)
                fk_store_element(fk_tensor_at(y, k), y->dtype, fk_load_element(fk_tensor_at(x, k), x->dtype));
    }
}

static void golden(const fk_case *c)
{
    fk_golden_call(ctx, c->op, c->args);
    assert_string_equal(fk_ctx_error(ctx), "");
    fk_ctx_reset(ctx);
}

/* Elements of written fields that differ from those of `wide` rounded to their dtype. */
static int64_t differences(const fk_case *c, const fk_case *wide)
{
    int64_t count = 0;
    for (int i = 0; i < c->op->num_fields; i++) {
        const fk_tensor *x = &c->tensors[i];
        if (!fk_tensor_present(x) || !fk_field_is_written(&c->op->fields[i])) continue;
        for (int64_t k = 0; k < fk_tensor_numel(x); k++) {
            unsigned char rounded[8] = {0};
            fk_store_element(rounded, x->dtype, fk_load_element(fk_tensor_at(&wide->tensors[i], k), wide->tensors[i].dtype));
            count += memcmp(rounded, fk_tensor_at(x, k), (size_t)fk_dtype_bits(x->dtype) / 8) != 0;
        }
    }
    return count;
}

static int64_t elements(const fk_case *c)
{
    int64_t count = 0;
    for (int i = 0; i < c->op->num_fields; i++)
        if (fk_tensor_present(&c->tensors[i])) count += fk_tensor_numel(&c->tensors[i]);
    return count;
}

static void check_case(const fk_op *op, const char *text, fk_dtype dtype)
{
    fk_case c, wide;
    create(op, text, dtype, &c);
    create(op, text, FK_F32, &wide);
    if (elements(&c) < 100000) {
        fk_case_fill(&c, 7, FK_VALUES_NORMAL);
        copy_values(&c, &wide);
        golden(&c);
        golden(&wide);
        int64_t count = differences(&c, &wide), rounded_twice = 1 + elements(&c) / 5000; /* `wide` is rounded to float32 first */
        if (count > rounded_twice) fail_msg("%s '%s' in %s: %lld elements differ", op->name, text, fk_dtype_name(dtype), (long long)count);
    }
    fk_case_destroy(&c);
    fk_case_destroy(&wide);
}

static void test_storage_makes_no_difference(void **state)
{
    (void)state;
    int compositions = 0;
    for (int i = 0; i < fk_op_count(); i++) {
        const fk_op *op = fk_op_at(i);
        if (!fk_op_is_composition(op)) continue;
        compositions++;
        for (int k = 0; op->cases[k]; k++) {
            check_case(op, op->cases[k], FK_BF16);
            check_case(op, op->cases[k], FK_F16);
        }
    }
    assert_true(compositions > 10);
}

/* The operators one by one round in between: elsewhere. */
static void test_not_operator_by_operator(void **state)
{
    (void)state;
    fk_case c, chain;
    const fk_op *op = fk_op_find("llama_mlp");
    create(op, "T=7 D=64 I=96", FK_BF16, &c);
    create(op, "T=7 D=64 I=96", FK_BF16, &chain);
    fk_case_fill(&c, 7, FK_VALUES_NORMAL);
    copy_values(&c, &chain);
    golden(&c);
    fk_door_call(ctx, op, chain.args, FK_OUTPUTS_GIVEN, NULL);
    assert_ok(fk_ctx_status(ctx));
    fk_ctx_reset(ctx);
    assert_true(differences(&chain, &c) > 7 * 64 / 20);
    fk_case_destroy(&c);
    fk_case_destroy(&chain);
}

/* Only expected values are computed in float64: no context that serves takes it. */
static void test_float64_elsewhere(void **state)
{
    (void)state;
    fk_case c;
    fk_ctx *serving;
    assert_ok(fk_ctx_create(&(fk_ctx_options){.device = {FK_CPU, 0}, .threads = 1}, &serving));
    create(fk_op_find("rms_norm"), "T=2 D=8 epsilon=1e-5", FK_F32, &c);
    const int64_t shape[] = {2, 4};
    fk_tensor wide = fk_tensor_wrap(c.tensors[fk_op_field(c.op, "input")].data, FK_F64, (fk_device){FK_CPU, 0}, 2, shape);
    fk_rms_norm(serving, wide, FK_ABSENT, 1e-5f);
    assert_non_null(strstr(fk_ctx_error(serving), "input is f64"));
    fk_ctx_destroy(serving);
    fk_case_destroy(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_storage_makes_no_difference),
        cmocka_unit_test(test_not_operator_by_operator),
        cmocka_unit_test(test_float64_elsewhere),
    };
    if (fk_ctx_create(&(fk_ctx_options){.device = {FK_CPU, 0}, .threads = 2, .references_only = true}, &ctx) != FK_OK) return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fk_ctx_destroy(ctx);
    return failed;
}
