/* SPDX-License-Identifier: Apache-2.0 */
/* Ids, texts and dtypes as people give them. */
#define _GNU_SOURCE
#include "cli/model_input.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/interrupt.h"

#define MAX_INPUT_BYTES (256 << 20)

fk_status fkp_parse_ids(const char *what, const char *text, fk_token_list *out)
{
    const char *at = text;
    while (*at) {
        char *end;
        size_t word = strcspn(at, ", \t");
        errno = 0;
        long id = strtol(at, &end, 10);
        if (word == 0 || end != at + word || at[0] == '+' || errno || id < 0 || id > INT32_MAX)
            return fk_fail(FK_ERROR_INVALID, "%s: '%.*s' is no token id (whole numbers with commas between)", what, (int)word, at);
        FK_TRY(fk_token_list_push(out, (int32_t)id));
        at = end;
        at += strspn(at, " \t");
        if (*at == ',') {
            at++;
            at += strspn(at, " \t");
            if (!*at) return fk_fail(FK_ERROR_INVALID, "%s ends with a comma: '%s'", what, text);
        }
    }
    return FK_OK;
}

json_t *fkp_ids_json(const fk_token_list *ids)
{
    json_t *array = json_array();
    for (int64_t i = 0; i < ids->count; i++) json_array_append_new(array, json_integer(ids->ids[i]));
    return array;
}

fk_status fkp_read_input(const char *path, fk_bytes *out)
{
    FK_TRY(fkp_interrupt_check()); /* opening a pipe waits for its writer */
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (!file) FK_TRY(fkp_interrupt_check());
    if (!file) return fk_fail(FK_ERROR_INVALID, "cannot open %s: %s", path, strerror(errno));
    char buffer[65536];
    fk_status status = FK_OK;
    for (size_t n; status == FK_OK && (n = fread(buffer, 1, sizeof buffer, file)) > 0;) {
        status = fkp_interrupt_check();
        if (status == FK_OK && out->bytes + n > MAX_INPUT_BYTES)
            status = fk_fail(FK_ERROR_INVALID, "%s is larger than %d bytes", path, MAX_INPUT_BYTES);
        if (status == FK_OK) status = fk_bytes_append(out, buffer, n);
    }
    if (status == FK_OK && ferror(file))
        status = fkp_interrupted() ? fkp_interrupt_check() : fk_fail(FK_ERROR_INVALID, "cannot read %s: %s", path, strerror(errno));
    if (file != stdin) fclose(file);
    return status;
}

fk_status fkp_parse_dtype(const char *text, fk_dtype *out)
{
    *out = text ? fk_dtype_parse(text) : FK_NONE;
    if (!text || *out == FK_F32 || *out == FK_BF16 || *out == FK_F16) return FK_OK;
    return fk_fail(FK_ERROR_INVALID, "--dtype '%s' is none of f32, bf16, f16", text);
}
