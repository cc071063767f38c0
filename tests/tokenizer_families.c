/* SPDX-License-Identifier: Apache-2.0 */
/* Hashing what a tokenizer makes of the lines, and comparing. */
#include "unit.h"

#include "text/detokenizer.h"
#include "tokenizer_families.h"
#include "tokenizer_lines.h"

static uint32_t crc32_table[256];

static void make_crc32_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; bit++) value = value & 1 ? value >> 1 ^ 0xEDB88320u : value >> 1;
        crc32_table[i] = value;
    }
}

/* Of more bytes; starts with 0. */
static uint32_t crc32_more(uint32_t crc, const void *data, size_t bytes)
{
    const uint8_t *byte = data;
    crc = ~crc;
    for (size_t i = 0; i < bytes; i++) crc = crc32_table[(crc ^ byte[i]) & 0xFF] ^ crc >> 8;
    return ~crc;
}

static uint32_t crc32_ids(uint32_t crc, const fk_token_list *ids)
{
    const int32_t end = -1;
    return crc32_more(crc32_more(crc, ids->ids, (size_t)ids->count * sizeof *ids->ids), &end, sizeof end);
}

/* The tokenizer.json of a family, to be freed. */
char *family_json(const json_t *golden, const json_t *family)
{
    const json_t *base = json_object_get(json_object_get(golden, "vocabularies"),
                                         json_string_value(json_object_get(family, "vocabulary")));
    json_t *fields = json_deep_copy(json_object_get(family, "fields")), *all = json_deep_copy(base);
    json_t *model = json_object_get(fields, "model");
    if (model) json_object_update(json_object_get(all, "model"), model);
    json_object_del(fields, "model");
    json_object_update(all, fields);
    char *text = json_dumps(all, JSON_COMPACT);
    json_decref(fields);
    json_decref(all);
    assert_non_null(text);
    return text;
}

static fragment_set fragments;
static unsigned flags;

static void encode(fk_encoder *e, const fk_bytes *text, fk_token_list *ids)
{
    fk_token_list_clear(ids);
    assert_ok(fk_encoder_encode(e, text->bytes ? text->data : "", text->bytes, flags, ids));
}

/* How many of a family's groups differ; the first is named. */
static int check_group(const json_t *family, const char *what, size_t index, uint32_t crc)
{
    if ((json_int_t)crc == json_integer_value(json_array_get(json_object_get(family, what), index))) return 0;
    print_error("%s: %s group %zu differs\n", json_string_value(json_object_get(family, "name")), what,
                index);
    return 1;
}

/* The sanitizer takes five times as long, and finds nothing in later lines that earlier ones have not shown.
 */
#ifdef __SANITIZE_ADDRESS__
enum { CHECKED_LINES = LINES / 10 };
#else
enum { CHECKED_LINES = LINES };
#endif

static int check_family_lines(const json_t *family, const fk_tokenizer *t, fk_encoder *e)
{
    enum { GROUP = 500 };
    fk_bytes line = {0}, text = {0};
    fk_token_list ids = {0};
    int wrong = 0;
    uint32_t ids_crc = 0, text_crc = 0;
    assert_int_equal(json_array_size(json_object_get(family, "lines")), LINES / GROUP);
    for (size_t n = 0; n < CHECKED_LINES; n++) {
        make_line(&line, &fragments, n);
        encode(e, &line, &ids);
        fk_bytes_clear(&text);
        assert_ok(fk_tokenizer_decode(t, ids.ids, ids.count, 0, &text));
        assert_ok(fk_bytes_append(&text, "\xff", 1));
        ids_crc = crc32_ids(ids_crc, &ids);
        text_crc = crc32_more(text_crc, text.data, text.bytes);
        if (n % GROUP < GROUP - 1) continue;
        wrong += check_group(family, "lines", n / GROUP, ids_crc) +
                 check_group(family, "text", n / GROUP, text_crc);
        ids_crc = text_crc = 0;
    }
    fk_bytes_deinit(&line);
    fk_bytes_deinit(&text);
    fk_token_list_deinit(&ids);
    return wrong;
}

static int check_family_sweep(const json_t *family, fk_encoder *e)
{
    enum { GROUP = 64 };
    fk_bytes text = {0};
    fk_token_list ids = {0};
    int wrong = 0;
    size_t blocks = 0x324;
    uint32_t crc = 0;
    for (size_t block = 0; block < blocks; block++) {
        make_block(&text, (uint32_t)block);
        encode(e, &text, &ids);
        crc = crc32_ids(crc, &ids);
        if (block % GROUP < GROUP - 1 && block + 1 < blocks) continue;
        wrong += check_group(family, "sweep", block / GROUP, crc);
        crc = 0;
    }
    fk_bytes_deinit(&text);
    fk_token_list_deinit(&ids);
    return wrong;
}

static int check_cases(const json_t *golden, const json_t *family, fk_encoder *e)
{
    const json_t *cases = json_object_get(golden, "cases"), *repeats = json_object_get(golden, "repeats");
    fk_bytes text = {0};
    fk_token_list ids = {0};
    int wrong = 0;
    for (size_t i = 0; i < json_array_size(cases); i++) {
        const json_t *wanted = json_array_get(json_object_get(family, "cases"), i);
        fk_bytes_clear(&text);
        assert_ok(fk_bytes_append(&text, json_string_value(json_array_get(cases, i)),
                                  json_string_length(json_array_get(cases, i))));
        encode(e, &text, &ids);
        bool same = json_array_size(wanted) == (size_t)ids.count;
        for (size_t k = 0; same && k < (size_t)ids.count; k++)
            same = json_integer_value(json_array_get(wanted, k)) == ids.ids[k];
        if (same) continue;
        wrong++;
        print_error("%s: case %zu '%.*s'\n", json_string_value(json_object_get(family, "name")), i,
                    (int)text.bytes, text.data);
    }
    for (size_t i = 0; i < json_array_size(repeats); i++) {
        const json_t *unit = json_array_get(json_array_get(repeats, i), 0);
        fk_bytes_clear(&text);
        for (json_int_t k = json_integer_value(json_array_get(json_array_get(repeats, i), 1)); k > 0; k--)
            assert_ok(fk_bytes_append(&text, json_string_value(unit), json_string_length(unit)));
        encode(e, &text, &ids);
        wrong += check_group(family, "repeats", i, crc32_ids(0, &ids));
    }
    fk_bytes_deinit(&text);
    fk_token_list_deinit(&ids);
    return wrong;
}

int check_family(const json_t *golden, const json_t *family, const fk_tokenizer *t, unsigned encode_flags)
{
    fk_encoder *e;
    if (fragments.count == 0) {
        make_crc32_table();
        for_each_line(FK_SOURCE_DIR "/tests/goldens/tokenizer_fragments.txt", add_fragment, &fragments);
    }
    flags = encode_flags;
    assert_ok(fk_encoder_create(t, &e));
    int wrong =
        check_family_lines(family, t, e) + check_family_sweep(family, e) + check_cases(golden, family, e);
    fk_encoder_destroy(e);
    return wrong;
}
