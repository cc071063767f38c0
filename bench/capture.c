/* SPDX-License-Identifier: Apache-2.0 */
/* The hook at the door and what it keeps. */
#define _GNU_SOURCE
#include "bench/capture.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/dtype.h"
#include "core/seeded.h"

/* One tensor of a case. */
typedef struct kept_tensor {
    fk_tensor tensor; /* description; data: contiguous values on the host, NULL when not kept */
    double mean, std;
    bool has_statistics;
} kept_tensor;

typedef struct kept_case {
    uint64_t hash; /* of the description */
    char *description;
    int64_t count;
    void *scalars; /* copy of the args struct; only its scalars are read */
    char **strings;
    kept_tensor *tensors; /* [num_fields] */
} kept_case;

typedef struct kept_op {
    kept_case *cases;
    int count, capacity;
    int64_t calls, bytes;
} kept_op;

/* Statistics of a weight. It keeps place and values while a model is captured, and is met in calls of many shapes, also of
 * the operators below, where it is an input like others. */
typedef struct known_weight {
    fk_tensor tensor;
    double mean, std;
} known_weight;

struct fkp_capture {
    int64_t max_bytes;
    kept_op *ops; /* by registry index */
    known_weight *weights;
    int num_weights, weights_capacity;
    fk_hook hook;
    fk_status status; /* first failure; recording stops there */
    char error[512];
};

fk_status fkp_capture_create(int64_t max_bytes, fkp_capture **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out || !((*out)->ops = calloc((size_t)fk_op_count(), sizeof *(*out)->ops))) {
        free(*out);
        *out = NULL;
        return fk_fail(FK_ERROR_MEMORY, "out of memory for a capture");
    }
    (*out)->max_bytes = max_bytes;
    return FK_OK;
}

static void free_case(kept_case *c, const fk_op *op)
{
    for (int f = 0; f < op->num_fields; f++) {
        if (c->tensors) free(c->tensors[f].tensor.data);
        if (c->strings) free(c->strings[f]);
    }
    free(c->tensors);
    free(c->strings);
    free(c->scalars);
    free(c->description);
}

void fkp_capture_destroy(fkp_capture *capture)
{
    if (!capture) return;
    for (int i = 0; i < fk_op_count(); i++) {
        for (int k = 0; k < capture->ops[i].count; k++) free_case(&capture->ops[i].cases[k], fk_op_at(i));
        free(capture->ops[i].cases);
    }
    free(capture->ops);
    free(capture->weights);
    free(capture);
}

static bool is_input(const fk_field *f)
{
    return fk_field_is_tensor(f) && f->kind != FK_FIELD_OUT && f->kind != FK_FIELD_OUT_MAX;
}

/* Scalars, shapes, strides and dtypes as text. */
static char *describe(const fk_op *op, const void *args)
{
    size_t size = 0;
    char *text = NULL;
    FILE *f = open_memstream(&text, &size);
    if (!f) return NULL;
    for (int i = 0; i < op->num_fields; i++) {
        const fk_field *field = &op->fields[i];
        const void *at = fk_op_field_ptr(op, args, i);
        if (is_input(field)) {
            const fk_tensor *t = fk_op_tensor(op, args, i);
            fprintf(f, "%s", fk_tensor_present(t) ? fk_dtype_name(t->dtype) : "absent");
            for (int d = 0; t && d < t->ndim; d++) {
                fprintf(f, ",%lld", (long long)t->shape[d]);
                if (!fk_tensor_is_contiguous(t)) fprintf(f, "/%lld", (long long)t->strides[d]);
            }
        } else if (!fk_field_is_tensor(field)) {
            if (field->attr_type == FK_ATTR_bool) fprintf(f, "%d", *(const bool *)at);
            else if (field->attr_type == FK_ATTR_int) fprintf(f, "%lld", (long long)*(const int64_t *)at);
            else if (field->attr_type == FK_ATTR_float) fprintf(f, "%a", (double)*(const float *)at);
            else fprintf(f, "'%s'", *(const char *const *)at ? *(const char *const *)at : "");
        }
        fputc(';', f);
    }
    if (fclose(f) == 0) return text;
    free(text);
    return NULL;
}

/* Mean and deviation of the finite elements of contiguous floats. */
static void measure(kept_tensor *kept, const char *data)
{
    const fk_tensor *t = &kept->tensor;
    size_t size = (size_t)fk_dtype_bits(t->dtype) / 8;
    int64_t n = fk_tensor_numel(t), finite = 0;
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = fk_load_element(data + (size_t)i * size, t->dtype);
        if (!isfinite(x)) continue;
        sum += x;
        squares += x * x;
        finite++;
    }
    if (!finite) return;
    kept->mean = sum / (double)finite;
    kept->std = sqrt(fmax(squares / (double)finite - kept->mean * kept->mean, 0));
    kept->has_statistics = true;
}

/* A contiguous copy on the host, malloc'ed. */
static fk_status copy_to_host(fk_ctx *ctx, const fk_tensor *t, char **out)
{
    fk_backend *backend = fk_ctx_backend(ctx);
    size_t span = fk_tensor_span_bytes(t), size = (size_t)fk_dtype_bits(t->dtype) / 8;
    char *whole = malloc(span + 1), *dense = NULL;
    *out = NULL;
    if (!whole) return fk_fail(FK_ERROR_MEMORY, "out of memory for %zu bytes of a captured tensor", span);
    fk_status status = backend->copy(backend, fk_ctx_stream(ctx), whole, t->data, span, FK_DEVICE_TO_HOST);
    if (status == FK_OK) status = backend->stream_synchronize(backend, fk_ctx_stream(ctx));
    if (status == FK_OK && fk_tensor_is_contiguous(t)) {
        *out = whole;
        return FK_OK;
    }
    fk_tensor view = *t;
    view.data = whole;
    if (status == FK_OK && !(dense = malloc(fk_tensor_nbytes(t) + 1))) status = fk_fail(FK_ERROR_MEMORY, "out of memory for a captured tensor");
    for (int64_t i = 0, n = fk_tensor_numel(t); status == FK_OK && i < n; i++) memcpy(dense + (size_t)i * size, fk_tensor_at(&view, i), size);
    free(whole);
    *out = dense;
    return status;
}

static const known_weight *find_weight(const fkp_capture *capture, const fk_tensor *t)
{
    for (int i = 0; i < capture->num_weights; i++) {
        const fk_tensor *known = &capture->weights[i].tensor;
        if (known->data == t->data && known->dtype == t->dtype && fk_tensor_same_shape(known, t) && fk_tensor_is_contiguous(t))
            return &capture->weights[i];
    }
    return NULL;
}

static fk_status remember_weight(fkp_capture *capture, const fk_tensor *t, const kept_tensor *kept)
{
    if (!kept->has_statistics || !fk_tensor_is_contiguous(t)) return FK_OK;
    if (capture->num_weights == capture->weights_capacity) {
        int capacity = capture->weights_capacity ? 2 * capture->weights_capacity : 64;
        known_weight *weights = realloc(capture->weights, (size_t)capacity * sizeof *weights);
        if (!weights) return fk_fail(FK_ERROR_MEMORY, "out of memory for statistics of weights");
        capture->weights = weights;
        capture->weights_capacity = capacity;
    }
    capture->weights[capture->num_weights++] = (known_weight){*t, kept->mean, kept->std};
    return FK_OK;
}

/* Description, statistics and perhaps values. Weights are random again when benched: they keep their statistics. */
static fk_status keep_tensor(fkp_capture *capture, kept_op *op, fk_ctx *ctx, const fk_field *f, const fk_tensor *t, kept_tensor *kept)
{
    char *values;
    kept->tensor = *t;
    kept->tensor.data = NULL;
    if (fk_tensor_numel(t) == 0) return FK_OK;
    bool is_float = fk_dtype_is_float(t->dtype), is_weight = f->kind == FK_FIELD_WEIGHT;
    int64_t bytes = (int64_t)fk_tensor_nbytes(t);
    bool keep_values = !is_float || (!is_weight && bytes <= capture->max_bytes - op->bytes);
    const known_weight *known = is_float ? find_weight(capture, t) : NULL;
    if (known) {
        kept->mean = known->mean;
        kept->std = known->std;
        kept->has_statistics = true;
        if (!keep_values) return FK_OK;
    }
    FK_TRY(copy_to_host(ctx, t, &values));
    if (is_float && !known) measure(kept, values);
    if (keep_values) kept->tensor.data = values;
    else free(values);
    if (keep_values && is_float) op->bytes += bytes;
    return is_weight && is_float && !known ? remember_weight(capture, t, kept) : FK_OK;
}

static fk_status new_case(fkp_capture *capture, kept_op *kept, fk_ctx *ctx, const fk_op *op, const void *args, kept_case *c)
{
    size_t n = (size_t)op->num_fields;
    c->scalars = malloc(op->args_size);
    c->tensors = calloc(n, sizeof *c->tensors);
    c->strings = calloc(n, sizeof *c->strings);
    if (!c->scalars || !c->tensors || !c->strings) return fk_fail(FK_ERROR_MEMORY, "out of memory for a captured call");
    memcpy(c->scalars, args, op->args_size);
    for (int f = 0; f < op->num_fields; f++) {
        const fk_field *field = &op->fields[f];
        if (is_input(field)) {
            const fk_tensor *t = fk_op_tensor(op, args, f);
            if (fk_tensor_present(t)) FK_TRY(keep_tensor(capture, kept, ctx, field, t, &c->tensors[f]));
        } else if (!fk_field_is_tensor(field) && field->attr_type == FK_ATTR_string) {
            const char *text = *(const char *const *)fk_op_field_ptr(op, args, f);
            c->strings[f] = text ? strdup(text) : NULL;
        }
    }
    return FK_OK;
}

static fk_status record(fkp_capture *capture, fk_ctx *ctx, const fk_op *op, const void *args)
{
    kept_op *kept = &capture->ops[op->index];
    kept->calls++;
    char *description = describe(op, args);
    if (!description) return fk_fail(FK_ERROR_MEMORY, "out of memory for a captured call");
    uint64_t hash = fkp_fnv1a64(description, strlen(description));
    for (int i = 0; i < kept->count; i++)
        if (kept->cases[i].hash == hash && strcmp(kept->cases[i].description, description) == 0) {
            kept->cases[i].count++;
            free(description);
            return FK_OK;
        }
    if (kept->count == kept->capacity) {
        int capacity = kept->capacity ? 2 * kept->capacity : 8;
        kept_case *cases = realloc(kept->cases, (size_t)capacity * sizeof *cases);
        if (!cases) {
            free(description);
            return fk_fail(FK_ERROR_MEMORY, "out of memory for a captured call");
        }
        kept->cases = cases;
        kept->capacity = capacity;
    }
    kept_case *c = &kept->cases[kept->count++];
    *c = (kept_case){.hash = hash, .description = description, .count = 1};
    return new_case(capture, kept, ctx, op, args, c);
}

static void before(void *user, fk_ctx *ctx, const fk_op *op, const fk_impl *impl, const void *args)
{
    fkp_capture *capture = user;
    (void)impl;
    if (capture->status != FK_OK) return;
    capture->status = record(capture, ctx, op, args);
    if (capture->status != FK_OK) snprintf(capture->error, sizeof capture->error, "%s", fk_error_message());
}

fk_status fkp_capture_attach(fkp_capture *capture, fk_ctx *ctx)
{
    capture->hook = (fk_hook){.before = before, .user = capture};
    fk_door_reset_counts(ctx);
    return fk_door_add_hook(ctx, &capture->hook);
}

fk_status fkp_capture_detach(fkp_capture *capture, fk_ctx *ctx)
{
    fk_door_remove_hook(ctx, &capture->hook);
    if (capture->status != FK_OK) return fk_fail(capture->status, "%s", capture->error);
    for (int i = 0; i < fk_op_count(); i++) {
        int64_t reached, total, counted = 0;
        fk_door_counts(ctx, fk_op_at(i), &reached, &total);
        for (int k = 0; k < capture->ops[i].count; k++) counted += capture->ops[i].cases[k].count;
        if (counted != total || capture->ops[i].calls != total)
            return fk_fail(FK_ERROR_INTERNAL, "capture of %s holds %lld calls, the door counted %lld", fk_op_at(i)->name,
                           (long long)counted, (long long)total);
    }
    return FK_OK;
}

fkp_capture_totals fkp_capture_total(const fkp_capture *capture)
{
    fkp_capture_totals totals = {0};
    for (int i = 0; i < fk_op_count(); i++) {
        const kept_op *op = &capture->ops[i];
        totals.operators += op->count > 0;
        totals.cases += op->count;
        totals.calls += op->calls;
        totals.kept_bytes += op->bytes;
    }
    return totals;
}

static json_t *int_list(const int64_t *values, int n)
{
    json_t *list = json_array();
    for (int i = 0; i < n; i++) json_array_append_new(list, json_integer(values[i]));
    return list;
}

static json_t *tensor_to_json(const kept_tensor *kept, const char *key)
{
    const fk_tensor *t = &kept->tensor;
    json_t *object = json_object();
    json_object_set_new(object, "dtype", json_string(fk_dtype_name(t->dtype)));
    json_object_set_new(object, "shape", int_list(t->shape, t->ndim));
    if (!fk_tensor_is_contiguous(t)) json_object_set_new(object, "strides", int_list(t->strides, t->ndim));
    if (kept->has_statistics) {
        json_object_set_new(object, "mean", json_real(kept->mean));
        json_object_set_new(object, "std", json_real(kept->std));
    }
    if (t->data) json_object_set_new(object, "values", json_string(key));
    return object;
}

static json_t *scalar_to_json(const fk_field *f, const kept_case *c, const fk_op *op, int index)
{
    const void *at = fk_op_field_ptr(op, c->scalars, index);
    if (f->attr_type == FK_ATTR_bool) return json_boolean(*(const bool *)at);
    if (f->attr_type == FK_ATTR_int) return json_integer(*(const int64_t *)at);
    if (f->attr_type == FK_ATTR_float) return json_real((double)*(const float *)at);
    return json_string(c->strings[index] ? c->strings[index] : "");
}

static json_t *case_to_json(const kept_case *c, const fk_op *op, int number)
{
    json_t *object = json_object(), *scalars = json_object(), *tensors = json_object();
    for (int f = 0; f < op->num_fields; f++) {
        const fk_field *field = &op->fields[f];
        char key[128];
        snprintf(key, sizeof key, "%d.%.100s", number, field->name);
        if (!fk_field_is_tensor(field)) json_object_set_new(scalars, field->name, scalar_to_json(field, c, op, f));
        else if (c->tensors[f].tensor.dtype != FK_NONE) json_object_set_new(tensors, field->name, tensor_to_json(&c->tensors[f], key));
    }
    json_object_set_new(object, "count", json_integer(c->count));
    json_object_set_new(object, "scalars", scalars);
    json_object_set_new(object, "tensors", tensors);
    return object;
}

/* The kept values of all cases, "<case>.<field>". */
static fk_status write_values(const kept_op *kept, const fk_op *op, const char *path)
{
    size_t most = (size_t)kept->count * (size_t)op->num_fields, n = 0;
    fk_safetensors_entry *entries = calloc(most + 1, sizeof *entries);
    char (*names)[128] = calloc(most + 1, sizeof *names);
    fk_status status = entries && names ? FK_OK : fk_fail(FK_ERROR_MEMORY, "out of memory for a capture");
    for (int i = 0; i < kept->count && status == FK_OK; i++)
        for (int f = 0; f < op->num_fields; f++) {
            const fk_tensor *t = &kept->cases[i].tensors[f].tensor;
            if (t->dtype == FK_NONE || !t->data) continue;
            snprintf(names[n], sizeof names[n], "%d.%.100s", i, op->fields[f].name);
            entries[n].name = names[n];
            entries[n++].tensor = fk_tensor_wrap(t->data, t->dtype, (fk_device){FK_CPU, 0}, t->ndim, t->shape);
        }
    if (status == FK_OK && n) status = fk_safetensors_write(path, entries, n, NULL, 0);
    else if (status == FK_OK) remove(path); /* of an earlier capture */
    free(entries);
    free(names);
    return status;
}

fk_status fkp_json_write_file(const json_t *json, const char *path)
{
    char partial[1300];
    snprintf(partial, sizeof partial, "%s.partial", path);
    FILE *file = fopen(partial, "w");
    if (!file) return fk_fail(FK_ERROR_IO, "cannot write %s: %s", partial, strerror(errno));
    bool good = json_dumpf(json, file, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) == 0 && fputc('\n', file) != EOF;
    good = fclose(file) == 0 && good;
    if (good && rename(partial, path) == 0) return FK_OK;
    fk_status status = fk_fail(FK_ERROR_IO, "cannot write %s: %s", path, strerror(errno));
    remove(partial);
    return status;
}

static fk_status write_op(const kept_op *kept, const fk_op *op, const char *folder, const json_t *facts)
{
    char path[1200];
    snprintf(path, sizeof path, "%s/%s.safetensors", folder, op->name);
    FK_TRY(write_values(kept, op, path));
    json_t *root = json_object(), *cases = json_array();
    json_object_set_new(root, "schema", json_string("fastkernels/capture/1"));
    json_object_update(root, (json_t *)(uintptr_t)facts);
    json_object_set_new(root, "op", json_string(op->name));
    json_object_set_new(root, "level", json_integer(op->level));
    json_object_set_new(root, "signature", json_string(op->signature));
    json_object_set_new(root, "calls", json_integer(kept->calls));
    for (int i = 0; i < kept->count; i++) json_array_append_new(cases, case_to_json(&kept->cases[i], op, i));
    json_object_set_new(root, "cases", cases);
    snprintf(path, sizeof path, "%s/%s.json", folder, op->name);
    fk_status status = fkp_json_write_file(root, path);
    json_decref(root);
    return status;
}

fk_status fkp_capture_write(const fkp_capture *capture, const char *folder, const json_t *facts)
{
    for (int i = 0; i < fk_op_count(); i++)
        if (capture->ops[i].count) FK_TRY(write_op(&capture->ops[i], fk_op_at(i), folder, facts));
    return FK_OK;
}
