/* SPDX-License-Identifier: Apache-2.0 */
/* Cases from a capture folder. The files may come from anywhere: shapes, dtypes and values are checked against each other
 * and against the operator before they are used. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/cases.h"
#include "core/json.h"
#include "core/safetensors.h"
#include "core/seeded.h"
#include "core/shape.h"

#define MAX_ELEMENTS ((int64_t)1 << 40)

static const fkp_json_limits limits = {.max_depth = 16, .max_values = 10000000};

static fk_status read_ints(const json_t *array, int64_t *out, int *count, bool negative, const char *what)
{
    *count = (int)json_array_size(array);
    if (!json_is_array(array) || *count > FK_MAX_NDIM) return fk_fail(FK_ERROR_INVALID, "%s is no list of up to %d numbers", what, FK_MAX_NDIM);
    for (int i = 0; i < *count; i++) {
        const json_t *item = json_array_get(array, (size_t)i);
        out[i] = json_integer_value(item);
        if (!json_is_integer(item) || (!negative && out[i] < 0) || out[i] > MAX_ELEMENTS || out[i] < -MAX_ELEMENTS)
            return fk_fail(FK_ERROR_INVALID, "%s has an entry that is no size", what);
    }
    return FK_OK;
}

/* Shape, strides and dtype of one tensor, and its values when they were kept. */
static fk_status read_tensor(fkp_case *c, int field, const json_t *object, const fk_safetensors *values)
{
    const fk_field *f = &c->op->fields[field];
    const char *dtype_name = json_string_value(json_object_get(object, "dtype"));
    fk_dtype dtype = fk_dtype_parse(dtype_name ? dtype_name : "");
    if (dtype == FK_NONE || fk_dtype_bits(dtype) < 8)
        return fk_fail(FK_ERROR_INVALID, "%s has the dtype '%s'", f->name, dtype_name ? dtype_name : "none");
    if (f->dtypes.mask && !(f->dtypes.mask >> dtype & 1)) return fk_fail(FK_ERROR_INVALID, "%s cannot have the dtype %s", f->name, dtype_name);
    int64_t shape[FK_MAX_NDIM], strides[FK_MAX_NDIM], elements = 1, span = 1;
    int ndim, num_strides = 0;
    FK_TRY(read_ints(json_object_get(object, "shape"), shape, &ndim, false, f->name));
    const json_t *given = json_object_get(object, "strides");
    if (given) FK_TRY(read_ints(given, strides, &num_strides, false, f->name));
    if (given && num_strides != ndim) return fk_fail(FK_ERROR_INVALID, "%s has %d dims and %d strides", f->name, ndim, num_strides);
    for (int i = 0; i < ndim; i++) {
        if (shape[i] && elements > MAX_ELEMENTS / shape[i]) return fk_fail(FK_ERROR_INVALID, "%s is too large", f->name);
        elements *= shape[i];
        if (given && shape[i] > 1 && (strides[i] > MAX_ELEMENTS / shape[i] || (span += strides[i] * (shape[i] - 1)) > MAX_ELEMENTS))
            return fk_fail(FK_ERROR_INVALID, "%s spans too much memory", f->name);
    }
    fkp_case_set_tensor(c, field, dtype, ndim, shape, given ? strides : NULL);
    fkp_values *v = &c->values[field];
    const json_t *mean = json_object_get(object, "mean"), *std = json_object_get(object, "std");
    if (json_is_number(mean)) v->mean = json_number_value(mean);
    if (json_is_number(std)) v->std = json_number_value(std);
    const char *key = json_string_value(json_object_get(object, "values"));
    if (!key) return FK_OK;
    fk_tensor kept;
    if (!values) return fk_fail(FK_ERROR_INVALID, "%s has values, but there is no file with them", f->name);
    if (fk_safetensors_find(values, key, &kept) != FK_OK) return fk_fail(FK_ERROR_INVALID, "%s", fk_error_message());
    if (kept.dtype != dtype || !fk_tensor_same_shape(&kept, &c->tensors[field]))
        return fk_fail(FK_ERROR_INVALID, "the values of %s have another shape or dtype", f->name);
    v->captured = kept.data;
    return FK_OK;
}

static fk_status read_scalar(fkp_case *c, int field, const json_t *value)
{
    const fk_field *f = &c->op->fields[field];
    void *at = fk_op_field_ptr(c->op, c->args, field);
    bool good = f->attr_type == FK_ATTR_bool     ? json_is_boolean(value)
                : f->attr_type == FK_ATTR_int    ? json_is_integer(value)
                : f->attr_type == FK_ATTR_float  ? json_is_number(value)
                                                 : json_is_string(value);
    if (!good) return fk_fail(FK_ERROR_INVALID, "%s is missing or of another type", f->name);
    if (f->attr_type == FK_ATTR_bool) *(bool *)at = json_is_true(value);
    else if (f->attr_type == FK_ATTR_int) *(int64_t *)at = json_integer_value(value);
    else if (f->attr_type == FK_ATTR_float) *(float *)at = (float)json_number_value(value);
    else return fkp_case_set_string(c, field, json_string_value(value));
    return FK_OK;
}

/* Outputs are not in the file: they follow from the inputs. */
static fk_status derive_outputs(fkp_case *c)
{
    fkp_bindings b;
    char why[160], shape_text[160];
    fkp_bindings_init(&b);
    fkp_bindings_add_scalars(&b, c->op, c->args);
    for (int f = 0; f < c->op->num_fields; f++) {
        const fk_tensor *t = &c->tensors[f];
        if (t->dtype == FK_NONE) continue;
        if (!fkp_shape_match(&b, c->op->fields[f].shape, t->ndim, t->shape, why, sizeof why))
            return fk_fail(FK_ERROR_INVALID, "%s is %s, expected %s: %s", c->op->fields[f].name,
                           fk_tensor_format(t, shape_text, sizeof shape_text), c->op->fields[f].shape, why);
    }
    for (int f = 0; f < c->op->num_fields; f++) {
        const fk_field *field = &c->op->fields[f];
        if (field->kind != FK_FIELD_OUT && field->kind != FK_FIELD_OUT_MAX) continue;
        int ndim;
        int64_t shape[FK_MAX_NDIM];
        if (!fkp_shape_evaluate(&b, field->shape, &ndim, shape, why, sizeof why))
            return fk_fail(FK_ERROR_INVALID, "size of %s %s: %s", field->name, field->shape, why);
        fk_dtype dtype = field->dtypes.as ? c->tensors[fk_op_field(c->op, field->dtypes.as)].dtype
                                          : (fk_dtype)__builtin_ctz(field->dtypes.mask);
        fkp_case_set_tensor(c, f, dtype, ndim, shape, NULL);
    }
    return FK_OK;
}

static fk_status read_case(fkp_case *c, const fk_op *op, const json_t *object, const fk_safetensors *values, const char *source)
{
    FK_TRY(fkp_case_init(c, op));
    const json_t *scalars = json_object_get(object, "scalars"), *tensors = json_object_get(object, "tensors");
    for (int f = 0; f < op->num_fields; f++) {
        const fk_field *field = &op->fields[f];
        if (field->kind == FK_FIELD_OUT || field->kind == FK_FIELD_OUT_MAX) continue;
        if (!fk_field_is_tensor(field)) {
            FK_TRY(read_scalar(c, f, json_object_get(scalars, field->name)));
            continue;
        }
        const json_t *tensor = json_object_get(tensors, field->name);
        if (json_is_object(tensor)) FK_TRY(read_tensor(c, f, tensor, values));
        else if (!field->optional) return fk_fail(FK_ERROR_INVALID, "%s is missing", field->name);
    }
    FK_TRY(derive_outputs(c));
    const json_t *count = json_object_get(object, "count");
    if (json_is_integer(count) && json_integer_value(count) > 0) c->count = json_integer_value(count);
    return fkp_case_finish(c, source);
}

static fk_status keep_values(fkp_case_list *list, fk_safetensors *values)
{
    fk_safetensors **files = realloc(list->files, (size_t)(list->num_files + 1) * sizeof *files);
    if (!files) {
        fk_safetensors_close(values);
        return fk_fail(FK_ERROR_MEMORY, "out of memory");
    }
    list->files = files;
    files[list->num_files++] = values;
    return FK_OK;
}

static fk_status read_op(fkp_case_list *list, const fk_op *op, const char *path)
{
    json_t *root;
    char values_path[1200], source[1300];
    FK_TRY(fkp_json_load_file(path, limits, &root));
    fk_safetensors *values = NULL;
    snprintf(values_path, sizeof values_path, "%.*s.safetensors", (int)(strlen(path) - 5), path);
    snprintf(source, sizeof source, "capture %s", path);
    struct stat info;
    fk_status status = stat(values_path, &info) == 0 ? fk_safetensors_open(values_path, &values) : FK_OK;
    if (status == FK_OK && values) status = keep_values(list, values);
    if (status != FK_OK) goto done;
    const char *name = json_string_value(json_object_get(root, "op"));
    const json_t *cases = json_object_get(root, "cases");
    if (!name || strcmp(name, op->name) != 0 || !json_is_array(cases)) {
        status = fk_fail(FK_ERROR_INVALID, "%s is no capture of %s", path, op->name);
        goto done;
    }
    const char *signature = json_string_value(json_object_get(root, "signature"));
    if (!signature || strcmp(signature, op->signature) != 0) {
        status = fk_fail(FK_ERROR_INVALID, "%s was captured with another signature of %s: capture again", path, op->name);
        goto done;
    }
    for (size_t i = 0; i < json_array_size(cases) && status == FK_OK; i++) {
        fkp_case c;
        status = read_case(&c, op, json_array_get(cases, i), values, source);
        if (status == FK_OK) status = fkp_case_list_add(list, &c);
        else fk_fail_context(status, "%s: case %zu", path, i);
        fkp_case_deinit(&c);
    }
done:
    json_decref(root);
    return status;
}

fk_status fkp_cases_captured(fkp_case_list *list, const char *folder, const bool *wanted)
{
    struct stat info;
    if (stat(folder, &info) != 0) return fk_fail(FK_ERROR_INVALID, "captures %s: %s", folder, strerror(errno));
    int found = 0;
    for (int i = 0; i < fk_op_count(); i++) {
        char path[1200];
        const fk_op *op = fk_op_at(i);
        if ((size_t)snprintf(path, sizeof path, "%s/%s.json", folder, op->name) >= sizeof path - 16)
            return fk_fail(FK_ERROR_INVALID, "path too long: %s", folder);
        if (stat(path, &info) != 0) continue;
        found++;
        if (!wanted || wanted[i]) FK_TRY(read_op(list, op, path));
    }
    if (found) return FK_OK;
    return fk_fail(FK_ERROR_INVALID, "no captures in %s: 'fastkernels capture' makes them", folder);
}
