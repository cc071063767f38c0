/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of GGUF files (versions 2 and 3, little-endian): typed metadata and a table of tensors over a
 * read-only map. The file is untrusted: everything is checked when it is opened, nothing is allocated from a
 * length that the file has not backed with bytes, and each message names the file, the thing and the value. A
 * fk_gguf does not change after it was opened, so threads may share it; all pointers given out live until
 * fk_gguf_close. */
#ifndef FK_CORE_GGUF_H
#define FK_CORE_GGUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/quant.h"
#include <fk/status.h>
#include <fk/tensor.h>

typedef struct fk_gguf fk_gguf;

fk_status fk_gguf_open(const char *path, fk_gguf **out);
/* Accepts NULL. */
void fk_gguf_close(fk_gguf *gguf);
/* Opens borrowed bytes, 8-byte aligned, which must outlive the reader; `name` stands in messages. */
fk_status fkp_gguf_open_bytes(const void *data, size_t size, const char *name, fk_gguf **out);

uint32_t fk_gguf_version(const fk_gguf *gguf);

/* ---- metadata ---- */

typedef enum fk_gguf_type { /* the numbers stand in files */
                            FK_GGUF_U8 = 0,
                            FK_GGUF_I8,
                            FK_GGUF_U16,
                            FK_GGUF_I16,
                            FK_GGUF_U32,
                            FK_GGUF_I32,
                            FK_GGUF_F32,
                            FK_GGUF_BOOL,
                            FK_GGUF_STRING,
                            FK_GGUF_ARRAY,
                            FK_GGUF_U64,
                            FK_GGUF_I64,
                            FK_GGUF_F64,
                            FK_GGUF_TYPE_COUNT
} fk_gguf_type;

/* Text inside the map: not NUL-terminated, meant to be UTF-8 but not checked. */
typedef struct fk_gguf_string {
    const char *data;
    size_t size;
} fk_gguf_string;

/* An array of numbers or booleans inside the map, unaligned: read it by fk_gguf_array_i64 or _f64. */
typedef struct fk_gguf_array {
    fk_gguf_type type; /* of the elements */
    size_t count;
    const uint8_t *data;
} fk_gguf_array;

size_t fk_gguf_key_count(const fk_gguf *gguf);
const char *fk_gguf_key_at(const fk_gguf *gguf, size_t index); /* in file order */
bool fk_gguf_has(const fk_gguf *gguf, const char *key);

/* Getters: FK_ERROR_MISSING without the key, FK_ERROR_INVALID when its type or range does not fit; then *out
 * is unchanged. Integers convert between widths and signs when the value fits; fk_gguf_get_f64 takes integers
 * too. */
fk_status fk_gguf_get_string(const fk_gguf *gguf, const char *key, fk_gguf_string *out);
fk_status fk_gguf_get_u64(const fk_gguf *gguf, const char *key, uint64_t *out);
fk_status fk_gguf_get_i64(const fk_gguf *gguf, const char *key, int64_t *out);
fk_status fk_gguf_get_f64(const fk_gguf *gguf, const char *key, double *out);
fk_status fk_gguf_get_bool(const fk_gguf *gguf, const char *key, bool *out);
/* An array of strings: *strings [*count] views into the file. */
fk_status fk_gguf_get_strings(const fk_gguf *gguf, const char *key, const fk_gguf_string **strings,
                              size_t *count);
/* An array of integers or booleans / of integers, booleans or floats. */
fk_status fk_gguf_get_integers(const fk_gguf *gguf, const char *key, fk_gguf_array *out);
fk_status fk_gguf_get_numbers(const fk_gguf *gguf, const char *key, fk_gguf_array *out);
/* Element i < count. _i64 is for integer and boolean arrays; U64 above INT64_MAX wraps (cast it back). */
int64_t fk_gguf_array_i64(const fk_gguf_array *array, size_t i);
double fk_gguf_array_f64(const fk_gguf_array *array, size_t i);

/* ---- tensors ---- */

#define FK_GGUF_MAX_NDIM 4

typedef struct fk_gguf_tensor {
    const char *name;
    uint32_t type; /* fk_qtype or a number not known here */
    int32_t ndim;
    int64_t shape[FK_GGUF_MAX_NDIM]; /* row-major, outermost first: the reverse of the file's order */
    const void *data;                /* first block */
    size_t nbytes;                   /* 0 when the type is not known */
} fk_gguf_tensor;

size_t fk_gguf_tensor_count(const fk_gguf *gguf);
const fk_gguf_tensor *fk_gguf_tensor_at(const fk_gguf *gguf, size_t index); /* in file order */
/* FK_ERROR_MISSING when there is no such tensor. */
fk_status fk_gguf_find(const fk_gguf *gguf, const char *name, const fk_gguf_tensor **out);
/* A view without a copy: F64, F32, F16, BF16, I64, I32 and I8 as such, blocks that can be dequantised as u8
 * [..., row_bytes]. FK_ERROR_UNSUPPORTED for other types. The memory is read-only. */
fk_status fk_gguf_view(const fk_gguf *gguf, const fk_gguf_tensor *tensor, fk_tensor *out);
/* Rows [begin, end) of the tensor seen as [rows, last dimension], as float32 into out [end - begin, last
 * dimension]. FK_ERROR_UNSUPPORTED for types that fk_dequantize_rows does not take. */
fk_status fk_gguf_dequantize(const fk_gguf *gguf, const fk_gguf_tensor *tensor, int64_t begin, int64_t end,
                             float *out);

#endif
