/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the tokenizer's files of a Hugging Face folder. */
#define _POSIX_C_SOURCE 200809L
#include "runtime/hf_tokenizer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file_map.h"
#include "core/json.h"
#include "text/sentencepiece.h"
#include "text/tokenizer_json.h"

/* The path of the folder's file, NULL in *out when there is none; the caller frees it. */
static fk_status find_file(const char *folder, const char *name, char **out)
{
    size_t size = strlen(folder) + strlen(name) + 2;
    *out = malloc(size);
    if (!*out) return fk_fail(FK_ERROR_MEMORY, "%s: out of memory", folder);
    snprintf(*out, size, "%s/%s", folder, name);
    if (access(*out, F_OK) == 0) return FK_OK;
    free(*out);
    *out = NULL;
    return FK_OK;
}

static fk_status load_settings(const char *folder, json_t **settings)
{
    char *path;
    *settings = NULL;
    FK_TRY(find_file(folder, "tokenizer_config.json", &path));
    if (!path) return FK_OK;
    fk_status status = fkp_json_load_file(path, (fkp_json_limits){.max_depth = 64, .max_values = 1u << 20}, settings);
    free(path);
    return status;
}

/* "</s>", or an object that describes it. */
static fk_piece token_name(const json_t *settings, const char *field)
{
    const json_t *value = json_object_get(settings, field);
    if (json_is_object(value)) value = json_object_get(value, "content");
    return json_is_string(value) ? (fk_piece){json_string_value(value), json_string_length(value)} : (fk_piece){"", 0};
}

static fk_status check_fit(const fk_tokenizer *tokenizer, const char *path, const json_t *config)
{
    const json_t *rows = json_object_get(config, "vocab_size");
    int64_t size = fk_tokenizer_vocab_size(tokenizer);
    if (!json_is_integer(rows) || size <= json_integer_value(rows)) return FK_OK;
    fk_piece last = fk_tokenizer_name(tokenizer, (int32_t)size - 1);
    return fk_fail(FK_ERROR_INVALID, "%s does not fit the model: token '%.*s' has id %lld, the embedding has %lld rows (vocab_size)", path,
                   (int)(last.bytes < 80 ? last.bytes : 80), last.data, (long long)size - 1, (long long)json_integer_value(rows));
}

/* A string, or a list of named ones of which "default" is meant. */
static const json_t *template_of(const json_t *settings)
{
    const json_t *source = json_object_get(settings, "chat_template");
    for (size_t i = 0; i < json_array_size(source); i++) {
        const json_t *named = json_array_get(source, i);
        const char *name = json_string_value(json_object_get(named, "name"));
        if (name && strcmp(name, "default") == 0) return json_object_get(named, "template");
    }
    return source;
}

/* A template that is not built in leaves the model without one: it still answers raw prompts. */
static void find_template(const char *source, size_t bytes, const fk_chat_template **chat)
{
    if (fk_chat_template_find((fk_piece){source, bytes}, chat) != FK_OK) *chat = NULL;
}

static fk_status read_template(const char *folder, const json_t *settings, const fk_chat_template **chat)
{
    char *path;
    FK_TRY(find_file(folder, "chat_template.jinja", &path));
    if (path) {
        fkp_file_map map;
        fk_status status = fkp_file_map_open(&map, path);
        free(path);
        FK_TRY(status);
        find_template((const char *)map.data, map.size, chat);
        fkp_file_map_close(&map);
        return FK_OK;
    }
    const json_t *source = template_of(settings);
    if (json_is_string(source)) find_template(json_string_value(source), json_string_length(source), chat);
    return FK_OK;
}

fk_status fk_hf_tokenizer(const char *folder, const json_t *config, fk_tokenizer **tokenizer, const fk_chat_template **chat)
{
    char *path;
    json_t *settings = NULL;
    *tokenizer = NULL;
    *chat = NULL;
    FK_TRY(find_file(folder, "tokenizer.json", &path));
    const bool json = path != NULL;
    if (!json) FK_TRY(find_file(folder, "tokenizer.model", &path));
    if (!path) return FK_OK;
    fk_status status = load_settings(folder, &settings);
    if (status == FK_OK && !json) {
        status = fk_sentencepiece_load(path, tokenizer);
    } else if (status == FK_OK) {
        const fk_tokenizer_json_options options = {token_name(settings, "bos_token"), token_name(settings, "eos_token")};
        status = fk_tokenizer_json_load(path, &options, tokenizer);
    }
    if (status == FK_OK) status = check_fit(*tokenizer, path, config);
    if (status == FK_OK) status = read_template(folder, settings, chat);
    json_decref(settings);
    free(path);
    if (status == FK_OK) return FK_OK;
    fk_tokenizer_destroy(*tokenizer);
    *tokenizer = NULL;
    return status;
}
