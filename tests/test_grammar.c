/* SPDX-License-Identifier: Apache-2.0 */
/* Words of the .def grammar that no real operator uses yet, end to end on two test operators (tests/ops) that stand in the
 * registry behind the library's own: FK_OUT_MAX with its bound and count, text and flags with defaults, any dtype,
 * optional context; through tables, cases, the door, a composition, and candidates. */
#include "unit.h"

#include <fk/ctx.h>
#include <fk/door.h>
#include <fk/ops.h>

#include "core/candidate.h"
#include "core/case.h"
#include "core/dtype.h"

enum { N = 6, D = 3 };
static const fk_device cpu = {FK_CPU, 0};
static fk_ctx *ctx;

static int setup(void **state)
{
    (void)state;
    fk_ctx_options options = {.device = cpu};
    return fk_ctx_create(&options, &ctx) != FK_OK;
}

static int teardown(void **state)
{
    (void)state;
    fk_ctx_destroy(ctx);
    return 0;
}

static fk_tensor vector(void *data, fk_dtype dtype, int64_t n)
{
    return fk_tensor_wrap(data, dtype, cpu, 1, &n);
}

/* The context failed with this message; it may be used again. */
static void failed(const char *message)
{
    if (!strstr(fk_ctx_error(ctx), message)) fail_msg("error is \"%s\", expected \"%s\"", fk_ctx_error(ctx), message);
    fk_ctx_clear(ctx);
}

static void selected(fk_select_equal_result r, int64_t bound, int64_t count, const int64_t *indices)
{
    assert_string_equal(fk_ctx_error(ctx), "");
    assert_true(r.indices.ndim == 1 && r.indices.shape[0] == bound && r.indices.dtype == FK_I64);
    assert_int_equal(*(int64_t *)r.count.data, count);
    for (int64_t i = 0; i < bound; i++) assert_int_equal(((int64_t *)r.indices.data)[i], i < count ? indices[i] : 0);
}

static void test_registry(void **state)
{
    (void)state;
    assert_ptr_equal(fk_op_find("select_equal"), fk_op_at(fk_select_equal_index));
    assert_ptr_equal(fk_op_find("equal_rows"), fk_op_at(fk_op_count() - 1));
    assert_int_equal(fk_rms_norm_index, fk_op_find("rms_norm")->index); /* the library's keep their places */
    for (int i = 0; i < fk_op_count(); i++) assert_int_equal(fk_op_at(i)->index, i);
    assert_true(fk_op_composed_of(fk_op_find("equal_rows"), "select_equal"));
}

static void test_tables(void **state)
{
    (void)state;
    const fk_op *op = fk_op_find("select_equal");
    static const struct { fk_field_kind kind; fk_attr_type type; bool optional; const char *name, *fallback; size_t offset; } fields[] = {
        {FK_FIELD_OUT_MAX, 0, false, "indices", NULL, offsetof(fk_select_equal_args, indices)},
        {FK_FIELD_OUT, 0, false, "count", NULL, offsetof(fk_select_equal_args, count)},
        {FK_FIELD_IN, 0, false, "input", NULL, offsetof(fk_select_equal_args, input)},
        {FK_FIELD_ATTR, FK_ATTR_float, false, "value", "FK_REQUIRED", offsetof(fk_select_equal_args, value)},
        {FK_FIELD_ATTR, FK_ATTR_bool, false, "negate", "False", offsetof(fk_select_equal_args, negate)},
        {FK_FIELD_ATTR, FK_ATTR_string, false, "order", "\"ascending\"", offsetof(fk_select_equal_args, order)},
        {FK_FIELD_ATTR, FK_ATTR_int, false, "copies", "1", offsetof(fk_select_equal_args, copies)},
        {FK_FIELD_CONTEXT, 0, true, "mask", NULL, offsetof(fk_select_equal_args, mask)},
    };
    assert_int_equal(op->num_fields, sizeof fields / sizeof fields[0]);
    for (int i = 0; i < op->num_fields; i++) {
        const fk_field *f = &op->fields[i];
        assert_string_equal(f->name, fields[i].name);
        assert_true(f->kind == fields[i].kind && f->attr_type == fields[i].type && f->optional == fields[i].optional);
        assert_int_equal(fk_op_field_offset(op, i), fields[i].offset);
        assert_true(f->default_text == fields[i].fallback || strcmp(f->default_text, fields[i].fallback) == 0);
        assert_int_equal(fk_field_is_written(f), i < 2);
    }
    assert_non_null(strstr(op->signature, "select_equal L1; FK_FIELD_OUT_MAX 0 indices [copies*N] FK_IS(I64); "));
    assert_non_null(strstr(op->signature, "; FK_FIELD_ATTR FK_ATTR_string order; "));
    assert_non_null(strstr(op->signature, "; FK_FIELD_CONTEXT 1 mask [N] FK_IS(BOOL)"));
    const fk_op *module = fk_op_find("equal_rows");
    assert_true(module->is_module && !op->is_module);
    assert_int_equal(fk_op_field_offset(module, 0), offsetof(fk_equal_rows_args, order));
    assert_int_equal(fk_op_field_offset(module, 1), offsetof(fk_equal_rows_args, use_mask));
    assert_int_equal(fk_op_field_offset(module, 2), offsetof(fk_equal_rows_args, rows));
    assert_string_equal(module->fields[fk_op_field(module, "table")].checkpoint_name, "table.weight");
}

static void test_size_depends_on_data(void **state)
{
    (void)state;
    int32_t input[N] = {4, 1, 4, 4, 0, 1};
    fk_tensor t = vector(input, FK_I32, N);
    selected(fk_select_equal(ctx, t, 4, false, "ascending", 1, FK_ABSENT), N, 3, (int64_t[]){0, 2, 3});
    selected(fk_select_equal(ctx, t, 4, true, "descending", 1, FK_ABSENT), N, 3, (int64_t[]){5, 4, 1});
    selected(fk_select_equal(ctx, t, 1, false, "ascending", 3, FK_ABSENT), 3 * N, 6, (int64_t[]){1, 1, 1, 5, 5, 5});
    selected(fk_select_equal(ctx, t, 9, true, "ascending", 1, FK_ABSENT), N, N, (int64_t[]){0, 1, 2, 3, 4, 5}); /* full */
    selected(fk_select_equal(ctx, t, 9, false, "ascending", 1, FK_ABSENT), N, 0, NULL);
    selected(fk_select_equal(ctx, t, 4, false, "ascending", 0, FK_ABSENT), 0, 0, NULL);
    selected(fk_select_equal(ctx, vector(input, FK_I32, 0), 4, false, "ascending", 5, FK_ABSENT), 0, 0, NULL);
}

static void test_any_dtype(void **state)
{
    (void)state;
    for (fk_dtype dtype = FK_F64; dtype <= FK_BOOL; dtype++) {
        unsigned char input[4 * 8];
        if (dtype != FK_BOOL && dtype != FK_I8 && dtype != FK_U8 && fk_dtype_bits(dtype) < 16) continue; /* no elements of their own */
        for (int i = 0; i < 4; i++) fk_store_element(input + i * fk_dtype_bits(dtype) / 8, dtype, i % 2);
        selected(fk_select_equal(ctx, vector(input, dtype, 4), 1, false, "ascending", 1, FK_ABSENT), 4, 2, (int64_t[]){1, 3});
    }
}

/* The caller's output has the size of the bound, no less and no more. */
static void test_bound(void **state)
{
    (void)state;
    float input[N] = {1, 0, 1, 0, 0, 0};
    int64_t indices[3 * N], count[1];
    fk_tensor t = vector(input, FK_F32, N), n = vector(count, FK_I64, 1);
    memset(indices, 0xff, sizeof indices);
    fk_select_equal_out(ctx, vector(indices, FK_I64, 2 * N), n, t, 1, false, "ascending", 2, FK_ABSENT);
    selected((fk_select_equal_result){vector(indices, FK_I64, 2 * N), n}, 2 * N, 4, (int64_t[]){0, 0, 2, 2});
    assert_int_equal(indices[2 * N], -1);
    fk_select_equal_out(ctx, vector(indices, FK_I64, 4), n, t, 1, false, "ascending", 2, FK_ABSENT); /* would do */
    failed("select_equal: indices is i64[4], expected [copies*N]: copies*N is 12, not 4");
    fk_select_equal_out(ctx, vector(indices, FK_I64, 2 * N + 1), n, t, 1, false, "ascending", 2, FK_ABSENT);
    failed("copies*N is 12, not 13");
    fk_select_equal_out(ctx, FK_ABSENT, n, t, 1, false, "ascending", 2, FK_ABSENT);
    failed("indices is missing");
    fk_select_equal_out(ctx, vector(indices, FK_I32, N), n, t, 1, false, "ascending", 1, FK_ABSENT);
    failed("indices is i32, allowed is FK_IS(I64)");
    fk_select_equal_result r = fk_select_equal(ctx, t, 1, false, "ascending", -1, FK_ABSENT);
    assert_false(fk_tensor_present(&r.indices) || fk_tensor_present(&r.count));
    failed("size of indices [copies*N]: copies*N is unknown, negative or too large");
    fk_select_equal(ctx, t, 1, false, "ascending", INT64_MAX, FK_ABSENT);
    failed("size of indices [copies*N]: copies*N is unknown, negative or too large");
}

static void test_text_and_optional_context(void **state)
{
    (void)state;
    float input[4] = {1, 1, 2, 1};
    bool mask[4] = {true, false, true, true};
    fk_tensor t = vector(input, FK_F32, 4);
    selected(fk_select_equal(ctx, t, 1, false, "descending", 1, vector(mask, FK_BOOL, 4)), 4, 2, (int64_t[]){3, 0});
    fk_select_equal_result r = fk_select_equal(ctx, t, 1, false, "sideways", 1, FK_ABSENT);
    assert_false(fk_tensor_present(&r.indices));
    failed("order is sideways, neither ascending nor descending");
    fk_select_equal(ctx, t, 1, false, NULL, 1, FK_ABSENT);
    failed("order is NULL");
    fk_select_equal(ctx, t, 1, false, "ascending", 1, vector(mask, FK_BOOL, 3));
    failed("mask is bool[3], expected [N]: N is 4, not 3");
    fk_select_equal(ctx, t, 1, false, "ascending", 1, vector(input, FK_F32, 4));
    failed("mask is f32, allowed is FK_IS(BOOL)");
}

static float labels[N] = {7, 2, 7, 7, 2, 0}, table[N][D];
static bool mask[N] = {true, true, true, false, true, true};

static fk_equal_rows_module module(const char *order, bool use_mask)
{
    for (int i = 0; i < N * D; i++) table[i / D][i % D] = (float)i;
    return (fk_equal_rows_module){.path = "model.rows", .order = order, .use_mask = use_mask,
                                  .table = fk_tensor_wrap(table, FK_F32, cpu, 2, (int64_t[]){N, D})};
}

static void rows_are(fk_equal_rows_result r, int64_t bound, int64_t count, const int64_t *indices)
{
    assert_string_equal(fk_ctx_error(ctx), "");
    assert_true(r.rows.ndim == 2 && r.rows.shape[0] == bound && r.rows.shape[1] == D && r.rows.dtype == FK_F32);
    assert_int_equal(*(int64_t *)r.count.data, count);
    for (int64_t i = 0; i < bound; i++) assert_memory_equal((float *)r.rows.data + i * D, table[i < count ? indices[i] : 0], sizeof table[0]);
}

static void call_rows(void)
{
    fk_tensor t = vector(labels, FK_F32, N), m = vector(mask, FK_BOOL, N);
    fk_equal_rows_module up = module("ascending", true), down = module("descending", false);
    rows_are(fk_equal_rows(ctx, &up, t, 7, 1, FK_ABSENT), N, 3, (int64_t[]){0, 2, 3});
    rows_are(fk_equal_rows(ctx, &up, t, 7, 2, m), 2 * N, 4, (int64_t[]){0, 0, 2, 2});
    rows_are(fk_equal_rows(ctx, &down, t, 7, 1, m), N, 3, (int64_t[]){3, 2, 0});
}

static void test_module(void **state)
{
    (void)state;
    int64_t reached, total;
    fk_door_reset_counts(ctx);
    call_rows();
    fk_door_counts(ctx, fk_op_find("select_equal"), &reached, &total);
    assert_true(reached == 0 && total == 3);
    fk_door_counts(ctx, fk_op_find("embedding"), &reached, &total);
    assert_int_equal(total, 3);
    fk_equal_rows_module wrong = module("sideways", true);
    fk_equal_rows_result r = fk_equal_rows(ctx, &wrong, vector(labels, FK_F32, N), 7, 1, FK_ABSENT);
    assert_false(fk_tensor_present(&r.rows) || fk_tensor_present(&r.count));
    assert_non_null(strstr(fk_ctx_error(ctx), "model.rows"));
    failed("order is sideways");
    wrong = module("ascending", true);
    wrong.table = FK_ABSENT;
    fk_equal_rows(ctx, &wrong, vector(labels, FK_F32, N), 7, 1, FK_ABSENT);
    failed("table is missing");
}

static void test_cost(void **state)
{
    (void)state;
    fk_case c;
    assert_ok(fk_case_create(fk_op_find("select_equal"), "N=5 value=0 copies=3 input=f16", FK_F32, &c));
    fk_cost cost = fk_op_cost(c.op, c.args);
    assert_true(cost.read_bytes == 5 * 2 + 5 && cost.write_bytes == 15 * 8 + 8);
    fk_case_destroy(&c);
}

/* Texts and defaults reach the arguments; every declared case runs, into outputs that were poison. */
static void test_cases(void **state)
{
    (void)state;
    fk_case c;
    const fk_op *op = fk_op_find("select_equal");
    assert_ok(fk_case_create(op, "N=5 value=0.5 mask=absent", FK_F16, &c));
    const fk_select_equal_args *a = c.args;
    assert_string_equal(a->order, "ascending");
    assert_true(a->value == 0.5f && !a->negate && a->copies == 1 && !a->mask && a->input->dtype == FK_F16);
    fk_case_destroy(&c);
    assert_ok(fk_case_create(op, "N=5 value=0 order=descending negate=True copies=4 input=u8", FK_F16, &c));
    a = c.args;
    assert_string_equal(a->order, "descending");
    assert_true(a->negate && a->mask && a->input->dtype == FK_U8 && a->indices->shape[0] == 20);
    fk_case_destroy(&c);
    assert_int_equal(fk_case_create(op, "N=5 value=0 negate=no", FK_F16, &c), FK_ERROR_INVALID);
    assert_int_equal(fk_case_create(op, "N=5 value=0 copies=-2", FK_F16, &c), FK_ERROR_INVALID);
    assert_message("size of indices [copies*N]");
    assert_int_equal(fk_case_create(op, "N=5 value=0 copies=9223372036854775807", FK_F16, &c), FK_ERROR_INVALID);

    for (int i = fk_select_equal_index; i < fk_op_count(); i++)
        for (int k = 0; fk_op_at(i)->cases[k]; k++) {
            assert_ok(fk_case_create(fk_op_at(i), fk_op_at(i)->cases[k], FK_F32, &c));
            for (int f = 0; f < c.op->num_fields; f++)
                if (c.op->fields[f].kind <= FK_FIELD_OUT_MAX && fk_field_is_tensor(&c.op->fields[f]))
                    memset(c.tensors[f].data, 0xff, fk_tensor_nbytes(&c.tensors[f]));
            fk_case_fill(&c, 1, FK_VALUES_EDGES);
            fk_door_call(ctx, c.op, c.args, FK_OUTPUTS_GIVEN, NULL);
            assert_string_equal(fk_ctx_error(ctx), "");
            int count = fk_op_field(c.op, "count");
            assert_in_range(*(int64_t *)c.tensors[count].data, 0, c.tensors[count - 1].shape[0]);
            fk_case_destroy(&c);
        }
}

static fk_candidate *install(const char *op)
{
    char path[1024];
    fk_candidate *candidate;
    snprintf(path, sizeof path, "%s/candidate_%s.so", FK_CANDIDATES_DIR, op);
    assert_ok(fk_candidate_open(path, fk_op_find(op), FK_CPU, &candidate));
    assert_true(fk_candidate_has_note(candidate)); /* its signature is the table's */
    assert_ok(fk_door_install(ctx, fk_candidate_impl(candidate)));
    return candidate;
}

static void test_candidates(void **state)
{
    (void)state;
    int64_t reached, total;
    float input[4] = {3, -0.0f, 0, 3};
    bool some[4] = {true, true, false, true};
    fk_tensor t = vector(input, FK_F32, 4);
    fk_candidate *lower = install("select_equal");
    selected(fk_select_equal(ctx, t, 0, false, "ascending", 2, FK_ABSENT), 8, 4, (int64_t[]){1, 1, 2, 2});
    selected(fk_select_equal(ctx, t, 0, true, "descending", 1, vector(some, FK_BOOL, 4)), 4, 2, (int64_t[]){3, 0});
    fk_select_equal(ctx, t, 0, false, "sideways", 1, FK_ABSENT); /* the door's check stands before the candidate */
    failed("order is sideways");
    fk_select_equal(ctx, vector(input, FK_I32, 4), 0, false, "ascending", 1, FK_ABSENT);
    failed("RuntimeError: only float32 here");
    fk_door_reset_counts(ctx);
    call_rows(); /* the composition takes it */
    fk_door_counts(ctx, fk_op_find("select_equal"), &reached, &total);
    assert_true(reached == 3 && total == 3);
    fk_candidate *upper = install("equal_rows"); /* and so does a candidate above */
    call_rows();
    fk_door_counts(ctx, fk_op_find("select_equal"), &reached, &total);
    assert_true(reached == 6 && total == 6);
    fk_door_counts(ctx, fk_op_find("embedding"), &reached, &total);
    assert_int_equal(total, 3);
    fk_equal_rows_module wrong = module("sideways", true);
    fk_equal_rows(ctx, &wrong, vector(labels, FK_F32, N), 7, 1, FK_ABSENT);
    failed("order is sideways");
    fk_candidate_close(upper);
    fk_candidate_close(lower);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_registry, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tables, setup, teardown),
        cmocka_unit_test_setup_teardown(test_size_depends_on_data, setup, teardown),
        cmocka_unit_test_setup_teardown(test_any_dtype, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bound, setup, teardown),
        cmocka_unit_test_setup_teardown(test_text_and_optional_context, setup, teardown),
        cmocka_unit_test_setup_teardown(test_module, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cost, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cases, setup, teardown),
        cmocka_unit_test_setup_teardown(test_candidates, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
