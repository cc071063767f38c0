/* SPDX-License-Identifier: Apache-2.0 */
/* Making the tokenizers' test lines, and comparing. */
#define _GNU_SOURCE
#include "unit.h"

#include "core/seeded.h"
#include "text/utf8.h"
#include "tokenizer_lines.h"

/* FNV-1a over the ids as little-endian int32. */
static uint32_t hash_ids(const fk_token_list *ids)
{
    const uint8_t *bytes = (const uint8_t *)ids->ids;
    uint32_t hash = 0x811C9DC5u;
    for (size_t i = 0; i < (size_t)ids->count * sizeof *ids->ids; i++) hash = (hash ^ bytes[i]) * 0x01000193u;
    return hash;
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

int64_t check_lines(encode_fn encode, const int32_t *counts, const uint32_t *hashes)
{
    static fragment_set set;
    for_each_line(FK_SOURCE_DIR "/tests/goldens/tokenizer_fragments.txt", add_fragment, &set);
    fk_bytes line = {0};
    fk_token_list ids = {0};
    int64_t total = 0, wrong = 0;
    for (size_t n = 0; n < LINES; n++) {
        make_line(&line, &set, n);
        fk_token_list_clear(&ids);
        encode(&line, &ids);
        total += ids.count;
        if ((ids.count != counts[n] || hash_ids(&ids) != hashes[n]) && wrong++ < 5)
            print_error("line %zu: %.*s\n", n, (int)line.bytes, line.data);
    }
    assert_int_equal(wrong, 0);
    fk_bytes_deinit(&line);
    fk_bytes_deinit(&set.text);
    fk_token_list_deinit(&ids);
    return total;
}

void make_block(fk_bytes *out, uint32_t block)
{
    fk_bytes_clear(out);
    for (uint32_t c = 256 * block; c < 256 * block + 256; c++) {
        if (c >= 0xD800 && c <= 0xDFFF) continue;
        uint8_t utf8[6] = {' '};
        int bytes = fkp_utf8_write(c, utf8 + 1);
        utf8[1 + bytes] = 'x';
        assert_ok(fk_bytes_append(out, utf8, (size_t)bytes + 2));
    }
}

void check_code_points(encode_fn encode, const uint32_t hashes[CODE_POINT_BLOCKS])
{
    fk_bytes text = {0};
    fk_token_list ids = {0};
    int wrong = 0;
    for (uint32_t block = 0; block < CODE_POINT_BLOCKS; block++) {
        make_block(&text, block);
        fk_token_list_clear(&ids);
        encode(&text, &ids);
        if (hash_ids(&ids) != hashes[block] && wrong++ < 5) print_error("code points U+%04X to U+%04X\n", 256 * block, 256 * block + 255);
    }
    assert_int_equal(wrong, 0);
    fk_bytes_deinit(&text);
    fk_token_list_deinit(&ids);
}
