/* SPDX-License-Identifier: Apache-2.0 */
/* The tokenizer from GGUF metadata made here: what is read, and that each bad value is refused by its key. */
#include "unit.h"

#include <math.h>
#include <stdbool.h>

#include "tests/hostile.h"
#include "text/tokenizer_gguf.h"

/* A vocabulary of five tokens as a file; a test changes one field of it. */
typedef struct vocabulary_file {
    const char *model, *pre;
    const char *tokens[5];
    int32_t types[5];
    size_t num_types; /* SIZE_MAX: the key is left out */
    const char *merge;
    int64_t eos_id, bos_id;
    int add_bos; /* -1: left out */
    const char *chat_template;
    size_t num_scores; /* -1, -2, ...; 0: the key is left out */
    float first_score;
    bool no_space_prefix;
} vocabulary_file;

static const vocabulary_file good = {
    "gpt2", "smollm",    {"a", "b", "ab", "<|im_end|>", "<|pad|>"}, {1, 1, 1, 3, 3}, 5, "a b", 4, -1,
    -1,     "{% frob %}", 0,  0, false};

/* SentencePiece: a mark, "a", both, a control token and the byte "b". */
static const vocabulary_file scored = {.model = "llama",
                                       .tokens = {"\xE2\x96\x81", "a",
                                                  "\xE2\x96\x81"
                                                  "a",
                                                  "<|im_end|>", "<0x62>"},
                                       .types = {1, 1, 1, 3, 6},
                                       .num_types = 5,
                                       .eos_id = 3,
                                       .bos_id = -1,
                                       .add_bos = -1,
                                       .num_scores = 5,
                                       .first_score = -1};

static void put_string(bytes *b, const char *text)
{
    bytes_put_uint(b, strlen(text), 8);
    bytes_put_text(b, text);
}

static void put_key(bytes *b, const char *key, fk_gguf_type type, uint64_t *count)
{
    put_string(b, key);
    bytes_put_uint(b, type, 4);
    ++*count;
}

static void put_array(bytes *b, fk_gguf_type type, size_t length)
{
    bytes_put_uint(b, type, 4);
    bytes_put_uint(b, length, 8);
}

static bytes make_file(const vocabulary_file *v)
{
    bytes b = {0};
    uint64_t keys = 0;
    bytes_put_text(&b, "GGUF");
    bytes_put_uint(&b, 3, 4);
    bytes_put_uint(&b, 0, 8); /* tensors */
    size_t key_count = b.size;
    bytes_put_uint(&b, 0, 8);
    put_key(&b, "tokenizer.ggml.model", FK_GGUF_STRING, &keys);
    put_string(&b, v->model);
    if (v->pre) {
        put_key(&b, "tokenizer.ggml.pre", FK_GGUF_STRING, &keys);
        put_string(&b, v->pre);
    }
    put_key(&b, "tokenizer.ggml.tokens", FK_GGUF_ARRAY, &keys);
    put_array(&b, FK_GGUF_STRING, 5);
    for (int i = 0; i < 5; i++) put_string(&b, v->tokens[i]);
    if (v->num_types != SIZE_MAX) {
        put_key(&b, "tokenizer.ggml.token_type", FK_GGUF_ARRAY, &keys);
        put_array(&b, FK_GGUF_I32, v->num_types);
        for (size_t i = 0; i < v->num_types; i++) bytes_put_uint(&b, (uint32_t)v->types[i], 4);
    }
    if (v->num_scores) {
        put_key(&b, "tokenizer.ggml.scores", FK_GGUF_ARRAY, &keys);
        put_array(&b, FK_GGUF_F32, v->num_scores);
        for (size_t i = 0; i < v->num_scores; i++) {
            const float score = v->first_score - (float)i;
            uint32_t bits;
            memcpy(&bits, &score, sizeof bits);
            bytes_put_uint(&b, bits, 4);
        }
    }
    if (v->no_space_prefix) {
        put_key(&b, "tokenizer.ggml.add_space_prefix", FK_GGUF_BOOL, &keys);
        bytes_put_uint(&b, 0, 1);
    }
    if (v->merge) {
        put_key(&b, "tokenizer.ggml.merges", FK_GGUF_ARRAY, &keys);
        put_array(&b, FK_GGUF_STRING, 1);
        put_string(&b, v->merge);
    }
    put_key(&b, "tokenizer.ggml.eos_token_id", FK_GGUF_U32, &keys);
    bytes_put_uint(&b, (uint32_t)v->eos_id, 4);
    if (v->bos_id >= 0) {
        put_key(&b, "tokenizer.ggml.bos_token_id", FK_GGUF_U32, &keys);
        bytes_put_uint(&b, (uint32_t)v->bos_id, 4);
    }
    if (v->add_bos >= 0) {
        put_key(&b, "tokenizer.ggml.add_bos_token", FK_GGUF_BOOL, &keys);
        bytes_put_uint(&b, (uint64_t)v->add_bos, 1);
    }
    if (v->chat_template) {
        put_key(&b, "tokenizer.chat_template", FK_GGUF_STRING, &keys);
        put_string(&b, v->chat_template);
    }
    bytes_set_uint(&b, key_count, keys, 8);
    return b;
}

/* The tokenizer that the file makes, NULL with a status. */
static fk_status load(const vocabulary_file *v, fk_tokenizer **t)
{
    bytes b = make_file(v);
    fk_gguf *gguf = NULL;
    assert_ok(fkp_gguf_open_bytes(b.data, b.size, "test.gguf", &gguf));
    fk_status status = fk_tokenizer_create_gguf(gguf, t);
    fk_gguf_close(gguf); /* the tokenizer must not need it */
    bytes_free(&b);
    return status;
}

static void refuse(const vocabulary_file *v, fk_status status, const char *part)
{
    fk_tokenizer *t;
    assert_int_equal(load(v, &t), status);
    assert_null(t);
    assert_message(part);
}

static void reads_what_the_file_says(void **state)
{
    (void)state;
    vocabulary_file v = good;
    v.bos_id = 4;
    v.add_bos = 1;
    fk_tokenizer *t;
    assert_ok(load(&v, &t));
    assert_int_equal(fk_tokenizer_vocab_size(t), 5);
    assert_int_equal(fk_tokenizer_bos_id(t), 4);
    assert_true(fk_tokenizer_is_eos(t, 4)); /* by its key */
    assert_true(fk_tokenizer_is_eos(t, 3)); /* by its name */
    assert_false(fk_tokenizer_is_eos(t, 2));
    fk_token_list ids = {0};
    const int32_t expected[] = {4, 2, 3, 0};
    assert_int_equal(
        fk_tokenizer_encode(t, "ab<|im_end|>a", 13, FK_ENCODE_PARSE_SPECIAL | FK_ENCODE_ADD_BOS, &ids),
        FK_OK);
    assert_int_equal(ids.count, 4);
    assert_memory_equal(ids.ids, expected, sizeof expected);
    fk_token_list_deinit(&ids);
    fk_tokenizer_destroy(t);

    v.num_types = SIZE_MAX; /* without types every token is a normal one */
    assert_ok(load(&v, &t));
    assert_false(fk_tokenizer_is_special(t, 3) || fk_tokenizer_is_eos(t, 3));
    fk_tokenizer_destroy(t);
}

static void check_ids(const vocabulary_file *v, const char *text, unsigned flags, const int32_t *wanted,
                      int64_t count)
{
    fk_tokenizer *t;
    fk_token_list ids = {0};
    assert_ok(load(v, &t));
    assert_ok(fk_tokenizer_encode(t, text, strlen(text), flags, &ids));
    assert_int_equal(ids.count, count);
    assert_memory_equal(ids.ids, wanted, (size_t)count * sizeof *wanted);
    fk_token_list_deinit(&ids);
    fk_tokenizer_destroy(t);
}
#define CHECK_IDS(v, text, flags, ...)                                                                       \
    check_ids(v, text, flags, (const int32_t[]){__VA_ARGS__}, sizeof((const int32_t[]){__VA_ARGS__}) / 4)

/* A space goes before a text and before what follows a token of the user or a control token, as in llama.cpp.
 */
static void scores_make_a_sentencepiece_tokenizer(void **state)
{
    (void)state;
    vocabulary_file v = scored;
    CHECK_IDS(&v, "a b<|im_end|>a", FK_ENCODE_PARSE_SPECIAL, 2, 0, 4, 3, 2);
    v.types[3] = 4;
    CHECK_IDS(&v, "a<|im_end|>a", 0, 2, 3, 2);
    v.no_space_prefix = true;
    CHECK_IDS(&v, "a<|im_end|> a", 0, 1, 3, 2);
    v.bos_id = 0;
    CHECK_IDS(&v, "a", FK_ENCODE_ADD_BOS, 0, 1);
    v.add_bos = 0;
    CHECK_IDS(&v, "a", FK_ENCODE_ADD_BOS, 1);

    v = scored;
    v.num_scores = 0;
    refuse(&v, FK_ERROR_MISSING, "tokenizer.ggml.scores");
    v.num_scores = 4;
    refuse(&v, FK_ERROR_INVALID, "4 entries for 5 tokens");
    v = scored;
    v.first_score = INFINITY;
    refuse(&v, FK_ERROR_INVALID, "score");
    v = scored;
    v.num_types = SIZE_MAX;
    refuse(&v, FK_ERROR_INVALID, "tokenizer.ggml.token_type");
    v = scored;
    v.types[1] = 7;
    refuse(&v, FK_ERROR_UNSUPPORTED, "type 7");
    v = scored;
    v.tokens[4] = "<0xZZ>";
    refuse(&v, FK_ERROR_INVALID, "'<0xZZ>' is a byte");
    v = scored;
    v.tokens[1] = "c";
    refuse(&v, FK_ERROR_UNSUPPORTED, "its part 'a'");
}

static void refuses_each_bad_value(void **state)
{
    (void)state;
    vocabulary_file v = good;
    v.model = "rwkv";
    refuse(&v, FK_ERROR_UNSUPPORTED, "tokenizer.ggml.model is 'rwkv'");
    v = good;
    v.pre = NULL;
    refuse(&v, FK_ERROR_MISSING, "tokenizer.ggml.pre");
    v = good;
    v.pre = "smollm-9";
    refuse(&v, FK_ERROR_UNSUPPORTED, "'smollm-9'");
    v = good;
    v.num_types = 4;
    refuse(&v, FK_ERROR_INVALID, "4 entries for 5 tokens");
    v = good;
    v.types[2] = -7;
    refuse(&v, FK_ERROR_UNSUPPORTED, "token 2 'ab'");
    v = good;
    v.tokens[1] = "a";
    refuse(&v, FK_ERROR_INVALID, "tokens 0 and 1 are both 'a'");
    v = good;
    v.merge = NULL;
    refuse(&v, FK_ERROR_MISSING, "tokenizer.ggml.merges");
    v = good;
    v.merge = "ab";
    refuse(&v, FK_ERROR_INVALID, "tokenizer.ggml.merges[0]");
    v = good;
    v.merge = "b a";
    refuse(&v, FK_ERROR_INVALID, "'ba'");
    v = good;
    v.eos_id = 5;
    refuse(&v, FK_ERROR_INVALID, "tokenizer.ggml.eos_token_id is 5");
    v = good;
    v.bos_id = INT32_MAX;
    refuse(&v, FK_ERROR_INVALID, "tokenizer.ggml.bos_token_id is 2147483647");
    v = good;
    v.add_bos = 1;
    refuse(&v, FK_ERROR_INVALID, "begin-of-sequence");
}

static void chat_template_of_the_file(void **state)
{
    (void)state;
    for (int with = 0; with < 2; with++) {
        vocabulary_file v = good;
        if (!with) v.chat_template = NULL;
        bytes b = make_file(&v);
        fk_gguf *gguf = NULL;
        const fk_chat_template *t;
        assert_int_equal(fkp_gguf_open_bytes(b.data, b.size, "test.gguf", &gguf), FK_OK);
        assert_int_equal(fk_chat_template_find_gguf(gguf, &t),
                         with ? FK_ERROR_UNSUPPORTED : FK_ERROR_MISSING);
        assert_message(with ? "{% frob %}" : "tokenizer.chat_template");
        fk_gguf_close(gguf);
        bytes_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_what_the_file_says),
        cmocka_unit_test(scores_make_a_sentencepiece_tokenizer),
        cmocka_unit_test(refuses_each_bad_value),
        cmocka_unit_test(chat_template_of_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
