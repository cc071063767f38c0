/* SPDX-License-Identifier: Apache-2.0 */
/* Opening models by name: a named configuration with seeded weights, an asset, or a file; and the list of model classes. */
#define _GNU_SOURCE
#include <fk/model.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/nearest.h"
#include "runtime/assets.h"
#include "runtime/config.h"
#include "runtime/gguf_model.h"
#include "runtime/hf_model.h"
#include "runtime/hf_tokenizer.h"
#include "runtime/sentence_files.h"
#include "runtime/weights.h"
#include "text/sentencepiece.h"
#include "text/tiktoken.h"
#include "text/tokenizer_gguf.h"

#define FK_MODEL(name) extern const fk_model_class fk_##name##_class;
#include "models.def"
#undef FK_MODEL

static const fk_model_class *const classes[] = {
#define FK_MODEL(name) &fk_##name##_class,
#include "models.def"
#undef FK_MODEL
};

struct fk_model {
    char name[256];
    fk_model_options options;
    const fk_model_class *class;
    json_t *config;
    fk_gguf *gguf;
    fk_gguf_source source;
    fk_checkpoint *checkpoint;
    fk_weight_source checkpoint_source;
    fk_weights *weights;
    void *state; /* the class's own */
    fk_model_info info;
    fk_tokenizer *tokenizer;
    const fk_chat_template *chat_template;
    double load_seconds;
};

int fk_model_class_count(void)
{
    return (int)(sizeof classes / sizeof classes[0]);
}

const fk_model_class *fk_model_class_at(int index)
{
    return classes[index];
}

const fk_model_class *fk_model_class_find(const char *name)
{
    for (int i = 0; i < fk_model_class_count(); i++) {
        if (strcmp(classes[i]->architecture, name) == 0) return classes[i];
        for (const char *const *type = classes[i]->model_types; *type; type++)
            if (strcmp(*type, name) == 0) return classes[i];
    }
    return NULL;
}

static fk_status unknown_model(const char *name)
{
    fkp_nearest nearest = {.word = name};
    for (int i = 0; fk_asset_name_at(i); i++) fkp_nearest_offer(&nearest, fk_asset_name_at(i));
    for (int i = 0; fk_config_name_at(i); i++) fkp_nearest_offer(&nearest, fk_config_name_at(i));
    return fkp_fail_unknown("model", &nearest, "a model is a name that `list models` shows, or a path to a GGUF file or a Hugging Face folder");
}

static bool is_asset(const char *name)
{
    for (int i = 0; fk_asset_name_at(i); i++)
        if (strcmp(fk_asset_name_at(i), name) == 0) return true;
    return false;
}

static bool has_suffix(const char *text, const char *suffix)
{
    size_t n = strlen(text), m = strlen(suffix);
    return n >= m && strcmp(text + n - m, suffix) == 0;
}

static fk_status open_gguf(fk_model *m, const char *path)
{
    FK_TRY(fk_gguf_open(path, &m->gguf));
    FK_TRY(fk_gguf_config(m->gguf, &m->config));
    FK_TRY(fk_gguf_source_init(&m->source, m->gguf, m->config));
    FK_TRY(fk_tokenizer_create_gguf(m->gguf, &m->tokenizer));
    if (fk_gguf_has(m->gguf, "tokenizer.chat_template"))
        FK_TRY(fk_chat_template_find_gguf(m->gguf, &m->chat_template));
    return FK_OK;
}

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static fk_status open_folder(fk_model *m, const char *path)
{
    FK_TRY(fk_hf_config(path, &m->config));
    const char *type = fk_config_string(fk_config_from_json(m->config), "model_type");
    const fk_model_class *class = type ? fk_model_class_find(type) : NULL;
    if (class && class->encode) FK_TRY(fk_sentence_files_read(path, m->config));
    FK_TRY(fk_checkpoint_open(path, &m->checkpoint));
    m->checkpoint_source = fk_hf_source(m->checkpoint);
    return fk_hf_tokenizer(path, m->config, &m->tokenizer, &m->chat_template);
}

/* Finds out what `name` means and fills in config, source and tokenizer. */
static fk_status resolve(fk_model *m, const char *name)
{
    char path[2304];
    if (is_asset(name)) {
        FK_TRY(fk_asset_path(name, m->options.cache_dir, path, sizeof path));
        return is_folder(path) ? open_folder(m, path) : open_gguf(m, path);
    }
    if (is_folder(name)) return open_folder(m, name);
    if (strchr(name, '/') || has_suffix(name, ".gguf")) return open_gguf(m, name);
    const char *colon = strchr(name, ':');
    char architecture[128];
    snprintf(architecture, sizeof architecture, "%.*s", (int)(colon ? colon - name : 0), name);
    if (!colon || !fk_model_class_find(architecture)) return unknown_model(name);
    return fk_config_named(architecture, colon + 1, &m->config);
}

static fk_status load(fk_model *m, fk_backend *backend)
{
    if (m->options.max_layers > 0) {
        int64_t layers;
        FK_TRY(fk_config_int(fk_config_from_json(m->config), "num_hidden_layers", 1, &layers));
        if (m->options.max_layers < layers)
            json_object_set_new(m->config, "num_hidden_layers", json_integer(m->options.max_layers));
    }
    const char *type = fk_config_string(fk_config_from_json(m->config), "model_type");
    m->class = type ? fk_model_class_find(type) : NULL;
    if (!m->class) return fk_fail(FK_ERROR_UNSUPPORTED, "no model for model_type '%s'", type ? type : "");
    const fk_weight_source *source = m->gguf ? &m->source.source : m->checkpoint ? &m->checkpoint_source : NULL;
    FK_TRY(fk_weights_create(backend, m->options.dtype, source, m->options.seed, &m->weights));
    FK_TRY(m->class->create(m->weights, fk_config_from_json(m->config), &m->state, &m->info));
    return backend->stream_synchronize(backend, NULL);
}

/* Float32 holds all that is read and CPUs have time for it; devices take the checkpoint's own 16 bits, bfloat16 where it has
 * none. */
static fk_dtype default_dtype(const fk_model *m)
{
    if (m->options.device.type == FK_CPU) return FK_F32;
    const char *type = fk_config_string(fk_config_from_json(m->config), "torch_dtype");
    return type && strcmp(type, "float16") == 0 ? FK_F16 : FK_BF16;
}

fk_status fk_model_open(const char *name, const fk_model_options *options, fk_model **out)
{
    struct timespec start, end;
    clock_gettime(CLOCK_MONOTONIC, &start);
    *out = NULL;
    fk_backend *backend;
    FK_TRY(fk_backend_get(options->device, &backend));
    fk_model *m = calloc(1, sizeof *m);
    if (!m) return fk_fail(FK_ERROR_MEMORY, "out of memory for a model");
    snprintf(m->name, sizeof m->name, "%s", name);
    m->options = *options;
    fk_status status = resolve(m, name);
    if (m->options.dtype == FK_NONE && status == FK_OK) m->options.dtype = default_dtype(m);
    if (status == FK_OK) status = load(m, backend);
    if (status != FK_OK) {
        fk_model_close(m);
        return fk_fail_context(status, "model %s", name);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    m->load_seconds = (double)(end.tv_sec - start.tv_sec) + 1e-9 * (double)(end.tv_nsec - start.tv_nsec);
    *out = m;
    return FK_OK;
}

fk_status fk_model_tokenizer_open(const char *name, const char *cache_dir, fk_tokenizer **out)
{
    *out = NULL;
    fk_model *m = calloc(1, sizeof *m);
    if (!m) return fk_fail(FK_ERROR_MEMORY, "out of memory for a model");
    m->options.cache_dir = cache_dir;
    fk_status status = FK_OK;
    if (is_folder(name) && !is_asset(name)) /* it may hold a tokenizer and nothing else */
        status = fk_hf_tokenizer(name, NULL, &m->tokenizer, &m->chat_template);
    else if (has_suffix(name, ".tiktoken"))
        status = fk_tiktoken_load(name, NULL, &m->tokenizer);
    else if (has_suffix(name, ".model"))
        status = fk_sentencepiece_load(name, &m->tokenizer);
    else
        status = resolve(m, name);
    if (status != FK_OK) fk_fail_context(status, "model %s", name);
    else if (!m->tokenizer)
        status = fk_fail(FK_ERROR_INVALID, "model %s has no tokenizer: %s", name,
                         is_folder(name) ? "the folder holds no tokenizer.json or tokenizer.model"
                                         : "its weights are seeded");
    *out = m->tokenizer;
    m->tokenizer = NULL;
    fk_model_close(m);
    return status;
}

void fk_model_close(fk_model *m)
{
    if (!m) return;
    fk_weights_destroy(m->weights);
    fk_tokenizer_destroy(m->tokenizer);
    fk_gguf_close(m->gguf);
    fk_checkpoint_close(m->checkpoint);
    json_decref(m->config);
    free(m);
}

const char *fk_model_name(const fk_model *m)
{
    return m->name;
}

const fk_model_class *fk_model_get_class(const fk_model *m)
{
    return m->class;
}

const fk_model_info *fk_model_get_info(const fk_model *m)
{
    return &m->info;
}

const fk_config *fk_model_config(const fk_model *m)
{
    return fk_config_from_json(m->config);
}

fk_device fk_model_device(const fk_model *m)
{
    return m->options.device;
}

fk_dtype fk_model_dtype(const fk_model *m)
{
    return m->options.dtype;
}

int64_t fk_model_weight_bytes(const fk_model *m)
{
    return fk_weights_bytes(m->weights);
}

double fk_model_load_seconds(const fk_model *m)
{
    return m->load_seconds;
}

const fk_tokenizer *fk_model_tokenizer(const fk_model *m)
{
    return m->tokenizer;
}

const fk_chat_template *fk_model_chat_template(const fk_model *m)
{
    return m->chat_template;
}

fk_tensor fk_model_forward(fk_ctx *ctx, const fk_model *m, const fk_batch *batch, const fk_kv_cache *cache)
{
    return m->class->forward(ctx, m->state, batch, cache);
}

bool fk_model_is_encoder(const fk_model *m)
{
    return m->class->encode != NULL;
}

fk_tensor fk_model_encode(fk_ctx *ctx, const fk_model *m, const fk_encode_batch *batch)
{
    return m->class->encode(ctx, m->state, batch);
}

fk_tensor fk_model_score(fk_ctx *ctx, const fk_model *m, const fk_score_batch *batch)
{
    return m->class->score(ctx, m->state, batch);
}
