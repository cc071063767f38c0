/* SPDX-License-Identifier: Apache-2.0 */
/* Single operators against PyTorch: tests/goldens/operators.safetensors, made by tools/reference/operators.py. Every call
 * there goes to the reference and to the CPU's best implementation, and both must agree within the operator's tolerance. */
#include "unit.h"

#include <fk/ctx.h>
#include <fk/door.h>

#include "core/case.h"
#include "core/compare.h"
#include "core/safetensors.h"

static fk_safetensors *golden;

/* "operator|case|" of a tensor's name; the length with the last bar. */
static size_t call_length(const char *name)
{
    const char *bar = strchr(name, '|');
    assert_non_null(bar);
    bar = strchr(bar + 1, '|');
    assert_non_null(bar);
    return (size_t)(bar - name) + 1;
}

static bool find(const char *name, size_t length, const char *field, fk_tensor *out)
{
    char key[512];
    assert_true(length + strlen(field) < sizeof key);
    snprintf(key, sizeof key, "%.*s%s", (int)length, name, field);
    return fk_safetensors_find(golden, key, out) == FK_OK;
}

/* The golden's expected values of a field, if it has any. */
static bool find_expected(const char *name, size_t length, const fk_field *f, fk_tensor *out)
{
    char after[128];
    if (!fk_field_is_tensor(f) || !fk_field_is_written(f)) return false;
    bool output = f->kind == FK_FIELD_OUT || f->kind == FK_FIELD_OUT_MAX;
    snprintf(after, sizeof after, "%s%s", f->name, output ? "" : ".after");
    return find(name, length, after, out);
}

/* The golden's inputs into the case; how many tensors of the golden belong to it. */
static int load_inputs(const fk_case *c, const char *name, size_t length)
{
    int found = 0;
    for (int i = 0; i < c->op->num_fields; i++) {
        fk_tensor t;
        if (!fk_field_is_tensor(&c->op->fields[i]) || !find(name, length, c->op->fields[i].name, &t)) continue;
        if (t.dtype != c->tensors[i].dtype || !fk_tensor_same_shape(&t, &c->tensors[i]))
            fail_msg("%.*s%s has another dtype or shape in the golden", (int)length, name, c->op->fields[i].name);
        bool output = c->op->fields[i].kind == FK_FIELD_OUT || c->op->fields[i].kind == FK_FIELD_OUT_MAX;
        if (output) memset(c->tensors[i].data, 0xff, fk_tensor_nbytes(&t));
        else memcpy(c->tensors[i].data, t.data, fk_tensor_nbytes(&t));
        found += 1 + (!output && find_expected(name, length, &c->op->fields[i], &t));
    }
    return found;
}

static void compare_outputs(const fk_case *c, const char *name, size_t length, const char *who)
{
    int compared = 0;
    for (int i = 0; i < c->op->num_fields; i++) {
        fk_tensor expected;
        fk_comparison result;
        if (!find_expected(name, length, &c->op->fields[i], &expected)) continue;
        fk_tolerance tolerance = fk_tolerance_for(c->op, c->args, i);
        compared++;
        if (fk_compare(&expected, &c->tensors[i], &tolerance, &result)) continue;
        char text[256];
        fail_msg("%s, %.*s%s: %lld of %lld differ, first at %s", who, (int)length, name, c->op->fields[i].name,
                 (long long)result.mismatched, (long long)result.elements,
                 result.num_mismatches ? fk_mismatch_format(&result.mismatches[0], expected.ndim, text, sizeof text) : "a row");
    }
    assert_true(compared > 0);
}

static int check_call(const char *name, bool references_only)
{
    size_t length = call_length(name);
    char op_name[64], text[512];
    snprintf(op_name, sizeof op_name, "%.*s", (int)strcspn(name, "|"), name);
    snprintf(text, sizeof text, "%.*s", (int)(length - 2 - strlen(op_name)), name + strlen(op_name) + 1);
    const fk_op *op = fk_op_find(op_name);
    assert_non_null(op);
    fk_case c;
    assert_ok(fk_case_create(op, text, FK_F32, &c));
    fk_case_fill(&c, 1, FK_VALUES_NORMAL);
    int tensors = load_inputs(&c, name, length);
    fk_ctx_options options = {.device = {FK_CPU, 0}, .threads = 2, .references_only = references_only};
    fk_ctx *ctx;
    assert_ok(fk_ctx_create(&options, &ctx));
    fk_door_call(ctx, op, c.args, FK_OUTPUTS_GIVEN, NULL);
    if (fk_ctx_status(ctx) != FK_OK) fail_msg("%s", fk_ctx_error(ctx));
    compare_outputs(&c, name, length, references_only ? "reference" : "baseline");
    fk_ctx_destroy(ctx);
    fk_case_destroy(&c);
    return tensors;
}

static void check_all(bool references_only)
{
    size_t tensors = 0;
    for (size_t i = 0; i < fk_safetensors_count(golden); i++) {
        const char *name = fk_safetensors_at(golden, i)->name;
        size_t length = call_length(name);
        bool seen = false; /* the call's first tensor stands for it */
        for (size_t k = 0; k < i && !seen; k++) seen = strncmp(fk_safetensors_at(golden, k)->name, name, length) == 0;
        if (!seen) tensors += (size_t)check_call(name, references_only);
    }
    assert_int_equal(tensors, fk_safetensors_count(golden)); /* none is left over under a misspelt field */
    assert_true(tensors > 20);
}

static void test_references(void **state)
{
    (void)state;
    check_all(true);
}

static void test_baselines(void **state)
{
    (void)state;
    check_all(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_references), cmocka_unit_test(test_baselines)};
    if (fk_safetensors_open(FK_SOURCE_DIR "/tests/goldens/operators.safetensors", &golden) != FK_OK) {
        fprintf(stderr, "%s\n", fk_error_message());
        return 1;
    }
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    fk_safetensors_close(golden);
    return failed;
}
