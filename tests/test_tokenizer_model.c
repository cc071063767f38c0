/* SPDX-License-Identifier: Apache-2.0 */
/* The tokenizer on SmolLM2's vocabulary against what llama.cpp makes of it: 20,000 lines, every code point,
 * every piece, special tokens, broken UTF-8 (tools/reference/tokenizer_lines.py says how the goldens are
 * made). Needs the model file; without it the program says so and ends with 77, which CTest counts as
 * skipped. */
#define _GNU_SOURCE
#include "golden.h"

#include "core/seeded.h"
#include "runtime/assets.h"
#include "text/detokenizer.h"
#include "text/tokenizer_gguf.h"
#include "tokenizer_lines.h"

#define GOLDENS FK_SOURCE_DIR "/tests/goldens/"

static fk_gguf *gguf;
static fk_tokenizer *tokenizer;
static fk_encoder *encoder;

/* The decoded ids must be the line; where the vocabulary lacks bytes, the line without them. */
static void check_round_trip(const fk_bytes *line, const fk_token_list *ids)
{
    fk_bytes decoded = {0};
    assert_ok(fk_tokenizer_decode(tokenizer, ids->ids, ids->count, FK_DECODE_RAW_BYTES, &decoded));
    size_t at = 0, dropped = 0;
    for (size_t i = 0; i < line->bytes; i++) {
        if (at < decoded.bytes && decoded.data[at] == line->data[i])
            at++;
        else
            dropped++;
    }
    assert_int_equal(at, decoded.bytes);
    assert_int_equal(dropped, fk_encoder_dropped_bytes(encoder));
    fk_bytes_deinit(&decoded);
}

static void encode(const fk_bytes *text, fk_token_list *ids)
{
    assert_ok(fk_encoder_encode(encoder, text->data, text->bytes, 0, ids));
}

static void encode_and_decode(const fk_bytes *line, fk_token_list *ids)
{
    encode(line, ids);
    check_round_trip(line, ids);
}

/* The generators agree, so that a wrong id is the tokenizer's. */
static void the_lines_themselves(void **state)
{
    (void)state;
    static fragment_set set;
    for_each_line(GOLDENS "tokenizer_fragments.txt", add_fragment, &set);
    const uint64_t *hashes = golden_values("text_hash", FK_I64, LINES / 100);
    fk_bytes line = {0}, hundred = {0};
    for (size_t n = 0; n < LINES; n++) {
        make_line(&line, &set, n);
        assert_ok(fk_bytes_append(&hundred, line.data, line.bytes));
        assert_ok(fk_bytes_append(&hundred, "\xff", 1));
        if (n % 100 != 99) continue;
        assert_int_equal(fkp_fnv1a64(hundred.data, hundred.bytes), hashes[n / 100]);
        fk_bytes_clear(&hundred);
    }
    fk_bytes_deinit(&line);
    fk_bytes_deinit(&hundred);
    fk_bytes_deinit(&set.text);
}

static void twenty_thousand_lines(void **state)
{
    (void)state;
    int64_t total = check_lines(encode_and_decode, golden_values("count", FK_I32, LINES), golden_values("hash", FK_I32, LINES));
    print_message("%lld ids in %d lines\n", (long long)total, LINES);
    assert_true(total > 10 * LINES);
}

static void every_code_point(void **state)
{
    (void)state;
    check_code_points(encode, golden_values("sweep_hash", FK_I32, CODE_POINT_BLOCKS));
}

static void every_piece(void **state)
{
    (void)state;
    const int64_t vocab_size = fk_tokenizer_vocab_size(tokenizer);
    const uint64_t *hashes = golden_values("piece_hash", FK_I64, vocab_size / 64);
    fk_bytes text = {0};
    for (int32_t id = 0; id < vocab_size; id++) {
        fk_piece piece = fk_tokenizer_piece(tokenizer, id);
        assert_ok(fk_bytes_append(&text, piece.data, piece.bytes));
        assert_ok(fk_bytes_append(&text, "\xff", 1));
        if (id % 64 != 63) continue;
        if (fkp_fnv1a64(text.data, text.bytes) != hashes[id / 64]) fail_msg("ids %d to %d", id - 63, id);
        fk_bytes_clear(&text);
    }
    fk_bytes_deinit(&text);
}

/* The ids written in a column of a golden file, against those of the text. */
static void check_column(const fk_bytes *text, unsigned flags, char *column)
{
    fk_token_list ids = {0};
    assert_ok(fk_encoder_encode(encoder, text->data, text->bytes, flags, &ids));
    int64_t count = 0;
    for (char *number = strtok(column, " "); number; number = strtok(NULL, " "), count++) {
        int32_t got = count < ids.count ? ids.ids[count] : -1;
        if (got != atoi(number))
            fail_msg("'%.*s' with flags %u: id %lld is %d, expected %s", (int)text->bytes, text->data, flags,
                     (long long)count, got, number);
    }
    assert_int_equal(ids.count, count);
    fk_token_list_deinit(&ids);
}

static void check_case(void *context, char *line)
{
    fk_bytes text = {0};
    char *plain = strchr(line, '\t');
    assert_non_null(plain);
    *plain++ = 0;
    char *special = strchr(plain, '\t');
    assert_non_null(special);
    *special++ = 0;
    append_unescaped(&text, line, strlen(line));
    check_column(&text, 0, plain);
    check_column(&text, FK_ENCODE_PARSE_SPECIAL, special);
    fk_bytes_deinit(&text);
    ++*(int *)context;
}

static void special_tokens_and_broken_utf8(void **state)
{
    (void)state;
    int cases = 0;
    for_each_line(GOLDENS "tokenizer_cases.tsv", check_case, &cases);
    assert_true(cases >= 50);
}

static void check_sample(void *context, char *line)
{
    fk_bytes text = {0};
    char *escaped = strchr(line, '\t');
    assert_non_null(escaped);
    *escaped++ = 0;
    char *ids = strchr(escaped, '\t');
    assert_non_null(ids);
    *ids++ = 0;
    append_unescaped(&text, escaped, strlen(escaped));
    check_column(&text, 0, ids);
    fk_bytes_deinit(&text);
    ++*(int *)context;
}

static void sample_lines_with_their_ids(void **state)
{
    (void)state;
    int lines = 0;
    for_each_line(GOLDENS "tokenizer_lines.tsv", check_sample, &lines);
    assert_int_equal(lines, LINES / 100);
}

static void chat_ids_are_those_of_the_whole_text(void **state)
{
    (void)state;
    const fk_chat_template *template;
    assert_ok(fk_chat_template_find_gguf(gguf, &template));
    assert_string_equal(fk_chat_template_name(template), "smollm2");
    const fk_chat_message messages[] = {{fk_piece_of("user"), fk_piece_of("\n What is 12 + 30?  ")},
                                        {fk_piece_of("assistant"), fk_piece_of("42")},
                                        {fk_piece_of("user"), fk_piece_of("谢谢 😀\n")}};
    fk_chat_prompt prompt = {0};
    fk_token_list chat = {0}, text = {0};
    assert_ok(fk_chat_render(template, messages, 3, true, &prompt));
    assert_ok(fk_chat_encode(encoder, &prompt, FK_ENCODE_ADD_BOS, &chat));
    assert_ok(fk_encoder_encode(encoder, prompt.text.data, prompt.text.bytes, FK_ENCODE_PARSE_SPECIAL, &text));
    assert_int_equal(chat.count, text.count);
    assert_memory_equal(chat.ids, text.ids, (size_t)text.count * sizeof *text.ids);
    assert_int_equal(chat.ids[0], 1);
    fk_chat_prompt_deinit(&prompt);
    fk_token_list_deinit(&chat);
    fk_token_list_deinit(&text);
}

static void what_ends_a_generation(void **state)
{
    (void)state;
    for (int32_t id = 0; id < fk_tokenizer_vocab_size(tokenizer); id++) /* <|endoftext|> and <|im_end|> */
        assert_int_equal(fk_tokenizer_is_eos(tokenizer, id), id == 0 || id == 2);
    assert_int_equal(fk_tokenizer_bos_id(tokenizer), 1);
    fk_token_list ids = {0};
    assert_ok(fk_encoder_encode(encoder, "Hello", 5, FK_ENCODE_ADD_BOS, &ids));
    assert_int_equal(ids.count, 1); /* add_bos_token is false here */
    fk_token_list_deinit(&ids);
}

static int set_up(void **state)
{
    char path[4096];
    (void)state;
    assert_ok(fk_asset_path("smollm2-135m", NULL, path, sizeof path));
    assert_ok(fk_gguf_open(path, &gguf));
    assert_ok(fk_tokenizer_create_gguf(gguf, &tokenizer));
    assert_ok(fk_encoder_create(tokenizer, &encoder));
    golden_open("tokenizer_smollm2.safetensors");
    return 0;
}

static int tear_down(void **state)
{
    fk_encoder_destroy(encoder);
    fk_tokenizer_destroy(tokenizer);
    fk_gguf_close(gguf);
    return golden_close(state);
}

int main(void)
{
    enum { SKIPPED = 77 };
    char path[4096];
    if (fk_asset_path("smollm2-135m", NULL, path, sizeof path) != FK_OK) {
        fprintf(stderr, "SKIPPED test_tokenizer_model: %s\n", fk_error_message());
        return SKIPPED;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_lines_themselves),
        cmocka_unit_test(twenty_thousand_lines),
        cmocka_unit_test(every_code_point),
        cmocka_unit_test(every_piece),
        cmocka_unit_test(special_tokens_and_broken_utf8),
        cmocka_unit_test(sample_lines_with_their_ids),
        cmocka_unit_test(chat_ids_are_those_of_the_whole_text),
        cmocka_unit_test(what_ends_a_generation),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
