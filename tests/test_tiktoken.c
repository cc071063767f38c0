/* SPDX-License-Identifier: Apache-2.0 */
/* Rank files against what the `tiktoken` package makes of them (tools/reference/tiktoken_ranks.py): 20,000
 * lines, the code points and the decoded text for each kind of encoding; files that are refused. */
#include "unit.h"

#include "core/json.h"
#include "text/detokenizer.h"
#include "text/tiktoken.h"
#include "tokenizer_families.h"

#include <time.h>

#define RANKS FK_SOURCE_DIR "/tests/goldens/ranks.tiktoken"

static json_t *golden;

static void encodings_equal_the_reference(void **state)
{
    (void)state;
    size_t i;
    json_t *encoding;
    int wrong = 0;
    json_array_foreach(json_object_get(golden, "encodings"), i, encoding)
    {
        fk_tokenizer *t;
        assert_ok(fk_tiktoken_load(RANKS, json_string_value(json_object_get(encoding, "name")), &t));
        wrong += check_family(golden, encoding, t, FK_ENCODE_PARSE_SPECIAL | FK_ENCODE_ADD_BOS);
        fk_tokenizer_destroy(t);
    }
    assert_int_equal(i, 4);
    assert_int_equal(wrong, 0);
}

static void special_tokens_need_permission(void **state)
{
    (void)state;
    fk_tokenizer *t;
    fk_token_list ids = {0};
    assert_ok(fk_tiktoken_load(RANKS, "cl100k_base", &t));
    assert_ok(fk_tokenizer_encode(t, "<|endofprompt|>", 15, FK_ENCODE_PARSE_SPECIAL, &ids));
    assert_int_equal(ids.count, 1);
    assert_int_equal(ids.ids[0], 100276);
    fk_token_list_clear(&ids);
    assert_ok(fk_tokenizer_encode(t, "<|endofprompt|>", 15, 0, &ids));
    assert_true(ids.count > 1);
    assert_int_equal(fk_tokenizer_bos_id(t), -1);
    assert_true(fk_tokenizer_is_eos(t, 100257));
    fk_token_list_deinit(&ids);
    fk_tokenizer_destroy(t);
}

static void any_bytes_come_back(void **state)
{
    (void)state;
    fk_tokenizer *t;
    fk_token_list ids = {0};
    fk_bytes text = {0};
    char all[512];
    for (int i = 0; i < 512; i++) all[i] = (char)(i < 256 ? i : 7 * i);
    assert_ok(fk_tiktoken_load(RANKS, "o200k_base", &t));
    assert_ok(fk_tokenizer_encode(t, all, sizeof all, FK_ENCODE_RAW_BYTES | FK_ENCODE_STRICT_BYTES, &ids));
    assert_ok(fk_tokenizer_decode(t, ids.ids, ids.count, FK_DECODE_RAW_BYTES, &text));
    assert_int_equal(text.bytes, sizeof all);
    assert_memory_equal(text.data, all, sizeof all);
    fk_bytes_deinit(&text);
    fk_token_list_deinit(&ids);
    fk_tokenizer_destroy(t);
}

static void equal_characters_take_linear_time(void **state)
{
    (void)state;
    static const char *const names[] = {"gpt2", "cl100k_base", "o200k_base"};
    static const char units[] = "a 1!\n";
    enum { BYTES = 1 << 20, MOST_SECONDS = 10 };
    char *text = malloc(BYTES);
    assert_non_null(text);
    for (int n = 0; n < 3; n++) {
        fk_tokenizer *t;
        assert_ok(fk_tiktoken_load(RANKS, names[n], &t));
        for (int u = 0; u < 5; u++) {
            fk_token_list ids = {0};
            memset(text, units[u], BYTES);
            clock_t start = clock();
            assert_ok(fk_tokenizer_encode(t, text, BYTES, 0, &ids));
            double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
            if (seconds > MOST_SECONDS)
                fail_msg("%s: a million of '%c' took %.1f s", names[n], units[u], seconds);
            fk_token_list_deinit(&ids);
        }
        fk_tokenizer_destroy(t);
    }
    free(text);
}

static void refuse(const char *file, const char *encoding, const char *named)
{
    fk_tokenizer *t = (fk_tokenizer *)&golden;
    assert_int_not_equal(fk_tiktoken_parse(file, strlen(file), encoding, &t), FK_OK);
    assert_null(t);
    if (!strstr(fk_error_message(), named)) fail_msg("'%s' does not name '%s'", fk_error_message(), named);
}

static void hostile_files_are_refused(void **state)
{
    (void)state;
    refuse("YQ== 0\n", "gpt3", "'gpt3'");
    refuse("", "gpt2", "no tokens");
    refuse("YQ== 0\nYg==\n", "gpt2", "line 2: no space");
    refuse("YQ 0\n", "gpt2", "line 1: base64");
    refuse("Y?== 0\n", "gpt2", "offset 1");
    refuse(" 0\n", "gpt2", "empty");
    refuse("YQ== x\n", "gpt2", "no number");
    refuse("YQ== \n", "gpt2", "must be a number");
    refuse("YQ== 99999999999999999999\n", "gpt2", "must be a number");
    refuse("YQ== 4000000\n", "gpt2", "4000000");
    refuse("YQ== 0\nYQ== 1\n", "gpt2", "both");
    refuse("YQ== 0\nYg== 0\n", "gpt2", "rank 0");
    refuse("YQ== 0\nYWI= 1\n", "gpt2", "'b'"); /* "ab" without "b" */
    fk_tokenizer *t;
    assert_int_equal(fk_tiktoken_load(RANKS, NULL, &t), FK_ERROR_UNSUPPORTED); /* its name says nothing */
    assert_message("ranks.tiktoken");
    assert_ok(fk_tiktoken_parse("YQ== 0\r\n\r\nYg== 1", 16, "gpt2", &t));
    fk_tokenizer_destroy(t);
}

static int set_up(void **state)
{
    (void)state;
    assert_ok(fkp_json_load_file(FK_SOURCE_DIR "/tests/goldens/tiktoken.json", (fkp_json_limits){64, 1 << 20},
                                 &golden));
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
        cmocka_unit_test(encodings_equal_the_reference), cmocka_unit_test(special_tokens_need_permission),
        cmocka_unit_test(any_bytes_come_back),           cmocka_unit_test(equal_characters_take_linear_time),
        cmocka_unit_test(hostile_files_are_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
