/* SPDX-License-Identifier: Apache-2.0 */
/* WordPiece from tokenizer.json: the rules on a vocabulary of a few pieces, and files that must be refused. */
#include "unit.h"

#include "text/detokenizer.h"
#include "text/tokenizer_json.h"

#define ADDED \
    "[{\"id\":0,\"content\":\"[UNK]\",\"special\":true,\"normalized\":false},{\"id\":1,\"content\":\"[CLS]\",\"special\":true}," \
    "{\"id\":2,\"content\":\"[SEP]\",\"special\":true}]"
#define VOCAB \
    "{\"[UNK]\":0,\"[CLS]\":1,\"[SEP]\":2,\"un\":3,\"##aff\":4,\"##able\":5,\"kan\":6,\"##to\":7,\"##t\":8,\"!\":9,\"中\":10," \
    "\"a\":11,\"##a\":12,\"i\":13,\"Kan\":14,\"##tō\":15}"
#define PROCESSOR \
    "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"[CLS]\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\"}}," \
    "{\"SpecialToken\":{\"id\":\"[SEP]\"}}],\"special_tokens\":{\"[CLS]\":{\"ids\":[1]},\"[SEP]\":{\"ids\":[2]}}}"
#define NORMALIZER(lower) "{\"type\":\"BertNormalizer\",\"strip_accents\":null,\"lowercase\":" lower "}"
#define MODEL(vocab) \
    "{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":100,\"vocab\":" vocab "}"
#define FILE_OF(added, normalizer, pre, processor, model) \
    "{\"added_tokens\":" added ",\"normalizer\":" normalizer ",\"pre_tokenizer\":{\"type\":\"" pre "\"},\"post_processor\":" processor \
    ",\"model\":" model "}"
#define BERT "BertPreTokenizer"

static const char uncased[] = FILE_OF(ADDED, NORMALIZER("true"), BERT, PROCESSOR, MODEL(VOCAB));
static const char cased[] = FILE_OF(ADDED, NORMALIZER("false"), BERT, PROCESSOR, MODEL(VOCAB));

static void check(const char *json, const char *text, size_t bytes, bool special, const char *wanted)
{
    fk_tokenizer *w;
    fk_token_list ids = {0};
    char got[4096] = "";
    assert_ok(fk_tokenizer_json_parse(json, strlen(json), NULL, &w));
    assert_ok(fk_tokenizer_encode(w, text, bytes, FK_ENCODE_PARSE_SPECIAL | (special ? FK_ENCODE_ADD_BOS : 0),
                                  &ids));
    for (int64_t i = 0; i < ids.count; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%d", i ? " " : "", ids.ids[i]);
    assert_string_equal(got, wanted);
    fk_token_list_deinit(&ids);
    fk_tokenizer_destroy(w);
}
#define CHECK(json, text, special, wanted) check(json, text, sizeof(text) - 1, special, wanted)

static void words_are_cut_into_their_longest_pieces(void **state)
{
    (void)state;
    CHECK(uncased, "", false, "");
    CHECK(uncased, "", true, "1 2");
    CHECK(uncased, "unaffable", true, "1 3 4 5 2");
    CHECK(uncased, "UNaffable!", false, "3 4 5 9");
    CHECK(uncased, "unaffablex un", false, "0 3"); /* a rest that no piece begins makes the whole word unknown */
    CHECK(uncased, "a中a", false, "11 10 11");
    CHECK(uncased, "un\taffable\nun", false, "3 0 3");
    CHECK(uncased, "u\0n", false, "3"); /* controls vanish and the word goes on */
}

static void accents_go_from_uncased_models_only(void **state)
{
    (void)state;
    CHECK(uncased, "Kantō", false, "6 7");
    CHECK(uncased, "Kanto\xcc\x84", false, "6 7");
    CHECK(cased, "Kantō", false, "14 15");
    CHECK(cased, "kantō", false, "6 15");
    CHECK(uncased, "İ", false, "13");
}

static void special_tokens_in_text_are_found(void **state)
{
    (void)state;
    CHECK(uncased, "a[SEP]a [CLS]", false, "11 2 11 1");
    CHECK(uncased, "[sep] [SEP", false, "0 0 0 0 0"); /* normalized text is not looked through */
}

static void a_word_may_have_a_hundred_characters(void **state)
{
    (void)state;
    char text[101], wanted[400] = "11";
    memset(text, 'a', sizeof text);
    for (int i = 1; i < 100; i++) strcat(wanted, " 12");
    check(uncased, text, 100, false, wanted);
    check(uncased, text, 101, false, "0");
}

static void a_million_equal_characters_take_no_time(void **state)
{
    (void)state;
    static char text[1 << 20];
    memset(text, 'a', sizeof text);
    check(uncased, text, sizeof text, false, "0");
    memset(text, '[', sizeof text);
    fk_tokenizer *w;
    fk_token_list ids = {0};
    assert_int_equal(fk_tokenizer_json_parse(uncased, strlen(uncased), NULL, &w), FK_OK);
    assert_int_equal(fk_tokenizer_encode(w, text, sizeof text, FK_ENCODE_PARSE_SPECIAL, &ids), FK_OK);
    assert_int_equal(ids.count, sizeof text);
    fk_token_list_deinit(&ids);
    fk_tokenizer_destroy(w);
}

static void broken_utf8_vanishes(void **state)
{
    (void)state;
    CHECK(uncased, "un\xff\x80", false, "3"); /* U+FFFD, which the normalizer takes out */
}

/* Pieces with a space between, but for those that go on with a word; cleaned up one by one as the reference
 * does. */
static void ids_become_text(void **state)
{
    (void)state;
    const int32_t ids[] = {1, 3, 4, 5, 9, 6, 7, 11, 2};
    static const char decoder[] = "{\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},";
    static const struct {
        unsigned flags;
        const char *text;
    } wanted[] = {{0, "unaffable! kanto a"}, {FK_DECODE_SPECIAL, "[CLS] unaffable! kanto a [SEP]"}};
    char json[sizeof decoder + sizeof uncased];
    snprintf(json, sizeof json, "%s%s", decoder, uncased + 1);
    fk_tokenizer *w;
    assert_ok(fk_tokenizer_json_parse(json, strlen(json), NULL, &w));
    for (int i = 0; i < 2; i++) {
        fk_bytes text = {0};
        assert_ok(fk_tokenizer_decode(w, ids, 9, wanted[i].flags, &text));
        assert_ok(fk_bytes_append(&text, "", 1));
        assert_string_equal(text.data, wanted[i].text);
        fk_bytes_deinit(&text);
    }
    fk_tokenizer_destroy(w);
}

static void files_that_say_something_else_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *json, *message;
    } bad[] = {
        {"{}", "model"},
        {"[", "tokenizer.json"},
        {FILE_OF(ADDED, NORMALIZER("true"), BERT, PROCESSOR, "{\"type\":\"Pieces\"}"), "'Pieces'"},
        {FILE_OF(ADDED, "{\"type\":\"NFX\"}", BERT, PROCESSOR, MODEL(VOCAB)), "'NFX'"},
        {FILE_OF(ADDED, NORMALIZER("3"), BERT, PROCESSOR, MODEL(VOCAB)), "lowercase"},
        {FILE_OF(ADDED, NORMALIZER("true"), "Blank", PROCESSOR, MODEL(VOCAB)), "'Blank'"},
        {FILE_OF(ADDED, NORMALIZER("true"), BERT, "{\"type\":\"RobertaProcessing\"}", MODEL(VOCAB)), "cls"},
        {FILE_OF(ADDED, NORMALIZER("true"), BERT,
                 "{\"type\":\"BertProcessing\",\"cls\":[\"x\",1],\"sep\":[\"y\",99]}", MODEL(VOCAB)),
         "99"},
        {FILE_OF("[]", NORMALIZER("true"), BERT, "null", MODEL("{\"a\":0}")), "[UNK]"},
        {FILE_OF("[]", NORMALIZER("true"), BERT, "null", MODEL("{}")), "empty"},
        {FILE_OF("[]", NORMALIZER("true"), BERT, "null", MODEL("{\"[UNK]\":0,\"a\":0}")), "id 0 is both"},
        {FILE_OF("[]", NORMALIZER("true"), BERT, "null", MODEL("{\"[UNK]\":0,\"a\":-1}")), "'a'"},
        {FILE_OF("[]", NORMALIZER("true"), BERT, "null", MODEL("{\"[UNK]\":0,\"a\":4000000}")), "4000000"},
        {FILE_OF("[{\"id\":3,\"content\":\"un\",\"lstrip\":3}]", NORMALIZER("true"), BERT, "null",
                 MODEL(VOCAB)),
         "lstrip"},
        {FILE_OF("[]", NORMALIZER("true"), BERT, "null",
                 "{\"type\":\"WordPiece\",\"unk_token\":\"a\",\"vocab\":{\"a\":0}}"),
         "continuing_subword_prefix"},
        {FILE_OF("[]", NORMALIZER("true"), BERT, "null", "{\"type\":\"WordLevel\",\"vocab\":{\"a\":0}}"),
         "unk_token"},
        {FILE_OF("[{\"id\":3}]", NORMALIZER("true"), BERT, "null", MODEL(VOCAB)), "content"},
        {FILE_OF("[{\"id\":5,\"content\":\"un\"}]", NORMALIZER("true"), BERT, "null", MODEL("{\"[UNK]\":0,\"un\":3}")), "both 'un'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fk_tokenizer *w;
        assert_int_not_equal(fk_tokenizer_json_parse(bad[i].json, strlen(bad[i].json), NULL, &w), FK_OK);
        assert_null(w);
        if (!strstr(fk_error_message(), bad[i].message)) fail_msg("case %zu: %s", i, fk_error_message());
    }
}

/* Cut anywhere, or with a byte changed, a file gives an error or a tokenizer that works. */
static void damaged_files_do_no_harm(void **state)
{
    (void)state;
    char copy[sizeof uncased];
    for (size_t i = 0; i + 1 < sizeof uncased; i++)
        for (int change = 0; change < 3; change++) {
            memcpy(copy, uncased, sizeof copy);
            if (change) copy[i] = change == 1 ? '9' : '"';
            fk_tokenizer *w;
            fk_token_list ids = {0};
            if (fk_tokenizer_json_parse(copy, change ? sizeof uncased - 1 : i, NULL, &w) == FK_OK) {
                assert_int_equal(fk_tokenizer_encode(w, "unaffable [SEP] Kantō", 22,
                                                     FK_ENCODE_PARSE_SPECIAL | FK_ENCODE_ADD_BOS, &ids),
                                 FK_OK);
                for (int64_t k = 0; k < ids.count; k++)
                    assert_true(ids.ids[k] >= 0 && ids.ids[k] < fk_tokenizer_vocab_size(w));
            }
            fk_token_list_deinit(&ids);
            fk_tokenizer_destroy(w);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_cut_into_their_longest_pieces),
        cmocka_unit_test(accents_go_from_uncased_models_only),
        cmocka_unit_test(special_tokens_in_text_are_found),
        cmocka_unit_test(a_word_may_have_a_hundred_characters),
        cmocka_unit_test(a_million_equal_characters_take_no_time),
        cmocka_unit_test(broken_utf8_vanishes),
        cmocka_unit_test(ids_become_text),
        cmocka_unit_test(files_that_say_something_else_are_refused),
        cmocka_unit_test(damaged_files_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
