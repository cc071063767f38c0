/* SPDX-License-Identifier: Apache-2.0 */
/* Loading candidates: the good one computes at the door; each wrong one is refused by name and reason. */
#include "unit.h"

#include <math.h>

#include <fk/ctx.h>
#include <fk/door.h>
#include <fk/ops.h>

#include "core/candidate.h"

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

static fk_status open_candidate(const char *name, fk_candidate **out)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.so", FK_CANDIDATES_DIR, name);
    return fk_candidate_open(path, fk_op_find("silu_and_mul"), FK_CPU, out);
}

static void refused(const char *name, const char *reason)
{
    fk_candidate *candidate;
    assert_int_equal(open_candidate(name, &candidate), FK_ERROR_CANDIDATE);
    assert_null(candidate);
    if (!strstr(fk_error_message(), reason)) fail_msg("%s: message is \"%s\", expected \"%s\"", name, fk_error_message(), reason);
}

static void test_refusals(void **state)
{
    (void)state;
    refused("candidate_wrong_abi", "was built for candidate ABI 999, this build has 1");
    refused("candidate_wrong_signature", "this build has \" FK_FIELD_IN 0 input");
    refused("candidate_no_symbol", "has no symbol __tvm_ffi_silu_and_mul; it has __tvm_ffi_rms_norm");
    refused("candidate_undefined_symbol", "no_such_function_anywhere");
    refused("no_such_file", "cannot load");
}

static fk_tensor rows(void *data, fk_dtype dtype)
{
    return fk_tensor_wrap(data, dtype, (fk_device){FK_CPU, 0}, 2, (int64_t[]){1, 4});
}

static void test_good_candidate_at_the_door(void **state)
{
    (void)state;
    float x[4] = {1, -2, 3, 4};
    uint16_t half[4] = {0};
    fk_candidate *candidate;
    assert_int_equal(open_candidate("candidate_good", &candidate), FK_OK);
    assert_true(fk_candidate_has_note(candidate));
    assert_int_equal(fk_door_install(ctx, fk_candidate_impl(candidate)), FK_OK);
    fk_tensor y = fk_silu_and_mul(ctx, rows(x, FK_F32)).result;
    assert_int_equal(fk_ctx_status(ctx), FK_OK);
    assert_true(fabsf(((float *)y.data)[1] + 8 / (1 + expf(2))) < 1e-6f);
    fk_silu_and_mul(ctx, rows(half, FK_BF16));
    assert_int_equal(fk_ctx_status(ctx), FK_ERROR_CANDIDATE);
    assert_non_null(strstr(fk_ctx_error(ctx), "RuntimeError: only float32 here"));
    fk_candidate_close(candidate);
}

static void test_scratch_and_lower_operators(void **state)
{
    (void)state;
    float x[4] = {1, -2, 3, 4};
    fk_candidate *candidate;
    assert_int_equal(open_candidate("candidate_calls_itself", &candidate), FK_OK);
    assert_int_equal(fk_door_install(ctx, fk_candidate_impl(candidate)), FK_OK);
    fk_silu_and_mul(ctx, rows(x, FK_F32));
    assert_int_equal(fk_ctx_status(ctx), FK_ERROR_CANDIDATE);
    assert_non_null(strstr(fk_ctx_error(ctx), "may call lower operators only, not silu_and_mul"));
    fk_candidate_close(candidate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(test_good_candidate_at_the_door, setup, teardown),
        cmocka_unit_test_setup_teardown(test_scratch_and_lower_operators, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
