/* SPDX-License-Identifier: Apache-2.0 */
/* JSON from untrusted files, by jansson under one policy: one value per text, valid UTF-8, no duplicate keys,
 * no lone surrogates, no NUL in strings, integers within 64 bits, and limits on depth and on the number of
 * values that are checked before the first allocation. */
#ifndef FK_CORE_JSON_H
#define FK_CORE_JSON_H

#include <jansson.h>
#include <stddef.h>

#include <fk/status.h>

typedef struct fkp_json_limits {
    size_t max_depth;  /* nesting of arrays and objects; jansson itself stops at 2048 */
    size_t max_values; /* bounds memory: a value costs about 100 bytes, a text byte up to 50 */
} fkp_json_limits;

/* Parses `size` bytes. On success the caller owns *json (json_decref). The message names line, column and
 * reason. */
fk_status fkp_json_parse(const char *text, size_t size, fkp_json_limits limits, json_t **json);
/* Reads and parses the file at `path`; the message names the path. */
fk_status fkp_json_load_file(const char *path, fkp_json_limits limits, json_t **json);

#endif
