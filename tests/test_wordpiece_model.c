/* SPDX-License-Identifier: Apache-2.0 */
/* all-MiniLM-L6-v2's tokenizer.json against what the `tokenizers` package makes of it: 20,000 lines and every code
 * point (tools/reference/wordpiece_lines.py). Needs the file; without it the program says so and ends with 77, which
 * CTest counts as skipped. */
#include "unit.h"

#include "core/safetensors.h"
#include "runtime/assets.h"
#include "text/utf8.h"
#include "text/wordpiece.h"
#include "tokenizer_lines.h"

#define GOLDENS FK_SOURCE_DIR "/tests/goldens/"

static fk_wordpiece *tokenizer;
static fk_safetensors *golden;

static const void *golden_values(const char *name, int64_t count)
{
    fk_tensor t;
    assert_ok(fk_safetensors_find(golden, name, &t));
    assert_int_equal(t.dtype, FK_I32);
    assert_int_equal(fk_tensor_numel(&t), count);
    return t.data;
}

static void twenty_thousand_lines(void **state)
{
    (void)state;
    static fragment_set set;
    for_each_line(GOLDENS "tokenizer_fragments.txt", add_fragment, &set);
    const int32_t *counts = golden_values("count", LINES);
    const uint32_t *hashes = golden_values("hash", LINES);
    fk_bytes line = {0};
    fk_token_list ids = {0};
    int wrong = 0;
    for (size_t n = 0; n < LINES; n++) {
        make_line(&line, &set, n);
        fk_token_list_clear(&ids);
        assert_ok(fk_wordpiece_encode(tokenizer, line.data, line.bytes, true, &ids));
        if ((ids.count != counts[n] || hash_ids(&ids) != hashes[n]) && wrong++ < 5)
            print_error("line %zu: %.*s\n", n, (int)line.bytes, line.data);
    }
    assert_int_equal(wrong, 0);
    fk_bytes_deinit(&line);
    fk_bytes_deinit(&set.text);
    fk_token_list_deinit(&ids);
}

static void every_code_point(void **state)
{
    (void)state;
    const uint32_t *hashes = golden_values("sweep_hash", 0x1100);
    fk_bytes text = {0};
    fk_token_list ids = {0};
    int wrong = 0;
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
        assert_ok(fk_wordpiece_encode(tokenizer, text.bytes ? text.data : "", text.bytes, true, &ids));
        if (hash_ids(&ids) != hashes[block] && wrong++ < 5) print_error("code points %X to %X\n", 256 * block, 256 * block + 255);
    }
    assert_int_equal(wrong, 0);
    fk_bytes_deinit(&text);
    fk_token_list_deinit(&ids);
}

static int set_up(void **state)
{
    char path[4096];
    (void)state;
    if (fk_asset_path("minilm-l6-tokenizer", NULL, path, sizeof path) == FK_OK && fk_wordpiece_load(path, &tokenizer) == FK_OK &&
        fk_safetensors_open(GOLDENS "wordpiece_minilm.safetensors", &golden) == FK_OK)
        return 0;
    print_error("%s\n", fk_error_message());
    return -1;
}

static int tear_down(void **state)
{
    (void)state;
    fk_safetensors_close(golden);
    fk_wordpiece_destroy(tokenizer);
    return 0;
}

int main(void)
{
    enum { SKIPPED = 77 };
    char path[4096];
    if (fk_asset_path("minilm-l6-tokenizer", NULL, path, sizeof path) != FK_OK) {
        fprintf(stderr, "SKIPPED test_wordpiece_model: %s\n", fk_error_message());
        return SKIPPED;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(twenty_thousand_lines), cmocka_unit_test(every_code_point)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
