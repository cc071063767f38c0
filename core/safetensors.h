/* SPDX-License-Identifier: Apache-2.0 */
/* Single-file safetensors: a reader that gives views into a read-only map, and an atomic, deterministic
 * writer. The file is untrusted: the format's own rules (no hole, no overlap, no surplus byte, sizes that
 * follow from dtype and shape) are all checked at open, before any tensor is used; messages name the file,
 * the tensor and the value. */
#ifndef FK_CORE_SAFETENSORS_H
#define FK_CORE_SAFETENSORS_H

#include <stddef.h>

#include <fk/status.h>
#include <fk/tensor.h>

/* The format's limit on the JSON header. */
#define FK_SAFETENSORS_MAX_HEADER 100000000u

typedef struct fk_safetensors fk_safetensors;

typedef struct fk_safetensors_entry {
    const char *name;
    fk_tensor tensor;
} fk_safetensors_entry;

typedef struct fk_safetensors_metadata_pair {
    const char *key;
    const char *value;
} fk_safetensors_metadata_pair;

/* Does not change once opened, so threads may share it; what it gives out lives until fk_safetensors_close.
 */
fk_status fk_safetensors_open(const char *path, fk_safetensors **out);
/* Accepts NULL. */
void fk_safetensors_close(fk_safetensors *file);
/* Opens borrowed bytes, which must outlive the reader; `name` stands in messages. */
fk_status fkp_safetensors_open_bytes(const void *data, size_t size, const char *name, fk_safetensors **out);

size_t fk_safetensors_count(const fk_safetensors *file);
/* In the order of the data. Tensor memory is read-only; it is a view into the map, or an aligned copy where
 * the file put a tensor on an address that its type does not allow. */
const fk_safetensors_entry *fk_safetensors_at(const fk_safetensors *file, size_t index);
/* FK_ERROR_MISSING when there is no such tensor. */
fk_status fk_safetensors_find(const fk_safetensors *file, const char *name, fk_tensor *out);
size_t fk_safetensors_metadata_count(const fk_safetensors *file);
const fk_safetensors_metadata_pair *fk_safetensors_metadata_at(const fk_safetensors *file, size_t index);
/* The value of a __metadata__ key, NULL when it is not there. */
const char *fk_safetensors_metadata(const fk_safetensors *file, const char *key);

/* Writes contiguous host tensors in the order given, preceded by the metadata. Equal input gives equal bytes.
 * `path` gets its new content whole or not at all: a temporary file beside it is synced and renamed, and
 * removed on failure. */
fk_status fk_safetensors_write(const char *path, const fk_safetensors_entry *entries, size_t count,
                               const fk_safetensors_metadata_pair *metadata, size_t metadata_count);

/* The format's name of a dtype ("F32"), NULL when it has none. */
const char *fkp_safetensors_dtype_name(fk_dtype dtype);

#endif
