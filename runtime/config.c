/* SPDX-License-Identifier: Apache-2.0 */
/* Reading config fields, with messages that name field and value; and the configurations that are compiled in. */
#include "runtime/config.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/json.h"

/* {name, text} of each file in models/configs, made by the build. */
static const struct {
    const char *name, *text;
} configurations[] = {
#include "model_configs.inc"
};

static const json_t *field_of(const fk_config *config, const char *field)
{
    const json_t *value = json_object_get((const json_t *)config, field);
    return json_is_null(value) ? NULL : value;
}

static fk_status missing(const char *field)
{
    return fk_fail(FK_ERROR_INVALID, "config has no field %s", field);
}

static fk_status wrong_type(const char *field, const json_t *value, const char *expected)
{
    char text[80] = "";
    size_t n = json_dumpb(value, text, sizeof text - 1, JSON_ENCODE_ANY | JSON_COMPACT);
    text[n < sizeof text ? n : 0] = 0;
    return fk_fail(FK_ERROR_INVALID, "config field %s is %s, expected %s", field, n < sizeof text ? text : "something long",
                   expected);
}

fk_status fk_config_int_optional(const fk_config *config, const char *field, int64_t least, int64_t *out)
{
    const json_t *value = field_of(config, field);
    if (!value) return FK_OK;
    if (!json_is_integer(value)) return wrong_type(field, value, "an integer");
    if (json_integer_value(value) < least)
        return fk_fail(FK_ERROR_INVALID, "config field %s is %lld, below %lld", field,
                       (long long)json_integer_value(value), (long long)least);
    /* Sizes multiply; anything near 2^31 is no real model. */
    if (json_integer_value(value) > INT32_MAX)
        return fk_fail(FK_ERROR_INVALID, "config field %s is %lld, too large", field, (long long)json_integer_value(value));
    *out = json_integer_value(value);
    return FK_OK;
}

fk_status fk_config_int(const fk_config *config, const char *field, int64_t least, int64_t *out)
{
    if (!field_of(config, field)) return missing(field);
    return fk_config_int_optional(config, field, least, out);
}

fk_status fk_config_float_optional(const fk_config *config, const char *field, double *out)
{
    const json_t *value = field_of(config, field);
    if (!value) return FK_OK;
    if (!json_is_number(value) || !isfinite(json_number_value(value))) return wrong_type(field, value, "a number");
    *out = json_number_value(value);
    return FK_OK;
}

fk_status fk_config_layers(const fk_config *config, int64_t *out)
{
    FK_TRY(fk_config_int(config, "num_hidden_layers", 1, out));
    if (*out <= 10000) return FK_OK;
    return fk_fail(FK_ERROR_INVALID, "config field num_hidden_layers is %lld, above 10000", (long long)*out);
}

fk_status fk_config_epsilon_optional(const fk_config *config, const char *field, double *out)
{
    FK_TRY(fk_config_float_optional(config, field, out));
    if (*out >= 0 && *out <= 1) return FK_OK;
    return fk_fail(FK_ERROR_INVALID, "config field %s is %g, expected 0 to 1", field, *out);
}

fk_status fk_config_float(const fk_config *config, const char *field, double *out)
{
    if (!field_of(config, field)) return missing(field);
    return fk_config_float_optional(config, field, out);
}

fk_status fk_config_bool_optional(const fk_config *config, const char *field, bool *out)
{
    const json_t *value = field_of(config, field);
    if (!value) return FK_OK;
    if (!json_is_boolean(value)) return wrong_type(field, value, "true or false");
    *out = json_is_true(value);
    return FK_OK;
}

const char *fk_config_string(const fk_config *config, const char *field)
{
    return json_string_value(field_of(config, field));
}

const char *fk_config_string_at(const fk_config *config, const char *field, int64_t index)
{
    return json_string_value(json_array_get(field_of(config, field), (size_t)index));
}

fk_status fk_config_object_optional(const fk_config *config, const char *field)
{
    const json_t *value = field_of(config, field);
    return !value || json_is_object(value) ? FK_OK : wrong_type(field, value, "an object");
}

const fk_config *fk_config_object(const fk_config *config, const char *field)
{
    const json_t *value = field_of(config, field);
    return json_is_object(value) ? fk_config_from_json(value) : NULL;
}

const char *fk_config_name_at(int index)
{
    return index < (int)(sizeof configurations / sizeof configurations[0]) ? configurations[index].name : NULL;
}

fk_status fk_config_named(const char *architecture, const char *size, json_t **object)
{
    char name[160], known[512] = "";
    size_t n = 0, prefix = strlen(architecture);
    snprintf(name, sizeof name, "%s:%s", architecture, size);
    for (int i = 0; fk_config_name_at(i); i++) {
        if (strcmp(configurations[i].name, name) == 0)
            return fkp_json_parse(configurations[i].text, strlen(configurations[i].text), (fkp_json_limits){16, 1000}, object);
        if (strncmp(configurations[i].name, architecture, prefix) == 0 && configurations[i].name[prefix] == ':' &&
            n < sizeof known)
            n += (size_t)snprintf(known + n, sizeof known - n, "%s%s", n ? ", " : "", configurations[i].name);
    }
    return fk_fail(FK_ERROR_INVALID, "no configuration '%s'%s%s", name, n ? "; there are " : "", known);
}
