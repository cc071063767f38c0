/* SPDX-License-Identifier: Apache-2.0 */
/* Making the tokenizer's test lines. */
#define _GNU_SOURCE
#include "unit.h"

#include "core/seeded.h"
#include "tokenizer_lines.h"

static uint32_t fnv1a32(const void *data, size_t bytes)
{
    uint32_t hash = 0x811C9DC5u;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ ((const uint8_t *)data)[i]) * 0x01000193u;
    return hash;
}

uint32_t hash_ids(const fk_token_list *ids)
{
    return fnv1a32(ids->ids, (size_t)ids->count * sizeof *ids->ids);
}

void append_unescaped(fk_bytes *out, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        char c = text[i];
        if (c == '\\' && i + 1 < bytes && (text[i + 1] == 'n' || text[i + 1] == 't')) {
            c = text[++i] == 'n' ? '\n' : '\t';
        } else if (c == '\\' && i + 3 < bytes && text[i + 1] == 'x') {
            const char hex[] = {text[i + 2], text[i + 3], 0};
            c = (char)strtoul(hex, NULL, 16);
            i += 3;
        }
        assert_ok(fk_bytes_append(out, &c, 1));
    }
}

void for_each_line(const char *path, void (*use)(void *context, char *line), void *context)
{
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("cannot open %s", path);
    char *line = NULL;
    size_t capacity = 0;
    for (ssize_t length; (length = getline(&line, &capacity, file)) >= 0;) {
        if (length > 0 && line[length - 1] == '\n') line[--length] = 0;
        if (length > 0 && line[0] != '#') use(context, line);
    }
    free(line);
    fclose(file);
}

void add_fragment(void *context, char *line)
{
    fragment_set *set = context;
    assert_true(set->count < MAX_FRAGMENTS);
    append_unescaped(&set->text, line, strlen(line));
    set->ends[set->count++] = set->text.bytes;
}

static void append_fragment(fk_bytes *out, const fragment_set *set, size_t i)
{
    size_t start = i ? set->ends[i - 1] : 0;
    assert_ok(fk_bytes_append(out, set->text.data + start, set->ends[i] - start));
}

static uint64_t line_random(uint64_t n, uint64_t j)
{
    return fkp_mix64((32 * n + j + 1) * 0x9e3779b97f4a7c15u);
}

void make_line(fk_bytes *out, const fragment_set *set, size_t n)
{
    fk_bytes_clear(out);
    if (n < set->count) {
        append_fragment(out, set, n);
        return;
    }
    uint64_t count = 1 + line_random(n, 0) % 10;
    for (uint64_t j = 1; j <= count; j++) {
        uint64_t r = line_random(n, j);
        append_fragment(out, set, r / 2 % set->count);
        if (r % 2 && j < count) assert_ok(fk_bytes_append(out, " ", 1));
    }
}
