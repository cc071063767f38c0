/* SPDX-License-Identifier: Apache-2.0 */
/* Comparison of tensors row by row. */
#include "core/compare.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/element.h"
#include "core/shape.h"

#define MIN_ROW 16 /* shorter rows have no meaningful rms of differences */

fk_tolerance fk_tolerance_for(const fk_op *op, const void *args, int field)
{
    const fk_tensor *t = fk_op_tensor(op, args, field);
    if (!t || !fk_dtype_is_float(t->dtype) || op->roundings == 0) return (fk_tolerance){.exact = true};
    fkp_bindings b;
    char why[160];
    fkp_bindings_init(&b);
    fkp_bindings_add_scalars(&b, op, args);
    for (int i = 0; i < op->num_fields; i++) {
        const fk_tensor *other = fk_field_is_tensor(&op->fields[i]) ? fk_op_tensor(op, args, i) : NULL;
        if (other) fkp_shape_match(&b, op->fields[i].shape, other->ndim, other->shape, why, sizeof why);
    }
    int64_t terms = 1;
    if (op->accumulates) fkp_expression_evaluate(&b, op->accumulates, &terms);
    if (terms < 1) terms = 1;
    double eps = t->dtype == FK_BF16 ? 0x1p-7 : t->dtype == FK_F16 ? 0x1p-10 : t->dtype == FK_F32 ? 0x1p-23 : 0x1p-52;
    double r = op->roundings, walk = sqrt((double)terms) * 0x1p-24;
    return (fk_tolerance){.of_element = t->dtype == FK_F32 || t->dtype == FK_F64 ? 3 * eps : eps,
                          .of_row = 8 * (sqrt(r - 1) * 0.29 * eps + walk),
                          .row_rms = 0.6 * r * eps + 4 * walk,
                          .absolute = t->dtype == FK_F16 ? 0x1p-24 : 0x1p-126};
}

static void index_of(const fk_tensor *t, int64_t flat, int64_t *index)
{
    for (int i = t->ndim - 1; i >= 0; i--) {
        index[i] = flat % t->shape[i];
        flat /= t->shape[i];
    }
}

static void keep(fk_comparison *out, const fk_tensor *t, int64_t flat, double expected, double actual, double allowed)
{
    if (out->mismatched++ >= FK_MAX_MISMATCHES) return;
    fk_mismatch *m = &out->mismatches[out->num_mismatches++];
    *m = (fk_mismatch){.expected = expected, .actual = actual, .allowed = allowed};
    index_of(t, flat, m->index);
}

/* Infinity as a number just beyond the finite ones. */
static double finite(double x, fk_dtype dtype)
{
    if (!isinf(x)) return x;
    return copysign(dtype == FK_F16 ? 0x1p16 : dtype == FK_F64 ? 0x1p1023 : 0x1p128, x);
}

static void compare_exactly(const fk_tensor *expected, const fk_tensor *actual, fk_comparison *out)
{
    size_t size = (size_t)fk_dtype_bits(expected->dtype) / 8;
    for (int64_t i = 0; i < out->elements; i++) {
        const void *e = fk_tensor_at(expected, i), *a = fk_tensor_at(actual, i);
        if (memcmp(e, a, size) == 0) continue;
        double x = fk_load_element(e, expected->dtype), y = fk_load_element(a, actual->dtype), error = fabs(x - y);
        keep(out, expected, i, x, y, 0);
        if (!(error <= out->max_abs_error)) out->max_abs_error = error;
        double relative = error / fmax(fabs(x), 1e-300);
        if (!(relative <= out->max_rel_error)) out->max_rel_error = relative;
    }
}

/* Element j of the row that begins at `row`; a tensor without dims has one. */
static double in_row(const fk_tensor *t, const void *row, int64_t j)
{
    return t->ndim ? fkp_in_row(t, row, j) : fk_load_element(row, t->dtype);
}

/* How much larger than the average column each column is, at least 1; NULL without memory, which counts as 1 everywhere. */
static double *column_scales(const fk_tensor *expected, int64_t cols)
{
    double *scale = calloc((size_t)cols, sizeof *scale), total = 0;
    int64_t elements = fk_tensor_numel(expected);
    for (int64_t first = 0; scale && first < elements; first += cols) {
        const void *row = fk_tensor_at(expected, first);
        for (int64_t c = 0; c < cols; c++) {
            double e = in_row(expected, row, c);
            if (!isfinite(e)) continue;
            scale[c] += e * e;
            total += e * e;
        }
    }
    for (int64_t c = 0; scale && c < cols; c++)
        scale[c] = total > 0 ? fmax(1, sqrt(scale[c] * (double)cols / total)) : 1;
    return scale;
}

/* Elements [first, first + cols). */
static void compare_row(const fk_tensor *expected, const fk_tensor *actual, const fk_tolerance *tolerance, int64_t first,
                        int64_t cols, const double *column_scale, fk_comparison *out, double *sum_errors,
                        double *sum_expected)
{
    const void *expected_row = fk_tensor_at(expected, first), *actual_row = fk_tensor_at(actual, first);
    double squares = 0, errors = 0;
    int64_t counted = 0;
    for (int64_t c = 0; c < cols; c++) {
        double e = in_row(expected, expected_row, c);
        if (!isfinite(e)) continue;
        squares += e * e;
        counted++;
    }
    double rms = counted ? sqrt(squares / (double)counted) : 0;
    for (int64_t c = 0; c < cols; c++) {
        double e = in_row(expected, expected_row, c), a = in_row(actual, actual_row, c);
        double x = finite(e, expected->dtype), y = finite(a, actual->dtype), error = fabs(x - y);
        double allowed = tolerance->of_element * fabs(x) + tolerance->absolute +
                         tolerance->of_row * rms * (column_scale ? column_scale[c] : 1);
        if (isnan(e) && isnan(a)) continue;
        if (!(error <= allowed)) keep(out, expected, first + c, e, a, allowed); /* also when one side is NaN */
        if (isnan(error)) error = INFINITY;
        if (error > out->max_abs_error) out->max_abs_error = error;
        if (error > 0) {
            double relative = error / fmax(fmax(fabs(x), rms), tolerance->absolute > 0 ? tolerance->absolute : 1e-300);
            if (relative > out->max_rel_error) out->max_rel_error = relative;
        }
        if (isfinite(e)) errors += error * error;
    }
    *sum_errors += errors;
    *sum_expected += squares;
    double row_error = counted ? sqrt(errors / (double)counted) : 0, row_allowed = tolerance->row_rms * rms + tolerance->absolute;
    if (counted < MIN_ROW || row_error <= row_allowed) return;
    if (out->bad_rows++ == 0) {
        out->first_bad_row = first / cols;
        out->bad_row_error = row_error;
        out->bad_row_allowed = row_allowed;
    }
}

bool fk_compare(const fk_tensor *expected, const fk_tensor *actual, const fk_tolerance *tolerance, fk_comparison *out)
{
    *out = (fk_comparison){.elements = fk_tensor_numel(expected), .first_bad_row = -1};
    if (out->elements == 0) return true;
    if (tolerance->exact) {
        compare_exactly(expected, actual, out);
        return out->mismatched == 0;
    }
    int64_t cols = expected->ndim ? expected->shape[expected->ndim - 1] : 1;
    double sum_errors = 0, sum_expected = 0, *scales = column_scales(expected, cols);
    for (int64_t first = 0; first < out->elements; first += cols)
        compare_row(expected, actual, tolerance, first, cols, scales, out, &sum_errors, &sum_expected);
    free(scales);
    out->rms_error = sqrt(sum_errors / (double)out->elements);
    out->rms_expected = sqrt(sum_expected / (double)out->elements);
    return out->mismatched == 0 && out->bad_rows == 0;
}

const char *fk_mismatch_format(const fk_mismatch *m, int ndim, char *buf, size_t size)
{
    size_t n = 0;
    buf[0] = 0;
    for (int i = 0; i < ndim && n < size; i++)
        n += (size_t)snprintf(buf + n, size - n, "%s%lld", i ? ", " : "[", (long long)m->index[i]);
    if (n < size) snprintf(buf + n, size - n, "%s: expected %.9g, got %.9g, allowed difference %.3g", ndim ? "]" : "scalar",
                           m->expected, m->actual, m->allowed);
    return buf;
}

bool fk_tensor_is_constant(const fk_tensor *t)
{
    int64_t n = fk_tensor_numel(t);
    size_t size = (size_t)fk_dtype_bits(t->dtype) / 8;
    if (n < 2) return false;
    const void *first = fk_tensor_at(t, 0);
    for (int64_t i = 1; i < n; i++)
        if (memcmp(fk_tensor_at(t, i), first, size) != 0) return false;
    return true;
}
