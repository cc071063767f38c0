/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizers of tokenizer.json against what the `tokenizers` package makes of them (tools/reference/bpe_families.py):
 * 20,000 lines and the code points for each family, decoding, the forms a file can have, and files that are refused. */
#define _GNU_SOURCE /* memmem */
#include "unit.h"

#include "core/json.h"
#include "core/seeded.h"
#include "text/detokenizer.h"
#include "text/tokenizer_json.h"
#include "text/utf8.h"
#include "tokenizer_families.h"

#include <time.h>

static json_t *golden;
static const fk_tokenizer_json_options names = {{"<s>", 3}, {"</s>", 4}};

static fk_tokenizer *open_json(const char *text)
{
    fk_tokenizer *t = NULL;
    assert_ok(fk_tokenizer_json_parse(text, strlen(text), &names, &t));
    return t;
}

static const json_t *family_named(const char *name)
{
    size_t i;
    json_t *family;
    json_array_foreach(json_object_get(golden, "families"), i, family)
        if (strcmp(json_string_value(json_object_get(family, "name")), name) == 0) return family;
    fail_msg("no family %s", name);
    return NULL;
}

static fk_tokenizer *open_family(const char *name)
{
    char *text = family_json(golden, family_named(name));
    fk_tokenizer *t = open_json(text);
    free(text);
    return t;
}

enum { FLAGS = FK_ENCODE_PARSE_SPECIAL | FK_ENCODE_ADD_BOS };

static void families_equal_the_reference(void **state)
{
    (void)state;
    size_t i;
    json_t *family;
    int wrong = 0;
    json_array_foreach(json_object_get(golden, "families"), i, family)
    {
        char *json = family_json(golden, family);
        fk_tokenizer *t = open_json(json);
        wrong += check_family(golden, family, t, FLAGS);
        fk_tokenizer_destroy(t);
        free(json);
    }
    assert_true(i >= 30);
    assert_int_equal(wrong, 0);
}

static void both_forms_of_merges_give_the_same_ids(void **state)
{
    (void)state;
    char *pairs = family_json(golden, family_named("gpt2"));
    json_t *root = json_loads(pairs, 0, NULL), *merges = json_object_get(json_object_get(root, "model"), "merges");
    size_t i;
    json_t *merge;
    json_array_foreach(merges, i, merge)
    {
        assert_true(json_is_array(merge));
        json_array_set_new(merges, i, json_sprintf("%s %s", json_string_value(json_array_get(merge, 0)), json_string_value(json_array_get(merge, 1))));
    }
    char *lines = json_dumps(root, 0);
    fk_tokenizer *a = open_json(pairs), *b = open_json(lines);
    fk_token_list from_a = {0}, from_b = {0};
    const char *text = "The quick brown fox\n  jumps over the lazy dog, doesn't it?";
    assert_ok(fk_tokenizer_encode(a, text, strlen(text), FLAGS, &from_a));
    assert_ok(fk_tokenizer_encode(b, text, strlen(text), FLAGS, &from_b));
    assert_true(from_a.count > 5 && from_a.count < (int64_t)strlen(text));
    assert_int_equal(from_a.count, from_b.count);
    assert_memory_equal(from_a.ids, from_b.ids, (size_t)from_a.count * sizeof *from_a.ids);
    fk_token_list_deinit(&from_a);
    fk_token_list_deinit(&from_b);
    fk_tokenizer_destroy(a);
    fk_tokenizer_destroy(b);
    json_decref(root);
    free(pairs);
    free(lines);
}

static void special_tokens_need_permission_and_stand_once(void **state)
{
    (void)state;
    fk_tokenizer *t = open_family("llama3");
    fk_token_list ids = {0};
    assert_ok(fk_tokenizer_encode(t, "<s>a", 4, FK_ENCODE_PARSE_SPECIAL | FK_ENCODE_ADD_BOS, &ids));
    assert_int_equal(ids.count, 2);
    assert_int_equal(ids.ids[0], 0);
    fk_token_list_clear(&ids);
    assert_ok(fk_tokenizer_encode(t, "<s>a", 4, 0, &ids));
    assert_true(ids.count > 1 && ids.ids[0] != 0);
    fk_token_list_clear(&ids);
    assert_ok(fk_tokenizer_encode(t, "a", 1, FK_ENCODE_ADD_BOS, &ids));
    assert_int_equal(ids.count, 2);
    assert_int_equal(ids.ids[0], 0);
    assert_int_equal(fk_tokenizer_bos_id(t), 0);
    assert_true(fk_tokenizer_is_eos(t, 1));
    fk_token_list_deinit(&ids);
    fk_tokenizer_destroy(t);
}

/* Every id by itself, joined, is the whole decode; no piece ends inside a character. */
static void streams_are_the_whole_text(void **state)
{
    (void)state;
    static const char *const names_of[] = {"gpt2", "mistral", "metaspace"};
    const char *text = " Hello , world .  \xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9 \xF0\x93\x82\x80 \xC3\xA9";
    for (int i = 0; i < 3; i++) {
        fk_tokenizer *t = open_family(names_of[i]);
        fk_token_list ids = {0};
        fk_bytes whole = {0}, stream = {0};
        fk_detokenizer *d;
        assert_ok(fk_tokenizer_encode(t, text, strlen(text), FK_ENCODE_ADD_BOS, &ids));
        assert_ok(fk_tokenizer_decode(t, ids.ids, ids.count, 0, &whole));
        assert_ok(fk_detokenizer_create(t, 0, &d));
        for (int round = 0; round < 2; round++) { /* a finished stream is as new */
            fk_bytes_clear(&stream);
            for (int64_t k = 0; k < ids.count; k++) {
                assert_ok(fk_detokenizer_push(d, ids.ids[k], &stream));
                assert_int_equal(fk_utf8_invalid_offset(stream.data ? stream.data : "", stream.bytes), stream.bytes);
            }
            assert_ok(fk_detokenizer_finish(d, &stream));
            assert_int_equal(stream.bytes, whole.bytes);
            assert_memory_equal(stream.data, whole.data, whole.bytes);
        }
        assert_null(memmem(whole.data, whole.bytes, "\xEF\xBF\xBD", 3));
        fk_detokenizer_destroy(d);
        fk_bytes_deinit(&whole);
        fk_bytes_deinit(&stream);
        fk_token_list_deinit(&ids);
        fk_tokenizer_destroy(t);
    }
}

/* A million equal characters, and marks in the worst order, in every family's own way. */
static void equal_characters_take_linear_time(void **state)
{
    (void)state;
    static const char *const units[] = {"a", " ", "\n", "1", "!", "\xCC\x81", "\xCC\x81\xCC\x96", "\xF0\x9F\x98\x80"};
    static const char *const names_of[] = {"llama3", "qwen2", "o200k", "deepseek", "llama2", "expression", "flags", "clean"};
    enum { BYTES = 1 << 20, MOST_SECONDS = 10 };
    fk_bytes text = {0};
    for (int f = 0; f < 8; f++) {
        fk_tokenizer *t = open_family(names_of[f]);
        fk_encoder *e;
        assert_ok(fk_encoder_create(t, &e));
        for (int u = 0; u < 8; u++) {
            fk_token_list ids = {0};
            fk_bytes_clear(&text);
            size_t bytes = u == 0 && f < 6 ? BYTES : BYTES / 16; /* a million once a family; quadratic time shows in less */
            while (text.bytes < bytes) assert_ok(fk_bytes_append(&text, units[u], strlen(units[u])));
            clock_t start = clock();
            assert_ok(fk_encoder_encode(e, text.data, text.bytes, FLAGS, &ids));
            double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
            if (seconds > MOST_SECONDS) fail_msg("%s: %zu bytes of unit %d took %.1f s", names_of[f], text.bytes, u, seconds);
            fk_token_list_deinit(&ids);
        }
        fk_encoder_destroy(e);
        fk_tokenizer_destroy(t);
    }
    fk_bytes_deinit(&text);
}

static void refuse(const char *json, const char *named)
{
    fk_tokenizer *t = (fk_tokenizer *)&golden;
    assert_int_not_equal(fk_tokenizer_json_parse(json, strlen(json), NULL, &t), FK_OK);
    assert_null(t);
    if (!strstr(fk_error_message(), named)) fail_msg("'%s' does not name '%s'", fk_error_message(), named);
}

static void hostile_files_are_refused(void **state)
{
    (void)state;
    refuse("", "tokenizer.json");
    refuse("{}", "model");
    refuse("{\"model\":{\"type\":\"Trigram\",\"vocab\":[]}}", "Trigram");
    refuse("{\"model\":{\"type\":\"Unigram\",\"vocab\":{}}}", "vocab");
    refuse("{\"model\":{\"type\":\"Unigram\",\"vocab\":[]}}", "empty");
    refuse("{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",\"b\"]]}}", "vocab[0]");
    refuse("{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",0.0],[\"a\",0.0]]}}", "both");
    refuse("{\"model\":{\"type\":\"Unigram\",\"unk_id\":1,\"vocab\":[[\"a\",0.0]]}}", "unk_id");
    refuse("{\"model\":{\"type\":\"BPE\",\"vocab\":[],\"merges\":[]}}", "vocab");
    refuse("{\"model\":{\"type\":\"BPE\",\"vocab\":{},\"merges\":[]}}", "empty");
    refuse("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":-1},\"merges\":[]}}", "'a'");
    refuse("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":4000000},\"merges\":[]}}", "4000000");
    refuse("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":0},\"merges\":[]}}", "both");
    refuse("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"ab\"]}}", "merges[0]");
    refuse("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[[\"a\"]]}}", "merges[0]");
    refuse("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[[\"a\",1]]}}", "merges[0]");
    refuse("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[\"a x\"]}}", "'x'");
    refuse("{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"abcdefgh\":1},\"merges\":[]}}", "abcdefgh");
    refuse("{\"model\":{\"type\":\"BPE\",\"dropout\":0.1,\"vocab\":{\"a\":0},\"merges\":[]}}", "dropout");
    refuse("{\"model\":{\"type\":\"BPE\",\"unk_token\":\"u\",\"vocab\":{\"a\":0},\"merges\":[]}}", "unk_token");
#define REST "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0},\"merges\":[]}}"
    refuse("{\"normalizer\":{\"type\":\"Upside\"}," REST, "Upside");
    refuse("{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"A?==\"}," REST, "base64");
    refuse("{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"AAAB\"}," REST,
           "precompiled_charsmap");
    refuse("{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\"\"},\"content\":\"\"}," REST, "empty");
    refuse("{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(\"},\"behavior\":\"Isolated\"}," REST, "'('");
    refuse("{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"a\"},\"behavior\":\"Folded\"}," REST, "Folded");
    refuse("{\"pre_tokenizer\":{\"type\":\"UnicodeScripts\"}," REST, "UnicodeScripts");
    refuse("{\"post_processor\":{\"type\":\"BertProcessing\",\"sep\":[\"x\",9],\"cls\":[\"y\",9]}," REST, "cls");
    refuse("{\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[]}," REST, "sequence A");
    refuse("{\"decoder\":{\"type\":\"CTC\"}," REST, "CTC");
    refuse("{\"added_tokens\":[{\"id\":0,\"content\":\"b\"}]," REST, "both");
    refuse("{\"added_tokens\":[{\"id\":5}]," REST, "content");
    refuse("{\"added_tokens\":{}," REST, "added_tokens");
}

/* An expression that takes exponential time ends with an error instead. */
static void endless_expressions_end(void **state)
{
    (void)state;
    const char *json = "{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(a+)+[bd]\"},\"behavior\":\"Isolated\"}," REST;
    fk_tokenizer *t;
    fk_token_list ids = {0};
    char text[60];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = 'c';
    assert_ok(fk_tokenizer_json_parse(json, strlen(json), NULL, &t));
    assert_int_not_equal(fk_tokenizer_encode(t, text, sizeof text, 0, &ids), FK_OK);
    assert_non_null(strstr(fk_error_message(), "regular expression"));
    assert_int_equal(ids.count, 0);
    fk_token_list_deinit(&ids);
    fk_tokenizer_destroy(t);
}

static int set_up(void **state)
{
    (void)state;
    assert_ok(fkp_json_load_file(FK_SOURCE_DIR "/tests/goldens/bpe_families.json", (fkp_json_limits){64, 1 << 20}, &golden));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    json_decref(golden);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_equal_the_reference),
        cmocka_unit_test(both_forms_of_merges_give_the_same_ids),
        cmocka_unit_test(special_tokens_need_permission_and_stand_once),
        cmocka_unit_test(streams_are_the_whole_text),
        cmocka_unit_test(equal_characters_take_linear_time),
        cmocka_unit_test(hostile_files_are_refused),
        cmocka_unit_test(endless_expressions_end),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
