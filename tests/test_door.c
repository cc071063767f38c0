/* SPDX-License-Identifier: Apache-2.0 */
/* The door: allocation of outputs, checks with messages that name the field, the sticky error, hooks, pins and installed
 * candidates. */
#include "unit.h"

#include <math.h>

#include <fk/ctx.h>
#include <fk/door.h>
#include <fk/ops.h>

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
    ctx = NULL;
    return 0;
}

static fk_tensor matrix(float *data, int64_t rows, int64_t cols)
{
    return fk_tensor_wrap(data, FK_F32, (fk_device){FK_CPU, 0}, 2, (int64_t[]){rows, cols});
}

static fk_tensor vector(float *data, int64_t n)
{
    return fk_tensor_wrap(data, FK_F32, (fk_device){FK_CPU, 0}, 1, (int64_t[]){n});
}

static void test_call_computes(void **state)
{
    (void)state;
    float x[6] = {3, 4, 0, 1, 1, 1}, w[3] = {1, 2, 3};
    fk_tensor y = fk_rms_norm(ctx, matrix(x, 2, 3), vector(w, 3), 0).result;
    assert_int_equal(fk_ctx_status(ctx), FK_OK);
    assert_int_equal(y.shape[0], 2);
    const float *v = y.data;
    float scale = 1 / sqrtf(25.0f / 3);
    assert_true(fabsf(v[0] - 3 * scale) < 1e-6f && fabsf(v[1] - 8 * scale) < 1e-6f && v[2] == 0);
    assert_true(fabsf(v[3] - 1) < 1e-6f && fabsf(v[5] - 3) < 1e-6f);
}

static void test_optional_weight(void **state)
{
    (void)state;
    float x[4] = {1, -1, 1, -1};
    fk_tensor y = fk_rms_norm(ctx, matrix(x, 1, 4), FK_ABSENT, 0).result;
    assert_int_equal(fk_ctx_status(ctx), FK_OK);
    assert_true(fabsf(((float *)y.data)[1] + 1) < 1e-6f);
}

static void test_wrong_shape_is_named_and_sticks(void **state)
{
    (void)state;
    float x[6] = {0}, w[2] = {0};
    fk_tensor y = fk_rms_norm(ctx, matrix(x, 2, 3), vector(w, 2), 0).result;
    assert_int_equal(fk_ctx_status(ctx), FK_ERROR_INVALID);
    assert_non_null(strstr(fk_ctx_error(ctx), "rms_norm"));
    assert_non_null(strstr(fk_ctx_error(ctx), "weight is f32[2]"));
    assert_false(fk_tensor_present(&y));
    /* A later, valid call does nothing and passes the poison on. */
    y = fk_rms_norm(ctx, matrix(x, 2, 3), FK_ABSENT, 0).result;
    assert_false(fk_tensor_present(&y));
    assert_non_null(strstr(fk_ctx_error(ctx), "weight"));
    fk_ctx_clear(ctx);
    y = fk_rms_norm(ctx, matrix(x, 2, 3), FK_ABSENT, 1).result;
    assert_true(fk_tensor_present(&y));
}

static void test_missing_and_wrong_dtype(void **state)
{
    (void)state;
    int64_t ids[4] = {0};
    fk_tensor integers = fk_tensor_wrap(ids, FK_I64, (fk_device){FK_CPU, 0}, 2, (int64_t[]){1, 4});
    fk_silu_and_mul(ctx, integers);
    assert_non_null(strstr(fk_ctx_error(ctx), "input is i64, allowed is FK_FLOATS"));
    fk_ctx_clear(ctx);
    fk_silu_and_mul(ctx, FK_ABSENT);
    assert_non_null(strstr(fk_ctx_error(ctx), "input is missing"));
    fk_ctx_clear(ctx);
    float odd[5] = {0};
    fk_silu_and_mul(ctx, matrix(odd, 1, 5));
    assert_non_null(strstr(fk_ctx_error(ctx), "5 does not fit 2*D"));
}

static void count_call(void *user, fk_ctx *c, const fk_op *op, const fk_impl *impl, const void *args)
{
    (void)c, (void)args;
    assert_string_equal(op->name, "silu_and_mul");
    *(const char **)user = impl->name;
}

static fk_status zero(fk_ctx *c, const void *args, void *user)
{
    (void)c, (void)user;
    const fk_silu_and_mul_args *a = args;
    memset(a->result->data, 0, fk_tensor_nbytes(a->result));
    return FK_OK;
}

static void test_hooks_pins_and_candidates(void **state)
{
    (void)state;
    float x[2] = {1, 2};
    const char *seen = NULL;
    fk_hook hook = {.after = count_call, .user = &seen};
    assert_int_equal(fk_door_add_hook(ctx, &hook), FK_OK);
    const fk_op *op = fk_op_find("silu_and_mul");
    fk_door_pin(ctx, op, "reference");
    fk_silu_and_mul(ctx, matrix(x, 1, 2));
    assert_string_equal(seen, "reference");
    fk_door_pin(ctx, op, "scalar");
    float by_scalar = *(float *)fk_silu_and_mul(ctx, matrix(x, 1, 2)).result.data;
    assert_string_equal(seen, "scalar");
    assert_true(fabsf(by_scalar - 2 / (1 + expf(-1))) < 1e-5f);
    fk_door_pin(ctx, op, "no_such");
    fk_silu_and_mul(ctx, matrix(x, 1, 2));
    assert_non_null(strstr(fk_ctx_error(ctx), "no implementation no_such of silu_and_mul"));
    fk_ctx_clear(ctx);
    fk_door_pin(ctx, op, NULL);
    fk_impl candidate = {.op = "silu_and_mul", .name = "candidate", .device = FK_CPU, .run = zero};
    assert_int_equal(fk_door_install(ctx, &candidate), FK_OK);
    assert_true(*(float *)fk_silu_and_mul(ctx, matrix(x, 1, 2)).result.data == 0);
    assert_string_equal(seen, "candidate");
    int64_t reached, total;
    fk_door_counts(ctx, op, &reached, &total);
    assert_int_equal(reached, 1);
    assert_int_equal(total, 3);
}

static int fused_calls;

static fk_status fused_mlp(fk_ctx *c, const void *args, void *user)
{
    (void)c, (void)user;
    const fk_llama_mlp_args *a = args;
    memset(a->output->data, 0, fk_tensor_nbytes(a->output));
    fused_calls++;
    return FK_OK;
}

/* A fused baseline hides the operators below it, so it must not run while one of them is a candidate's. */
static void test_fused_baseline_steps_aside(void **state)
{
    (void)state;
    const fk_impl fused = {.op = "llama_mlp", .name = "fused", .device = FK_CPU, .fused = true, .priority = 100, .run = fused_mlp};
    fk_backend *backend = fk_ctx_backend(ctx);
    fk_backend own = *backend;
    const fk_impl *impls[512];
    assert_true(own.num_impls < 511);
    memcpy(impls, own.impls, (size_t)own.num_impls * sizeof *impls);
    impls[own.num_impls] = &fused;
    backend->impls = impls;
    backend->num_impls = own.num_impls + 1;
    fk_ctx *c;
    fk_ctx_options options = {.device = {FK_CPU, 0}};
    assert_int_equal(fk_ctx_create(&options, &c), FK_OK);
    *backend = own;

    float x[2] = {1, 2}, gate_up[8] = {1, 0, 0, 1, 1, 1, 2, 0}, down[4] = {1, 0, 0, 1};
    fk_llama_mlp_module mlp = {.path = "mlp", .gate_up_proj = matrix(gate_up, 4, 2), .down_proj = matrix(down, 2, 2)};
    fk_llama_mlp(c, &mlp, matrix(x, 1, 2));
    assert_int_equal(fk_ctx_status(c), FK_OK);
    assert_int_equal(fused_calls, 1);
    fk_impl candidate = {.op = "silu_and_mul", .name = "candidate", .device = FK_CPU, .run = zero};
    assert_int_equal(fk_door_install(c, &candidate), FK_OK);
    fk_llama_mlp(c, &mlp, matrix(x, 1, 2));
    assert_int_equal(fk_ctx_status(c), FK_OK);
    assert_int_equal(fused_calls, 1);
    int64_t reached, total;
    fk_door_counts(c, fk_op_find("silu_and_mul"), &reached, &total);
    assert_int_equal(reached, 1);
    fk_ctx_destroy(c);
}

static void test_outputs_given(void **state)
{
    (void)state;
    float x[4] = {1, 1, 2, 2}, y[2] = {-7, -7};
    fk_silu_and_mul_out(ctx, matrix(y, 1, 2), matrix(x, 1, 4));
    assert_int_equal(fk_ctx_status(ctx), FK_OK);
    assert_true(fabsf(y[0] - 2 / (1 + expf(-1))) < 1e-5f);
    fk_silu_and_mul_out(ctx, matrix(y, 2, 1), matrix(x, 1, 4));
    assert_non_null(strstr(fk_ctx_error(ctx), "result"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_call_computes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_optional_weight, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_shape_is_named_and_sticks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_missing_and_wrong_dtype, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hooks_pins_and_candidates, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fused_baseline_steps_aside, setup, teardown),
        cmocka_unit_test_setup_teardown(test_outputs_given, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
