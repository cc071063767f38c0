/* SPDX-License-Identifier: Apache-2.0 */
/* The tokenizer on SmolLM2's vocabulary against what llama.cpp makes of it: 20,000 lines, every code point,
 * every piece, special tokens, broken UTF-8 (tools/reference/tokenizer_lines.py says how the goldens are
 * made). Needs the model file; without it the program says so and ends with 77, which CTest counts as
 * skipped. */
#define _GNU_SOURCE
#include "unit.h"

#include "core/safetensors.h"
#include "core/seeded.h"
#include "text/detokenizer.h"
#include "text/tokenizer_gguf.h"
#include "text/utf8.h"
#include "tokenizer_lines.h"

#define GOLDENS FK_SOURCE_DIR "/tests/goldens/"

static fk_gguf *gguf;
static fk_tokenizer *tokenizer;
static fk_encoder *encoder;
static fk_safetensors *golden;

/* The values of a golden tensor, whose size must be `count`. */
static const void *golden_values(const char *name, fk_dtype dtype, int64_t count)
{
    fk_tensor t;
    assert_ok(fk_safetensors_find(golden, name, &t));
    assert_int_equal(t.dtype, dtype);
    assert_int_equal(fk_tensor_numel(&t), count);
    return t.data;
}

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

static void twenty_thousand_lines(void **state)
{
    (void)state;
    static fragment_set set;
    for_each_line(GOLDENS "tokenizer_fragments.txt", add_fragment, &set);
    const int32_t *counts = golden_values("count", FK_I32, LINES);
    const uint32_t *hashes = golden_values("hash", FK_I32, LINES);
    const uint64_t *text_hashes = golden_values("text_hash", FK_I64, LINES / 100);
    fk_bytes line = {0}, hundred = {0};
    fk_token_list ids = {0};
    int64_t total = 0, wrong = 0;
    for (size_t n = 0; n < LINES; n++) {
        make_line(&line, &set, n);
        assert_ok(fk_bytes_append(&hundred, line.data, line.bytes));
        assert_ok(fk_bytes_append(&hundred, "\xff", 1));
        if (n % 100 == 99) { /* the generators agree, so a wrong id below is the tokenizer's */
            assert_int_equal(fkp_fnv1a64(hundred.data, hundred.bytes), text_hashes[n / 100]);
            fk_bytes_clear(&hundred);
        }
        fk_token_list_clear(&ids);
        assert_ok(fk_encoder_encode(encoder, line.data, line.bytes, 0, &ids));
        if (ids.count != counts[n] || hash_ids(&ids) != hashes[n]) {
            if (wrong++ < 5) print_error("line %zu: %.*s\n", n, (int)line.bytes, line.data);
        }
        check_round_trip(&line, &ids);
        total += ids.count;
    }
    print_message("%lld ids in %d lines\n", (long long)total, LINES);
    assert_int_equal(wrong, 0);
    assert_true(total > 10 * LINES);
    fk_bytes_deinit(&line);
    fk_bytes_deinit(&hundred);
    fk_bytes_deinit(&set.text);
    fk_token_list_deinit(&ids);
}

/* Between a space and a letter, each code point shows how the pre-tokenizer classes it. */
static void every_code_point(void **state)
{
    (void)state;
    const uint32_t *hashes = golden_values("sweep_hash", FK_I32, 0x1100);
    fk_bytes text = {0};
    fk_token_list ids = {0};
    for (uint32_t block = 0; block < 0x1100; block++) {
        fk_bytes_clear(&text);
        for (uint32_t c = 256 * block; c < 256 * block + 256; c++) {
            if (c >= 0xD800 && c <= 0xDFFF) continue;
            uint8_t utf8[6] = {' '};
            int bytes = fkp_utf8_write(c, utf8 + 1);
            utf8[1 + bytes] = 'x';
            assert_ok(fk_bytes_append(&text, utf8, (size_t)bytes + 2));
        }
        fk_token_list_clear(&ids);
        assert_ok(fk_encoder_encode(encoder, text.data, text.bytes, 0, &ids));
        if (hash_ids(&ids) != hashes[block])
            fail_msg("code points U+%04X to U+%04X", 256 * block, 256 * block + 255);
    }
    fk_bytes_deinit(&text);
    fk_token_list_deinit(&ids);
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

/* Where tools/fetch-assets puts the file. */
static void asset_path(char *path, size_t size)
{
    const char *cache = getenv("FK_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    const char *file = "assets/SmolLM2-135M-Instruct.Q4_1.gguf";
    if (cache && *cache)
        snprintf(path, size, "%s/%s", cache, file);
    else if (xdg && *xdg)
        snprintf(path, size, "%s/fastkernels/%s", xdg, file);
    else
        snprintf(path, size, "%s/.cache/fastkernels/%s", home ? home : "", file);
}

static int set_up(void **state)
{
    (void)state;
    char path[4096];
    asset_path(path, sizeof path);
    if (fk_gguf_open(path, &gguf) != FK_OK || fk_tokenizer_create_gguf(gguf, &tokenizer) != FK_OK ||
        fk_encoder_create(tokenizer, &encoder) != FK_OK ||
        fk_safetensors_open(GOLDENS "tokenizer_smollm2.safetensors", &golden) != FK_OK) {
        print_error("%s\n", fk_error_message());
        return -1;
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    fk_safetensors_close(golden);
    fk_encoder_destroy(encoder);
    fk_tokenizer_destroy(tokenizer);
    fk_gguf_close(gguf);
    return 0;
}

int main(void)
{
    enum { SKIPPED = 77 };
    char path[4096];
    asset_path(path, sizeof path);
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "SKIPPED test_tokenizer_model: no %s; run tools/fetch-assets smollm2-135m\n", path);
        return SKIPPED;
    }
    fclose(file);
    const struct CMUnitTest tests[] = {
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
