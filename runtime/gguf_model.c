/* SPDX-License-Identifier: Apache-2.0 */
/* Names and layout. GGUF files of the llama architecture hold the rows of the query and key projections interleaved, for a
 * rotary embedding of neighbouring pairs: within a head, file row 2i + j is checkpoint row j * head_dim/2 + i. */
#include "runtime/gguf_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Config field, GGUF key below "llama.". */
static const struct {
    const char *field, *key;
    bool is_float;
} fields[] = {
    {"hidden_size", "embedding_length", false},
    {"intermediate_size", "feed_forward_length", false},
    {"num_hidden_layers", "block_count", false},
    {"num_attention_heads", "attention.head_count", false},
    {"num_key_value_heads", "attention.head_count_kv", false},
    {"head_dim", "attention.key_length", false},
    {"max_position_embeddings", "context_length", false},
    {"rms_norm_eps", "attention.layer_norm_rms_epsilon", true},
    {"rope_theta", "rope.freq_base", true},
};

fk_status fk_gguf_config(const fk_gguf *gguf, json_t **object)
{
    fk_gguf_string architecture;
    *object = NULL;
    FK_TRY(fk_gguf_get_string(gguf, "general.architecture", &architecture));
    if (architecture.size != 5 || memcmp(architecture.data, "llama", 5) != 0)
        return fk_fail(FK_ERROR_UNSUPPORTED, "general.architecture '%.*s' is not supported; llama is",
                       (int)(architecture.size < 64 ? architecture.size : 64), architecture.data);
    json_t *config = json_object();
    if (!config) return fk_fail(FK_ERROR_MEMORY, "out of memory for a config");
    fk_status status = FK_OK;
    for (size_t i = 0; i < sizeof fields / sizeof fields[0] && status == FK_OK; i++) {
        char key[80];
        snprintf(key, sizeof key, "llama.%s", fields[i].key);
        if (!fk_gguf_has(gguf, key)) continue; /* the model file knows what it needs */
        int64_t integer = 0;
        double number = 0;
        status = fields[i].is_float ? fk_gguf_get_f64(gguf, key, &number) : fk_gguf_get_i64(gguf, key, &integer);
        if (status == FK_OK)
            json_object_set_new(config, fields[i].field, fields[i].is_float ? json_real(number) : json_integer(integer));
    }
    if (status == FK_OK && fk_gguf_has(gguf, "llama.rope.scaling.type")) {
        fk_gguf_string type;
        status = fk_gguf_get_string(gguf, "llama.rope.scaling.type", &type);
        if (status == FK_OK && !(type.size == 4 && memcmp(type.data, "none", 4) == 0)) {
            json_t *scaling = json_object();
            double factor = 1;
            if (fk_gguf_has(gguf, "llama.rope.scaling.factor"))
                status = fk_gguf_get_f64(gguf, "llama.rope.scaling.factor", &factor);
            json_object_set_new(scaling, "rope_type", json_stringn(type.data, type.size));
            json_object_set_new(scaling, "factor", json_real(factor));
            json_object_set_new(config, "rope_scaling", scaling);
        }
    }
    /* Llama-3 scaling arrives as per-pair divisors; the config has no field for them, so it must not be dropped silently. */
    const fk_gguf_tensor *tensor;
    if (status == FK_OK && fk_gguf_find(gguf, "rope_freqs.weight", &tensor) == FK_OK)
        status = fk_fail(FK_ERROR_UNSUPPORTED, "the file has rope_freqs.weight (llama3 rope scaling), which is not read yet");
    if (status == FK_OK) status = fk_gguf_find(gguf, "token_embd.weight", &tensor);
    if (status == FK_OK) {
        json_object_set_new(config, "vocab_size", json_integer(tensor->shape[0]));
        json_object_set_new(config, "model_type", json_string("llama"));
        const fk_gguf_tensor *head;
        json_object_set_new(config, "tie_word_embeddings", json_boolean(fk_gguf_find(gguf, "output.weight", &head) != FK_OK));
        *object = config;
        return FK_OK;
    }
    json_decref(config);
    return status;
}

/* Checkpoint name -> GGUF name; false when there is no counterpart. */
static bool gguf_name(const char *name, char *buf, size_t size)
{
    static const char *const whole[][2] = {{"model.embed_tokens.weight", "token_embd.weight"},
                                           {"model.norm.weight", "output_norm.weight"},
                                           {"lm_head.weight", "output.weight"}};
    static const char *const parts[][2] = {
        {"input_layernorm", "attn_norm"},     {"post_attention_layernorm", "ffn_norm"},
        {"self_attn.q_proj", "attn_q"},       {"self_attn.k_proj", "attn_k"},
        {"self_attn.v_proj", "attn_v"},       {"self_attn.o_proj", "attn_output"},
        {"mlp.gate_proj", "ffn_gate"},        {"mlp.up_proj", "ffn_up"},
        {"mlp.down_proj", "ffn_down"},
    };
    for (size_t i = 0; i < sizeof whole / sizeof whole[0]; i++)
        if (strcmp(name, whole[i][0]) == 0) return snprintf(buf, size, "%s", whole[i][1]) > 0;
    int layer, at = 0;
    if (sscanf(name, "model.layers.%d.%n", &layer, &at) != 1 || at == 0) return false;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        size_t n = strlen(parts[i][0]);
        if (strncmp(name + at, parts[i][0], n) == 0 && name[at + (int)n] == '.')
            return snprintf(buf, size, "blk.%d.%s%s", layer, parts[i][1], name + at + n) > 0;
    }
    return false;
}

static const fk_gguf_tensor *find_tensor(const fk_gguf *gguf, const char *name)
{
    char translated[160];
    const fk_gguf_tensor *tensor;
    if (!gguf_name(name, translated, sizeof translated)) return NULL;
    return fk_gguf_find(gguf, translated, &tensor) == FK_OK ? tensor : NULL;
}

static bool find(void *self, const char *name, int *ndim, int64_t *shape)
{
    const fk_gguf_source *source = self;
    const fk_gguf_tensor *tensor = find_tensor(source->gguf, name);
    if (!tensor) return false;
    *ndim = tensor->ndim;
    memcpy(shape, tensor->shape, (size_t)tensor->ndim * sizeof *shape);
    return true;
}

/* Position in the file of row `row` of the checkpoint's tensor. */
static int64_t file_row(const fk_gguf_source *source, const char *name, int64_t rows, int64_t row)
{
    bool is_query = strstr(name, ".q_proj.") != NULL;
    if (!is_query && !strstr(name, ".k_proj.")) return row;
    int64_t head_dim = rows / (is_query ? source->num_heads : source->num_kv_heads), half = head_dim / 2;
    int64_t head = row / head_dim, within = row % head_dim;
    return head * head_dim + 2 * (within % half) + within / half;
}

static fk_status read_rows(void *self, const char *name, int64_t begin, int64_t end, float *out)
{
    const fk_gguf_source *source = self;
    const fk_gguf_tensor *tensor = find_tensor(source->gguf, name);
    if (!tensor) return fk_fail(FK_ERROR_INVALID, "no tensor for %s", name);
    int64_t cols = tensor->shape[tensor->ndim - 1], rows = 1;
    for (int i = 0; i + 1 < tensor->ndim; i++) rows *= tensor->shape[i];
    for (int64_t r = begin; r < end; r++) {
        int64_t row = rows > 1 ? file_row(source, name, rows, r) : r;
        FK_TRY(fk_gguf_dequantize(source->gguf, tensor, row, row + 1, out + (r - begin) * cols));
    }
    return FK_OK;
}

fk_status fk_gguf_source_init(fk_gguf_source *source, const fk_gguf *gguf, const json_t *config)
{
    *source = (fk_gguf_source){.source = {.self = source, .find = find, .read_rows = read_rows}, .gguf = gguf};
    FK_TRY(fk_config_int((const fk_config *)config, "num_attention_heads", 1, &source->num_heads));
    source->num_kv_heads = source->num_heads;
    return fk_config_int_optional((const fk_config *)config, "num_key_value_heads", 1, &source->num_kv_heads);
}
