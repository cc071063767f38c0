/* SPDX-License-Identifier: Apache-2.0 */
/* Llama (arXiv:2302.13971, arXiv:2407.21783): a decoder with rotary positions, grouped queries and SwiGLU. Also its kin:
 * SmolLM2 ties the head to the token table, Mistral (arXiv:2310.06825) attends through a sliding window, Qwen2
 * (arXiv:2407.10671) adds biases to query, key and value, Qwen3 (arXiv:2505.09388) normalizes the heads of query and key.
 * Field and weight names are those of transformers' LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM and
 * Qwen3ForCausalLM (https://github.com/huggingface/transformers). */
#include <string.h>

#include <fk/model.h>
#include <fk/ops.h>

#include "models/rotary_table.h"

/* ---- config */

typedef struct llama_config {
    int64_t vocab_size, hidden_size, intermediate_size, num_hidden_layers;
    int64_t num_attention_heads, num_key_value_heads, head_dim, max_position_embeddings;
    double rms_norm_eps;
    bool tie_word_embeddings;
    bool qkv_bias, o_bias, qk_norm;
    int64_t sliding_window, full_layers; /* window: 0 for none; how many first layers are without it */
} llama_config;

/* What sets the members of the family apart. */
static fk_status read_variant(const fk_config *from, llama_config *c)
{
    const char *type = fk_config_string(from, "model_type");
    bool mistral = type && strcmp(type, "mistral") == 0, qwen2 = type && strcmp(type, "qwen2") == 0;
    bool qwen3 = type && strcmp(type, "qwen3") == 0, use_sliding_window = mistral, attention_bias = false;
    if (!mistral) FK_TRY(fk_config_bool_optional(from, "attention_bias", &attention_bias));
    c->qkv_bias = qwen2 || attention_bias; /* Qwen2 has these always, */
    c->o_bias = !qwen2 && attention_bias;  /* and never this one */
    c->qk_norm = qwen3;

    if (qwen2 || qwen3) FK_TRY(fk_config_bool_optional(from, "use_sliding_window", &use_sliding_window));
    c->sliding_window = c->full_layers = 0;
    if (!use_sliding_window) return FK_OK;
    FK_TRY(fk_config_int_optional(from, "sliding_window", 1, &c->sliding_window));
    if (!mistral) FK_TRY(fk_config_int_optional(from, "max_window_layers", 0, &c->full_layers));
    return FK_OK;
}

/* Keys that a query of layer l sees, 0 for all: layer_types says which layers have the window, or else max_window_layers. */
static fk_status window_of_layer(const fk_config *from, const llama_config *c, int64_t l, int64_t *window)
{
    const char *type = fk_config_string_at(from, "layer_types", l);
    *window = type || l < c->full_layers ? 0 : c->sliding_window;
    if (!type || strcmp(type, "full_attention") == 0) return FK_OK;
    *window = c->sliding_window;
    if (strcmp(type, "sliding_attention") == 0) return FK_OK;
    return fk_fail(FK_ERROR_UNSUPPORTED, "layer_types[%lld] is '%s', neither full_attention nor sliding_attention", (long long)l, type);
}

static fk_status read_config(const fk_config *from, llama_config *c)
{
    FK_TRY(fk_config_int(from, "vocab_size", 1, &c->vocab_size));
    FK_TRY(fk_config_int(from, "hidden_size", 1, &c->hidden_size));
    FK_TRY(fk_config_int(from, "intermediate_size", 1, &c->intermediate_size));
    FK_TRY(fk_config_layers(from, &c->num_hidden_layers));
    FK_TRY(fk_config_int(from, "num_attention_heads", 1, &c->num_attention_heads));
    c->num_key_value_heads = c->num_attention_heads;
    FK_TRY(fk_config_int_optional(from, "num_key_value_heads", 1, &c->num_key_value_heads));
    c->head_dim = 0;
    FK_TRY(fk_config_int_optional(from, "head_dim", 1, &c->head_dim));
    c->max_position_embeddings = 2048;
    FK_TRY(fk_config_int_optional(from, "max_position_embeddings", 1, &c->max_position_embeddings));
    c->rms_norm_eps = 1e-6;
    FK_TRY(fk_config_epsilon_optional(from, "rms_norm_eps", &c->rms_norm_eps));
    c->tie_word_embeddings = false;
    FK_TRY(fk_config_bool_optional(from, "tie_word_embeddings", &c->tie_word_embeddings));
    FK_TRY(read_variant(from, c));

    if (c->num_attention_heads % c->num_key_value_heads != 0)
        return fk_fail(FK_ERROR_INVALID, "num_attention_heads %lld is no multiple of num_key_value_heads %lld",
                       (long long)c->num_attention_heads, (long long)c->num_key_value_heads);
    if (c->head_dim == 0 && c->hidden_size % c->num_attention_heads != 0)
        return fk_fail(FK_ERROR_INVALID, "no head_dim, and hidden_size %lld is no multiple of num_attention_heads %lld",
                       (long long)c->hidden_size, (long long)c->num_attention_heads);
    if (c->head_dim == 0) c->head_dim = c->hidden_size / c->num_attention_heads;
    if (c->head_dim % 2 != 0)
        return fk_fail(FK_ERROR_INVALID, "head_dim %lld is odd: rotary embedding turns pairs", (long long)c->head_dim);
    bool mlp_bias = false;
    FK_TRY(fk_config_bool_optional(from, "mlp_bias", &mlp_bias));
    if (mlp_bias) return fk_fail(FK_ERROR_UNSUPPORTED, "config field mlp_bias is true, which is not implemented");
    const char *activation = fk_config_string(from, "hidden_act");
    if (activation && strcmp(activation, "silu") != 0)
        return fk_fail(FK_ERROR_INVALID, "hidden_act '%s' is not silu, the only one of this architecture", activation);
    return FK_OK;
}

/* ---- weights */

typedef struct llama {
    llama_config config;
    fk_vocab_parallel_embedding_module embed_tokens;
    fk_llama_decoder_module *layers;
    fk_tensor norm;
    fk_parallel_lm_head_module lm_head;
} llama;

static void load_layer(fk_weights *weights, const llama_config *c, int64_t l, int64_t sliding_window, fk_tensor cos_sin_cache,
                       fk_llama_decoder_module *layer)
{
    const char *path = fk_weights_name(weights, "model.layers.%lld", (long long)l);
#define NAME(suffix) fk_weights_name(weights, "%s." suffix, path)
    int64_t d = c->hidden_size, q = c->num_attention_heads * c->head_dim, k = c->num_key_value_heads * c->head_dim;
    fk_weights_part qkv[] = {{NAME("self_attn.q_proj.weight"), q}, {NAME("self_attn.k_proj.weight"), k},
                             {NAME("self_attn.v_proj.weight"), k}};
    fk_weights_part gate_up[] = {{NAME("mlp.gate_proj.weight"), c->intermediate_size},
                                 {NAME("mlp.up_proj.weight"), c->intermediate_size}};
    *layer = (fk_llama_decoder_module){
        .path = path,
        .num_heads = c->num_attention_heads,
        .num_kv_heads = c->num_key_value_heads,
        .head_size = c->head_dim,
        .sliding_window = sliding_window,
        .rms_norm_eps = (float)c->rms_norm_eps,
        .is_first_layer = l == 0,
        .input_layernorm = fk_weights_get(weights, NAME("input_layernorm.weight"), 1, &d),
        .qkv_proj = fk_weights_merge(weights, 3, qkv, 2, d),
        .o_proj = fk_weights_get(weights, NAME("self_attn.o_proj.weight"), 2, (int64_t[]){d, q}),
        .cos_sin_cache = cos_sin_cache,
        .post_attention_layernorm = fk_weights_get(weights, NAME("post_attention_layernorm.weight"), 1, &d),
        .gate_up_proj = fk_weights_merge(weights, 2, gate_up, 2, d),
        .down_proj = fk_weights_get(weights, NAME("mlp.down_proj.weight"), 2, (int64_t[]){d, c->intermediate_size}),
    };
    fk_weights_part qkv_bias[] = {{NAME("self_attn.q_proj.bias"), q}, {NAME("self_attn.k_proj.bias"), k},
                                  {NAME("self_attn.v_proj.bias"), k}};
    if (c->qkv_bias) layer->qkv_bias = fk_weights_merge(weights, 3, qkv_bias, 1, 1);
    if (c->o_bias) layer->o_bias = fk_weights_get(weights, NAME("self_attn.o_proj.bias"), 1, &d);
    if (c->qk_norm) layer->q_norm = fk_weights_get(weights, NAME("self_attn.q_norm.weight"), 1, &c->head_dim);
    if (c->qk_norm) layer->k_norm = fk_weights_get(weights, NAME("self_attn.k_norm.weight"), 1, &c->head_dim);
#undef NAME
}

static fk_status create(fk_weights *weights, const fk_config *from, void **model, fk_model_info *info)
{
    llama *m = fk_weights_alloc(weights, sizeof *m);
    if (!m) return fk_weights_status(weights);
    llama_config *c = &m->config;
    FK_TRY(read_config(from, c));
    m->layers = fk_weights_alloc(weights, (size_t)c->num_hidden_layers * sizeof *m->layers);
    if (!m->layers) return fk_weights_status(weights);
    fk_tensor cos_sin_cache;
    FK_TRY(fk_rotary_table(weights, from, c->head_dim, &c->max_position_embeddings, &cos_sin_cache));

    int64_t table[2] = {c->vocab_size, c->hidden_size};
    m->embed_tokens = (fk_vocab_parallel_embedding_module){
        .path = "model.embed_tokens", .weight = fk_weights_get(weights, "model.embed_tokens.weight", 2, table)};
    for (int64_t l = 0; l < c->num_hidden_layers; l++) {
        int64_t sliding_window;
        FK_TRY(window_of_layer(from, c, l, &sliding_window));
        load_layer(weights, c, l, sliding_window, cos_sin_cache, &m->layers[l]);
    }
    m->norm = fk_weights_get(weights, "model.norm.weight", 1, &c->hidden_size);
    m->lm_head = (fk_parallel_lm_head_module){
        .path = "lm_head", .weight = c->tie_word_embeddings ? m->embed_tokens.weight
                                                            : fk_weights_get(weights, "lm_head.weight", 2, table)};
    *info = (fk_model_info){.vocab_size = c->vocab_size,
                            .max_position_embeddings = c->max_position_embeddings,
                            .num_layers = c->num_hidden_layers,
                            .num_kv_heads = c->num_key_value_heads,
                            .head_size = c->head_dim};
    *model = m;
    return fk_weights_status(weights);
}

/* ---- forward */

/* hidden_states [T, D] is what the last block computed, residual [T, D] the sum of everything before it; each layer adds
 * the one to the other first, but the first layer, for which hidden_states is the whole stream. */
static fk_tensor forward(fk_ctx *ctx, const void *model, const fk_batch *b, const fk_kv_cache *cache)
{
    const llama *m = model;
    fk_tensor hidden_states = fk_vocab_parallel_embedding(ctx, &m->embed_tokens, b->input_ids).output;
    fk_tensor residual = fk_ctx_tensor(ctx, hidden_states.dtype, hidden_states.ndim, hidden_states.shape);
    for (int64_t l = 0; l < m->config.num_hidden_layers; l++)
        fk_llama_decoder(ctx, &m->layers[l], b->positions, hidden_states, residual, cache->key[l], cache->value[l],
                         b->slot_mapping, b->cu_seqlens_q, b->seqused_k, b->block_table, b->max_seqlen_q,
                         b->max_seqlen_k);
    fk_fused_add_rms_norm(ctx, hidden_states, residual, m->norm, (float)m->config.rms_norm_eps);
    /* Only the tokens whose logits are wanted go through the head; picking rows is what embedding does. */
    fk_tensor last = fk_embedding(ctx, hidden_states, b->logits_rows).output; /* [L, D] */
    return fk_parallel_lm_head(ctx, &m->lm_head, last).logits;
}

static const char *const model_types[] = {"llama", "mistral", "qwen2", "qwen3", NULL};

extern const fk_model_class fk_llama_class;
const fk_model_class fk_llama_class = {
    .architecture = "llama", .model_types = model_types, .create = create, .forward = forward};
