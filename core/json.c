/* SPDX-License-Identifier: Apache-2.0 */
/* JSON policy and limits over jansson. */
#include "core/json.h"

#include <stdbool.h>
#include <string.h>

#include "core/file_map.h"
#include "core/names.h"

/* Depth and number of values seen in one pass over the bytes. On malformed text the counts may be too high,
 * never too low: every value but the first is preceded by a comma, colon or bracket outside of a string. */
static fk_status check_limits(const char *text, size_t size, fkp_json_limits limits)
{
    size_t depth = 0, values = 1;
    bool in_string = false;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
            continue;
        }
        switch (c) {
        case '"':
            in_string = true;
            break;
        case '[':
        case '{':
            if (++depth > limits.max_depth)
                return fk_fail(FK_ERROR_INVALID, "JSON nested deeper than %zu levels at byte %zu",
                               limits.max_depth, i);
            values++;
            break;
        case ']':
        case '}':
            depth -= depth > 0;
            break;
        case ',':
        case ':':
            if (++values > limits.max_values)
                return fk_fail(FK_ERROR_INVALID, "JSON with more than %zu values", limits.max_values);
            break;
        default:
            break;
        }
    }
    return FK_OK;
}

fk_status fkp_json_parse(const char *text, size_t size, fkp_json_limits limits, json_t **json)
{
    char quoted[FKP_QUOTED_SIZE];
    json_error_t error;
    *json = NULL;
    FK_TRY(check_limits(text, size, limits));
    *json = json_loadb(text, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
    if (*json) return FK_OK;
    if (json_error_code(&error) == json_error_out_of_memory)
        return fk_fail(FK_ERROR_MEMORY, "out of memory for %zu bytes of JSON", size);
    return fk_fail(FK_ERROR_INVALID, "bad JSON at line %d column %d: %s", error.line, error.column,
                   fkp_quote(quoted, error.text, strlen(error.text)));
}

fk_status fkp_json_load_file(const char *path, fkp_json_limits limits, json_t **json)
{
    fkp_file_map map;
    *json = NULL;
    FK_TRY(fkp_file_map_open(&map, path));
    fk_status status = fkp_json_parse((const char *)map.data, map.size, limits, json);
    fkp_file_map_close(&map);
    return fk_fail_context(status, "%s", path);
}
