/* SPDX-License-Identifier: Apache-2.0 */
/* Public headers. That each compiles alone, as C17 and as C++17, is shown by the files that the build makes and links into
 * this program; here, that both languages mean the same structs and functions. */
#include "unit.h"

#include <math.h>

#include "header_layout.h"

const size_t *header_layout_in_cpp(size_t *count);
float header_call_in_cpp(fk_ctx *ctx, float gate, float value);
int __tvm_ffi_silu_and_mul(void *self, const TVMFFIAny *values, int32_t num_values, TVMFFIAny *result);
extern const fk_candidate_note fk_candidate_note_silu_and_mul;

static void test_layout(void **state)
{
    (void)state;
    size_t count;
    const size_t *in_cpp = header_layout_in_cpp(&count);
    assert_int_equal(count, HEADER_LAYOUT_COUNT);
    for (size_t i = 0; i < count; i++)
        if (header_layout[i] != in_cpp[i]) fail_msg("number %zu of tests/header_layout.h: %zu in C, %zu in C++", i, header_layout[i], in_cpp[i]);
}

static void test_call(void **state)
{
    (void)state;
    fk_ctx *ctx;
    assert_ok(fk_ctx_create(&(fk_ctx_options){.device = {FK_CPU, 0}}, &ctx));
    assert_true(fabsf(header_call_in_cpp(ctx, 1, 2) - 2 / (1 + expf(-1))) < 1e-5f);
    fk_ctx_destroy(ctx);
}

/* The same signature text and calling convention from a C++ candidate. */
static void test_candidate(void **state)
{
    (void)state;
    const fk_op *op = fk_op_find("silu_and_mul");
    assert_string_equal(fk_candidate_note_silu_and_mul.signature, op->signature);
    float input[2] = {1, 2}, result[1] = {0};
    fk_tensor in = fk_tensor_wrap(input, FK_F32, (fk_device){FK_CPU, 0}, 2, (int64_t[]){1, 2});
    fk_tensor out = fk_tensor_wrap(result, FK_F32, (fk_device){FK_CPU, 0}, 2, (int64_t[]){1, 1});
    fk_silu_and_mul_args args = {.result = &out, .input = &in};
    TVMFFIAny values[FK_MAX_FIELDS], returned;
    DLTensor tensors[FK_MAX_FIELDS];
    fk_candidate_pack(op->fields, op->num_fields, &args, values, tensors);
    assert_int_equal(__tvm_ffi_silu_and_mul(NULL, values, op->num_fields, &returned), 0);
    assert_true(result[0] == 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layout), cmocka_unit_test(test_call), cmocka_unit_test(test_candidate)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
