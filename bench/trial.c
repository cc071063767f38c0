/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of a trial, golden results, and the checks after a call: nothing but the outputs has changed, and the outputs
 * agree with the golden. */
#include "bench/trial.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fk/door.h>

#include "core/compare.h"
#include "core/golden.h"

#define SLOT_BUDGET_BYTES ((uint64_t)24 << 20) /* a side */
#define SLOT_BUDGET_DEVICE_BYTES ((uint64_t)64 << 20) /* calls are shorter there, and more go into a sample */
#define MAX_SLOTS 256

static bool written(const fkp_trial *t, int f)
{
    return fk_field_is_tensor(&t->c->op->fields[f]) && fk_field_is_written(&t->c->op->fields[f]) &&
           t->c->tensors[f].dtype != FK_NONE;
}

/* The args struct of the golden call: written tensors are contiguous copies of their own. */
static fk_status make_golden_args(fkp_trial *t)
{
    const fk_op *op = t->c->op;
    size_t n = (size_t)op->num_fields, bytes = 0;
    t->output_offsets = calloc(n, sizeof *t->output_offsets);
    t->golden_tensors = calloc(n, sizeof *t->golden_tensors);
    t->golden_args = malloc(op->args_size);
    if (!t->output_offsets || !t->golden_tensors || !t->golden_args) goto out_of_memory;
    for (int f = 0; f < op->num_fields; f++) {
        t->output_offsets[f] = bytes;
        if (written(t, f)) bytes += (fk_tensor_nbytes(&t->c->tensors[f]) + 255) / 256 * 256;
    }
    t->golden = aligned_alloc(256, bytes + 256);
    t->outputs[0] = aligned_alloc(256, bytes + 256);
    t->outputs[1] = aligned_alloc(256, bytes + 256);
    if (!t->golden || !t->outputs[0] || !t->outputs[1]) goto out_of_memory;
    memcpy(t->golden_args, t->c->args, op->args_size);
    for (int f = 0; f < op->num_fields; f++) {
        if (!fk_field_is_tensor(&op->fields[f]) || t->c->tensors[f].dtype == FK_NONE) continue;
        fk_tensor *g = &t->golden_tensors[f];
        *g = t->c->tensors[f];
        if (written(t, f)) *g = fk_tensor_wrap(t->golden + t->output_offsets[f], g->dtype, g->device, g->ndim, g->shape);
        memcpy(fk_op_field_ptr(op, t->golden_args, f), &g, sizeof g);
    }
    return FK_OK;
out_of_memory:
    return fk_fail(FK_ERROR_MEMORY, "out of memory for the results of %s", op->name);
}

fk_status fkp_trial_init(fkp_trial *t, const fkp_judge_options *options, const fkp_case *c, fkp_side *baseline,
                         fkp_side *candidate, fk_ctx *reference, uint64_t seed, fkp_record *record)
{
    *t = (fkp_trial){.options = options, .c = c, .record = record, .baseline = baseline, .candidate = candidate,
                     .reference = reference, .random = {seed}, .golden_slot = -1};
    bool host = options->device.type == FK_CPU;
    fk_status status = fkp_layout_init(&t->layout, c->op, c->args, host, options->timing ? MAX_SLOTS : FKP_ROUNDS,
                                       host ? SLOT_BUDGET_BYTES : SLOT_BUDGET_DEVICE_BYTES);
    if (status != FK_OK) goto done;
    t->image = aligned_alloc(4096, (t->layout.bytes + 4095) / 4096 * 4096);
    t->filled = calloc((size_t)c->op->num_fields, sizeof *t->filled);
    if (!t->image || !t->filled) {
        status = fk_fail(FK_ERROR_MEMORY, "out of memory for %zu bytes of %s", (size_t)t->layout.bytes, c->op->name);
        goto done;
    }
    status = make_golden_args(t);
    if (status == FK_OK) status = fkp_trial_init_values(t);
done:
    if (status != FK_OK) fkp_trial_deinit(t);
    return status;
}

void fkp_trial_deinit(fkp_trial *t)
{
    fkp_layout_deinit(&t->layout);
    free(t->image);
    free(t->pool);
    free(t->filled);
    free(t->golden);
    free(t->golden_tensors);
    free(t->golden_args);
    free(t->outputs[0]);
    free(t->outputs[1]);
    free(t->output_offsets);
    *t = (fkp_trial){0};
}

fkp_case_status fkp_trial_write_all(fkp_trial *t, fkp_side *side)
{
    fk_status status = fkp_side_write(side, t->image, (fkp_range){0, t->layout.bytes});
    return status == FK_OK ? FKP_PASSED : fkp_record_end(t->record, FKP_NOT_RUN, "%s", fk_error_message());
}

fkp_case_status fkp_trial_write_slot(fkp_trial *t, fkp_side *side, int slot)
{
    fk_status status = fkp_side_write(side, t->image, fkp_layout_slot(&t->layout, slot));
    return status == FK_OK ? FKP_PASSED : fkp_record_end(t->record, FKP_NOT_RUN, "%s", fk_error_message());
}

/* Elements of a view to contiguous memory, or the other way. */
static void copy_elements(const fk_tensor *view, char *contiguous, bool gather)
{
    size_t size = (size_t)fk_dtype_bits(view->dtype) / 8;
    int64_t n = fk_tensor_numel(view), run = fk_tensor_is_contiguous(view) ? n : 1;
    for (int64_t i = 0; i < n; i += run ? run : 1) {
        void *at = fk_tensor_at(view, i);
        char *other = contiguous + (size_t)i * size;
        if (gather) memcpy(other, at, (size_t)run * size);
        else memcpy(at, other, (size_t)run * size);
    }
}

fkp_case_status fkp_trial_collect(fkp_trial *t, fkp_side *side, int slot)
{
    const fk_op *op = t->c->op;
    fkp_range range = fkp_layout_slot(&t->layout, slot);
    char *found, *outputs = t->outputs[side == t->candidate], why[256];
    if (fkp_side_read(side, range, &found) != FK_OK) return fkp_record_end(t->record, FKP_NOT_RUN, "%s", fk_error_message());
    for (int f = 0; f < op->num_fields; f++) {
        if (!written(t, f)) continue;
        const fkp_region *r = fkp_layout_region(&t->layout, slot, f);
        size_t bytes = fk_tensor_nbytes(&t->c->tensors[f]);
        fk_tensor there = t->c->tensors[f], here = there;
        there.data = found + r->data;
        here.data = t->image + r->data;
        copy_elements(&there, outputs + t->output_offsets[f], true);
        /* Put the old content back: what differs now was written without leave. */
        if (fk_tensor_is_contiguous(&here)) {
            memcpy(there.data, here.data, bytes);
            continue;
        }
        char *old = malloc(bytes + 1);
        if (!old) return fkp_record_end(t->record, FKP_NOT_RUN, "out of memory");
        copy_elements(&here, old, true);
        copy_elements(&there, old, false);
        free(old);
    }
    if (!fkp_describe_difference(&t->layout, range, t->image, found, why, sizeof why)) return FKP_PASSED;
    return fkp_record_end(t->record, side->judged ? FKP_RUNTIME_ERROR : FKP_NOT_RUN, "the %s %s", side->role, why);
}

fkp_case_status fkp_trial_check_shared(fkp_trial *t, fkp_side *side)
{
    fkp_range range = {0, t->layout.shared_bytes};
    char *found, why[256];
    if (range.end == 0) return FKP_PASSED;
    if (fkp_side_read(side, range, &found) != FK_OK) return fkp_record_end(t->record, FKP_NOT_RUN, "%s", fk_error_message());
    if (!fkp_describe_difference(&t->layout, range, t->image, found, why, sizeof why)) return FKP_PASSED;
    return fkp_record_end(t->record, side->judged ? FKP_RUNTIME_ERROR : FKP_NOT_RUN, "the %s %s", side->role, why);
}

fkp_case_status fkp_trial_golden(fkp_trial *t, int slot)
{
    const fk_op *op = t->c->op;
    if (t->golden_slot == slot) return FKP_PASSED;
    double start = fkp_now();
    for (int f = 0; f < op->num_fields; f++) {
        if (!fk_field_is_tensor(&op->fields[f]) || t->c->tensors[f].dtype == FK_NONE) continue;
        fk_tensor view = t->c->tensors[f];
        view.data = t->image + fkp_layout_region(&t->layout, slot, f)->data;
        if (written(t, f)) copy_elements(&view, t->golden_tensors[f].data, true); /* old values, or poison */
        else t->golden_tensors[f] = view;
    }
    t->golden_slot = -1;
    fk_ctx_clear(t->reference);
    fk_golden_call(t->reference, op, t->golden_args);
    fk_status status = fk_ctx_status(t->reference);
    char message[512];
    snprintf(message, sizeof message, "%s", fk_ctx_error(t->reference));
    fk_ctx_reset(t->reference);
    if (status != FK_OK) return fkp_record_end(t->record, FKP_NOT_RUN, "the reference refuses this case: %s", message);
    t->golden_slot = slot;
    t->golden_s = fkp_now() - start;
    return FKP_PASSED;
}

/* Keeps the first mismatches of the candidate; an element that still holds the poison was not written. */
static void note_mismatches(fkp_trial *t, int f, const fk_comparison *comparison)
{
    fkp_record *r = t->record;
    const fk_tensor *g = &t->golden_tensors[f];
    fk_tensor before = t->c->tensors[f], found = *g;
    before.data = t->image + fkp_layout_region(&t->layout, t->golden_slot, f)->data;
    found.data = t->outputs[1] + t->output_offsets[f];
    for (int i = 0; i < comparison->num_mismatches && r->num_mismatches < FKP_MAX_MISMATCHES; i++) {
        const fk_mismatch *from = &comparison->mismatches[i];
        fkp_mismatch *m = &r->mismatches[r->num_mismatches++];
        *m = (fkp_mismatch){.field = t->c->op->fields[f].name, .ndim = g->ndim, .expected = from->expected,
                            .found = from->actual, .allowed = from->allowed};
        int64_t flat = 0;
        for (int d = 0; d < g->ndim; d++) {
            m->index[d] = from->index[d];
            flat = flat * g->shape[d] + from->index[d];
        }
        m->unwritten = t->c->op->fields[f].kind <= FK_FIELD_OUT_MAX &&
                       memcmp(fk_tensor_at(&found, flat), fk_tensor_at(&before, flat), (size_t)fk_dtype_bits(g->dtype) / 8) == 0;
    }
}

fkp_case_status fkp_trial_compare(fkp_trial *t, const fkp_side *side)
{
    const fk_op *op = t->c->op;
    bool judged = side == t->candidate, good = true;
    int64_t total = 0, bad = 0, bad_rows = 0;
    double max_abs = 0, max_rel = 0;
    for (int f = 0; f < op->num_fields; f++) {
        if (!written(t, f)) continue;
        fk_tensor found = t->golden_tensors[f];
        found.data = t->outputs[judged] + t->output_offsets[f];
        fk_tolerance tolerance = fk_tolerance_for(op, t->golden_args, f);
        fk_comparison comparison;
        good = fk_compare(&t->golden_tensors[f], &found, &tolerance, &comparison) && good;
        total += comparison.elements;
        bad += comparison.mismatched;
        bad_rows += comparison.bad_rows;
        max_abs = fmax(max_abs, comparison.max_abs_error);
        max_rel = fmax(max_rel, comparison.max_rel_error);
        if (judged) note_mismatches(t, f, &comparison);
    }
    fkp_record *r = t->record;
    char what[200];
    if (bad) snprintf(what, sizeof what, "%lld of %lld elements are outside the tolerance", (long long)bad, (long long)total);
    else snprintf(what, sizeof what, "the errors of %lld rows are larger on the whole than rounding explains", (long long)bad_rows);
    if (!judged) {
        r->baseline_max_abs_error = fmax(r->baseline_max_abs_error, max_abs);
        if (good) return FKP_PASSED;
        return fkp_record_end(r, FKP_NOT_RUN, "the baseline %s disagrees with the reference: %s (max %g); please report", side->implementation,
                              what, max_abs);
    }
    r->compared = true;
    r->max_abs_error = fmax(r->max_abs_error, max_abs);
    r->max_rel_error = fmax(r->max_rel_error, max_rel);
    double matched = total ? 1 - (double)bad / (double)total : 1;
    if (matched < r->matched_ratio) r->matched_ratio = matched;
    return good ? FKP_PASSED : fkp_record_end(r, FKP_INCORRECT_NUMERICAL, "%s", what);
}

bool fkp_trial_sides_agree(const fkp_trial *t)
{
    const fk_op *op = t->c->op;
    for (int f = 0; f < op->num_fields; f++) {
        if (!written(t, f)) continue;
        fk_tensor a = t->golden_tensors[f], b = a;
        a.data = t->outputs[0] + t->output_offsets[f];
        b.data = t->outputs[1] + t->output_offsets[f];
        if (memcmp(a.data, b.data, fk_tensor_nbytes(&a)) == 0) continue;
        fk_tolerance tolerance = fk_tolerance_for(op, t->golden_args, f);
        fk_comparison comparison;
        if (!fk_compare(&a, &b, &tolerance, &comparison)) return false;
    }
    return true;
}
