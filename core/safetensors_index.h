/* SPDX-License-Identifier: Apache-2.0 */
/* A Hugging Face checkpoint folder: model.safetensors, or the shards that model.safetensors.index.json lists; reading and writing. Everything in
 * the folder is untrusted; a shard is a file of the folder itself, whatever the index says. */
#ifndef FK_CORE_SAFETENSORS_INDEX_H
#define FK_CORE_SAFETENSORS_INDEX_H

#include <fk/status.h>
#include <fk/tensor.h>

#include "core/safetensors.h"

typedef struct fk_checkpoint fk_checkpoint;

/* Opens all shards and checks them against the index: every listed tensor is in its shard, and in no other, and
 * metadata.total_size, where it is given, is their size. Tensors that the index does not list are not part of the checkpoint. Does not change once opened, so threads may share it. */
fk_status fk_checkpoint_open(const char *folder, fk_checkpoint **out);
/* Accepts NULL. */
void fk_checkpoint_close(fk_checkpoint *checkpoint);
size_t fk_checkpoint_shard_count(const fk_checkpoint *checkpoint);
size_t fk_checkpoint_tensor_count(const fk_checkpoint *checkpoint);
/* A view into the map, as fk_safetensors_find. FK_ERROR_MISSING when there is no such tensor. */
fk_status fk_checkpoint_find(const fk_checkpoint *checkpoint, const char *name, fk_tensor *out);

/* Writes contiguous host tensors into an existing folder, in order: model.safetensors when they fit into max_shard_bytes (0:
 * any size), else shards model-00001-of-00003.safetensors, ... and the index. A tensor larger than a shard has its own. The
 * index (model.safetensors) of an earlier checkpoint is removed, its shards stay. */
fk_status fk_checkpoint_write(const char *folder, const fk_safetensors_entry *entries, size_t count, uint64_t max_shard_bytes);

#endif
