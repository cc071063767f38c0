/* SPDX-License-Identifier: Apache-2.0 */
/* all-MiniLM-L6-v2's tokenizer.json against what the `tokenizers` package makes of it: 20,000 lines and every code
 * point (tools/reference/wordpiece_lines.py). Needs the file; without it the program says so and ends with 77, which
 * CTest counts as skipped. */
#include "golden.h"

#include "core/seeded.h"
#include "runtime/assets.h"
#include "text/detokenizer.h"
#include "text/tokenizer_json.h"
#include "tokenizer_lines.h"

static fk_tokenizer *tokenizer;
static fk_encoder *encoder;

static void encode(const fk_bytes *text, fk_token_list *ids)
{
    assert_ok(fk_encoder_encode(encoder, text->bytes ? text->data : "", text->bytes,
                                FK_ENCODE_PARSE_SPECIAL | FK_ENCODE_ADD_BOS, ids));
}

static void twenty_thousand_lines(void **state)
{
    (void)state;
    check_lines(encode, golden_values("count", FK_I32, LINES), golden_values("hash", FK_I32, LINES));
}

static void text_of_the_ids(void **state)
{
    (void)state;
    static fragment_set fragments;
    const int64_t *hashes = golden_values("text_hash", FK_I64, LINES / 100);
    fk_bytes line = {0}, hundred = {0};
    fk_token_list ids = {0};
    for_each_line(FK_SOURCE_DIR "/tests/goldens/tokenizer_fragments.txt", add_fragment, &fragments);
    for (size_t n = 0; n < LINES; n++) {
        if (n % 100 == 0) fk_bytes_clear(&hundred);
        make_line(&line, &fragments, n);
        fk_token_list_clear(&ids);
        encode(&line, &ids);
        assert_ok(fk_tokenizer_decode(tokenizer, ids.ids, ids.count, 0, &hundred));
        assert_ok(fk_bytes_append(&hundred, "\xff", 1));
        if (n % 100 == 99 && (int64_t)fkp_fnv1a64(hundred.data, hundred.bytes) != hashes[n / 100])
            fail_msg("text of lines %zu to %zu", n - 99, n);
    }
    fk_bytes_deinit(&fragments.text);
    fk_bytes_deinit(&line);
    fk_bytes_deinit(&hundred);
    fk_token_list_deinit(&ids);
}

static void every_code_point(void **state)
{
    (void)state;
    check_code_points(encode, golden_values("sweep_hash", FK_I32, CODE_POINT_BLOCKS));
}

static int set_up(void **state)
{
    char path[4096];
    (void)state;
    assert_ok(fk_asset_path("minilm-l6-tokenizer", NULL, path, sizeof path));
    assert_ok(fk_tokenizer_json_load(path, NULL, &tokenizer));
    assert_ok(fk_encoder_create(tokenizer, &encoder));
    golden_open("wordpiece_minilm.safetensors");
    return 0;
}

static int tear_down(void **state)
{
    fk_encoder_destroy(encoder);
    fk_tokenizer_destroy(tokenizer);
    return golden_close(state);
}

int main(void)
{
    enum { SKIPPED = 77 };
    char path[4096];
    if (fk_asset_path("minilm-l6-tokenizer", NULL, path, sizeof path) != FK_OK) {
        fprintf(stderr, "SKIPPED test_wordpiece_model: %s\n", fk_error_message());
        return SKIPPED;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(twenty_thousand_lines),
                                       cmocka_unit_test(text_of_the_ids), cmocka_unit_test(every_code_point)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
