/* SPDX-License-Identifier: Apache-2.0 */
/* A Hugging Face folder as a model: config.json and generation_config.json as a config, its checkpoint as a source of
 * weights. */
#ifndef FK_RUNTIME_HF_MODEL_H
#define FK_RUNTIME_HF_MODEL_H

#include <jansson.h>

#include "core/safetensors_index.h"
#include "runtime/weights.h"

/* The folder's config.json, with what its versions write in several ways made one: rope_theta out of rope_parameters,
 * torch_dtype for dtype, and eos_token_id as the array of the ids of both files. architectures must name a supported one.
 * The caller owns *object. */
fk_status fk_hf_config(const char *folder, json_t **object);

/* The source of a checkpoint, which it borrows: float tensors of 16 bits and more, widened to float32. */
fk_weight_source fk_hf_source(fk_checkpoint *checkpoint);

#endif
