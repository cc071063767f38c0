/* SPDX-License-Identifier: Apache-2.0 */
/* check_ops: every implementation of every operator against its reference, as dav1d's checkasm does. The reference runs on
 * the CPU in a context of references only; the implementation, pinned by name, runs on the device on the same values, in
 * buffers between guard bands, outputs poisoned. Then: outputs and mutated tensors (whole, also what should not change)
 * agree within the tolerance of core/compare.h, guards, gaps and inputs are as before, the expected output is not
 * trivial. Compositions must call the operators of their FK_USES, no more and no fewer. A failure prints a line that runs
 * it again. Exit code 0: all passed, 1: failures, 2: wrong usage, 3: no such device. */
#define _GNU_SOURCE
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fk/ctx.h>
#include <fk/door.h>

#include "check_buffers.h"
#include "core/case.h"
#include "core/compare.h"
#include "core/dtype.h"
#include "core/golden.h"

#define MAX_FIELDS 32
#define MAX_IMPLS 16
#define SMALL_ELEMENTS 20000 /* --small: tools that slow a kernel down a thousandfold finish these */

/* Passes over a case. */
typedef struct variant {
    const char *name;
    fk_case_values values;
    layout layout;
    bool alias;
} variant;

static const variant variants[] = {
    {"plain", FK_VALUES_NORMAL, LAYOUT_DENSE, false},  {"edges", FK_VALUES_EDGES, LAYOUT_DENSE, false},
    {"padded", FK_VALUES_EDGES, LAYOUT_PADDED, false}, {"odd", FK_VALUES_NORMAL, LAYOUT_ODD, false},
    {"alias", FK_VALUES_NORMAL, LAYOUT_DENSE, true},
};
#define NUM_VARIANTS ((int)(sizeof variants / sizeof variants[0]))

static struct {
    const char *op, *impl, *text, *variant, *device;
    fk_dtype dtype;
    uint64_t seed;
    bool small, list, verbose;
} options = {.seed = 1, .device = "cpu"};

static fk_ctx *reference_ctx, *ctx;
static int passed, failed, skipped;
static bool device_lost;
static bool saw_small; /* of the operator at hand: a case for tools that take small ones only */

/* What is checked now, for messages. */
static struct {
    const fk_op *op;
    const char *impl, *text;
    const variant *variant;
    fk_dtype dtype;
} now;

static void print_failure(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void print_failure(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    printf("FAIL %s %s '%s' %s %s: ", now.op->name, now.impl, now.text, fk_dtype_name(now.dtype), now.variant->name);
    vprintf(format, args);
    va_end(args);
    printf("\n  again: check_ops --device %s --op %s --impl %s --case '%s' --dtype %s --variant %s --seed %llu\n", options.device,
           now.op->name, now.impl, now.text, fk_dtype_name(now.dtype), now.variant->name, (unsigned long long)options.seed);
}

static bool is_output(const fk_field *f)
{
    return f->kind == FK_FIELD_OUT || f->kind == FK_FIELD_OUT_MAX;
}

/* The dimension of a token-wise tensor whose stride a caller may choose: rows of "[..., D]", tokens of "[T, H, E]". Weights,
 * caches and tables are dense. -1: none. */
static int padded_dim(const fk_field *f, const fk_tensor *t)
{
    const char *s = f->shape + 1;
    if (f->kind == FK_FIELD_WEIGHT || f->kind == FK_FIELD_STATE || f->kind == FK_FIELD_CONTEXT) return -1;
    if (!fk_dtype_is_float(t->dtype) || t->ndim < 2) return -1;
    if (strncmp(s, "...", 3) == 0) return t->ndim - 2;
    return strncmp(s, "T,", 2) == 0 || strncmp(s, "B,", 2) == 0 ? 0 : -1;
}

/* The read tensor that tensor `index` can share memory with: the one before it, of the same shape and dtype. */
static int alias_of(const fk_case *c, int index)
{
    if (index == 0) return -1;
    const fk_field *f = &c->op->fields[index], *before = f - 1;
    if (f->kind != FK_FIELD_IN || before->kind != FK_FIELD_IN) return -1;
    const fk_tensor *t = &c->tensors[index], *other = &c->tensors[index - 1];
    bool same = fk_dtype_is_float(t->dtype) && t->dtype == other->dtype && fk_tensor_same_shape(t, other) &&
                strcmp(f->shape, before->shape) == 0;
    return same ? index - 1 : -1;
}

static bool variant_applies(const fk_case *c, const variant *v)
{
    if (v->layout == LAYOUT_DENSE && !v->alias) return true;
    for (int i = 0; i < c->op->num_fields; i++) {
        const fk_tensor *t = &c->tensors[i];
        if (!fk_tensor_present(t) || fk_tensor_numel(t) == 0) continue;
        if (v->alias ? alias_of(c, i) >= 0 : padded_dim(&c->op->fields[i], t) >= 0) return true;
    }
    return false;
}

static void fill(const fk_case *c, const variant *v)
{
    fk_case_fill(c, options.seed, v->values);
    for (int i = 0; v->alias && i < c->op->num_fields; i++) {
        int other = alias_of(c, i);
        if (other >= 0) memcpy(c->tensors[i].data, c->tensors[other].data, fk_tensor_nbytes(&c->tensors[i]));
    }
}

/* Nothing to compute: an input without elements. */
static bool is_empty(const fk_case *c)
{
    for (int i = 0; i < c->op->num_fields; i++)
        if (fk_tensor_present(&c->tensors[i]) && c->op->fields[i].kind == FK_FIELD_IN && fk_tensor_numel(&c->tensors[i]) == 0) return true;
    for (int i = 0; i < c->op->num_fields; i++)
        if (fk_tensor_present(&c->tensors[i]) && fk_field_is_written(&c->op->fields[i]) && fk_tensor_numel(&c->tensors[i]) > 0) return false;
    return true;
}

/* One column to choose from or to normalize: a constant is the right answer. */
static bool is_narrow(const fk_case *c)
{
    for (int i = 0; i < c->op->num_fields; i++) {
        const fk_tensor *t = &c->tensors[i];
        bool read = fk_field_is_tensor(&c->op->fields[i]) && !is_output(&c->op->fields[i]);
        if (read && fk_tensor_present(t) && t->ndim >= 2 && t->shape[t->ndim - 1] == 1) return true;
    }
    return false;
}

/* True when the expected result can tell right from wrong. */
static bool expected_is_sound(const fk_case *input, const fk_case *expected)
{
    for (int i = 0; i < expected->op->num_fields; i++) {
        const fk_field *f = &expected->op->fields[i];
        const fk_tensor *t = &expected->tensors[i];
        if (!fk_field_is_tensor(f) || !fk_tensor_present(t) || !fk_field_is_written(f)) continue;
        for (int64_t k = 0, n = fk_dtype_is_float(t->dtype) ? fk_tensor_numel(t) : 0; k < n; k++)
            if (isnan(fk_load_element(fk_tensor_at(t, k), t->dtype))) {
                print_failure("the reference leaves NaN in %s at %lld", f->name, (long long)k);
                return false;
            }
        if (is_empty(input) || is_narrow(input)) continue;
        if (is_output(f) ? fk_tensor_is_constant(t) : memcmp(t->data, input->tensors[i].data, fk_tensor_nbytes(t)) == 0) {
            print_failure("the expected %s is trivial: %s", f->name, is_output(f) ? "all elements are equal" : "nothing changed");
            return false;
        }
    }
    return true;
}

static bool compare_field(const fk_case *expected, int index, guarded *buffers, const void *args)
{
    const fk_field *f = &expected->op->fields[index];
    guarded *g = &buffers[index];
    long long changed;
    bool read_only = !fk_field_is_written(f);
    if (!guarded_intact(g, read_only, &changed)) {
        print_failure("%s: byte %lld of %s changed", f->name, changed, read_only ? "an input" : "the guard bands or gaps");
        return false;
    }
    if (read_only) return true;
    fk_tolerance tolerance = fk_tolerance_for(expected->op, args, index);
    fk_comparison result;
    fk_tensor actual = guarded_image(g, g->after);
    if (fk_compare(&expected->tensors[index], &actual, &tolerance, &result)) return true;
    print_failure("%s differs in %lld of %lld elements, %lld rows as a whole; largest error %.3g (%.3g relative)", f->name,
                  (long long)result.mismatched, (long long)result.elements, (long long)result.bad_rows, result.max_abs_error,
                  result.max_rel_error);
    char text[256];
    for (int i = 0; i < result.num_mismatches; i++)
        printf("  %s%s\n", f->name, fk_mismatch_format(&result.mismatches[i], actual.ndim, text, sizeof text));
    if (result.bad_rows)
        printf("  %s row %lld: rms of differences %.3g, allowed %.3g\n", f->name, (long long)result.first_bad_row,
               result.bad_row_error, result.bad_row_allowed);
    return false;
}

typedef enum outcome { PASSED, FAILED, UNSUPPORTED } outcome;

/* Uploads, calls, downloads, compares. */
static outcome run_buffers(const fk_case *input, const fk_case *expected, guarded *buffers)
{
    const fk_op *op = input->op;
    fk_backend *backend = fk_ctx_backend(ctx);
    _Alignas(16) unsigned char args[1024];
    if (op->args_size > sizeof args) {
        print_failure("args struct of %zu bytes", op->args_size);
        return FAILED;
    }
    memcpy(args, input->args, op->args_size);
    for (int i = 0; i < op->num_fields; i++) {
        const fk_field *f = &op->fields[i];
        const fk_tensor *t = &input->tensors[i];
        if (!fk_tensor_present(t)) continue;
        int dim = padded_dim(f, t), other = now.variant->alias ? alias_of(input, i) : -1;
        layout layout = dim >= 0 ? now.variant->layout : LAYOUT_DENSE;
        if (guarded_create(backend, fk_ctx_stream(ctx), t, layout, dim, is_output(f), &buffers[i]) != FK_OK) {
            print_failure("%s", fk_error_message());
            return FAILED;
        }
        *(fk_tensor **)fk_op_field_ptr(op, args, i) = &buffers[other >= 0 ? other : i].view;
    }
    fk_door_call(ctx, op, args, FK_OUTPUTS_GIVEN, NULL);
    fk_status status = fk_ctx_status(ctx);
    if (status == FK_OK) status = fk_ctx_synchronize(ctx);
    if (status == FK_ERROR_UNSUPPORTED) return UNSUPPORTED;
    if (status != FK_OK) {
        print_failure("%s", fk_ctx_error(ctx));
        device_lost = status == FK_ERROR_DEVICE;
        return FAILED;
    }
    bool good = true;
    for (int i = 0; i < op->num_fields && good; i++) {
        if (!fk_tensor_present(&input->tensors[i])) continue;
        if (guarded_download(&buffers[i]) != FK_OK) {
            print_failure("%s", fk_error_message());
            return FAILED;
        }
        good = compare_field(expected, i, buffers, input->args);
    }
    return good ? PASSED : FAILED;
}

static outcome run_impl(const fk_case *input, const fk_case *expected)
{
    guarded buffers[MAX_FIELDS] = {{0}};
    fk_door_pin(ctx, input->op, now.impl);
    outcome outcome = run_buffers(input, expected, buffers);
    fk_door_pin(ctx, input->op, NULL);
    fk_ctx_clear(ctx);
    fk_ctx_reset(ctx);
    for (int i = 0; i < input->op->num_fields; i++) guarded_destroy(&buffers[i]);
    return outcome;
}

/* Implementations of an operator on the device that the filter lets through. */
static int collect_impls(const fk_op *op, const char **names)
{
    fk_backend *backend = fk_ctx_backend(ctx);
    int n = 0;
    bool reference_runs = fk_op_is_composition(op) || backend->device.type == FK_CPU;
    if (reference_runs && (!options.impl || strcmp(options.impl, "reference") == 0)) names[n++] = "reference";
    for (int i = 0; i < backend->num_impls; i++) {
        const fk_impl *impl = backend->impls[i];
        if (strcmp(impl->op, op->name) != 0 || (options.impl && strcmp(options.impl, impl->name) != 0)) continue;
        if (n < MAX_IMPLS) names[n++] = impl->name;
    }
    return n;
}

/* Direct calls of compositions, by operator. */
static bool called[1024];

static void note_call(void *user, fk_ctx *c, const fk_op *op, const fk_impl *impl, const void *args)
{
    (void)user, (void)impl, (void)args;
    if (fk_door_depth(c) == 2) called[op->index] = true;
}

static bool is_used(const fk_op *op, const char *name)
{
    for (const char *const *use = op->uses; *use; use++)
        if (strcmp(*use, name) == 0) return true;
    return false;
}

/* After all cases of `op`: what it called against what it declares. */
static void check_uses(const fk_op *op)
{
    bool good = true;
    for (int i = 0; i < fk_op_count(); i++) {
        const fk_op *other = fk_op_at(i);
        if (called[i] == is_used(op, other->name)) continue;
        printf("FAIL %s: %s %s\n  again: check_ops --op %s --impl reference\n", op->name,
               called[i] ? "calls without FK_USES" : "declares FK_USES and never calls", other->name, op->name);
        good = false;
    }
    for (const char *const *use = op->uses; *use; use++)
        if (!fk_op_find(*use)) {
            printf("FAIL %s: FK_USES(%s) names no operator\n", op->name, *use);
            good = false;
        }
    if (good) passed++;
    else failed++;
}

static void check_variant(const fk_op *op, const char *const *impls, int num_impls, fk_case *input, fk_case *expected)
{
    for (int i = 0; i < op->num_fields; i++) { /* outputs the reference forgets show as NaN or odd numbers */
        fk_tensor *t = &expected->tensors[i];
        if (fk_tensor_present(t) && is_output(&op->fields[i])) memset(t->data, fk_dtype_is_float(t->dtype) ? 0xff : 0x5b, fk_tensor_nbytes(t));
    }
    fill(input, now.variant);
    for (int i = 0; i < op->num_fields; i++) {
        const fk_tensor *from = &input->tensors[i], *to = &expected->tensors[i]; /* both dense */
        if (fk_tensor_present(to) && !is_output(&op->fields[i])) memcpy(to->data, from->data, fk_tensor_nbytes(to));
    }
    now.impl = "reference";
    fk_golden_call(reference_ctx, op, expected->args);
    bool sound = fk_ctx_status(reference_ctx) == FK_OK;
    if (!sound) print_failure("%s", fk_ctx_error(reference_ctx));
    fk_ctx_clear(reference_ctx);
    fk_ctx_reset(reference_ctx);
    if (!sound || !expected_is_sound(input, expected)) {
        failed++;
        return;
    }
    int supported = 0;
    for (int i = 0; i < num_impls && !device_lost; i++) {
        now.impl = impls[i];
        outcome outcome = run_impl(input, expected);
        supported += outcome != UNSUPPORTED;
        if (outcome == PASSED) passed++;
        else if (outcome == FAILED) failed++;
        else skipped++;
        if (options.verbose)
            printf("%s %s %s '%s' %s %s\n", outcome == PASSED ? "pass" : outcome == FAILED ? "fail" : "skip (not supported)", op->name,
                   now.impl, now.text, fk_dtype_name(now.dtype), now.variant->name);
    }
    if (num_impls && !supported && !options.impl) {
        print_failure("no implementation supports this call");
        failed++;
    }
}

static bool is_small(const fk_case *c)
{
    int64_t elements = 0;
    for (int i = 0; i < c->op->num_fields; i++)
        if (fk_tensor_present(&c->tensors[i])) elements += fk_tensor_numel(&c->tensors[i]);
    return elements <= SMALL_ELEMENTS;
}

static void check_case(const fk_op *op, const char *const *impls, int num_impls, const char *text)
{
    static const fk_dtype floats[] = {FK_F32, FK_BF16, FK_F16};
    now.text = text;
    for (int d = 0; d < 3 && !device_lost; d++) {
        if (options.dtype != FK_NONE && options.dtype != floats[d]) continue;
        fk_case input, expected;
        now.dtype = floats[d];
        now.variant = &variants[0];
        now.impl = "reference";
        if (fk_case_create(op, text, floats[d], &input) != FK_OK) {
            print_failure("%s", fk_error_message());
            failed++;
            return;
        }
        saw_small |= is_small(&input);
        if (options.small && !is_small(&input)) {
            fk_case_destroy(&input);
            return;
        }
        if (fk_case_create(op, text, floats[d], &expected) == FK_OK) {
            for (int v = 0; v < NUM_VARIANTS && !device_lost; v++) {
                now.variant = &variants[v];
                if (options.variant && strcmp(options.variant, variants[v].name) != 0) continue;
                if (variant_applies(&input, &variants[v])) check_variant(op, impls, num_impls, &input, &expected);
            }
            fk_case_destroy(&expected);
        }
        fk_case_destroy(&input);
        fflush(stdout);
    }
}

static void check_op(const fk_op *op)
{
    const char *impls[MAX_IMPLS];
    int num_impls = collect_impls(op, impls), passed_before = passed, failed_before = failed, skipped_before = skipped;
    now.op = op;
    if (options.list) {
        printf("%s L%d:", op->name, op->level);
        for (int i = 0; i < num_impls; i++) printf(" %s", impls[i]);
        printf("\n");
        for (int i = 0; op->cases && op->cases[i]; i++) printf("  %s\n", op->cases[i]);
        return;
    }
    if (op->num_fields > MAX_FIELDS || !op->cases || !op->cases[0]) {
        printf("FAIL %s: %s\n", op->name, op->cases ? "too many fields for this program" : "no cases");
        failed++;
        return;
    }
    if (!num_impls) {
        if (options.impl) return;
        char device[16];
        printf("FAIL %s: no implementation on %s\n", op->name, fk_device_format(fk_ctx_device(ctx), device, sizeof device));
        failed++;
        return;
    }
    memset(called, 0, sizeof called);
    saw_small = false;
    if (options.text) check_case(op, impls, num_impls, options.text);
    else
        for (int i = 0; op->cases[i]; i++) check_case(op, impls, num_impls, op->cases[i]);
    bool whole = !options.text && !options.variant && !options.small && !device_lost;
    if (whole) check_uses(op);
    if (!options.text && !saw_small && !device_lost) {
        printf("FAIL %s: no case of at most %d elements, which --small needs\n", op->name, SMALL_ELEMENTS);
        failed++;
    }
    printf("%-30s %5d passed", op->name, passed - passed_before);
    if (failed > failed_before) printf(", %d failed", failed - failed_before);
    if (skipped > skipped_before) printf(", %d skipped: not supported by the implementation", skipped - skipped_before);
    printf("\n");
}

static const char usage[] =
    "usage: check_ops [--device cpu|cuda[:n]] [--op NAME] [--impl NAME] [--case TEXT] [--dtype f32|bf16|f16]\n"
    "                 [--variant plain|edges|padded|odd|alias] [--seed N] [--small] [--list] [--verbose]\n"
    "Checks implementations against references. --case takes a case of the operator or any other of that form.\n";

static int parse_options(int argc, char **argv)
{
    static const struct option names[] = {{"device", 1, NULL, 'd'},  {"op", 1, NULL, 'o'},    {"impl", 1, NULL, 'i'},
                                          {"case", 1, NULL, 'c'},    {"dtype", 1, NULL, 't'}, {"variant", 1, NULL, 'v'},
                                          {"seed", 1, NULL, 's'},    {"small", 0, NULL, 'm'}, {"list", 0, NULL, 'l'},
                                          {"verbose", 0, NULL, 'V'}, {"help", 0, NULL, 'h'},  {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        char *end;
        switch (c) {
        case 'd': options.device = optarg; break;
        case 'o': options.op = optarg; break;
        case 'i': options.impl = optarg; break;
        case 'c': options.text = optarg; break;
        case 'v': options.variant = optarg; break;
        case 'm': options.small = true; break;
        case 'l': options.list = true; break;
        case 'V': options.verbose = true; break;
        case 't':
            options.dtype = fk_dtype_parse(optarg);
            if (options.dtype == FK_F32 || options.dtype == FK_BF16 || options.dtype == FK_F16) break;
            fprintf(stderr, "check_ops: --dtype '%s' is none of f32, bf16, f16\n", optarg);
            return 2;
        case 's':
            options.seed = strtoull(optarg, &end, 0);
            if (end != optarg && *end == 0) break;
            fprintf(stderr, "check_ops: --seed '%s' is no number\n", optarg);
            return 2;
        case 'h': fputs(usage, stdout); return -1;
        default: fputs(usage, stderr); return 2;
        }
    }
    bool known = !options.variant;
    for (int v = 0; v < NUM_VARIANTS; v++) known |= options.variant && strcmp(options.variant, variants[v].name) == 0;
    if (optind == argc && known && (!options.text || options.op) && (!options.op || fk_op_find(options.op))) return 0;
    fprintf(stderr, "check_ops: %s '%s'\n%s", optind < argc ? "unexpected argument" : !known ? "unknown variant" : options.op ? "unknown operator" : "--case needs --op",
            optind < argc ? argv[optind] : !known ? options.variant : options.op ? options.op : options.text, usage);
    return 2;
}

int main(int argc, char **argv)
{
    int code = parse_options(argc, argv);
    if (code) return code < 0 ? 0 : code;
    fk_ctx_options reference_options = {.device = {FK_CPU, 0}, .threads = 1, .references_only = true}, device_options = {0};
    if (fk_device_parse(options.device, &device_options.device) != FK_OK) {
        fprintf(stderr, "check_ops: %s\n", fk_error_message());
        return 2;
    }
    if (fk_ctx_create(&reference_options, &reference_ctx) != FK_OK || fk_ctx_create(&device_options, &ctx) != FK_OK) {
        fprintf(stderr, "check_ops: %s\n", fk_error_message());
        fk_ctx_destroy(reference_ctx);
        return 3;
    }
    fk_hook hook = {.before = note_call};
    fk_door_add_hook(reference_ctx, &hook);
    for (int i = 0; i < fk_op_count() && !device_lost; i++)
        if (!options.op || strcmp(options.op, fk_op_at(i)->name) == 0) check_op(fk_op_at(i));
    fk_ctx_destroy(ctx);
    fk_ctx_destroy(reference_ctx);
    if (options.list) return 0;
    if (device_lost) printf("the device failed: what follows was not checked\n");
    if (passed + failed == 0) {
        printf("FAIL: nothing fits the filters\n");
        failed++;
    }
    printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
    return failed ? 1 : 0;
}
