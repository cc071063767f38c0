/* SPDX-License-Identifier: Apache-2.0 */
/* Parsing and solving of shape specifications: a recursive-descent evaluator over the text; specs are a few characters
 * long, so nothing is compiled or cached. */
#include "core/shape.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Value of an expression with at most one unbound name: a*x + b. x is that name. */
typedef struct linear {
    int64_t a, b;
    char x[28];
    bool bad;
} linear;

typedef struct parser {
    const fkp_bindings *bindings;
    const char *at;
} parser;

static linear parse_sum(parser *p);

static linear constant(int64_t value)
{
    return (linear){.b = value};
}

static linear bad(void)
{
    return (linear){.bad = true};
}

static void skip_spaces(parser *p)
{
    while (isspace((unsigned char)*p->at)) p->at++;
}

static linear parse_atom(parser *p)
{
    skip_spaces(p);
    if (*p->at == '(') {
        p->at++;
        linear v = parse_sum(p);
        skip_spaces(p);
        if (*p->at != ')') return bad();
        p->at++;
        return v;
    }
    if (isdigit((unsigned char)*p->at)) {
        char *end;
        int64_t value = strtoll(p->at, &end, 10);
        p->at = end;
        return constant(value);
    }
    linear v = {.a = 1};
    size_t n = 0;
    while (isalnum((unsigned char)*p->at) || *p->at == '_') {
        if (n + 1 < sizeof v.x) v.x[n++] = *p->at;
        p->at++;
    }
    if (n == 0) return bad();
    int64_t value;
    if (fkp_bindings_get(p->bindings, v.x, &value)) return constant(value);
    return v;
}

static linear parse_product(parser *p)
{
    linear v = parse_atom(p);
    for (;;) {
        skip_spaces(p);
        char op = *p->at;
        if (op != '*' && op != '/') return v;
        p->at++;
        linear w = parse_atom(p);
        if (v.bad || w.bad) return bad();
        if (op == '*') {
            if (v.a && w.a) return bad();
            if (w.a) { linear swap = v; v = w; w = swap; }
            if (__builtin_mul_overflow(v.a, w.b, &v.a) || __builtin_mul_overflow(v.b, w.b, &v.b)) return bad();
        } else {
            if (w.a || w.b == 0 || v.a || (v.b == INT64_MIN && w.b == -1)) return bad(); /* only of known values */
            v.b /= w.b;
        }
    }
}

static linear parse_sum(parser *p)
{
    linear v = parse_product(p);
    for (;;) {
        skip_spaces(p);
        char op = *p->at;
        if (op != '+' && op != '-') return v;
        p->at++;
        linear w = parse_product(p);
        if (v.bad || w.bad || (v.a && w.a)) return bad();
        if (w.a) memcpy(v.x, w.x, sizeof v.x);
        bool too_large = op == '+' ? __builtin_add_overflow(v.a, w.a, &v.a) || __builtin_add_overflow(v.b, w.b, &v.b)
                                   : __builtin_sub_overflow(v.a, w.a, &v.a) || __builtin_sub_overflow(v.b, w.b, &v.b);
        if (too_large) return bad();
    }
}

void fkp_bindings_init(fkp_bindings *b)
{
    b->count = 0;
    b->batch_ndim = -1;
}

bool fkp_bindings_set(fkp_bindings *b, const char *name, int64_t value)
{
    for (int i = 0; i < b->count; i++)
        if (strcmp(b->items[i].name, name) == 0) {
            b->items[i].value = value;
            return true;
        }
    if (b->count == FKP_MAX_BINDINGS) return false;
    snprintf(b->items[b->count].name, sizeof b->items[0].name, "%s", name);
    b->items[b->count++].value = value;
    return true;
}

bool fkp_bindings_get(const fkp_bindings *b, const char *name, int64_t *value)
{
    for (int i = 0; i < b->count; i++)
        if (strcmp(b->items[i].name, name) == 0) {
            *value = b->items[i].value;
            return true;
        }
    return false;
}

void fkp_bindings_add_scalars(fkp_bindings *b, const fk_op *op, const void *args)
{
    for (int i = 0; i < op->num_fields; i++) {
        const fk_field *f = &op->fields[i];
        if (!fk_field_is_tensor(f) && f->attr_type == FK_ATTR_int)
            fkp_bindings_set(b, f->name, *(const int64_t *)fk_op_field_ptr(op, args, i));
    }
}

/* The next dim of a spec, without its separator; false at the end. */
static bool next_dim(const char **at, char *dim, size_t size)
{
    const char *s = *at;
    while (*s == '[' || *s == ',' || isspace((unsigned char)*s)) s++;
    if (*s == ']' || *s == 0) return false;
    size_t n = 0;
    for (; *s && *s != ',' && *s != ']'; s++)
        if (n + 1 < size) dim[n++] = *s;
    while (n && isspace((unsigned char)dim[n - 1])) n--;
    dim[n] = 0;
    *at = s;
    return true;
}

static int count_dims(const char *spec, bool *has_batch)
{
    char dim[64];
    int n = 0;
    *has_batch = false;
    while (next_dim(&spec, dim, sizeof dim)) {
        if (strcmp(dim, "...") == 0) *has_batch = true;
        else n++;
    }
    return n;
}

static bool match_dim(fkp_bindings *b, const char *dim, int64_t size, char *why, size_t why_size)
{
    if (strcmp(dim, "?") == 0) return true;
    parser p = {b, dim};
    linear v = parse_sum(&p);
    if (v.bad || *p.at) {
        snprintf(why, why_size, "cannot evaluate %s", dim);
        return false;
    }
    if (v.a == 0) {
        if (v.b == size) return true;
        snprintf(why, why_size, "%s is %lld, not %lld", dim, (long long)v.b, (long long)size);
        return false;
    }
    int64_t rest;
    if (__builtin_sub_overflow(size, v.b, &rest) || (rest == INT64_MIN && v.a == -1) || rest % v.a != 0 || rest / v.a < 0) {
        snprintf(why, why_size, "%lld does not fit %s", (long long)size, dim);
        return false;
    }
    if (fkp_bindings_set(b, v.x, rest / v.a)) return true;
    snprintf(why, why_size, "too many dimension names");
    return false;
}

bool fkp_shape_match(fkp_bindings *b, const char *spec, int ndim, const int64_t *shape, char *why, size_t why_size)
{
    bool has_batch;
    int fixed = count_dims(spec, &has_batch);
    int batch = ndim - fixed;
    if (has_batch ? batch < 0 : batch != 0) {
        snprintf(why, why_size, "%d dims, not %s%d", ndim, has_batch ? "at least " : "", fixed);
        return false;
    }
    char dim[64];
    int i = 0;
    while (next_dim(&spec, dim, sizeof dim)) {
        if (strcmp(dim, "...") != 0) {
            if (!match_dim(b, dim, shape[i], why, why_size)) return false;
            i++;
            continue;
        }
        if (b->batch_ndim < 0) {
            b->batch_ndim = batch;
            memcpy(b->batch, shape + i, (size_t)batch * sizeof *shape);
        } else if (b->batch_ndim != batch || memcmp(b->batch, shape + i, (size_t)batch * sizeof *shape) != 0) {
            snprintf(why, why_size, "leading dims differ from those of another tensor");
            return false;
        }
        i += batch;
    }
    return true;
}

bool fkp_shape_evaluate(const fkp_bindings *b, const char *spec, int *ndim, int64_t *shape, char *why, size_t why_size)
{
    char dim[64];
    int n = 0;
    while (next_dim(&spec, dim, sizeof dim)) {
        if (strcmp(dim, "...") == 0) {
            for (int i = 0; i < b->batch_ndim; i++) {
                if (n == FK_MAX_NDIM) goto too_many;
                shape[n++] = b->batch[i];
            }
            continue;
        }
        if (n == FK_MAX_NDIM) goto too_many;
        if (!fkp_expression_evaluate(b, dim, &shape[n]) || shape[n] < 0) {
            snprintf(why, why_size, "%s is unknown, negative or too large", dim);
            return false;
        }
        n++;
    }
    *ndim = n;
    return true;
too_many:
    snprintf(why, why_size, "more than %d dims", FK_MAX_NDIM);
    return false;
}

bool fkp_expression_evaluate(const fkp_bindings *b, const char *expression, int64_t *value)
{
    parser p = {b, expression};
    linear v = parse_sum(&p);
    if (v.bad || v.a || *p.at) return false;
    *value = v.b;
    return true;
}
