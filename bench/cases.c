/* SPDX-License-Identifier: Apache-2.0 */
/* Building, naming and ordering cases. */
#define _GNU_SOURCE
#include "bench/cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <fk/op_layout.h>

#include "core/case.h"
#include "core/safetensors.h"
#include "core/seeded.h"

fk_status fkp_case_init(fkp_case *c, const fk_op *op)
{
    *c = (fkp_case){.op = op, .count = 1};
    size_t n = (size_t)op->num_fields;
    c->args = calloc(1, op->args_size);
    c->tensors = calloc(n, sizeof *c->tensors);
    c->values = calloc(n, sizeof *c->values);
    c->strings = calloc(n, sizeof *c->strings);
    if (!c->args || !c->tensors || !c->values || !c->strings) {
        fkp_case_deinit(c);
        return fk_fail(FK_ERROR_MEMORY, "out of memory for a case of %s", op->name);
    }
    for (size_t i = 0; i < n; i++) c->values[i].std = 1;
    return FK_OK;
}

void fkp_case_set_tensor(fkp_case *c, int index, fk_dtype dtype, int ndim, const int64_t *shape, const int64_t *strides)
{
    fk_tensor *t = &c->tensors[index];
    *t = fk_tensor_wrap(NULL, dtype, (fk_device){FK_CPU, 0}, ndim, shape);
    if (strides) memcpy(t->strides, strides, (size_t)ndim * sizeof *strides);
    memcpy(fk_op_field_ptr(c->op, c->args, index), &t, sizeof t);
}

fk_status fkp_case_set_string(fkp_case *c, int index, const char *text)
{
    char *copy = text ? strdup(text) : NULL;
    if (text && !copy) return fk_fail(FK_ERROR_MEMORY, "out of memory for a case of %s", c->op->name);
    c->strings[index] = copy;
    memcpy(fk_op_field_ptr(c->op, c->args, index), &copy, sizeof copy);
    return FK_OK;
}

static void format_scalar(const fk_field *f, const void *at, char *buf, size_t size)
{
    if (f->attr_type == FK_ATTR_bool) snprintf(buf, size, "%s=%s", f->name, *(const bool *)at ? "True" : "False");
    else if (f->attr_type == FK_ATTR_int) snprintf(buf, size, "%s=%lld", f->name, (long long)*(const int64_t *)at);
    else if (f->attr_type == FK_ATTR_float) snprintf(buf, size, "%s=%.9g", f->name, (double)*(const float *)at);
    else snprintf(buf, size, "%s='%s'", f->name, *(const char *const *)at ? *(const char *const *)at : "");
}

fk_status fkp_case_finish(fkp_case *c, const char *source)
{
    size_t size = 256 + (size_t)c->op->num_fields * 256, used = 0;
    c->text = malloc(size);
    c->source = strdup(source);
    if (!c->text || !c->source) return fk_fail(FK_ERROR_MEMORY, "out of memory for a case of %s", c->op->name);
    c->text[0] = 0;
    uint64_t hash = fkp_fnv1a64(c->op->signature, strlen(c->op->signature));
    for (int i = 0; i < c->op->num_fields && used + 256 < size; i++) {
        const fk_field *f = &c->op->fields[i];
        char part[256];
        part[0] = 0;
        if (!fk_field_is_tensor(f)) format_scalar(f, fk_op_field_ptr(c->op, c->args, i), part, sizeof part);
        else if (f->kind != FK_FIELD_OUT && f->kind != FK_FIELD_OUT_MAX) { /* outputs follow from the rest */
            char tensor[200];
            if (c->tensors[i].dtype == FK_NONE) snprintf(part, sizeof part, "%s=absent", f->name);
            else snprintf(part, sizeof part, "%s=%s", f->name, fk_tensor_format(&c->tensors[i], tensor, sizeof tensor));
            const fkp_values *v = &c->values[i];
            if (v->captured) hash = fkp_mix64(hash ^ fkp_fnv1a64(v->captured, fk_tensor_nbytes(&c->tensors[i])));
        }
        if (part[0]) used += (size_t)snprintf(c->text + used, size - used, "%s%s", used ? " " : "", part);
    }
    c->hash = fkp_mix64(hash ^ fkp_fnv1a64(c->text, strlen(c->text)));
    return FK_OK;
}

void fkp_case_deinit(fkp_case *c)
{
    free(c->text);
    free(c->source);
    free(c->args);
    free(c->tensors);
    free(c->values);
    for (int i = 0; c->strings && i < c->op->num_fields; i++) free(c->strings[i]);
    free(c->strings);
    *c = (fkp_case){0};
}

/* Random weights keep a layer's values in range: scaled by their fan-in, norm weights around 1. */
static void set_scale(fkp_values *v, const fk_field *f, const fk_tensor *t)
{
    if (f->kind != FK_FIELD_WEIGHT) return;
    size_t n = strlen(f->checkpoint_name);
    bool bias = n >= 4 && strcmp(f->checkpoint_name + n - 4, "bias") == 0;
    if (t->ndim >= 2) v->std = 1 / sqrt((double)(t->shape[t->ndim - 1] > 0 ? t->shape[t->ndim - 1] : 1));
    else v->std = 0.25, v->mean = bias ? 0 : 1;
}

fk_status fkp_case_parse(fkp_case *c, const fk_op *op, const char *text, fk_dtype dtype)
{
    fk_case made;
    FK_TRY(fk_case_create(op, text, dtype, &made));
    fk_status status = fkp_case_init(c, op);
    for (int i = 0; i < op->num_fields && status == FK_OK; i++) {
        const fk_field *f = &op->fields[i];
        if (fk_field_is_tensor(f)) {
            const fk_tensor *t = &made.tensors[i];
            if (t->dtype == FK_NONE) continue;
            fkp_case_set_tensor(c, i, t->dtype, t->ndim, t->shape, t->strides);
            set_scale(&c->values[i], f, t);
        } else if (f->attr_type == FK_ATTR_string) {
            status = fkp_case_set_string(c, i, made.strings[i]);
        } else {
            memcpy(fk_op_field_ptr(op, c->args, i), fk_op_field_ptr(op, made.args, i), fk_field_size(f));
        }
    }
    fk_case_destroy(&made);
    if (status == FK_OK) status = fkp_case_finish(c, "declared");
    return status;
}

fk_status fkp_case_list_add(fkp_case_list *list, fkp_case *take)
{
    if (list->count == list->capacity) {
        int capacity = list->capacity ? 2 * list->capacity : 16;
        fkp_case *items = realloc(list->items, (size_t)capacity * sizeof *items);
        if (!items) return fk_fail(FK_ERROR_MEMORY, "out of memory for %d cases", capacity);
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = *take;
    *take = (fkp_case){0};
    return FK_OK;
}

void fkp_case_list_deinit(fkp_case_list *list)
{
    for (int i = 0; i < list->count; i++) fkp_case_deinit(&list->items[i]);
    for (int i = 0; i < list->num_files; i++) fk_safetensors_close(list->files[i]);
    free(list->files);
    free(list->items);
    *list = (fkp_case_list){0};
}

fk_status fkp_cases_declared(fkp_case_list *list, const fk_op *op, fk_dtype dtype)
{
    for (int i = 0; op->cases && op->cases[i]; i++) {
        fkp_case c;
        fk_status status = fkp_case_parse(&c, op, op->cases[i], dtype);
        if (status == FK_OK) status = fkp_case_list_add(list, &c);
        fkp_case_deinit(&c);
        FK_TRY(status);
    }
    return FK_OK;
}

fk_status fkp_case_set_source(fkp_case *c, const char *source)
{
    char *copy = strdup(source);
    if (!copy) return fk_fail(FK_ERROR_MEMORY, "out of memory for a case of %s", c->op->name);
    free(c->source);
    c->source = copy;
    return FK_OK;
}

/* Takes the word dtype=D out of the text, unless the operator has a field of that name. */
static fk_status take_dtype(char *text, const fk_op *op, fk_dtype *dtype)
{
    static const char key[] = "dtype=";
    if (fk_op_field(op, "dtype") >= 0) return FK_OK;
    for (char *at = strstr(text, key); at; at = strstr(at + 1, key)) {
        char name[16];
        size_t length = strcspn(at + sizeof key - 1, " ");
        if (at > text && at[-1] != ' ') continue;
        snprintf(name, sizeof name, "%.*s", (int)length, at + sizeof key - 1);
        *dtype = fk_dtype_parse(name);
        if (!fk_dtype_is_float(*dtype)) return fk_fail(FK_ERROR_INVALID, "case of %s: dtype=%s is none of f32, f16, bf16", op->name, name);
        memset(at, ' ', sizeof key - 1 + length);
        return FK_OK;
    }
    return FK_OK;
}

fk_status fkp_cases_given(fkp_case_list *list, const fk_op *op, const char *text, fk_dtype dtype)
{
    char *copy = strdup(text), *rest = copy, *one;
    if (!copy) return fk_fail(FK_ERROR_MEMORY, "out of memory for a case of %s", op->name);
    fk_status status = FK_OK;
    while (status == FK_OK && (one = strsep(&rest, ";"))) {
        fkp_case c = {0};
        fk_dtype chosen = dtype;
        if (!one[strspn(one, " ")]) continue;
        status = take_dtype(one, op, &chosen);
        if (status == FK_OK) status = fkp_case_parse(&c, op, one, chosen);
        if (status == FK_OK) status = fkp_case_set_source(&c, "given");
        if (status == FK_OK) status = fkp_case_list_add(list, &c);
        fkp_case_deinit(&c);
    }
    free(copy);
    return status;
}

static int compare_cases(const void *a, const void *b)
{
    const fkp_case *x = a, *y = b;
    if (x->op->level != y->op->level) return x->op->level - y->op->level;
    if (x->op != y->op) return x->op->index - y->op->index;
    if (x->count != y->count) return x->count < y->count ? 1 : -1;
    return strcmp(x->text, y->text);
}

void fkp_cases_sort(fkp_case_list *list)
{
    if (list->count) qsort(list->items, (size_t)list->count, sizeof *list->items, compare_cases);
}

static double elements(const fkp_case *c)
{
    double n = 0;
    for (int f = 0; f < c->op->num_fields; f++)
        if (c->tensors[f].dtype != FK_NONE) n += (double)fk_tensor_numel(&c->tensors[f]);
    return n;
}

static int compare_sizes(const void *a, const void *b)
{
    const fkp_case *x = *(fkp_case *const *)a, *y = *(fkp_case *const *)b;
    double nx = elements(x), ny = elements(y);
    return nx != ny ? (nx > ny) - (nx < ny) : (x > y) - (x < y);
}

void fkp_cases_select(fkp_case_list *list, int most)
{
    bool *keep = calloc((size_t)list->count + 1, sizeof *keep);
    fkp_case **by_size = calloc((size_t)list->count + 1, sizeof *by_size);
    if (keep && by_size)
        for (int first = 0, last; first < list->count; first = last) {
            for (last = first; last < list->count && list->items[last].op == list->items[first].op; last++)
                by_size[last - first] = &list->items[last];
            int n = last - first, kept = 0;
            qsort(by_size, (size_t)n, sizeof *by_size, compare_sizes);
            fkp_case *chosen[3] = {by_size[0], by_size[n - 1], by_size[n / 2]};
            for (int i = 0; i < 3 && n > most && kept < most; i++) {
                kept += !keep[chosen[i] - list->items];
                keep[chosen[i] - list->items] = true;
            }
            for (int i = first; i < last && kept < most; i++) { /* by falling count */
                kept += !keep[i];
                keep[i] = true;
            }
        }
    int count = 0;
    for (int i = 0; keep && by_size && i < list->count; i++) {
        if (keep[i]) list->items[count++] = list->items[i];
        else fkp_case_deinit(&list->items[i]);
    }
    if (keep && by_size) list->count = count;
    free(keep);
    free(by_size);
}

fk_dtype fkp_case_dtype(const fkp_case *c)
{
    fk_dtype first = FK_NONE;
    for (int i = 0; i < c->op->num_fields; i++) {
        if (!fk_field_is_tensor(&c->op->fields[i]) || c->tensors[i].dtype == FK_NONE) continue;
        if (fk_dtype_is_float(c->tensors[i].dtype)) return c->tensors[i].dtype;
        if (first == FK_NONE) first = c->tensors[i].dtype;
    }
    return first;
}

const char *fkp_case_shapes(const fkp_case *c, char *buf, size_t size)
{
    size_t used = 0;
    buf[0] = 0;
    for (int i = 0; i < c->op->num_fields && used < size; i++) {
        const fk_field *f = &c->op->fields[i];
        if (!fk_field_is_tensor(f) || f->kind == FK_FIELD_OUT || f->kind == FK_FIELD_OUT_MAX) continue;
        const fk_tensor *t = &c->tensors[i];
        if (t->dtype == FK_NONE) continue;
        used += (size_t)snprintf(buf + used, size - used, "%s[", used ? " " : "");
        for (int d = 0; d < t->ndim && used < size; d++)
            used += (size_t)snprintf(buf + used, size - used, "%s%lld", d ? ", " : "", (long long)t->shape[d]);
        if (used < size) used += (size_t)snprintf(buf + used, size - used, "]");
    }
    return buf;
}
