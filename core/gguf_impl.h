/* SPDX-License-Identifier: Apache-2.0 */
/* What parsing (gguf.c) hands to access (gguf_access.c): the struct behind fk_gguf, and the metadata type
 * table. */
#ifndef FK_CORE_GGUF_IMPL_H
#define FK_CORE_GGUF_IMPL_H

#include "core/file_map.h"
#include "core/gguf.h"
#include "core/names.h"

typedef struct fkp_gguf_value {
    char *key; /* owned */
    fk_gguf_type type;
    const uint8_t *data;     /* scalars: the value; arrays: the first element */
    fk_gguf_string string;   /* FK_GGUF_STRING */
    fk_gguf_type element;    /* FK_GGUF_ARRAY */
    uint64_t count;          /* FK_GGUF_ARRAY */
    fk_gguf_string *strings; /* arrays of strings: owned views [count] */
} fkp_gguf_value;

typedef struct fkp_gguf_entry {
    fk_gguf_tensor tensor;
    uint64_t offset; /* from the start of tensor data */
} fkp_gguf_entry;

struct fk_gguf {
    fkp_file_map map;
    uint32_t version;
    size_t key_count, tensor_count;
    fkp_gguf_value *values;
    fkp_gguf_entry *entries;
    fkp_name_ref *key_index, *tensor_index;
};

/* Bytes of a scalar of that type, 0 for strings and arrays. */
size_t fkp_gguf_scalar_size(fk_gguf_type type);
const char *fkp_gguf_type_name(fk_gguf_type type);

/* A little-endian unsigned integer of 1, 2, 4 or 8 bytes. */
static inline uint64_t fkp_gguf_load(const uint8_t *bytes, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) value |= (uint64_t)bytes[i] << (8 * i);
    return value;
}

#endif
