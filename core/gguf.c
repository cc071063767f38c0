/* SPDX-License-Identifier: Apache-2.0 */
/* GGUF: parsing and checks. Layout of a file, all little-endian:
 *     "GGUF"  u32 version  u64 tensor count  u64 key count
 *     keys:    string key, u32 type, value       string = u64 length, bytes; array = u32 type, u64 count,
 * elements tensors: string name, u32 ndim, u64 dims[ndim] (innermost first), u32 type, u64 offset padding to
 * general.alignment (default 32), then tensor data at data start + offset Reference: the GGUF specification
 * in ggml's docs, and the reader of the `gguf` Python package. What the access functions of gguf_access.c see
 * has passed all checks here. */
#define _POSIX_C_SOURCE 200809L
#include "core/gguf_impl.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ARRAY_DEPTH 4     /* arrays of arrays exist in the format, hardly in files */
#define DEFAULT_ALIGNMENT 32u /* of tensor data, when general.alignment is absent */
#define MIN_ALIGNMENT 8u      /* the specification wants a multiple of 8 */
#define MAX_ALIGNMENT 65536u  /* ours: above a page there is no use, and padding would be a lie */

/* A position in the file. Invariant: at <= size. */
typedef struct cursor {
    const uint8_t *data;
    size_t size;
    size_t at;
} cursor;

static fk_status take(cursor *c, uint64_t bytes, const char *what, const uint8_t **out)
{
    if (bytes > c->size - c->at)
        return fk_fail(FK_ERROR_INVALID,
                       "truncated: %s needs %llu bytes at byte %zu, but the file has %zu bytes", what,
                       (unsigned long long)bytes, c->at, c->size);
    *out = c->data + c->at;
    c->at += (size_t)bytes;
    return FK_OK;
}

static fk_status take_u32(cursor *c, const char *what, uint32_t *out)
{
    const uint8_t *bytes = NULL;
    FK_TRY(take(c, 4, what, &bytes));
    *out = (uint32_t)fkp_gguf_load(bytes, 4);
    return FK_OK;
}

static fk_status take_u64(cursor *c, const char *what, uint64_t *out)
{
    const uint8_t *bytes = NULL;
    FK_TRY(take(c, 8, what, &bytes));
    *out = fkp_gguf_load(bytes, 8);
    return FK_OK;
}

static fk_status take_string(cursor *c, const char *what, fk_gguf_string *out)
{
    uint64_t length = 0;
    const uint8_t *bytes = NULL;
    FK_TRY(take_u64(c, what, &length));
    FK_TRY(take(c, length, what, &bytes));
    *out = (fk_gguf_string){(const char *)bytes, (size_t)length};
    return FK_OK;
}

/* A key or tensor name, copied so that it ends in NUL. */
static fk_status take_name(cursor *c, const char *what, char **out)
{
    char quoted[FKP_QUOTED_SIZE];
    fk_gguf_string s = {0};
    FK_TRY(take_string(c, what, &s));
    if (memchr(s.data, 0, s.size))
        return fk_fail(FK_ERROR_INVALID, "%s %s contains a NUL byte", what,
                       fkp_quote(quoted, s.data, s.size));
    char *copy = malloc(s.size + 1);
    if (!copy) return fk_fail(FK_ERROR_MEMORY, "out of memory for a %s of %zu bytes", what, s.size);
    memcpy(copy, s.data, s.size);
    copy[s.size] = '\0';
    *out = copy;
    return FK_OK;
}

/* Makes room for one more element, doubling: the size follows what was parsed, not what a count promises. */
static fk_status grow(void **array, size_t count, size_t *capacity, size_t element)
{
    if (count < *capacity) return FK_OK;
    size_t wanted = *capacity ? *capacity * 2 : 16;
    void *moved = realloc(*array, wanted * element);
    if (!moved) return fk_fail(FK_ERROR_MEMORY, "out of memory for %zu table entries", wanted);
    *array = moved;
    *capacity = wanted;
    return FK_OK;
}

static fk_status check_bools(const uint8_t *data, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (data[i] > 1) return fk_fail(FK_ERROR_INVALID, "boolean with value %u", data[i]);
    return FK_OK;
}

static fk_status check_type(uint32_t type)
{
    if (type < FK_GGUF_TYPE_COUNT) return FK_OK;
    return fk_fail(FK_ERROR_INVALID, "unknown value type %u", type);
}

/* The body of an array, after type and count; depth is 1 for the outermost. */
static fk_status skip_elements(cursor *c, fk_gguf_type type, uint64_t count, int depth)
{
    const uint8_t *bytes = NULL;
    size_t size = fkp_gguf_scalar_size(type), left = c->size - c->at;
    size_t least = type == FK_GGUF_STRING ? 8 : type == FK_GGUF_ARRAY ? 12 : size;
    if (count > left / least)
        return fk_fail(FK_ERROR_INVALID,
                       "array of %llu elements of type %s needs more than the %zu bytes left",
                       (unsigned long long)count, fkp_gguf_type_name(type), left);
    if (size > 0) {
        FK_TRY(take(c, count * size, "array", &bytes));
        return type == FK_GGUF_BOOL ? check_bools(bytes, count) : FK_OK;
    }
    for (uint64_t i = 0; i < count; i++) {
        if (type == FK_GGUF_STRING) {
            fk_gguf_string s;
            FK_TRY(take_string(c, "array string", &s));
        } else {
            uint32_t inner = 0;
            uint64_t inner_count = 0;
            if (depth == MAX_ARRAY_DEPTH)
                return fk_fail(FK_ERROR_INVALID, "arrays nested deeper than %d levels", MAX_ARRAY_DEPTH);
            FK_TRY(take_u32(c, "array type", &inner));
            FK_TRY(take_u64(c, "array length", &inner_count));
            FK_TRY(check_type(inner));
            FK_TRY(skip_elements(c, (fk_gguf_type)inner, inner_count, depth + 1));
        }
    }
    return FK_OK;
}

static fk_status parse_array(cursor *c, fkp_gguf_value *value)
{
    uint32_t type = 0;
    FK_TRY(take_u32(c, "array type", &type));
    FK_TRY(take_u64(c, "array length", &value->count));
    FK_TRY(check_type(type));
    value->element = (fk_gguf_type)type;
    value->data = c->data + c->at;
    cursor start = *c;
    FK_TRY(skip_elements(c, value->element, value->count, 1));
    if (type != FK_GGUF_STRING || value->count == 0) return FK_OK;

    /* Checked: count * 8 <= file size, so this cannot wrap and is at most twice the bytes just seen. */
    value->strings = malloc((size_t)value->count * sizeof *value->strings);
    if (!value->strings)
        return fk_fail(FK_ERROR_MEMORY, "out of memory for %llu string views",
                       (unsigned long long)value->count);
    for (uint64_t i = 0; i < value->count; i++)
        FK_TRY(take_string(&start, "array string", &value->strings[i]));
    return FK_OK;
}

static fk_status parse_value(cursor *c, fkp_gguf_value *value)
{
    uint32_t type = 0;
    FK_TRY(take_u32(c, "value type", &type));
    FK_TRY(check_type(type));
    value->type = (fk_gguf_type)type;
    if (type == FK_GGUF_STRING) return take_string(c, "string", &value->string);
    if (type == FK_GGUF_ARRAY) return parse_array(c, value);
    FK_TRY(take(c, fkp_gguf_scalar_size(value->type), "value", &value->data));
    return type == FK_GGUF_BOOL ? check_bools(value->data, 1) : FK_OK;
}

static fk_status parse_keys(fk_gguf *g, cursor *c, uint64_t count)
{
    char quoted[FKP_QUOTED_SIZE];
    size_t capacity = 0;
    for (uint64_t i = 0; i < count; i++) {
        FK_TRY(grow((void **)&g->values, g->key_count, &capacity, sizeof *g->values));
        fkp_gguf_value *value = &g->values[g->key_count];
        *value = (fkp_gguf_value){0};
        fk_status status = take_name(c, "metadata key", &value->key);
        if (status != FK_OK)
            return fk_fail_context(status, "metadata key %llu of %llu", (unsigned long long)i + 1,
                                   (unsigned long long)count);
        g->key_count++; /* from here on fk_gguf_close frees it */
        status = parse_value(c, value);
        if (status != FK_OK)
            return fk_fail_context(status, "metadata %s", fkp_quote(quoted, value->key, strlen(value->key)));
    }
    return FK_OK;
}

/* Shape, and the bytes it takes when the type is known. Zero dimensions count as 1 in the overflow check, so
 * that products of the others stay safe for everybody. */
static fk_status check_shape(const uint64_t *dims, uint32_t ndim, uint32_t type, fk_gguf_tensor *t)
{
    const fk_qtype_info *info = fk_qtype_describe(type);
    int64_t numel = 1;
    bool empty = false;
    for (uint32_t i = 0; i < ndim; i++) {
        if (dims[i] > INT64_MAX)
            return fk_fail(FK_ERROR_INVALID, "dimension %u is %llu", i, (unsigned long long)dims[i]);
        t->shape[ndim - 1 - i] = (int64_t)dims[i];
        empty |= dims[i] == 0;
        if (dims[i] > 0 && __builtin_mul_overflow(numel, (int64_t)dims[i], &numel))
            return fk_fail(FK_ERROR_INVALID, "the product of its dimensions (dimension %u is %llu) overflows",
                           i, (unsigned long long)dims[i]);
    }
    t->ndim = (int32_t)ndim;
    t->type = type;
    if (!info) return FK_OK;
    uint64_t row = ndim > 0 ? dims[0] : 1;
    if (row % (uint64_t)info->block_size != 0)
        return fk_fail(FK_ERROR_INVALID, "rows of %llu elements are no multiple of the %lld of a %s block",
                       (unsigned long long)row, (long long)info->block_size, info->name);
    if (__builtin_mul_overflow(empty ? 0 : numel / info->block_size, info->block_bytes, &numel))
        return fk_fail(FK_ERROR_INVALID, "its size in bytes overflows");
    t->nbytes = (size_t)numel;
    return FK_OK;
}

static fk_status parse_tensor(cursor *c, fkp_gguf_entry *entry)
{
    uint64_t dims[FK_GGUF_MAX_NDIM] = {0};
    uint32_t ndim = 0, type = 0;
    FK_TRY(take_u32(c, "number of dimensions", &ndim));
    if (ndim > FK_GGUF_MAX_NDIM)
        return fk_fail(FK_ERROR_INVALID, "%u dimensions, at most %d are allowed", ndim, FK_GGUF_MAX_NDIM);
    for (uint32_t i = 0; i < ndim; i++) FK_TRY(take_u64(c, "dimension", &dims[i]));
    FK_TRY(take_u32(c, "tensor type", &type));
    FK_TRY(take_u64(c, "tensor offset", &entry->offset));
    return check_shape(dims, ndim, type, &entry->tensor);
}

static fk_status parse_tensors(fk_gguf *g, cursor *c, uint64_t count)
{
    char quoted[FKP_QUOTED_SIZE];
    size_t capacity = 0;
    for (uint64_t i = 0; i < count; i++) {
        FK_TRY(grow((void **)&g->entries, g->tensor_count, &capacity, sizeof *g->entries));
        fkp_gguf_entry *entry = &g->entries[g->tensor_count];
        *entry = (fkp_gguf_entry){0};
        char *name;
        fk_status status = take_name(c, "tensor name", &name);
        if (status != FK_OK)
            return fk_fail_context(status, "tensor %llu of %llu", (unsigned long long)i + 1,
                                   (unsigned long long)count);
        entry->tensor.name = name;
        g->tensor_count++; /* from here on fk_gguf_close frees it */
        status = parse_tensor(c, entry);
        if (status != FK_OK)
            return fk_fail_context(status, "tensor %s", fkp_quote(quoted, name, strlen(name)));
    }
    return FK_OK;
}

static fk_status index_names(fk_gguf *g)
{
    char quoted[FKP_QUOTED_SIZE];
    g->key_index = malloc((g->key_count + 1) * sizeof *g->key_index);
    g->tensor_index = malloc((g->tensor_count + 1) * sizeof *g->tensor_index);
    if (!g->key_index || !g->tensor_index)
        return fk_fail(FK_ERROR_MEMORY, "out of memory for the index of %zu keys and %zu tensors",
                       g->key_count, g->tensor_count);
    for (size_t i = 0; i < g->key_count; i++) g->key_index[i] = (fkp_name_ref){g->values[i].key, i};
    for (size_t i = 0; i < g->tensor_count; i++)
        g->tensor_index[i] = (fkp_name_ref){g->entries[i].tensor.name, i};
    const char *twice = fkp_names_sort(g->key_index, g->key_count);
    if (twice)
        return fk_fail(FK_ERROR_INVALID, "metadata %s occurs twice", fkp_quote(quoted, twice, strlen(twice)));
    twice = fkp_names_sort(g->tensor_index, g->tensor_count);
    if (twice)
        return fk_fail(FK_ERROR_INVALID, "tensor %s occurs twice", fkp_quote(quoted, twice, strlen(twice)));
    return FK_OK;
}

static fk_status read_alignment(const fk_gguf *g, uint32_t *alignment)
{
    size_t i;
    *alignment = DEFAULT_ALIGNMENT;
    if (!fkp_names_find(g->key_index, g->key_count, "general.alignment", &i)) return FK_OK;
    const fkp_gguf_value *value = &g->values[i];
    if (value->type != FK_GGUF_U32)
        return fk_fail(FK_ERROR_INVALID, "metadata 'general.alignment' has type %s, not u32",
                       fkp_gguf_type_name(value->type));
    *alignment = (uint32_t)fkp_gguf_load(value->data, 4);
    if (*alignment < MIN_ALIGNMENT || *alignment > MAX_ALIGNMENT || (*alignment & (*alignment - 1)) != 0)
        return fk_fail(FK_ERROR_INVALID,
                       "metadata 'general.alignment' is %u, not a power of two from %u to %u", *alignment,
                       MIN_ALIGNMENT, MAX_ALIGNMENT);
    return FK_OK;
}

static int compare_offsets(const void *a, const void *b)
{
    const fkp_gguf_entry *x = *(const fkp_gguf_entry *const *)a, *y = *(const fkp_gguf_entry *const *)b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static fk_status check_overlaps(fk_gguf *g)
{
    char a[FKP_QUOTED_SIZE], b[FKP_QUOTED_SIZE];
    fk_status status = FK_OK;
    size_t count = 0;
    const fkp_gguf_entry **order = malloc((g->tensor_count + 1) * sizeof *order);
    if (!order)
        return fk_fail(FK_ERROR_MEMORY, "out of memory for the order of %zu tensors", g->tensor_count);
    for (size_t i = 0; i < g->tensor_count; i++)
        if (g->entries[i].tensor.nbytes > 0) order[count++] = &g->entries[i];
    if (count > 1) qsort(order, count, sizeof *order, compare_offsets);
    for (size_t i = 1; i < count && status == FK_OK; i++) {
        const fkp_gguf_entry *x = order[i - 1], *y = order[i];
        if (y->offset - x->offset < x->tensor.nbytes)
            status = fk_fail(
                FK_ERROR_INVALID, "tensor %s at offset %llu overlaps tensor %s (%zu bytes at offset %llu)",
                fkp_quote(a, y->tensor.name, strlen(y->tensor.name)), (unsigned long long)y->offset,
                fkp_quote(b, x->tensor.name, strlen(x->tensor.name)), x->tensor.nbytes,
                (unsigned long long)x->offset);
    }
    free(order);
    return status;
}

/* Puts the tensors' data pointers behind the header that ends at byte `at`. */
static fk_status place_data(fk_gguf *g, size_t at)
{
    char quoted[FKP_QUOTED_SIZE];
    uint32_t alignment = 0;
    FK_TRY(read_alignment(g, &alignment));
    if (g->tensor_count == 0) return FK_OK; /* nothing need follow the header */
    size_t padding = (alignment - at % alignment) % alignment;
    if (padding > g->map.size - at)
        return fk_fail(FK_ERROR_INVALID,
                       "truncated: tensor data start at byte %zu, but the file has %zu bytes", at + padding,
                       g->map.size);
    const uint8_t *start = g->map.data + at + padding;
    size_t room = g->map.size - at - padding;
    for (size_t i = 0; i < g->tensor_count; i++) {
        fkp_gguf_entry *e = &g->entries[i];
        fk_gguf_tensor *t = &e->tensor;
        const char *name = fkp_quote(quoted, t->name, strlen(t->name));
        if (e->offset % alignment != 0)
            return fk_fail(FK_ERROR_INVALID, "tensor %s: offset %llu is no multiple of the alignment %u",
                           name, (unsigned long long)e->offset, alignment);
        if (e->offset > room || t->nbytes > room - e->offset)
            return fk_fail(
                FK_ERROR_INVALID,
                "tensor %s: %zu bytes at offset %llu go past the end of the %zu bytes of tensor data", name,
                t->nbytes, (unsigned long long)e->offset, room);
        t->data = start + e->offset;
    }
    return check_overlaps(g);
}

static fk_status parse_version(cursor *c, uint32_t *version)
{
    const uint8_t *magic = NULL;
    FK_TRY(take(c, 4, "magic", &magic));
    if (memcmp(magic, "GGUF", 4) != 0)
        return fk_fail(FK_ERROR_INVALID, "not a GGUF file: it begins with bytes %02x %02x %02x %02x",
                       magic[0], magic[1], magic[2], magic[3]);
    FK_TRY(take_u32(c, "version", version));
    if (*version != 0 && (*version & 0xffffu) == 0)
        return fk_fail(FK_ERROR_UNSUPPORTED,
                       "version field 0x%08x: a big-endian file, which is not supported", *version);
    if (*version < 2 || *version > 3)
        return fk_fail(FK_ERROR_UNSUPPORTED, "GGUF version %u, supported are 2 and 3", *version);
    return FK_OK;
}

static fk_status parse(fk_gguf *g)
{
    cursor c = {g->map.data, g->map.size, 0};
    uint64_t tensor_count = 0, key_count = 0;
    FK_TRY(parse_version(&c, &g->version));
    FK_TRY(take_u64(&c, "tensor count", &tensor_count));
    FK_TRY(take_u64(&c, "metadata count", &key_count));
    size_t left = c.size - c.at; /* a key takes 13 bytes at least, a tensor 24 */
    if (key_count > left / 13)
        return fk_fail(FK_ERROR_INVALID, "metadata count %llu cannot fit into %zu bytes",
                       (unsigned long long)key_count, left);
    if (tensor_count > left / 24)
        return fk_fail(FK_ERROR_INVALID, "tensor count %llu cannot fit into %zu bytes",
                       (unsigned long long)tensor_count, left);
    FK_TRY(parse_keys(g, &c, key_count));
    FK_TRY(parse_tensors(g, &c, tensor_count));
    FK_TRY(index_names(g));
    return place_data(g, c.at);
}

/* Reads what is mapped, or says why nothing is. */
static fk_status finish_open(fk_gguf *g, fk_status mapped, fk_gguf **out)
{
    fk_status status = mapped == FK_OK ? fk_fail_context(parse(g), "%s", g->map.name) : mapped;
    if (status == FK_OK) *out = g;
    else fk_gguf_close(g);
    return status;
}

fk_status fkp_gguf_open_bytes(const void *data, size_t size, const char *name, fk_gguf **out)
{
    fk_gguf *g = calloc(1, sizeof *g);
    *out = NULL;
    if (!g) return fk_fail(FK_ERROR_MEMORY, "%s: out of memory", name);
    return finish_open(g, fkp_file_map_wrap(&g->map, name, data, size), out);
}

fk_status fk_gguf_open(const char *path, fk_gguf **out)
{
    fk_gguf *g = calloc(1, sizeof *g);
    *out = NULL;
    if (!g) return fk_fail(FK_ERROR_MEMORY, "%s: out of memory", path);
    return finish_open(g, fkp_file_map_open(&g->map, path), out);
}

void fk_gguf_close(fk_gguf *gguf)
{
    if (!gguf) return;
    for (size_t i = 0; i < gguf->key_count; i++) {
        free(gguf->values[i].key);
        free(gguf->values[i].strings);
    }
    for (size_t i = 0; i < gguf->tensor_count; i++) free((void *)(uintptr_t)gguf->entries[i].tensor.name);
    free(gguf->values);
    free(gguf->entries);
    free(gguf->key_index);
    free(gguf->tensor_index);
    fkp_file_map_close(&gguf->map);
    free(gguf);
}
