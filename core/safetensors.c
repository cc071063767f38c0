/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors reader. Layout: u64 little-endian header length n; n bytes of JSON, an object that maps each
 * tensor name to {"dtype", "shape", "data_offsets": [begin, end]} and "__metadata__" to an object of strings;
 * then the data. The rules are those of the reference implementation's validation (safetensors 0.8,
 * `Metadata::validate`). */
#define _POSIX_C_SOURCE 200809L
#include "core/safetensors.h"

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/file_map.h"
#include "core/json.h"
#include "core/names.h"

typedef struct slot { /* a tensor while the header is read */
    const char *name;
    uint64_t begin, end;  /* in the data */
    size_t position;      /* in the header */
    size_t element_bytes; /* 0 for types below a byte */
    fk_tensor tensor;     /* without data */
} slot;

struct fk_safetensors {
    fkp_file_map map;
    size_t count, metadata_count;
    fk_safetensors_entry *entries;
    fk_safetensors_metadata_pair *metadata;
    fkp_name_ref *index;
    void *copies; /* tensors whose place in the file is not aligned */
};

/* Types that the format defines; FK_NONE where there is no such fk_dtype yet. */
static const struct {
    const char *name;
    fk_dtype dtype;
    unsigned bits;
} dtypes[] = {
    {"F64", FK_F64, 64},   {"F32", FK_F32, 32},        {"F16", FK_F16, 16},        {"BF16", FK_BF16, 16},
    {"I64", FK_I64, 64},   {"I32", FK_I32, 32},        {"I8", FK_I8, 8},           {"U8", FK_U8, 8},
    {"BOOL", FK_BOOL, 8},  {"F8_E4M3", FK_F8_E4M3, 8}, {"F8_E5M2", FK_F8_E5M2, 8}, {"F8_E8M0", FK_E8M0, 8},
    {"F4", FK_F4_E2M1, 4}, {"F6_E2M3", FK_NONE, 6},    {"F6_E3M2", FK_NONE, 6},    {"I16", FK_NONE, 16},
    {"U16", FK_NONE, 16},  {"U32", FK_NONE, 32},       {"U64", FK_NONE, 64},       {"C64", FK_NONE, 64},
};
#define DTYPE_COUNT (sizeof dtypes / sizeof dtypes[0])

const char *fkp_safetensors_dtype_name(fk_dtype dtype)
{
    for (size_t i = 0; i < DTYPE_COUNT && dtype != FK_NONE; i++)
        if (dtypes[i].dtype == dtype) return dtypes[i].name;
    return NULL;
}

/* ---- one tensor of the header ---- */

static fk_status fail_field(const char *field, const json_t *value, const char *wanted)
{
    char quoted[FKP_QUOTED_SIZE];
    if (!value) return fk_fail(FK_ERROR_INVALID, "no %s", field);
    char *text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY);
    fkp_quote(quoted, text ? text : "?", text ? strlen(text) : 1);
    free(text);
    return fk_fail(FK_ERROR_INVALID, "%s is %s, not %s", field, quoted, wanted);
}

static bool is_size(const json_t *value)
{
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

static fk_status read_dtype(const json_t *info, size_t *type)
{
    char quoted[FKP_QUOTED_SIZE];
    const json_t *value = json_object_get(info, "dtype");
    if (!json_is_string(value)) return fail_field("dtype", value, "a string");
    for (*type = 0; *type < DTYPE_COUNT; ++*type) {
        if (strcmp(json_string_value(value), dtypes[*type].name) != 0) continue;
        if (dtypes[*type].dtype != FK_NONE) return FK_OK;
        return fk_fail(FK_ERROR_UNSUPPORTED, "dtype '%s' is not implemented", dtypes[*type].name);
    }
    return fk_fail(FK_ERROR_INVALID, "unknown dtype %s",
                   fkp_quote(quoted, json_string_value(value), json_string_length(value)));
}

/* Shape into slot, and the number of elements. A dimension of 0 counts as 1 in the overflow check: the
 * products of the other dimensions stay safe for everybody. */
static fk_status read_shape(const json_t *info, size_t type, slot *s, uint64_t *numel)
{
    int64_t shape[FK_MAX_NDIM], product = 1;
    const json_t *value = json_object_get(info, "shape");
    size_t ndim = json_array_size(value);
    bool empty = false;
    if (!json_is_array(value)) return fail_field("shape", value, "an array");
    if (ndim > FK_MAX_NDIM)
        return fk_fail(FK_ERROR_UNSUPPORTED, "shape has %zu dimensions, at most %d are supported", ndim,
                       FK_MAX_NDIM);
    for (size_t i = 0; i < ndim; i++) {
        const json_t *dim = json_array_get(value, i);
        if (!is_size(dim)) return fail_field("shape", value, "an array of integers from 0 on");
        shape[i] = json_integer_value(dim);
        empty |= shape[i] == 0;
        if (shape[i] > 0 && __builtin_mul_overflow(product, shape[i], &product))
            return fail_field("shape", value, "one whose product fits into 63 bits");
    }
    *numel = empty ? 0 : (uint64_t)product;
    s->tensor = fk_tensor_wrap(NULL, dtypes[type].dtype, (fk_device){FK_CPU, 0}, (int)ndim, shape);
    s->element_bytes = dtypes[type].bits / 8;
    return FK_OK;
}

static fk_status read_offsets(const json_t *info, slot *s)
{
    const json_t *value = json_object_get(info, "data_offsets");
    if (!json_is_array(value) || json_array_size(value) != 2 || !is_size(json_array_get(value, 0)) ||
        !is_size(json_array_get(value, 1)))
        return fail_field("data_offsets", value, "two integers from 0 on");
    s->begin = (uint64_t)json_integer_value(json_array_get(value, 0));
    s->end = (uint64_t)json_integer_value(json_array_get(value, 1));
    if (s->end < s->begin) return fail_field("data_offsets", value, "in rising order");
    return FK_OK;
}

static fk_status read_tensor(const json_t *info, slot *s)
{
    size_t type = 0;
    uint64_t numel = 0, bits = 0;
    if (!json_is_object(info)) return fail_field("its entry", info, "an object");
    FK_TRY(read_dtype(info, &type));
    FK_TRY(read_shape(info, type, s, &numel));
    FK_TRY(read_offsets(info, s));
    if (__builtin_mul_overflow(numel, (uint64_t)dtypes[type].bits, &bits))
        return fail_field("shape", json_object_get(info, "shape"),
                          "one whose size in bits fits into 64 bits");
    if (bits % 8 != 0)
        return fk_fail(FK_ERROR_INVALID, "%llu elements of %s are no whole number of bytes",
                       (unsigned long long)numel, dtypes[type].name);
    if (s->end - s->begin != bits / 8)
        return fk_fail(FK_ERROR_INVALID,
                       "size mismatch: data_offsets [%llu, %llu] hold %llu bytes, but dtype and "
                       "shape need %llu",
                       (unsigned long long)s->begin, (unsigned long long)s->end,
                       (unsigned long long)(s->end - s->begin), (unsigned long long)bits / 8);
    return FK_OK;
}

/* ---- the header ---- */

static fk_status read_metadata(fk_safetensors *f, json_t *object)
{
    const char *key;
    json_t *value;
    if (json_is_null(object)) return FK_OK; /* the reference implementation takes it for absent */
    if (!json_is_object(object)) return fail_field("__metadata__", object, "an object");
    f->metadata = calloc(json_object_size(object) + 1, sizeof *f->metadata);
    if (!f->metadata)
        return fk_fail(FK_ERROR_MEMORY, "out of memory for %zu metadata", json_object_size(object));
    json_object_foreach(object, key, value)
    {
        char quoted[FKP_QUOTED_SIZE];
        if (!json_is_string(value))
            return fk_fail_context(fail_field("value", value, "a string"), "__metadata__ %s",
                                   fkp_quote(quoted, key, strlen(key)));
        fk_safetensors_metadata_pair *pair = &f->metadata[f->metadata_count++];
        pair->key = strdup(key);
        pair->value = strdup(json_string_value(value));
        if (!pair->key || !pair->value) return fk_fail(FK_ERROR_MEMORY, "out of memory for metadata");
    }
    return FK_OK;
}

static int compare_slots(const void *a, const void *b)
{
    const slot *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end) return x->end < y->end ? -1 : 1;
    return (x->position > y->position) - (x->position < y->position);
}

/* Sorts by place and checks that the tensors fill the `size` bytes of data: no hole, no overlap, nothing
 * left. */
static fk_status check_layout(slot *slots, size_t count, size_t data_start, uint64_t size)
{
    char quoted[FKP_QUOTED_SIZE];
    uint64_t end = 0;
    if (count > 1) qsort(slots, count, sizeof *slots, compare_slots);
    for (size_t i = 0; i < count; i++) {
        if (slots[i].begin != end)
            return fk_fail(
                FK_ERROR_INVALID, "tensor %s begins at byte %llu of the data, %s: %llu was expected",
                fkp_quote(quoted, slots[i].name, strlen(slots[i].name)), (unsigned long long)slots[i].begin,
                slots[i].begin > end ? "after a hole" : "an overlap", (unsigned long long)end);
        end = slots[i].end;
    }
    if (end != size)
        return fk_fail(FK_ERROR_INVALID, "%s: by its header the file has %llu bytes, but it has %llu",
                       end > size ? "truncated" : "surplus bytes", (unsigned long long)end + data_start,
                       (unsigned long long)size + data_start);
    return FK_OK;
}

static bool misaligned(const slot *s, const uint8_t *data)
{
    return s->element_bytes > 1 && s->end > s->begin && (uintptr_t)(data + s->begin) % s->element_bytes != 0;
}

/* Views into the data, or copies of those tensors that do not stand on a multiple of their element size. */
static fk_status make_entries(fk_safetensors *f, const slot *slots, size_t count, const uint8_t *data)
{
    size_t copied = 0;
    f->entries = calloc(count + 1, sizeof *f->entries);
    f->index = malloc((count + 1) * sizeof *f->index);
    for (size_t i = 0; i < count; i++)
        if (misaligned(&slots[i], data)) copied += ((size_t)(slots[i].end - slots[i].begin) + 15) / 16 * 16;
    if (copied > 0) f->copies = malloc(copied);
    if (!f->entries || !f->index || (copied > 0 && !f->copies))
        return fk_fail(FK_ERROR_MEMORY, "out of memory for %zu tensors, of which %zu bytes are not aligned",
                       count, copied);
    uint8_t *copy = f->copies;
    for (size_t i = 0; i < count; i++) {
        fk_safetensors_entry *entry = &f->entries[i];
        size_t nbytes = (size_t)(slots[i].end - slots[i].begin);
        entry->name = strdup(slots[i].name);
        if (!entry->name) return fk_fail(FK_ERROR_MEMORY, "out of memory for a name");
        f->count = i + 1; /* from here on fk_safetensors_close frees it */
        entry->tensor = slots[i].tensor;
        if (misaligned(&slots[i], data)) {
            entry->tensor.data = memcpy(copy, data + slots[i].begin, nbytes);
            copy += (nbytes + 15) / 16 * 16;
        } else if (nbytes > 0) {
            entry->tensor.data = (void *)(uintptr_t)(data + slots[i].begin);
        }
        f->index[i] = (fkp_name_ref){entry->name, i};
    }
    const char *twice = fkp_names_sort(f->index, count);
    assert(!twice); /* duplicate keys do not pass the JSON parser */
    (void)twice;
    return FK_OK;
}

static fk_status read_header(fk_safetensors *f, json_t *header, const uint8_t *data, size_t data_start,
                             uint64_t data_size)
{
    char quoted[FKP_QUOTED_SIZE];
    fk_status status = FK_OK;
    size_t count = 0, position = 0;
    const char *name;
    json_t *value;
    slot *slots = calloc(json_object_size(header) + 1, sizeof *slots);
    if (!slots) return fk_fail(FK_ERROR_MEMORY, "out of memory for %zu tensors", json_object_size(header));
    json_object_foreach(header, name, value)
    {
        if (strcmp(name, "__metadata__") == 0) {
            status = read_metadata(f, value);
        } else {
            slot *s = &slots[count++];
            s->name = name;
            s->position = position++;
            status = read_tensor(value, s);
            if (status != FK_OK) fk_fail_context(status, "tensor %s", fkp_quote(quoted, name, strlen(name)));
        }
        if (status != FK_OK) goto done;
    }
    status = check_layout(slots, count, data_start, data_size);
    if (status == FK_OK) status = make_entries(f, slots, count, data);
done:
    free(slots);
    return status;
}

static fk_status parse(fk_safetensors *f)
{
    const uint8_t *bytes = f->map.data;
    size_t size = f->map.size;
    /* A header of the largest size holds about 2 million tensors of 8 values; its depth is 3, unknown fields
     * ignored. */
    const fkp_json_limits limits = {.max_depth = 16, .max_values = 32000000};
    uint64_t length = 0;
    json_t *header = NULL;
    if (size < 8)
        return fk_fail(FK_ERROR_INVALID, "truncated: %zu bytes, the header length alone takes 8", size);
    for (int i = 0; i < 8; i++) length |= (uint64_t)bytes[i] << (8 * i);
    if (length > FK_SAFETENSORS_MAX_HEADER)
        return fk_fail(FK_ERROR_INVALID, "header too large: %llu bytes, at most %u are allowed",
                       (unsigned long long)length, FK_SAFETENSORS_MAX_HEADER);
    if (length > size - 8)
        return fk_fail(FK_ERROR_INVALID,
                       "truncated: a header of %llu bytes is announced, but the file has %zu bytes",
                       (unsigned long long)length, size);
    size_t data_start = 8 + (size_t)length;
    if (length == 0 || bytes[8] != '{')
        return fk_fail(FK_ERROR_INVALID, "the header does not begin with '{'");
    fk_status status = fkp_json_parse((const char *)bytes + 8, (size_t)length, limits, &header);
    if (status != FK_OK) return fk_fail_context(status, "header");
    status = read_header(f, header, bytes + data_start, data_start, size - data_start);
    json_decref(header);
    return status;
}

/* ---- opening, closing, looking up ---- */

/* Reads what is mapped, or says why nothing is. */
static fk_status finish_open(fk_safetensors *f, fk_status mapped, fk_safetensors **out)
{
    fk_status status = mapped == FK_OK ? fk_fail_context(parse(f), "%s", f->map.name) : mapped;
    if (status == FK_OK) *out = f;
    else fk_safetensors_close(f);
    return status;
}

fk_status fkp_safetensors_open_bytes(const void *data, size_t size, const char *name, fk_safetensors **out)
{
    fk_safetensors *f = calloc(1, sizeof *f);
    *out = NULL;
    if (!f) return fk_fail(FK_ERROR_MEMORY, "%s: out of memory", name);
    return finish_open(f, fkp_file_map_wrap(&f->map, name, data, size), out);
}

fk_status fk_safetensors_open(const char *path, fk_safetensors **out)
{
    fk_safetensors *f = calloc(1, sizeof *f);
    *out = NULL;
    if (!f) return fk_fail(FK_ERROR_MEMORY, "%s: out of memory", path);
    return finish_open(f, fkp_file_map_open(&f->map, path), out);
}

void fk_safetensors_close(fk_safetensors *file)
{
    if (!file) return;
    for (size_t i = 0; i < file->count; i++) free((void *)(uintptr_t)file->entries[i].name);
    for (size_t i = 0; i < file->metadata_count; i++) {
        free((void *)(uintptr_t)file->metadata[i].key);
        free((void *)(uintptr_t)file->metadata[i].value);
    }
    free(file->entries);
    free(file->metadata);
    free(file->index);
    free(file->copies);
    fkp_file_map_close(&file->map);
    free(file);
}

size_t fk_safetensors_count(const fk_safetensors *file)
{
    return file->count;
}

const fk_safetensors_entry *fk_safetensors_at(const fk_safetensors *file, size_t index)
{
    assert(index < file->count);
    return &file->entries[index];
}

fk_status fk_safetensors_find(const fk_safetensors *file, const char *name, fk_tensor *out)
{
    size_t i;
    if (!fkp_names_find(file->index, file->count, name, &i))
        return fk_fail(FK_ERROR_MISSING, "%s: no tensor '%s'", file->map.name, name);
    *out = file->entries[i].tensor;
    return FK_OK;
}

size_t fk_safetensors_metadata_count(const fk_safetensors *file)
{
    return file->metadata_count;
}

const fk_safetensors_metadata_pair *fk_safetensors_metadata_at(const fk_safetensors *file, size_t index)
{
    assert(index < file->metadata_count);
    return &file->metadata[index];
}

const char *fk_safetensors_metadata(const fk_safetensors *file, const char *key)
{
    for (size_t i = 0; i < file->metadata_count; i++)
        if (strcmp(file->metadata[i].key, key) == 0) return file->metadata[i].value;
    return NULL;
}
