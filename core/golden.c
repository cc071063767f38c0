/* SPDX-License-Identifier: Apache-2.0 */
#include "core/golden.h"

#include <string.h>

#include <fk/door.h>

#include "core/dtype.h"

#define MAX_FIELDS 64
#define MAX_ARGS_BYTES 2048

static bool is_wide(const fk_field *f, const fk_tensor *t)
{
    return fk_field_is_tensor(f) && fk_tensor_present(t) && (t->dtype == FK_F32 || t->dtype == FK_F16 || t->dtype == FK_BF16);
}

/* Element `first` of rows along the last dim, and the distance to the next one in bytes. */
static char *row_at(const fk_tensor *t, int64_t first, int64_t *step)
{
    *step = (t->ndim ? t->strides[t->ndim - 1] : 0) * fkp_element_size(t->dtype);
    return fk_tensor_at(t, first);
}

/* A dense copy in float64. */
static fk_tensor widen(fk_ctx *ctx, const fk_tensor *t)
{
    fk_tensor wide = fk_ctx_tensor(ctx, FK_F64, t->ndim, t->shape);
    int64_t cols = t->ndim ? t->shape[t->ndim - 1] : 1, count = fk_tensor_present(&wide) ? fk_tensor_numel(t) : 0, step;
    double *to = wide.data;
    for (int64_t first = 0; first < count; first += cols) {
        const char *from = row_at(t, first, &step);
        for (int64_t i = 0; i < cols; i++) *to++ = fk_load_element(from + i * step, t->dtype);
    }
    return wide;
}

/* Rounds a dense tensor of float64 into t. */
static void narrow(const fk_tensor *wide, const fk_tensor *t)
{
    int64_t cols = t->ndim ? t->shape[t->ndim - 1] : 1, count = fk_tensor_numel(t), step;
    const double *from = wide->data;
    for (int64_t first = 0; first < count; first += cols) {
        char *to = row_at(t, first, &step);
        for (int64_t i = 0; i < cols; i++) fk_store_element(to + i * step, t->dtype, *from++);
    }
}

fk_status fk_golden_call(fk_ctx *ctx, const fk_op *op, const void *args)
{
    _Alignas(16) unsigned char wide_args[MAX_ARGS_BYTES];
    fk_tensor wide[MAX_FIELDS];
    if (op->args_size > sizeof wide_args || op->num_fields > MAX_FIELDS)
        return fk_ctx_fail(ctx, FK_ERROR_INTERNAL, "%s has %d fields of %zu bytes, room is for %d of %d", op->name, op->num_fields,
                           op->args_size, MAX_FIELDS, MAX_ARGS_BYTES);
    memcpy(wide_args, args, op->args_size);
    bool composed = fk_op_is_composition(op);
    for (int i = 0; composed && i < op->num_fields; i++) {
        if (!fk_field_is_tensor(&op->fields[i])) continue;
        const fk_tensor *t = fk_op_tensor(op, args, i);
        if (!t || !is_wide(&op->fields[i], t)) continue;
        wide[i] = widen(ctx, t);
        *(fk_tensor **)fk_op_field_ptr(op, wide_args, i) = &wide[i];
    }
    fk_door_call(ctx, op, wide_args, FK_OUTPUTS_GIVEN, NULL);
    for (int i = 0; composed && fk_ctx_status(ctx) == FK_OK && i < op->num_fields; i++) {
        if (!fk_field_is_tensor(&op->fields[i])) continue;
        const fk_tensor *t = fk_op_tensor(op, args, i);
        if (t && is_wide(&op->fields[i], t) && fk_field_is_written(&op->fields[i])) narrow(&wide[i], t);
    }
    return fk_ctx_status(ctx);
}
