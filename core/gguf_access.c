/* SPDX-License-Identifier: Apache-2.0 */
/* GGUF: typed access to metadata and tensors of an opened file. */
#include <assert.h>
#include <string.h>

#include "core/gguf_impl.h"

static const struct {
    const char *name;
    size_t size;
} types[FK_GGUF_TYPE_COUNT] = {
    [FK_GGUF_U8] = {"u8", 1},       [FK_GGUF_I8] = {"i8", 1},     [FK_GGUF_U16] = {"u16", 2},
    [FK_GGUF_I16] = {"i16", 2},     [FK_GGUF_U32] = {"u32", 4},   [FK_GGUF_I32] = {"i32", 4},
    [FK_GGUF_F32] = {"f32", 4},     [FK_GGUF_BOOL] = {"bool", 1}, [FK_GGUF_STRING] = {"string", 0},
    [FK_GGUF_ARRAY] = {"array", 0}, [FK_GGUF_U64] = {"u64", 8},   [FK_GGUF_I64] = {"i64", 8},
    [FK_GGUF_F64] = {"f64", 8},
};

size_t fkp_gguf_scalar_size(fk_gguf_type type)
{
    return types[type].size;
}

const char *fkp_gguf_type_name(fk_gguf_type type)
{
    return types[type].name;
}

static bool is_float(fk_gguf_type type)
{
    return type == FK_GGUF_F32 || type == FK_GGUF_F64;
}

static bool is_signed(fk_gguf_type type)
{
    return type == FK_GGUF_I8 || type == FK_GGUF_I16 || type == FK_GGUF_I32 || type == FK_GGUF_I64;
}

static bool is_integer(fk_gguf_type type)
{
    return types[type].size > 0 && !is_float(type) && type != FK_GGUF_BOOL;
}

/* The bits of an integer or boolean, sign-extended to 64. */
static uint64_t load_integer(fk_gguf_type type, const uint8_t *data)
{
    size_t size = types[type].size;
    uint64_t bits = fkp_gguf_load(data, size);
    if (is_signed(type) && size < 8 && (bits >> (8 * size - 1)) != 0) bits |= UINT64_MAX << (8 * size);
    return bits;
}

static double load_number(fk_gguf_type type, const uint8_t *data)
{
    uint64_t bits = load_integer(type, data);
    if (type == FK_GGUF_F64) {
        double value;
        memcpy(&value, &bits, sizeof value);
        return value;
    }
    if (type == FK_GGUF_F32) {
        uint32_t low = (uint32_t)bits;
        float value;
        memcpy(&value, &low, sizeof value);
        return (double)value;
    }
    return is_signed(type) ? (double)(int64_t)bits : (double)bits;
}

uint32_t fk_gguf_version(const fk_gguf *gguf)
{
    return gguf->version;
}

size_t fk_gguf_key_count(const fk_gguf *gguf)
{
    return gguf->key_count;
}

const char *fk_gguf_key_at(const fk_gguf *gguf, size_t index)
{
    assert(index < gguf->key_count);
    return gguf->values[index].key;
}

bool fk_gguf_has(const fk_gguf *gguf, const char *key)
{
    size_t i;
    return fkp_names_find(gguf->key_index, gguf->key_count, key, &i);
}

static fk_status find_value(const fk_gguf *g, const char *key, const fkp_gguf_value **out)
{
    size_t i;
    if (!fkp_names_find(g->key_index, g->key_count, key, &i))
        return fk_fail(FK_ERROR_MISSING, "%s: no metadata '%s'", g->map.name, key);
    *out = &g->values[i];
    return FK_OK;
}

static fk_status wrong_type(const fk_gguf *g, const fkp_gguf_value *value, const char *wanted)
{
    bool array = value->type == FK_GGUF_ARRAY;
    return fk_fail(FK_ERROR_INVALID, "%s: metadata '%s' has type %s%s, not %s", g->map.name, value->key,
                   array ? "array of " : "", types[array ? value->element : value->type].name, wanted);
}

fk_status fk_gguf_get_string(const fk_gguf *gguf, const char *key, fk_gguf_string *out)
{
    const fkp_gguf_value *value = NULL;
    FK_TRY(find_value(gguf, key, &value));
    if (value->type != FK_GGUF_STRING) return wrong_type(gguf, value, "string");
    *out = value->string;
    return FK_OK;
}

fk_status fk_gguf_get_u64(const fk_gguf *gguf, const char *key, uint64_t *out)
{
    const fkp_gguf_value *value = NULL;
    FK_TRY(find_value(gguf, key, &value));
    if (!is_integer(value->type)) return wrong_type(gguf, value, "an integer");
    uint64_t bits = load_integer(value->type, value->data);
    if (is_signed(value->type) && (int64_t)bits < 0)
        return fk_fail(FK_ERROR_INVALID, "%s: metadata '%s' is %lld, below 0", gguf->map.name, key,
                       (long long)bits);
    *out = bits;
    return FK_OK;
}

fk_status fk_gguf_get_i64(const fk_gguf *gguf, const char *key, int64_t *out)
{
    const fkp_gguf_value *value = NULL;
    FK_TRY(find_value(gguf, key, &value));
    if (!is_integer(value->type)) return wrong_type(gguf, value, "an integer");
    uint64_t bits = load_integer(value->type, value->data);
    if (!is_signed(value->type) && bits > INT64_MAX)
        return fk_fail(FK_ERROR_INVALID, "%s: metadata '%s' is %llu, above 2^63 - 1", gguf->map.name, key,
                       (unsigned long long)bits);
    *out = (int64_t)bits;
    return FK_OK;
}

fk_status fk_gguf_get_f64(const fk_gguf *gguf, const char *key, double *out)
{
    const fkp_gguf_value *value = NULL;
    FK_TRY(find_value(gguf, key, &value));
    if (!is_float(value->type) && !is_integer(value->type)) return wrong_type(gguf, value, "a number");
    *out = load_number(value->type, value->data);
    return FK_OK;
}

fk_status fk_gguf_get_bool(const fk_gguf *gguf, const char *key, bool *out)
{
    const fkp_gguf_value *value = NULL;
    FK_TRY(find_value(gguf, key, &value));
    if (value->type != FK_GGUF_BOOL) return wrong_type(gguf, value, "bool");
    *out = value->data[0] != 0;
    return FK_OK;
}

fk_status fk_gguf_get_strings(const fk_gguf *gguf, const char *key, const fk_gguf_string **strings,
                              size_t *count)
{
    const fkp_gguf_value *value = NULL;
    FK_TRY(find_value(gguf, key, &value));
    if (value->type != FK_GGUF_ARRAY || value->element != FK_GGUF_STRING)
        return wrong_type(gguf, value, "an array of strings");
    *strings = value->strings;
    *count = (size_t)value->count;
    return FK_OK;
}

static fk_status get_array(const fk_gguf *g, const char *key, bool floats, const char *wanted,
                           fk_gguf_array *out)
{
    const fkp_gguf_value *value = NULL;
    FK_TRY(find_value(g, key, &value));
    if (value->type != FK_GGUF_ARRAY || types[value->element].size == 0 ||
        (is_float(value->element) && !floats))
        return wrong_type(g, value, wanted);
    *out = (fk_gguf_array){value->element, (size_t)value->count, value->data};
    return FK_OK;
}

fk_status fk_gguf_get_integers(const fk_gguf *gguf, const char *key, fk_gguf_array *out)
{
    return get_array(gguf, key, false, "an array of integers", out);
}

fk_status fk_gguf_get_numbers(const fk_gguf *gguf, const char *key, fk_gguf_array *out)
{
    return get_array(gguf, key, true, "an array of numbers", out);
}

int64_t fk_gguf_array_i64(const fk_gguf_array *array, size_t i)
{
    assert(i < array->count && !is_float(array->type));
    return (int64_t)load_integer(array->type, array->data + i * types[array->type].size);
}

double fk_gguf_array_f64(const fk_gguf_array *array, size_t i)
{
    assert(i < array->count);
    return load_number(array->type, array->data + i * types[array->type].size);
}

size_t fk_gguf_tensor_count(const fk_gguf *gguf)
{
    return gguf->tensor_count;
}

const fk_gguf_tensor *fk_gguf_tensor_at(const fk_gguf *gguf, size_t index)
{
    assert(index < gguf->tensor_count);
    return &gguf->entries[index].tensor;
}

fk_status fk_gguf_find(const fk_gguf *gguf, const char *name, const fk_gguf_tensor **out)
{
    size_t i;
    if (!fkp_names_find(gguf->tensor_index, gguf->tensor_count, name, &i))
        return fk_fail(FK_ERROR_MISSING, "%s: no tensor '%s'", gguf->map.name, name);
    *out = &gguf->entries[i].tensor;
    return FK_OK;
}

static fk_status unsupported(const fk_gguf *g, const fk_gguf_tensor *t)
{
    char quoted[FKP_QUOTED_SIZE];
    const fk_qtype_info *info = fk_qtype_describe(t->type);
    return fk_fail(FK_ERROR_UNSUPPORTED, "%s: tensor %s has type %s (%u), which is not implemented", g->map.name,
                   fkp_quote(quoted, t->name, strlen(t->name)), info ? info->name : "unknown", t->type);
}

fk_status fk_gguf_view(const fk_gguf *gguf, const fk_gguf_tensor *tensor, fk_tensor *out)
{
    static const struct {
        const char *name;
        fk_dtype dtype;
    } plain[] = {{"F64", FK_F64}, {"F32", FK_F32}, {"F16", FK_F16}, {"BF16", FK_BF16},
                 {"I64", FK_I64}, {"I32", FK_I32}, {"I8", FK_I8}};
    const fk_qtype_info *info = fk_qtype_describe(tensor->type);
    void *data = (void *)(uintptr_t)tensor->data;
    const fk_device cpu = {FK_CPU, 0};
    if (!info) return unsupported(gguf, tensor);
    for (size_t i = 0; i < sizeof plain / sizeof plain[0]; i++) {
        if (strcmp(plain[i].name, info->name) != 0) continue;
        *out = fk_tensor_wrap(data, plain[i].dtype, cpu, tensor->ndim, tensor->shape);
        return FK_OK;
    }
    if (!info->dequantize) return unsupported(gguf, tensor);
    int64_t shape[FK_GGUF_MAX_NDIM];
    memcpy(shape, tensor->shape, sizeof shape);
    int last = tensor->ndim - 1; /* >= 0: a scalar is no multiple of a block */
    if (__builtin_mul_overflow(shape[last] / info->block_size, info->block_bytes, &shape[last])) { /* only where there are no rows */
        char quoted[FKP_QUOTED_SIZE];
        return fk_fail(FK_ERROR_INVALID, "%s: tensor %s has rows of %lld elements, too long for %s", gguf->map.name,
                       fkp_quote(quoted, tensor->name, strlen(tensor->name)), (long long)tensor->shape[last], info->name);
    }
    *out = fk_tensor_wrap(data, FK_U8, cpu, tensor->ndim, shape);
    return FK_OK;
}

fk_status fk_gguf_dequantize(const fk_gguf *gguf, const fk_gguf_tensor *tensor, int64_t begin, int64_t end,
                             float *out)
{
    const fk_qtype_info *info = fk_qtype_describe(tensor->type);
    if (!info || !info->dequantize) return unsupported(gguf, tensor);
    int64_t rows = 1, cols = tensor->ndim > 0 ? tensor->shape[tensor->ndim - 1] : 1;
    for (int i = 0; i + 1 < tensor->ndim; i++) rows *= tensor->shape[i];
    if (begin < 0 || begin > end || end > rows)
        return fk_fail(FK_ERROR_INVALID, "%s: rows %lld to %lld of tensor '%s', which has %lld", gguf->map.name,
                       (long long)begin, (long long)end, tensor->name, (long long)rows);
    fk_dequantize_rows(tensor->type, tensor->data, cols, begin, end, out);
    return FK_OK;
}
