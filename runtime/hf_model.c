/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of a Hugging Face folder. Field names are those of transformers' configurations. */
#define _POSIX_C_SOURCE 200809L
#include "runtime/hf_model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/dtype.h"
#include "core/json.h"
#include "core/names.h"

/* transformers' class, the model_type that models here go by, and what the class takes for fields that config.json leaves
 * out (not those it says null for): sliding_window null is no window, an absent one 4096 keys. */
static const struct supported {
    const char *architecture, *model_type, *defaults;
} supported[] = {
    {"LlamaForCausalLM", "llama", "{\"max_position_embeddings\":2048}"},
    {"MistralForCausalLM", "mistral", "{\"max_position_embeddings\":131072,\"num_key_value_heads\":8,\"sliding_window\":4096}"},
    {"Qwen2ForCausalLM", "qwen2",
     "{\"max_position_embeddings\":32768,\"num_key_value_heads\":32,\"sliding_window\":4096,\"max_window_layers\":28}"},
    {"Qwen3ForCausalLM", "qwen3",
     "{\"max_position_embeddings\":32768,\"num_key_value_heads\":32,\"head_dim\":128,\"sliding_window\":4096,"
     "\"max_window_layers\":28}"},
    {"BertModel", "bert", "{}"},
    {"BertForMaskedLM", "bert", "{}"},
    {"HF_ColBERT", "bert", "{\"dim\":128}"},
};
#define SUPPORTED_COUNT (sizeof supported / sizeof supported[0])

static fk_status load_json(const char *folder, const char *name, json_t **object)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    char *path = malloc(size);
    if (!path) return fk_fail(FK_ERROR_MEMORY, "%s: out of memory", folder);
    snprintf(path, size, "%s/%s", folder, name);
    fk_status status = FK_OK;
    *object = NULL;
    if (strcmp(name, "config.json") == 0 || access(path, F_OK) == 0) {
        status = fkp_json_load_file(path, (fkp_json_limits){.max_depth = 32, .max_values = 100000}, object);
        if (status == FK_OK && !json_is_object(*object)) {
            json_decref(*object);
            *object = NULL;
            status = fk_fail(FK_ERROR_INVALID, "%s is no JSON object", path);
        }
    }
    free(path);
    return status;
}

/* Entry of `supported` for a class name or a model_type; NULL when there is none. */
static const struct supported *find_supported(const char *architecture, const char *model_type)
{
    for (size_t s = 0; s < SUPPORTED_COUNT; s++) {
        if (architecture && strcmp(architecture, supported[s].architecture) == 0) return &supported[s];
        if (model_type && strcmp(model_type, supported[s].model_type) == 0) return &supported[s];
    }
    return NULL;
}

static fk_status unsupported(const char *field, const json_t *value)
{
    char known[200] = "", quoted[FKP_QUOTED_SIZE];
    size_t used = 0;
    for (size_t s = 0; s < SUPPORTED_COUNT; s++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", s ? ", " : "",
                                 strcmp(field, "architectures") == 0 ? supported[s].architecture : supported[s].model_type);
    char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    fk_status status = fk_fail(FK_ERROR_UNSUPPORTED, "config field %s is %s; supported: %s", field,
                               text ? fkp_quote(quoted, text, strlen(text)) : "absent", known);
    free(text);
    return status;
}

/* model_type by the first supported name of architectures, else as it is; then the class's defaults for absent fields. */
static fk_status settle_architecture(json_t *config)
{
    const json_t *names = json_object_get(config, "architectures"), *type = json_object_get(config, "model_type");
    const struct supported *class = NULL;
    if (names && !json_is_null(names)) {
        for (size_t i = 0; i < json_array_size(names) && !class; i++)
            class = find_supported(json_string_value(json_array_get(names, i)), NULL);
        if (!class) return unsupported("architectures", names);
    } else {
        class = find_supported(NULL, json_string_value(type));
        if (!class) return unsupported("model_type", type);
    }
    json_t *defaults = json_loads(class->defaults, 0, NULL);
    int failed = !defaults || json_object_set_new(config, "model_type", json_string(class->model_type)) ||
                 json_object_update_missing(config, defaults);
    json_decref(defaults);
    return failed ? fk_fail(FK_ERROR_MEMORY, "out of memory for a config") : FK_OK;
}

static fk_status unfit_eos(const char *file, const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT);
    fk_status status = fk_fail(FK_ERROR_INVALID, "%s: eos_token_id is %.60s, neither a token id nor an array of them", file, text ? text : "unreadable");
    free(text);
    return status;
}

/* Adds the ids of a config's eos_token_id, an integer, an array of them or null, to `ids`, each once. */
static fk_status add_eos(const json_t *from, const char *file, json_t *ids)
{
    const json_t *value = json_object_get(from, "eos_token_id");
    if (!value || json_is_null(value)) return FK_OK;
    size_t count = json_is_array(value) ? json_array_size(value) : 1;
    for (size_t i = 0; i < count; i++) {
        const json_t *id = json_is_array(value) ? json_array_get(value, i) : value;
        bool known = false;
        if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) > INT32_MAX)
            return unfit_eos(file, value);
        for (size_t k = 0; k < json_array_size(ids); k++) known |= json_equal(json_array_get(ids, k), id);
        if (!known) json_array_append_new(ids, json_integer(json_integer_value(id)));
    }
    return FK_OK;
}

/* A file of 16-bit floats or wider has no quantization_config; what it holds else would be read wrongly. */
static fk_status check_quantization(const json_t *config)
{
    const json_t *quantization = json_object_get(config, "quantization_config");
    if (!quantization || json_is_null(quantization)) return FK_OK;
    const char *method = json_string_value(json_object_get(quantization, "quant_method"));
    char quoted[FKP_QUOTED_SIZE];
    return fk_fail(FK_ERROR_UNSUPPORTED, "config field quantization_config has quant_method %s; quantized folders are not read",
                   method ? fkp_quote(quoted, method, strlen(method)) : "unset");
}

static fk_status unify(json_t *config, json_t *generation)
{
    FK_TRY(settle_architecture(config));
    FK_TRY(check_quantization(config));
    json_t *rope = json_object_get(config, "rope_parameters"), *theta = json_object_get(rope, "rope_theta");
    json_t *type = json_object_get(config, "torch_dtype");
    if (theta && !json_is_null(theta)) json_object_set(config, "rope_theta", theta);
    if (!type || json_is_null(type)) {
        type = json_object_get(config, "dtype");
        if (type) json_object_set(config, "torch_dtype", type);
    }
    json_t *ids = json_array();
    fk_status status = add_eos(config, "config.json", ids);
    if (status == FK_OK) status = add_eos(generation, "generation_config.json", ids);
    if (status == FK_OK) json_object_set(config, "eos_token_id", ids);
    if (status == FK_OK && generation) json_object_set(config, "generation_config", generation);
    json_decref(ids);
    return status;
}

fk_status fk_hf_config(const char *folder, json_t **object)
{
    json_t *config, *generation = NULL;
    *object = NULL;
    FK_TRY(load_json(folder, "config.json", &config));
    fk_status status = load_json(folder, "generation_config.json", &generation);
    if (status == FK_OK) status = unify(config, generation);
    json_decref(generation);
    if (status == FK_OK) *object = config;
    else json_decref(config);
    return status;
}

/* ---- weights */

static bool find(void *self, const char *name, int *ndim, int64_t *shape)
{
    fk_tensor t;
    if (fk_checkpoint_find(self, name, &t) != FK_OK) return false;
    *ndim = t.ndim;
    memcpy(shape, t.shape, (size_t)t.ndim * sizeof *shape);
    return true;
}

static fk_status read_rows(void *self, const char *name, int64_t begin, int64_t end, float *out)
{
    fk_tensor t;
    FK_TRY(fk_checkpoint_find(self, name, &t));
    if (t.dtype != FK_F32 && t.dtype != FK_F16 && t.dtype != FK_BF16 && t.dtype != FK_F64)
        return fk_fail(FK_ERROR_UNSUPPORTED, "tensor %s is %s; weights of f64, f32, f16 and bf16 are read", name,
                       fk_dtype_name(t.dtype));
    int64_t cols = t.ndim > 0 ? t.shape[t.ndim - 1] : 1;
    fk_convert_to_f32(out, (const char *)t.data + begin * cols * (fk_dtype_bits(t.dtype) / 8), t.dtype, (end - begin) * cols);
    return FK_OK;
}

fk_weight_source fk_hf_source(fk_checkpoint *checkpoint)
{
    return (fk_weight_source){.self = checkpoint, .find = find, .read_rows = read_rows};
}
