/* SPDX-License-Identifier: Apache-2.0 */
/* What a model is: config, weights, forward. A model file (models/<architecture>.c) fills in one fk_model_class and adds
 * its line to models/models.def; the rest of the project sees models only through this header. */
#ifndef FK_MODEL_H
#define FK_MODEL_H

#include <fk/ctx.h>
#include <fk/status.h>
#include <fk/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- config: the values of a Hugging Face config.json, wherever they come from (GGUF metadata, a named configuration) */

typedef struct fk_config fk_config;

/* FK_ERROR_INVALID names the field when it is absent, of another type or below `least`. */
fk_status fk_config_int(const fk_config *config, const char *field, int64_t least, int64_t *out);
/* num_hidden_layers, 1 to 10,000: memory for layers is asked for before their tensors are looked up. */
fk_status fk_config_layers(const fk_config *config, int64_t *out);
/* Leaves *out alone when the field is absent or null. */
fk_status fk_config_int_optional(const fk_config *config, const char *field, int64_t least, int64_t *out);
fk_status fk_config_float(const fk_config *config, const char *field, double *out);
fk_status fk_config_float_optional(const fk_config *config, const char *field, double *out);
/* FK_ERROR_INVALID when the field is there and is no object. */
fk_status fk_config_object_optional(const fk_config *config, const char *field);
/* What a norm adds under its root, optional: 0 to 1. */
fk_status fk_config_epsilon_optional(const fk_config *config, const char *field, double *out);
fk_status fk_config_bool_optional(const fk_config *config, const char *field, bool *out);
/* The text of a field, NULL when absent, null or no string; lives as long as the config. */
const char *fk_config_string(const fk_config *config, const char *field);
/* Element `index` of a field that is an array ("layer_types"); NULL past its end and where fk_config_string is NULL. */
const char *fk_config_string_at(const fk_config *config, const char *field, int64_t index);
/* A nested object ("rope_scaling"), NULL when absent or null. */
const fk_config *fk_config_object(const fk_config *config, const char *field);

/* ---- weights */

/* Loads weights into the model's arena, on its device, in its dtype. The first failure sticks and names the tensor; later
 * calls return absent tensors. */
typedef struct fk_weights fk_weights;

/* The tensor of that checkpoint name and shape. */
fk_tensor fk_weights_get(fk_weights *weights, const char *name, int ndim, const int64_t *shape);
/* Absent when the checkpoint has no such tensor. */
fk_tensor fk_weights_get_optional(fk_weights *weights, const char *name, int ndim, const int64_t *shape);
bool fk_weights_have(const fk_weights *weights, const char *name);
/* Several tensors of one row length as one: rows of parts[0], then of parts[1], ... ndim 1 for vectors. */
typedef struct fk_weights_part {
    const char *name;
    int64_t rows;
} fk_weights_part;
fk_tensor fk_weights_merge(fk_weights *weights, int count, const fk_weights_part *parts, int ndim, int64_t cols);
/* A computed table (cosines and sines) from host float32 values, converted to `dtype`. */
fk_tensor fk_weights_table(fk_weights *weights, fk_dtype dtype, int ndim, const int64_t *shape, const float *values);
fk_dtype fk_weights_dtype(const fk_weights *weights);
/* Zeroed memory with the model's lifetime, for the model's own structs. */
void *fk_weights_alloc(fk_weights *weights, size_t bytes);
/* printf into memory with the model's lifetime: names and layer paths. */
const char *fk_weights_name(fk_weights *weights, const char *format, ...) __attribute__((format(printf, 2, 3)));
fk_status fk_weights_status(const fk_weights *weights);

/* ---- forward */

/* Paged key and value caches of all layers: [num_blocks, block_size, num_kv_heads, head_size] each. */
typedef struct fk_kv_cache {
    int64_t num_layers, num_blocks, block_size;
    fk_tensor *key, *value; /* one per layer */
} fk_kv_cache;

/* One step of a language model: the new tokens of all its sequences, one sequence after another. Device tensors. */
typedef struct fk_batch {
    fk_tensor input_ids;    /* [T] i64 */
    fk_tensor positions;    /* [T] i64 */
    fk_tensor slot_mapping; /* [T] i64: where each token's key and value go */
    fk_tensor cu_seqlens_q; /* [B + 1] i32 */
    fk_tensor seqused_k;    /* [B] i32: cached tokens, the new ones among them */
    fk_tensor block_table;  /* [B, M] i32 */
    fk_tensor logits_rows;  /* [L] i64: the tokens whose logits are wanted */
    int64_t max_seqlen_q, max_seqlen_k;
} fk_batch;

/* One pass of an encoder: sequences packed one after another, without padding. Device tensors. */
typedef struct fk_encode_batch {
    fk_tensor input_ids;      /* [T] i64 */
    fk_tensor positions;      /* [T] i64: from 0 in each sequence */
    fk_tensor token_type_ids; /* [T] i64: segment of each token */
    fk_tensor cu_seqlens;     /* [B + 1] i32: start of each sequence, then T */
    int64_t max_seqlen;
} fk_encode_batch;

/* What a query is compared with: the vectors of N documents, as encode gave them. Device tensors. */
typedef struct fk_score_batch {
    fk_tensor query;    /* [Q, embedding_size]: one vector a token, or Q = 1 */
    fk_tensor vectors;  /* [N, S, embedding_size], padded to the longest; S = 1 for one vector a document */
    fk_tensor ids;      /* [N, S] i64: the tokens behind the vectors, padding where there is none; absent for S = 1 */
    fk_tensor skiplist; /* [K] i64: tokens that do not count (punctuation); may be absent */
} fk_score_batch;

/* What engines must know of a loaded model. Which fields mean something follows from its class. */
typedef struct fk_model_info {
    int64_t vocab_size, max_position_embeddings;
    int64_t num_layers, num_kv_heads, head_size; /* num_kv_heads and head_size: of the cache of a language model */
    int64_t embedding_size; /* features of an encoder's vectors */
    bool token_vectors;     /* an encoder gives a vector for each token; else one for each sequence */
    int64_t pad_token_id;   /* of fk_score_batch.ids */
} fk_model_info;

typedef struct fk_model_class {
    const char *architecture;       /* "llama": the row of architectures.tsv */
    const char *const *model_types; /* config.json's model_type values, NULL-terminated */
    /* Builds the model in the weights' memory. */
    fk_status (*create)(fk_weights *weights, const fk_config *config, void **model, fk_model_info *info);
    /* The passes of a model; those it has no use for are NULL. Results stand in the step arena; check the context
     * afterwards.
     * A language model: logits [L, vocab_size] of batch->logits_rows. */
    fk_tensor (*forward)(fk_ctx *ctx, const void *model, const fk_batch *batch, const fk_kv_cache *cache);
    /* An encoder: vectors of length 1, [B, embedding_size], or [T, embedding_size] where info->token_vectors says so. */
    fk_tensor (*encode)(fk_ctx *ctx, const void *model, const fk_encode_batch *batch);
    /* An encoder: how well each document fits the query, [N]; larger is better. */
    fk_tensor (*score)(fk_ctx *ctx, const void *model, const fk_score_batch *batch);
} fk_model_class;

/* The classes of models/models.def. */
int fk_model_class_count(void);
const fk_model_class *fk_model_class_at(int index);
/* By architecture or model_type; NULL when there is none. */
const fk_model_class *fk_model_class_find(const char *name);

/* ---- loaded models */

typedef struct fk_model fk_model;
struct fk_tokenizer;
struct fk_chat_template;

typedef struct fk_model_options {
    fk_device device;
    fk_dtype dtype;          /* FK_NONE: float32 on the CPU; on a device float16 for a float16 checkpoint, else bfloat16 */
    uint64_t seed;           /* of seeded weights */
    int64_t max_layers;      /* 0: all; else the first so many, for quick runs */
    const char *cache_dir;   /* where assets are; NULL: FK_CACHE and its defaults */
} fk_model_options;

/* Opens a model by name: "llama:tiny" (a named configuration with seeded weights), "smollm2-135m" (an asset), or a path to a
 * GGUF file or to a Hugging Face folder. An unknown name gets the nearest known one offered. */
fk_status fk_model_open(const char *name, const fk_model_options *options, fk_model **out);
void fk_model_close(fk_model *model);
const char *fk_model_name(const fk_model *model);
const fk_model_class *fk_model_get_class(const fk_model *model);
const fk_model_info *fk_model_get_info(const fk_model *model);
const fk_config *fk_model_config(const fk_model *model);
fk_device fk_model_device(const fk_model *model);
fk_dtype fk_model_dtype(const fk_model *model);
/* Bytes of weights on the device, and how long loading took. */
int64_t fk_model_weight_bytes(const fk_model *model);
double fk_model_load_seconds(const fk_model *model);
/* The tokenizer and chat template that came with the weights; NULL when there is none (seeded weights). */
const struct fk_tokenizer *fk_model_tokenizer(const fk_model *model);
/* The tokenizer of a model alone, without its weights; the caller's (fk_tokenizer_destroy). */
fk_status fk_model_tokenizer_open(const char *name, const char *cache_dir, struct fk_tokenizer **out);
/* NULL when there is none. */
const struct fk_chat_template *fk_model_chat_template(const fk_model *model);
/* The class's passes; the model must have the one that is called. */
bool fk_model_is_encoder(const fk_model *model);
fk_tensor fk_model_forward(fk_ctx *ctx, const fk_model *model, const fk_batch *batch, const fk_kv_cache *cache);
fk_tensor fk_model_encode(fk_ctx *ctx, const fk_model *model, const fk_encode_batch *batch);
fk_tensor fk_model_score(fk_ctx *ctx, const fk_model *model, const fk_score_batch *batch);

#ifdef __cplusplus
}
#endif
#endif
