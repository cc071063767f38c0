/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of sentence-transformers' files. */
#define _POSIX_C_SOURCE 200809L
#include "runtime/sentence_files.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/json.h"

/* *object stays NULL when the file is not there. */
static fk_status load(const char *folder, const char *name, json_t **object)
{
    char path[4096];
    *object = NULL;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", folder, name) >= sizeof path)
        return fk_fail(FK_ERROR_INVALID, "path too long: %.80s...", folder);
    if (access(path, F_OK) != 0) return FK_OK;
    FK_TRY(fkp_json_load_file(path, (fkp_json_limits){.max_depth = 8, .max_values = 1000}, object));
    if (json_is_object(*object)) return FK_OK;
    json_decref(*object);
    *object = NULL;
    return fk_fail(FK_ERROR_INVALID, "%s is no JSON object", path);
}

/* The file has a flag for each way, of which exactly one is to be set. */
static fk_status read_pooling(const json_t *pooling, json_t *config)
{
    static const struct {
        const char *flag, *mode;
    } modes[] = {{"pooling_mode_mean_tokens", "mean"}, {"pooling_mode_cls_token", "cls"}};
    const char *found = NULL, *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)pooling, key, value) {
        if (strncmp(key, "pooling_mode_", 13) != 0 || !json_is_true(value)) continue;
        const char *mode = NULL;
        for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
            if (strcmp(key, modes[i].flag) == 0) mode = modes[i].mode;
        if (!mode) return fk_fail(FK_ERROR_UNSUPPORTED, "1_Pooling/config.json sets %.60s; implemented: %s, %s", key, modes[0].flag, modes[1].flag);
        if (found) return fk_fail(FK_ERROR_UNSUPPORTED, "1_Pooling/config.json sets two ways of pooling, %s and %s", found, mode);
        found = mode;
    }
    if (!found) return fk_fail(FK_ERROR_INVALID, "1_Pooling/config.json sets no way of pooling");
    json_object_set_new(config, "pooling_mode", json_string(found));
    return FK_OK;
}

fk_status fk_sentence_files_read(const char *folder, json_t *config)
{
    json_t *sentence, *pooling;
    FK_TRY(load(folder, "sentence_bert_config.json", &sentence));
    json_t *length = json_object_get(sentence, "max_seq_length");
    if (length && !json_is_null(length)) json_object_set(config, "max_seq_length", length);
    json_decref(sentence);
    FK_TRY(load(folder, "1_Pooling/config.json", &pooling));
    fk_status status = pooling ? read_pooling(pooling, config) : FK_OK;
    json_decref(pooling);
    return status;
}
