/* SPDX-License-Identifier: Apache-2.0 */
/* A Hugging Face checkpoint folder: model.safetensors, or the shards that model.safetensors.index.json lists. Everything in
 * the folder is untrusted; a shard is a file of the folder itself, whatever the index says. */
#ifndef FK_CORE_SAFETENSORS_INDEX_H
#define FK_CORE_SAFETENSORS_INDEX_H

#include <fk/status.h>
#include <fk/tensor.h>

typedef struct fk_checkpoint fk_checkpoint;

/* Opens all shards and checks them against the index: every listed tensor is in its shard, and in no other. Tensors that the
 * index does not list are not part of the checkpoint. Does not change once opened, so threads may share it. */
fk_status fk_checkpoint_open(const char *folder, fk_checkpoint **out);
/* Accepts NULL. */
void fk_checkpoint_close(fk_checkpoint *checkpoint);
size_t fk_checkpoint_shard_count(const fk_checkpoint *checkpoint);
size_t fk_checkpoint_tensor_count(const fk_checkpoint *checkpoint);
/* A view into the map, as fk_safetensors_find. FK_ERROR_MISSING when there is no such tensor. */
fk_status fk_checkpoint_find(const fk_checkpoint *checkpoint, const char *name, fk_tensor *out);

#endif
