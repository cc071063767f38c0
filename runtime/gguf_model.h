/* SPDX-License-Identifier: Apache-2.0 */
/* A GGUF file as a model: its metadata as a config with Hugging Face's field names, its tensors under Hugging Face's
 * checkpoint names. */
#ifndef FK_RUNTIME_GGUF_MODEL_H
#define FK_RUNTIME_GGUF_MODEL_H

#include <jansson.h>

#include "core/gguf.h"
#include "runtime/weights.h"

/* The config of the file; the caller owns *object. Architectures other than "llama" are refused by name. */
fk_status fk_gguf_config(const fk_gguf *gguf, json_t **object);

typedef struct fk_gguf_source {
    fk_weight_source source; /* for fk_weights_create */
    const fk_gguf *gguf;
    int64_t num_heads, num_kv_heads;
} fk_gguf_source;

/* Caller's storage; borrows the file and reads the head counts from its config. */
fk_status fk_gguf_source_init(fk_gguf_source *source, const fk_gguf *gguf, const json_t *config);

#endif
