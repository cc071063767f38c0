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

/* transformers' class, and the model_type that models here go by. */
static const struct {
    const char *architecture, *model_type;
} supported[] = {{"LlamaForCausalLM", "llama"}};
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

/* model_type by the first supported name of architectures; a config without that field keeps its model_type. */
static fk_status check_architecture(json_t *config)
{
    const json_t *names = json_object_get(config, "architectures");
    if (!names || json_is_null(names)) return FK_OK;
    char known[200] = "", quoted[FKP_QUOTED_SIZE];
    size_t used = 0;
    for (size_t s = 0; s < SUPPORTED_COUNT; s++) {
        for (size_t i = 0; i < json_array_size(names); i++) {
            const char *name = json_string_value(json_array_get(names, i));
            if (!name || strcmp(name, supported[s].architecture) != 0) continue;
            json_object_set_new(config, "model_type", json_string(supported[s].model_type));
            return FK_OK;
        }
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", s ? ", " : "", supported[s].architecture);
    }
    char *text = json_dumps(names, JSON_COMPACT | JSON_ENCODE_ANY);
    fk_status status = fk_fail(FK_ERROR_UNSUPPORTED, "config field architectures is %s; supported: %s",
                               fkp_quote(quoted, text ? text : "?", text ? strlen(text) : 1), known);
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
            return fk_fail(FK_ERROR_INVALID, "%s: eos_token_id is neither a token id nor an array of them", file);
        for (size_t k = 0; k < json_array_size(ids); k++) known |= json_equal(json_array_get(ids, k), id);
        if (!known) json_array_append_new(ids, json_integer(json_integer_value(id)));
    }
    return FK_OK;
}

static fk_status unify(json_t *config, const json_t *generation)
{
    FK_TRY(check_architecture(config));
    json_t *rope = json_object_get(config, "rope_parameters"), *theta = json_object_get(rope, "rope_theta");
    json_t *outer = json_object_get(config, "rope_theta"), *type = json_object_get(config, "torch_dtype");
    if (theta && (!outer || json_is_null(outer))) json_object_set(config, "rope_theta", theta);
    if (!type || json_is_null(type)) {
        type = json_object_get(config, "dtype");
        if (type) json_object_set(config, "torch_dtype", type);
    }
    json_t *ids = json_array();
    fk_status status = add_eos(config, "config.json", ids);
    if (status == FK_OK) status = add_eos(generation, "generation_config.json", ids);
    if (status == FK_OK) json_object_set(config, "eos_token_id", ids);
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
