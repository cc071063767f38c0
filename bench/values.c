/* SPDX-License-Identifier: Apache-2.0 */
/* Fresh values. A pool of normal values is drawn once a case; a tensor takes blocks from secret positions of it, which
 * costs little more than copying. Integers and tables come from the capture or from the operator's own fill. */
#include <stdlib.h>
#include <string.h>

#include "bench/trial.h"
#include "core/dtype.h"

#define POOL (1 << 18)
#define BLOCK 512

static fk_status make_pool(fkp_trial *t)
{
    t->pool = malloc(POOL * sizeof *t->pool);
    if (!t->pool) return fk_fail(FK_ERROR_MEMORY, "out of memory for random values");
    for (int i = 0; i < POOL; i++) t->pool[i] = (float)fkp_random_normal(&t->random);
    return FK_OK;
}

/* n elements at `dst`, contiguous. */
static void draw_floats(fkp_trial *t, void *dst, fk_dtype dtype, int64_t n, const fkp_values *v, fkp_value_kind kind)
{
    float block[BLOCK];
    size_t size = (size_t)fk_dtype_bits(dtype) / 8;
    float mean = (float)v->mean, std = (float)v->std;
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t count = n - at < BLOCK ? n - at : BLOCK;
        const float *from = t->pool + fkp_random_below(&t->random, POOL - BLOCK);
        float sign = fkp_random_u64(&t->random) & 1 ? std : -std;
        for (int64_t i = 0; i < count; i++) block[i] = mean + sign * from[i];
        if (kind == FKP_VALUES_OUTLIERS)
            for (int64_t i = fkp_random_below(&t->random, 64); i < count; i += 1 + fkp_random_below(&t->random, 64))
                block[i] = fkp_random_u64(&t->random) & 1 ? 0 : 10 * block[i];
        fk_convert_from_f32((char *)dst + (size_t)at * size, dtype, block, count);
    }
}

/* Integers that no fill and no capture gives: zero is an index that always exists. */
static void draw(fkp_trial *t, void *dst, fk_dtype dtype, int64_t n, const fkp_values *v, fkp_value_kind kind)
{
    size_t size = (size_t)fk_dtype_bits(dtype) / 8;
    if (v->captured && (kind == FKP_VALUES_CAPTURED || !fk_dtype_is_float(dtype)))
        memcpy(dst, v->captured, (size_t)n * size);
    else if (fk_dtype_is_float(dtype)) draw_floats(t, dst, dtype, n, v, kind);
    else memset(dst, 0, (size_t)n * size);
}

/* Contiguous elements at `src` into a view, row by row. */
static void scatter(const fk_tensor *view, const char *src)
{
    size_t size = (size_t)fk_dtype_bits(view->dtype) / 8;
    int64_t n = fk_tensor_numel(view);
    if (fk_tensor_is_contiguous(view)) {
        memcpy(view->data, src, (size_t)n * size);
        return;
    }
    for (int64_t i = 0; i < n; i++) memcpy(fk_tensor_at(view, i), src + (size_t)i * size, size);
}

static bool field_is_output(const fk_field *f)
{
    return f->kind == FK_FIELD_OUT || f->kind == FK_FIELD_OUT_MAX;
}

/* Draws one field into its place in the image. */
static void draw_field(fkp_trial *t, int slot, int field, fkp_value_kind kind)
{
    const fkp_region *r = fkp_layout_region(&t->layout, slot, field);
    fk_tensor view = t->c->tensors[field];
    view.data = t->image + r->data;
    int64_t n = fk_tensor_numel(&view);
    if (field_is_output(&t->c->op->fields[field])) {
        if (fk_tensor_is_contiguous(&view)) {
            fkp_fill_poison(view.data, view.dtype, fk_tensor_nbytes(&view), fkp_random_u64(&t->random));
            return;
        }
        char *poison = malloc(fk_tensor_nbytes(&view) + 1);
        if (!poison) return;
        fkp_fill_poison(poison, view.dtype, fk_tensor_nbytes(&view), fkp_random_u64(&t->random));
        scatter(&view, poison);
        free(poison);
        return;
    }
    if (fk_tensor_is_contiguous(&view)) {
        draw(t, view.data, view.dtype, n, &t->c->values[field], kind);
        return;
    }
    char *values = malloc(fk_tensor_nbytes(&view) + 1);
    if (!values) return;
    draw(t, values, view.dtype, n, &t->c->values[field], kind);
    scatter(&view, values);
    free(values);
}

/* Runs the operator's fill over the tensors of a slot in the image. */
static void fill(fkp_trial *t, int slot)
{
    const fk_op *op = t->c->op;
    char *args = malloc(op->args_size);
    fk_tensor *views = calloc((size_t)op->num_fields, sizeof *views);
    if (args && views) {
        memcpy(args, t->c->args, op->args_size);
        for (int f = 0; f < op->num_fields; f++) {
            if (!fk_field_is_tensor(&op->fields[f]) || t->c->tensors[f].dtype == FK_NONE) continue;
            views[f] = t->c->tensors[f];
            views[f].data = t->image + fkp_layout_region(&t->layout, slot, f)->data;
            fk_tensor *view = &views[f];
            memcpy(fk_op_field_ptr(op, args, f), &view, sizeof view);
        }
        op->fill(&t->random, args);
    }
    free(args);
    free(views);
}

/* Fills once and notes which tensors that changes, and what it costs. */
static fk_status learn_fill(fkp_trial *t)
{
    size_t bytes = t->layout.shared_bytes + t->layout.slot_bytes;
    char *before = malloc(bytes);
    if (!before) return fk_fail(FK_ERROR_MEMORY, "out of memory for %zu bytes", bytes);
    memcpy(before, t->image, bytes);
    double start = fkp_now();
    fill(t, 0);
    t->fill_s = fkp_now() - start;
    for (int f = 0; f < t->c->op->num_fields; f++) {
        const fkp_region *r = fkp_layout_region(&t->layout, 0, f);
        t->filled[f] = r->bytes && memcmp(before + r->data, t->image + r->data, r->bytes) != 0;
        if (t->filled[f] && t->layout.shared[f]) t->fill_s = 1; /* what slots share keeps its values */
    }
    free(before);
    return FK_OK;
}

#define CHEAP_FILL_S 200e-6 /* a fill up to this cost is repeated for every timed call */

fk_status fkp_trial_init_values(fkp_trial *t)
{
    const fk_op *op = t->c->op;
    FK_TRY(make_pool(t));
    fkp_fill_canaries(t->image, 0, t->layout.bytes, fkp_random_u64(&t->random));
    bool captured = false;
    for (int f = 0; f < op->num_fields; f++) captured = captured || t->c->values[f].captured;
    for (int s = 0; s < t->layout.num_slots; s++) {
        for (int f = 0; f < op->num_fields; f++)
            if (t->c->tensors[f].dtype != FK_NONE && (s == 0 || !t->layout.shared[f]))
                draw_field(t, s, f, FKP_VALUES_NORMAL);
        if (!op->fill || captured) continue;
        if (s == 0) FK_TRY(learn_fill(t));
        else fill(t, s);
    }
    return FK_OK;
}

void fkp_trial_prepare(fkp_trial *t, int slot, fkp_value_kind kind)
{
    const fk_op *op = t->c->op;
    bool refill = t->fill_s > 0 && t->fill_s <= CHEAP_FILL_S;
    for (int f = 0; f < op->num_fields; f++) {
        if (t->c->tensors[f].dtype == FK_NONE || t->layout.shared[f]) continue;
        if (t->filled[f] && !refill) continue; /* dear to make: keeps its values */
        draw_field(t, slot, f, kind);
    }
    if (refill) fill(t, slot);
    if (t->golden_slot == slot) t->golden_slot = -1;
}
