/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing of case texts, allocation of their tensors, random values. */
#define _POSIX_C_SOURCE 200809L /* strdup */
#include "core/case.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/dtype.h"
#include "core/random.h"
#include "core/shape.h"

/* What the text says about one name. */
typedef struct assignment {
    char name[64], value[128];
} assignment;

#define MAX_ASSIGNMENTS 48

/* Factors of edge rows; the products of two large rows in an MLP still fit f16. */
#define LARGE_ROW 8.0
#define SMALL_ROW 0x1p-10

typedef struct parsed {
    assignment items[MAX_ASSIGNMENTS];
    int count;
    fkp_bindings bindings;
} parsed;

static const char *value_of(const parsed *p, const char *name)
{
    for (int i = 0; i < p->count; i++)
        if (strcmp(p->items[i].name, name) == 0) return p->items[i].value;
    return NULL;
}

static fk_status split(const fk_op *op, const char *text, parsed *p)
{
    const char *at = text;
    p->count = 0;
    for (;;) {
        while (isspace((unsigned char)*at)) at++;
        if (!*at) return FK_OK;
        size_t name = strcspn(at, "= \t\n"), value = at[name] == '=' ? strcspn(at + name + 1, " \t\n") : 0;
        if (p->count == MAX_ASSIGNMENTS) return fk_fail(FK_ERROR_INVALID, "case of %s: more than %d names", op->name, MAX_ASSIGNMENTS);
        assignment *a = &p->items[p->count];
        if (!name || !value || name >= sizeof a->name || value >= sizeof a->value)
            return fk_fail(FK_ERROR_INVALID, "case of %s: '%.40s' is not name=value", op->name, at);
        memcpy(a->name, at, name);
        memcpy(a->value, at + name + 1, value);
        a->name[name] = a->value[value] = 0;
        if (value_of(p, a->name)) return fk_fail(FK_ERROR_INVALID, "case of %s: %s is given twice", op->name, a->name);
        p->count++;
        at += name + 1 + value;
    }
}

/* True when a shape of the operator contains the word (or, for "...", the dots). */
static bool in_shapes(const fk_op *op, const char *word)
{
    size_t n = strlen(word);
    for (int i = 0; i < op->num_fields; i++) {
        const char *shape = op->fields[i].shape;
        for (const char *s = shape ? strstr(shape, word) : NULL; s; s = strstr(s + 1, word)) {
            bool starts = s == shape || !(isalnum((unsigned char)s[-1]) || s[-1] == '_');
            bool ends = !(isalnum((unsigned char)s[n]) || s[n] == '_');
            if (starts && ends) return true;
        }
    }
    return false;
}

static bool parse_int(const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    return end != text && *end == 0 && errno == 0;
}

/* Leading dims: "7" or "2x3". */
static bool parse_dims(const char *text, fkp_bindings *b)
{
    b->batch_ndim = 0;
    for (const char *at = text;;) {
        char *end;
        int64_t size = strtoll(at, &end, 10);
        if (end == at || size < 0 || b->batch_ndim == FK_MAX_NDIM) return false;
        b->batch[b->batch_ndim++] = size;
        if (*end == 0) return true;
        if (*end != 'x') return false;
        at = end + 1;
    }
}

static fk_status bind_dims(const fk_op *op, parsed *p)
{
    fkp_bindings_init(&p->bindings);
    for (int i = 0; i < p->count; i++) {
        const assignment *a = &p->items[i];
        int64_t size;
        if (fk_op_field(op, a->name) >= 0) continue;
        if (strcmp(a->name, "T") == 0 && in_shapes(op, "...")) {
            if (!parse_dims(a->value, &p->bindings))
                return fk_fail(FK_ERROR_INVALID, "case of %s: T=%s is neither a size nor sizes as 2x3", op->name, a->value);
        } else if (!in_shapes(op, a->name)) {
            return fk_fail(FK_ERROR_INVALID, "case of %s: %s is no field and no dimension", op->name, a->name);
        } else if (!parse_int(a->value, &size) || size < 0 || !fkp_bindings_set(&p->bindings, a->name, size)) {
            return fk_fail(FK_ERROR_INVALID, "case of %s: %s=%s is not a size", op->name, a->name, a->value);
        }
    }
    return FK_OK;
}

static fk_status set_scalar(fk_case *c, int index, const char *given)
{
    const fk_field *f = &c->op->fields[index];
    void *at = fk_op_field_ptr(c->op, c->args, index);
    const char *text = given ? given : f->default_text;
    bool good = false;
    char *end;
    switch (f->attr_type) {
    case FK_ATTR_bool:
        good = strcmp(text, "True") == 0 || strcmp(text, "False") == 0;
        *(bool *)at = text[0] == 'T';
        break;
    case FK_ATTR_int: good = parse_int(text, at); break;
    case FK_ATTR_float:
        *(float *)at = strtof(text, &end);
        good = end != text && *end == 0;
        break;
    case FK_ATTR_string:
        good = given || text[0] == '"';
        if (!good) break;
        if (!(c->strings[index] = strdup(given ? text : text + 1))) return fk_fail(FK_ERROR_MEMORY, "out of memory for a case");
        if (!given && c->strings[index][0]) c->strings[index][strlen(text + 1) - 1] = 0; /* closing quote of the literal */
        *(const char **)at = c->strings[index];
        break;
    }
    if (good) return FK_OK;
    if (!given) return fk_fail(FK_ERROR_INVALID, "case of %s: %s is missing", c->op->name, f->name);
    return fk_fail(FK_ERROR_INVALID, "case of %s: %s=%s does not fit its type", c->op->name, f->name, given);
}

static fk_dtype choose_dtype(const fk_op *op, const parsed *p, int index, fk_dtype dtype)
{
    const fk_field *f = &op->fields[index];
    const char *given = value_of(p, f->name);
    fk_dtype named = given ? fk_dtype_parse(given) : FK_NONE;
    if (named != FK_NONE) return named;
    if (f->dtypes.as) return choose_dtype(op, p, fk_op_field(op, f->dtypes.as), dtype);
    if (f->dtypes.mask >> dtype & 1) return dtype;
    if (f->dtypes.mask >> FK_I64 & 1) return FK_I64;
    return (fk_dtype)__builtin_ctz(f->dtypes.mask);
}

static fk_status make_tensor(fk_case *c, const parsed *p, int index, fk_dtype dtype)
{
    const fk_field *f = &c->op->fields[index];
    const char *given = value_of(p, f->name);
    int ndim;
    int64_t shape[FK_MAX_NDIM], elements = 1;
    char why[160];
    if (given && strcmp(given, "absent") == 0) {
        if (f->optional) return FK_OK;
        return fk_fail(FK_ERROR_INVALID, "case of %s: %s cannot be absent", c->op->name, f->name);
    }
    if (given && fk_dtype_parse(given) == FK_NONE)
        return fk_fail(FK_ERROR_INVALID, "case of %s: %s=%s is neither absent nor a dtype", c->op->name, f->name, given);
    dtype = choose_dtype(c->op, p, index, dtype);
    if (!f->dtypes.as && !(f->dtypes.mask >> dtype & 1))
        return fk_fail(FK_ERROR_INVALID, "case of %s: %s=%s, allowed is %s", c->op->name, f->name, fk_dtype_name(dtype), f->dtypes_text);
    if (!fkp_shape_evaluate(&p->bindings, f->shape, &ndim, shape, why, sizeof why))
        return fk_fail(FK_ERROR_INVALID, "case of %s: size of %s %s: %s", c->op->name, f->name, f->shape, why);
    for (int i = 0; i < ndim; i++)
        if (__builtin_mul_overflow(elements, shape[i], &elements) || elements > (int64_t)1 << 40)
            return fk_fail(FK_ERROR_INVALID, "case of %s: %s is too large", c->op->name, f->name);
    void *data = calloc((size_t)elements + 1, (size_t)fk_dtype_bits(dtype) / 8); /* never empty: data is not NULL */
    if (!data) return fk_fail(FK_ERROR_MEMORY, "out of memory for %s of %s", f->name, c->op->name);
    c->tensors[index] = fk_tensor_wrap(data, dtype, (fk_device){FK_CPU, 0}, ndim, shape);
    *(fk_tensor **)fk_op_field_ptr(c->op, c->args, index) = &c->tensors[index];
    return FK_OK;
}

static fk_status create(fk_case *c, const char *text, fk_dtype dtype)
{
    const fk_op *op = c->op;
    size_t n = (size_t)op->num_fields;
    parsed p;
    FK_TRY(split(op, text, &p));
    FK_TRY(bind_dims(op, &p));
    c->args = calloc(1, op->args_size);
    c->tensors = calloc(n, sizeof *c->tensors);
    c->strings = calloc(n, sizeof *c->strings);
    if (!c->args || !c->tensors || !c->strings) return fk_fail(FK_ERROR_MEMORY, "out of memory for a case");
    for (int i = 0; i < op->num_fields; i++)
        if (!fk_field_is_tensor(&op->fields[i])) FK_TRY(set_scalar(c, i, value_of(&p, op->fields[i].name)));
    fkp_bindings_add_scalars(&p.bindings, op, c->args);
    for (int i = 0; i < op->num_fields; i++)
        if (fk_field_is_tensor(&op->fields[i])) FK_TRY(make_tensor(c, &p, i, dtype));
    return FK_OK;
}

fk_status fk_case_create(const fk_op *op, const char *text, fk_dtype dtype, fk_case *out)
{
    *out = (fk_case){.op = op};
    fk_status status = create(out, text, dtype);
    if (status != FK_OK) fk_case_destroy(out);
    return status;
}

void fk_case_destroy(fk_case *c)
{
    for (int i = 0; c->op && i < c->op->num_fields; i++) {
        if (c->tensors) free(c->tensors[i].data);
        if (c->strings) free(c->strings[i]);
    }
    free(c->args);
    free(c->tensors);
    free(c->strings);
    *c = (fk_case){0};
}

static double smallest(fk_dtype dtype)
{
    return dtype == FK_F16 ? 0x1p-24 : dtype == FK_BF16 ? 0x1p-133 : 0x1p-149;
}

/* One value of a stream; `before` is the one drawn last. */
static double edge_value(fk_random *r, double before, fk_dtype dtype)
{
    switch (fkp_random_below(r, 16)) {
    case 0: return 0;
    case 1: return -0.0;
    case 2:
    case 3: return before; /* ties */
    case 4: return (double)(1 + fkp_random_below(r, 7)) * smallest(dtype);
    case 5: return 20 * fkp_random_normal(r);
    default: return fkp_random_normal(r);
    }
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

/* A float tensor: value = offset + scale * x. */
static void fill_floats(fk_random *r, const fk_field *f, const fk_tensor *t, fk_case_values values)
{
    double offset = 0, scale = 1, before = 0;
    bool weight = f->kind == FK_FIELD_WEIGHT;
    if (weight && t->ndim >= 2) scale = 1 / sqrt((double)(t->shape[t->ndim - 1] > 0 ? t->shape[t->ndim - 1] : 1));
    else if (weight && ends_with(f->checkpoint_name, "bias")) scale = 0.25;
    else if (weight) offset = 1, scale = 0.25;
    int64_t n = fk_tensor_numel(t), cols = t->ndim ? t->shape[t->ndim - 1] : 1;
    int64_t step = t->ndim ? t->strides[t->ndim - 1] * fkp_element_size(t->dtype) : 0;
    for (int64_t first = 0; first < n; first += cols) {
        char *row = fk_tensor_at(t, first);
        double row_scale = 1; /* now and then a large or small row */
        if (values == FK_VALUES_EDGES && !weight && fkp_random_below(r, 8) == 0) row_scale = fkp_random_below(r, 2) ? LARGE_ROW : SMALL_ROW;
        for (int64_t c = 0; c < cols; c++) {
            /* Weights stay regular: their scale is what keeps a layer's values in range. */
            before = values == FK_VALUES_EDGES && !weight ? edge_value(r, before, t->dtype) : fkp_random_normal(r);
            fk_store_element(row + c * step, t->dtype, offset + scale * row_scale * before);
        }
    }
}

void fk_args_fill(const fk_op *op, const void *args, uint64_t seed, fk_case_values values)
{
    for (int i = 0; i < op->num_fields; i++) {
        const fk_field *f = &op->fields[i];
        if (!fk_field_is_tensor(f) || f->kind == FK_FIELD_OUT || f->kind == FK_FIELD_OUT_MAX) continue;
        const fk_tensor *t = fk_op_tensor(op, args, i);
        if (!t) continue;
        fk_random r = {fkp_seeded_key(seed, f->name)}; /* a stream a field: shapes of one do not move the others */
        if (fk_dtype_is_float(t->dtype)) fill_floats(&r, f, t, values);
        else
            for (int64_t k = 0, n = fk_tensor_numel(t); k < n; k++) fk_store_element(fk_tensor_at(t, k), t->dtype, 0);
    }
    fk_random r = {fkp_seeded_key(seed, op->name)};
    if (op->fill) op->fill(&r, args);
}

void fk_case_fill(const fk_case *c, uint64_t seed, fk_case_values values)
{
    fk_args_fill(c->op, c->args, seed, values);
}
