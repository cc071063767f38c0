/* SPDX-License-Identifier: Apache-2.0 */
/* WordPiece from tokenizer.json: the rules on a vocabulary of a few pieces, and files that must be refused. */
#include "unit.h"

#include "text/wordpiece.h"

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
    fk_wordpiece *w;
    fk_token_list ids = {0};
    char got[4096] = "";
    assert_ok(fk_wordpiece_parse(json, strlen(json), &w));
    assert_ok(fk_wordpiece_encode(w, text, bytes, special, &ids));
    for (int64_t i = 0; i < ids.count; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%d", i ? " " : "", ids.ids[i]);
    assert_string_equal(got, wanted);
    fk_token_list_deinit(&ids);
    fk_wordpiece_destroy(w);
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
    fk_wordpiece *w;
    fk_token_list ids = {0};
    assert_int_equal(fk_wordpiece_parse(uncased, strlen(uncased), &w), FK_OK);
    assert_int_equal(fk_wordpiece_encode(w, text, sizeof text, false, &ids), FK_OK);
    assert_int_equal(ids.count, sizeof text);
    fk_token_list_deinit(&ids);
    fk_wordpiece_destroy(w);
}

static void broken_utf8_is_an_error_and_leaves_the_list(void **state)
{
    (void)state;
    fk_wordpiece *w;
    fk_token_list ids = {0};
    assert_int_equal(fk_wordpiece_parse(uncased, strlen(uncased), &w), FK_OK);
    assert_int_equal(fk_token_list_push(&ids, 7), FK_OK);
    assert_int_equal(fk_wordpiece_encode(w, "a\xff", 2, true, &ids), FK_ERROR_INVALID);
    assert_message("0xFF at offset 1");
    assert_int_equal(ids.count, 1);
    fk_token_list_deinit(&ids);
    fk_wordpiece_destroy(w);
}

static void files_that_say_something_else_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *json, *message;
    } bad[] = {
        {"{}", "model"},
        {"[", "tokenizer.json"},
        {FILE_OF(ADDED, NORMALIZER("true"), BERT, PROCESSOR, "{\"type\":\"BPE\"}"), "'BPE'"},
        {FILE_OF(ADDED, "{\"type\":\"NFC\"}", BERT, PROCESSOR, MODEL(VOCAB)), "'NFC'"},
        {FILE_OF(ADDED, NORMALIZER("3"), BERT, PROCESSOR, MODEL(VOCAB)), "lowercase"},
        {FILE_OF(ADDED, NORMALIZER("true"), "Whitespace", PROCESSOR, MODEL(VOCAB)), "'Whitespace'"},
        {FILE_OF(ADDED, NORMALIZER("true"), BERT, "{\"type\":\"RobertaProcessing\"}", MODEL(VOCAB)), "RobertaProcessing"},
        {FILE_OF(ADDED, NORMALIZER("true"), BERT, "{\"type\":\"BertProcessing\",\"cls\":[\"x\",1],\"sep\":[\"y\",99]}", MODEL(VOCAB)), "99"},
        {FILE_OF("[]", NORMALIZER("true"), BERT, "null", MODEL("{\"a\":0}")), "[UNK]"},
        {FILE_OF("[]", NORMALIZER("true"), BERT, "null", MODEL("{}")), "empty"},
        {FILE_OF("[]", NORMALIZER("true"), BERT, "null", MODEL("{\"[UNK]\":0,\"a\":0}")), "id 0 is both"},
        {FILE_OF("[]", NORMALIZER("true"), BERT, "null", MODEL("{\"[UNK]\":0,\"a\":-1}")), "'a'"},
        {FILE_OF("[]", NORMALIZER("true"), BERT, "null", MODEL("{\"[UNK]\":0,\"a\":4000000}")), "4000000"},
        {FILE_OF("[{\"id\":3,\"content\":\"un\",\"lstrip\":true}]", NORMALIZER("true"), BERT, "null", MODEL(VOCAB)), "lstrip"},
        {FILE_OF("[{\"id\":3}]", NORMALIZER("true"), BERT, "null", MODEL(VOCAB)), "content"},
        {FILE_OF("[{\"id\":5,\"content\":\"un\"}]", NORMALIZER("true"), BERT, "null", MODEL("{\"[UNK]\":0,\"un\":3}")), "both 'un'"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fk_wordpiece *w;
        assert_int_not_equal(fk_wordpiece_parse(bad[i].json, strlen(bad[i].json), &w), FK_OK);
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
            fk_wordpiece *w;
            fk_token_list ids = {0};
            if (fk_wordpiece_parse(copy, change ? sizeof uncased - 1 : i, &w) == FK_OK) {
                assert_int_equal(fk_wordpiece_encode(w, "unaffable [SEP] Kantō", 22, true, &ids), FK_OK);
                for (int64_t k = 0; k < ids.count; k++) assert_true(ids.ids[k] >= 0 && ids.ids[k] < fk_wordpiece_vocab_size(w));
            }
            fk_token_list_deinit(&ids);
            fk_wordpiece_destroy(w);
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
        cmocka_unit_test(broken_utf8_is_an_error_and_leaves_the_list),
        cmocka_unit_test(files_that_say_something_else_are_refused),
        cmocka_unit_test(damaged_files_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
