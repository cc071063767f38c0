/* SPDX-License-Identifier: Apache-2.0 */
/* Making a fk_config (fk/model.h); a config is a JSON object with the fields of config.json. */
#ifndef FK_RUNTIME_CONFIG_H
#define FK_RUNTIME_CONFIG_H

#include <jansson.h>

#include <fk/model.h>

/* A config is its JSON object; the caller of these keeps ownership of the object. */
static inline const fk_config *fk_config_from_json(const json_t *object)
{
    return (const fk_config *)object;
}

/* A named configuration compiled in from models/configs/<architecture>-<size>.json, e.g. "llama", "8b". The caller owns
 * *object. FK_ERROR_INVALID lists the sizes there are. */
fk_status fk_config_named(const char *architecture, const char *size, json_t **object);
/* Names of the compiled-in configurations, "llama:8b"; NULL past the end. */
const char *fk_config_name_at(int index);

#endif
