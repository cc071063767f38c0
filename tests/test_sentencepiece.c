/* SPDX-License-Identifier: Apache-2.0 */
/* SentencePiece models against what the `sentencepiece` package makes of them, Unigram in tokenizer.json
 * against the `tokenizers` package (tools/reference/sentencepiece_models.py): 20,000 lines and the code
 * points, and the text of the ids; hostile models. */
#include "unit.h"

#include "core/file_map.h"
#include "core/gguf.h"
#include "core/json.h"
#include "text/detokenizer.h"
#include "text/sentencepiece.h"
#include "text/tokenizer_gguf.h"
#include "text/tokenizer_json.h"
#include "tokenizer_families.h"

#include <time.h>

#define GOLDENS FK_SOURCE_DIR "/tests/goldens/"

static json_t *golden;

static fk_tokenizer *open_model(const char *name)
{
    char path[400];
    fk_tokenizer *t;
    snprintf(path, sizeof path, GOLDENS "sentencepiece_%s.model", name);
    assert_ok(fk_sentencepiece_load(path, &t));
    return t;
}

static void models_equal_the_reference(void **state)
{
    (void)state;
    size_t i;
    json_t *model;
    int wrong = 0;
    json_array_foreach(json_object_get(golden, "models"), i, model)
    {
        fk_tokenizer *t = open_model(json_string_value(json_object_get(model, "name")));
        wrong += check_family(golden, model, t, 0);
        fk_tokenizer_destroy(t);
    }
    assert_int_equal(i, 4);
    assert_int_equal(wrong, 0);
}

/* The same vocabulary out of a GGUF file. */
static void gguf_equals_the_model(void **state)
{
    (void)state;
    fk_gguf *gguf;
    fk_tokenizer *t;
    assert_ok(fk_gguf_open(GOLDENS "sentencepiece_llama.gguf", &gguf));
    assert_ok(fk_tokenizer_create_gguf(gguf, &t));
    fk_gguf_close(gguf);
    const json_t *model = json_array_get(json_object_get(golden, "models"), 0);
    assert_string_equal(json_string_value(json_object_get(model, "name")), "llama");
    assert_int_equal(check_family(golden, model, t, 0), 0);
    assert_int_equal(fk_tokenizer_bos_id(t), 1);
    assert_true(fk_tokenizer_is_eos(t, 2));
    fk_tokenizer_destroy(t);
}

static void families_equal_the_reference(void **state)
{
    (void)state;
    const fk_tokenizer_json_options names = {{"<s>", 3}, {"</s>", 4}};
    size_t i;
    json_t *family;
    int wrong = 0;
    json_array_foreach(json_object_get(golden, "families"), i, family)
    {
        char *json = family_json(golden, family);
        fk_tokenizer *t;
        assert_ok(fk_tokenizer_json_parse(json, strlen(json), &names, &t));
        wrong += check_family(golden, family, t, FK_ENCODE_PARSE_SPECIAL | FK_ENCODE_ADD_BOS);
        fk_tokenizer_destroy(t);
        free(json);
    }
    assert_int_equal(i, 6);
    assert_int_equal(wrong, 0);
}

static void check_ids(const fk_tokenizer *t, const char *text, unsigned flags, const int32_t *wanted,
                      int64_t count)
{
    fk_token_list ids = {0};
    assert_ok(fk_tokenizer_encode(t, text, strlen(text), flags, &ids));
    assert_int_equal(ids.count, count);
    assert_memory_equal(ids.ids, wanted, (size_t)count * sizeof *wanted);
    fk_token_list_deinit(&ids);
}

static void begin_and_end_stand_where_the_models_have_them(void **state)
{
    (void)state;
    fk_tokenizer *bpe = open_model("llama"), *unigram = open_model("t5");
    const int32_t begin[] = {1}, end[] = {2}, both[] = {1, 2};
    check_ids(bpe, "", FK_ENCODE_ADD_BOS, begin, 1);
    check_ids(unigram, "", FK_ENCODE_ADD_BOS, end, 1);
    check_ids(bpe, "</s>", FK_ENCODE_ADD_BOS | FK_ENCODE_PARSE_SPECIAL, both, 2);
    check_ids(bpe, "<s></s>", FK_ENCODE_ADD_BOS | FK_ENCODE_PARSE_SPECIAL, both, 2); /* not twice */
    fk_tokenizer_destroy(bpe);
    fk_tokenizer_destroy(unigram);
}

/* Every id by itself, joined, is the whole decode. */
static void streams_are_the_whole_text(void **state)
{
    (void)state;
    static const char *const models[] = {"llama", "bpe", "t5", "suffix"};
    const char *text =
        " Hello , world .  \xF0\x9F\x91\xA8\xE2\x80\x8D\xF0\x9F\x91\xA9 \xF0\x93\x82\x80 \xC3\xA9<tool>\n";
    for (int i = 0; i < 4; i++) {
        fk_tokenizer *t = open_model(models[i]);
        fk_token_list ids = {0};
        fk_bytes whole = {0}, stream = {0};
        fk_detokenizer *d;
        assert_ok(fk_tokenizer_encode(t, text, strlen(text), FK_ENCODE_ADD_BOS, &ids));
        assert_ok(fk_tokenizer_decode(t, ids.ids, ids.count, 0, &whole));
        assert_ok(fk_detokenizer_create(t, 0, &d));
        for (int64_t k = 0; k < ids.count; k++) assert_ok(fk_detokenizer_push(d, ids.ids[k], &stream));
        assert_ok(fk_detokenizer_finish(d, &stream));
        assert_true(whole.bytes > 20);
        assert_int_equal(stream.bytes, whole.bytes);
        assert_memory_equal(stream.data, whole.data, whole.bytes);
        fk_detokenizer_destroy(d);
        fk_bytes_deinit(&whole);
        fk_bytes_deinit(&stream);
        fk_token_list_deinit(&ids);
        fk_tokenizer_destroy(t);
    }
}

static void equal_characters_take_linear_time(void **state)
{
    (void)state;
    static const char *const models[] = {"llama", "bpe", "t5", "suffix"};
    static const char *const units[] = {"a", " ", "1", "\xE2\x96\x81", "\xF0\x9F\x98\x80", "\xE9\xBE\xA0"};
    enum { BYTES = 1 << 20, MOST_SECONDS = 10 };
    for (int m = 0; m < 4; m++) {
        fk_tokenizer *t = open_model(models[m]);
        for (int u = 0; u < 6; u++) {
            fk_bytes text = {0};
            fk_token_list ids = {0};
            while (text.bytes < (u == 0 ? BYTES : BYTES / 16))
                assert_ok(fk_bytes_append(&text, units[u], strlen(units[u])));
            clock_t start = clock();
            assert_ok(fk_tokenizer_encode(t, text.data, text.bytes, 0, &ids));
            double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
            if (seconds > MOST_SECONDS)
                fail_msg("%s: %zu bytes of unit %d took %.1f s", models[m], text.bytes, u, seconds);
            fk_token_list_deinit(&ids);
            fk_bytes_deinit(&text);
        }
        fk_tokenizer_destroy(t);
    }
}

/* ---- damaged models */

static void refuse(const char *data, size_t bytes, const char *named)
{
    fk_tokenizer *t = (fk_tokenizer *)&golden;
    assert_int_not_equal(fk_sentencepiece_parse(data, bytes, &t), FK_OK);
    assert_null(t);
    if (!strstr(fk_error_message(), named)) fail_msg("'%s' does not name '%s'", fk_error_message(), named);
}
#define REFUSE(bytes, named) refuse(bytes, sizeof(bytes) - 1, named)

/* Messages by hand: 0x0A is field 1 (a piece) with its length behind it, 0x12 field 2 (trainer_spec). */
static void hostile_models_are_refused(void **state)
{
    (void)state;
#define A                                                                                                    \
    "\x0A\x03\x0A\x01"                                                                                       \
    "a" /* the piece "a" */
#define BPE "\x12\x02\x18\x02"
    REFUSE("", "0 pieces");
    REFUSE("\x0A", "ends within");
    REFUSE("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", "ends within");
    REFUSE("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02", "64 bits");
    REFUSE("\x0A\x05\x0A\x7F"
           "abc",
           "ends within");
    REFUSE("\x03", "number 0");
    REFUSE("\x0B", "wire type 3");
    REFUSE("\x08\x01", "wire type 0");
    REFUSE("\x0A\x00", "pieces[0] is empty");
    REFUSE("\x0A\x05\x0A\x01"
           "a\x18\x09",
           "type 9");
    REFUSE("\x0A\x08\x0A\x01"
           "a\x15\x00\x00\xC0\x7F",
           "score");
    REFUSE("\x0A\x05\x0A\x01"
           "a\x18\x06",
           "'a' is a byte");
    REFUSE(A A, "both");
    REFUSE(A "\x12\x02\x18\x04", "model_type");
    REFUSE(A "\x1A\x05\x12\x03"
             "abc",
           "precompiled_charsmap");
    REFUSE(A "\x2A\x05\x12\x03"
             "abc",
           "denormalizer_spec");
    REFUSE(A BPE "\x0A\x06\x0A\x02"
                 "bc\x18\x05",
           "unused");
    REFUSE(BPE A "\x0A\x04\x0A\x02"
                 "ab",
           "'b'"); /* a part that is no piece */
    fk_tokenizer *t;
    assert_ok(fk_sentencepiece_parse(A BPE, sizeof(A BPE) - 1, &t));
    fk_tokenizer_destroy(t);
}

/* Cut anywhere, or with a byte changed, a model gives an error or a tokenizer that works. */
static void damaged_models_do_no_harm(void **state)
{
    (void)state;
    fkp_file_map map;
    assert_ok(fkp_file_map_open(&map, GOLDENS "sentencepiece_t5.model"));
    for (size_t i = 0; i < 400; i++) {
        size_t at = i * 7919 % map.size;
        char *copy = malloc(map.size);
        memcpy(copy, map.data, map.size);
        copy[at] ^= (char)(1 << i % 8);
        fk_tokenizer *t;
        fk_token_list ids = {0};
        if (fk_sentencepiece_parse(copy, i % 3 ? map.size : at, &t) == FK_OK) {
            assert_ok(fk_tokenizer_encode(t, "a \xEF\xBC\xA1 foo<tool>\xC2\xBD", 17, 0, &ids));
            for (int64_t k = 0; k < ids.count; k++)
                assert_true(ids.ids[k] >= 0 && ids.ids[k] < fk_tokenizer_vocab_size(t));
        }
        fk_token_list_deinit(&ids);
        fk_tokenizer_destroy(t);
        free(copy);
    }
    fkp_file_map_close(&map);
}

static int set_up(void **state)
{
    (void)state;
    assert_ok(fkp_json_load_file(GOLDENS "sentencepiece.json", (fkp_json_limits){64, 1 << 20}, &golden));
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
        cmocka_unit_test(models_equal_the_reference),
        cmocka_unit_test(gguf_equals_the_model),
        cmocka_unit_test(families_equal_the_reference),
        cmocka_unit_test(begin_and_end_stand_where_the_models_have_them),
        cmocka_unit_test(streams_are_the_whole_text),
        cmocka_unit_test(equal_characters_take_linear_time),
        cmocka_unit_test(hostile_models_are_refused),
        cmocka_unit_test(damaged_models_do_no_harm),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
