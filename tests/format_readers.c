/* SPDX-License-Identifier: Apache-2.0 */
/* Opens bytes as a model file and reads everything that the reader gives out. Works without a test framework,
 * since the fuzzer has none: a broken promise aborts. */
#include "format_readers.h"

#include <stdlib.h>
#include <string.h>

#include "core/gguf.h"
#include "core/json.h"
#include "core/safetensors.h"

static volatile uint64_t sink; /* keeps the reads */

static void check(bool promise)
{
    if (!promise) abort();
}

fk_status read_gguf(const uint8_t *data, size_t size)
{
    fk_gguf *g;
    uint64_t sum = 0;
    float row[256];
    fk_status status = fkp_gguf_open_bytes(data, size, "hostile.gguf", &g);
    if (status != FK_OK) {
        check(!g);
        check(strstr(fk_error_message(), "hostile.gguf: ") != NULL);
        return status;
    }
    for (size_t i = 0; i < fk_gguf_key_count(g); i++) {
        const char *key = fk_gguf_key_at(g, i);
        fk_gguf_string s;
        const fk_gguf_string *strings;
        fk_gguf_array a;
        size_t count;
        double d;
        if (fk_gguf_get_f64(g, key, &d) == FK_OK) sum += d > 0;
        if (fk_gguf_get_string(g, key, &s) == FK_OK)
            for (size_t k = 0; k < s.size; k++) sum += (uint8_t)s.data[k];
        if (fk_gguf_get_strings(g, key, &strings, &count) == FK_OK)
            for (size_t k = 0; k < count; k++)
                for (size_t c = 0; c < strings[k].size; c++) sum += (uint8_t)strings[k].data[c];
        if (fk_gguf_get_numbers(g, key, &a) == FK_OK)
            for (size_t k = 0; k < a.count; k++) sum += fk_gguf_array_f64(&a, k) > 0;
    }
    for (size_t i = 0; i < fk_gguf_tensor_count(g); i++) {
        const fk_gguf_tensor *t = fk_gguf_tensor_at(g, i);
        fk_tensor view;
        for (size_t k = 0; k < t->nbytes; k++) sum += ((const uint8_t *)t->data)[k];
        if (fk_gguf_view(g, t, &view) == FK_OK) check(fk_tensor_nbytes(&view) == t->nbytes);
        int64_t cols = t->ndim > 0 ? t->shape[t->ndim - 1] : 1;
        if (t->nbytes > 0 && cols <= 256 && fk_gguf_dequantize(g, t, 0, 1, row) == FK_OK) sum += row[0] > 0;
    }
    sink += sum;
    fk_gguf_close(g);
    return FK_OK;
}

fk_status read_safetensors(const uint8_t *data, size_t size)
{
    fk_safetensors *f;
    uint64_t sum = 0;
    fk_status status = fkp_safetensors_open_bytes(data, size, "hostile.safetensors", &f);
    if (status != FK_OK) {
        check(!f);
        check(strstr(fk_error_message(), "hostile.safetensors: ") != NULL);
        return status;
    }
    for (size_t i = 0; i < fk_safetensors_count(f); i++) {
        const fk_safetensors_entry *e = fk_safetensors_at(f, i);
        fk_tensor found;
        check(fk_safetensors_find(f, e->name, &found) == FK_OK);
        check(found.data == e->tensor.data);
        for (size_t k = 0; k < fk_tensor_nbytes(&found); k++) sum += ((const uint8_t *)found.data)[k];
        if (found.dtype == FK_F32 && fk_tensor_numel(&found) > 0) sum += ((const float *)found.data)[0] > 0;
    }
    for (size_t i = 0; i < fk_safetensors_metadata_count(f); i++)
        sum +=
            strlen(fk_safetensors_metadata_at(f, i)->key) + strlen(fk_safetensors_metadata_at(f, i)->value);
    sink += sum;
    fk_safetensors_close(f);
    return FK_OK;
}

fk_status read_json(const uint8_t *data, size_t size)
{
    json_t *json;
    fk_status status = fkp_json_parse((const char *)data, size, (fkp_json_limits){64, 100000}, &json);
    check((status == FK_OK) == (json != NULL));
    json_decref(json);
    return status;
}
