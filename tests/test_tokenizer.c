/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding, on a vocabulary made here: byte map, merges against a plain string implementation, pre-tokenizer
 * rules, special tokens, broken UTF-8, and what a vocabulary must not contain. The real vocabulary is
 * test_tokenizer_model's. */
#include "unit.h"

#include "text/pretokenizer.h"
#include "tests/tiny_vocabulary.h"
#include "text/detokenizer.h"

typedef struct fixture {
    tiny_vocabulary v;
    fk_tokenizer *t;
    fk_encoder *e;
    fk_token_list ids;
} fixture;

static void begin(fixture *f, const char *pre)
{
    memset(f, 0, sizeof *f);
    tiny_init(&f->v, pre);
}

static void build(fixture *f)
{
    assert_ok(fk_tokenizer_create(&f->v.spec, &f->t));
    assert_int_equal(fk_encoder_create(f->t, &f->e), FK_OK);
}

static void end(fixture *f)
{
    fk_encoder_destroy(f->e);
    fk_tokenizer_destroy(f->t);
    fk_token_list_deinit(&f->ids);
}

static void encode(fixture *f, const char *text, size_t bytes, unsigned flags)
{
    fk_token_list_clear(&f->ids);
    assert_ok(fk_encoder_encode(f->e, text, bytes, flags, &f->ids));
}

static void check_ids(const fixture *f, const int32_t *ids, int64_t count)
{
    assert_int_equal(f->ids.count, count);
    for (int64_t i = 0; i < count; i++) assert_int_equal(f->ids.ids[i], ids[i]);
}

/* Ids of a text as a list of numbers. */
#define CHECK_ENCODE(f, text, flags, ...)                                                                    \
    do {                                                                                                     \
        const int32_t expected_[] = {__VA_ARGS__};                                                           \
        encode(f, text, sizeof(text) - 1, flags);                                                            \
        check_ids(f, expected_, (int64_t)(sizeof expected_ / sizeof *expected_));                            \
    } while (0)

static void byte_map_is_a_bijection(void **state)
{
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        uint32_t c = fkp_byte_to_code_point((uint8_t)byte);
        assert_int_equal(fkp_code_point_to_byte(c), byte);
        assert_true(c > 0x20 && !(c >= 0x7F && c <= 0xA0) && c != 0xAD && c <= 0x143);
    }
    assert_int_equal(fkp_byte_to_code_point(' '), 0x120);
    assert_int_equal(fkp_byte_to_code_point('\n'), 0x10A);
    assert_int_equal(fkp_byte_to_code_point(0xAD), 0x143);
    assert_int_equal(fkp_code_point_to_byte(' '), -1);
    assert_int_equal(fkp_code_point_to_byte(0x144), -1);
    assert_int_equal(fkp_code_point_to_byte(0x4F60), -1);
}

static void merges_by_rank_then_leftmost(void **state)
{
    (void)state;
    fixture f;
    begin(&f, "gpt-2");
    int32_t bc = tiny_add_merge(&f.v, "b c"), ab = tiny_add_merge(&f.v, "a b"),
            aa = tiny_add_merge(&f.v, "a a");
    int32_t abc = tiny_add_merge(&f.v, "a bc"), the = tiny_add_merge(&f.v, "\u0120 t");
    tiny_add_merge(&f.v, "a b"); /* repeated later: the first rank counts */
    build(&f);
    CHECK_ENCODE(&f, "abc", 0, abc);
    CHECK_ENCODE(&f, "ab", 0, ab);
    CHECK_ENCODE(&f, "aaa", 0, aa, 'a');
    CHECK_ENCODE(&f, "aaaa", 0, aa, aa);
    CHECK_ENCODE(&f, "bcb", 0, bc, 'b');
    CHECK_ENCODE(&f, "a t", 0, 'a', the);
    CHECK_ENCODE(&f, "a  t", 0, 'a', ' ', the);
    encode(&f, "", 0, 0);
    assert_int_equal(f.ids.count, 0);
    encode(&f, NULL, 0, FK_ENCODE_PARSE_SPECIAL | FK_ENCODE_ADD_BOS);
    assert_int_equal(f.ids.count, 0);
    end(&f);
}

/* Byte-pair encoding as the definition says it, over strings of pieces: joins the first adjacent pair of the
 * best rank. */
static int64_t plain_bpe(const tiny_vocabulary *v, const char *word, size_t bytes, int32_t *ids)
{
    int64_t count = 0;
    for (size_t i = 0; i < bytes; i++) ids[count++] = (uint8_t)word[i];
    for (;;) {
        int64_t best_rank = v->spec.num_merges, best = 0;
        for (int64_t i = 0; i + 1 < count; i++)
            for (int64_t rank = 0; rank < best_rank; rank++) {
                fk_piece left = v->pieces[ids[i]], right = v->pieces[ids[i + 1]];
                const fk_merge_rule *rule = &v->merges[rank];
                if (rule->left.bytes == left.bytes && memcmp(rule->left.data, left.data, left.bytes) == 0 &&
                    rule->right.bytes == right.bytes &&
                    memcmp(rule->right.data, right.data, right.bytes) == 0) {
                    best_rank = rank;
                    best = i;
                }
            }
        if (best_rank == v->spec.num_merges) return count;
        ids[best] =
            (int32_t)(256 + best_rank); /* every merge of the test made a piece of its own, in order */
        memmove(ids + best + 1, ids + best + 2, (size_t)(count - best - 2) * sizeof *ids);
        count--;
    }
}

static void short_and_long_words_follow_the_definition(void **state)
{
    (void)state;
    /* left parts that grow, right parts that grow, and pieces that can come about in one of two orders */
    static const char *const lines[] = {"b c",   "a b",  "b a",  "c c",   "a bc", "c ab",    "ab ab",  "a a",
                                        "cc c",  "aa a", "b ba", "b b",   "b bb", "abc abc", "ba cc",  "c a",
                                        "bb bb", "c ca", "a cc", "ba ba", "a ab", "abab a",  "aaa aaa"};
    fixture f;
    begin(&f, "gpt-2");
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        assert_int_equal(tiny_add_merge(&f.v, lines[i]), 256 + (int)i);
    build(&f);
    uint64_t random = 1;
    int64_t merged = 0;
    for (int trial = 0; trial < 3000; trial++) {
        char word[200];
        int32_t expected[200];
        random = random * 6364136223846793005u + 1442695040888963407u;
        /* every length around the border between the two ways, and longer */
        size_t bytes = trial < 2000 ? 1 + random % 48 : 1 + (random >> 20) % sizeof word;
        for (size_t i = 0; i < bytes; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            word[i] = (char)('a' + (random >> 33) % (1 + trial % 3));
        }
        int64_t count = plain_bpe(&f.v, word, bytes, expected);
        encode(&f, word, bytes, 0);
        check_ids(&f, expected, count);
        merged += (int64_t)bytes - count;
    }
    assert_true(merged > 10000); /* the words do exercise merging */
    end(&f);
}

static void a_million_equal_characters(void **state)
{
    (void)state;
    enum { LETTERS = 1000000 };
    fixture f;
    begin(&f, "smollm");
    tiny_add_merge(&f.v, "a a");
    tiny_add_merge(&f.v, "aa aa");
    int32_t eight = tiny_add_merge(&f.v, "aaaa aaaa");
    build(&f);
    char *text = malloc(LETTERS);
    memset(text, 'a', LETTERS);
    encode(&f, text, LETTERS, FK_ENCODE_PARSE_SPECIAL); /* the suite's time limit is the check of the time */
    assert_int_equal(f.ids.count, LETTERS / 8);
    for (int64_t i = 0; i < f.ids.count; i++) assert_int_equal(f.ids.ids[i], eight);
    memset(text, ' ', LETTERS);
    encode(&f, text, LETTERS, 0);
    assert_int_equal(f.ids.count, LETTERS);
    free(text);
    end(&f);
}

/* Words between bars. */
static void check_words(const char *pre, const char *marked)
{
    const fkp_pretokenizer *p;
    assert_ok(fkp_pretokenizer_find(pre, &p));
    char text[512], words[512];
    size_t bytes = 0, length = 0;
    for (const char *c = marked; *c; c++)
        if (*c != '|') text[bytes++] = *c;
    for (size_t pos = 0; pos < bytes;) {
        size_t next = p->word_end((const uint8_t *)text, pos, bytes);
        assert_true(next > pos && next <= bytes);
        if (pos > 0) words[length++] = '|';
        memcpy(words + length, text + pos, next - pos);
        length += next - pos;
        pos = next;
    }
    words[length] = 0;
    if (strcmp(words, marked) != 0) fail_msg("%s: '%s', expected '%s'", pre, words, marked);
}

static void pretokenizer_rules(void **state)
{
    (void)state;
    check_words("smollm", "  |4|2");
    check_words("smollm", "x|   |1");
    check_words("smollm", "a| |1|2| b|  |3|  ");
    check_words("smollm", "it|'s| he|'ll| DON|'|T|'s|1| '|s");
    check_words("smollm", "½|²|Ⅷ|٣| |৪");
    check_words(
        "smollm",
        "a|->|b| !!!|\n\n |1|2|3| don|'t"); /* the number ends the stretch, so all space is one word */
    check_words("smollm", "你好|，|世界| \u00e9t\u00e9|。");
    check_words("smollm", "x|\u00a0|y| |\u3000|z"); /* both are white space, and only U+0020 joins a word */
    check_words("smollm", "e|\u0301|x");            /* a mark is no letter */
    check_words("gpt-2", "x|  | 1");
    check_words("gpt-2", "a|->|b| !!!|\n\n| 1234567| don|'t| DON|'|T");
    check_words("gpt-2", "end|   ");
    check_words("gpt-2", "\t|\t|x| |\n|y");
    check_words("llama-bpe", "a|->|b| !!!\n\n| |123|456|7| don|'t| DON|'T");
    check_words("llama-bpe", "camelCase| HTTPSession| a|/b|\n|/| →| “|x|”");
    check_words("llama-bpe", "x| \n  \n|  | y|\tz|(w|)");
    check_words("llama-bpe", "ends|  ");
    check_words("qwen2", "a|->|b| !!!\n\n| |1|2|3|4| don|'t| I|'LL");
}

static void pretokenizer_names(void **state)
{
    (void)state;
    const fkp_pretokenizer *p;
    assert_int_equal(fkp_pretokenizer_find("smolm", &p), FK_ERROR_UNSUPPORTED);
    assert_message("'smolm'");
    assert_message("smollm, starcoder");
}

/* The classes of all code points, as a hash of the classes of Unicode 15.1 (the table that llama.cpp's rules
 * use). Another value means an installed utf8proc of another Unicode version: ids of newly assigned letters
 * would differ. */
static void character_classes_are_those_of_unicode_15_1(void **state)
{
    (void)state;
    uint64_t hash = 0xcbf29ce484222325u;
    int64_t counts[4] = {0};
    for (uint32_t c = 0; c < 0x110000; c++) {
        fkp_char_class class = fkp_classify(c);
        counts[class]++;
        hash = (hash ^ (uint64_t) class) * 0x100000001b3u;
    }
    assert_int_equal(counts[FKP_SPACE], 25);
    assert_int_equal(counts[FKP_LETTER], 136726);
    assert_int_equal(counts[FKP_NUMBER], 1831);
    assert_int_equal(hash, 0x7a9fdfc65ebdeb9eu);
}

static void special_tokens_only_when_asked_for(void **state)
{
    (void)state;
    fixture f;
    begin(&f, "smollm");
    int32_t start = tiny_add_special(&f.v, "<|im_start|>", FK_TOKEN_CONTROL);
    int32_t tag = tiny_add_special(&f.v, "<t>", FK_TOKEN_USER_DEFINED);
    int32_t unknown = tiny_add_special(&f.v, "<u>", FK_TOKEN_UNKNOWN);
    int32_t longer = tiny_add_special(&f.v, "b<t><u>", FK_TOKEN_CONTROL);
    tiny_add_special(&f.v, "xx", FK_TOKEN_UNUSED);
    build(&f);
    const unsigned parse = FK_ENCODE_PARSE_SPECIAL;
    CHECK_ENCODE(&f, "a<|im_start|>", parse, 'a', start);
    encode(&f, "a<|im_start|>", 13, 0);
    assert_int_equal(f.ids.count, 13);
    CHECK_ENCODE(&f, "<t><u>", 0, tag, '<', 'u', '>');
    CHECK_ENCODE(&f, "<t><u>", parse, tag, unknown);
    CHECK_ENCODE(&f, "ab<t><u>c", parse, 'a', longer, 'c'); /* the longest, though another begins within it */
    CHECK_ENCODE(&f, "<|im_start<|im_start|>|>", parse, '<', '|', 'i', 'm', '_', 's', 't', 'a', 'r', 't',
                 start, '|', '>');
    CHECK_ENCODE(&f, "<t><t>xx", parse, tag, tag, 'x', 'x');
    assert_true(fk_tokenizer_is_special(f.t, start) && fk_tokenizer_is_special(f.t, unknown));
    assert_false(fk_tokenizer_is_special(f.t, tag) || fk_tokenizer_is_special(f.t, 'a'));
    assert_false(fk_tokenizer_is_special(f.t, -1) || fk_tokenizer_is_special(f.t, 100000));
    end(&f);
}

static void spans_are_one_text_but_not_of_one_trust(void **state)
{
    (void)state;
    fixture f;
    begin(&f, "gpt-2");
    int32_t ab = tiny_add_merge(&f.v, "a b");
    int32_t control = tiny_add_special(&f.v, "<c>", FK_TOKEN_CONTROL);
    build(&f);
    /* "a" + "b" merge across the border; "<c>" counts in the middle span only, and not across two of them */
    const fk_text_span spans[] = {
        {"<c>a", 4, false}, {"b<c>", 4, true}, {"<c", 2, true}, {">", 1, true}, {"", 0, true}};
    fk_token_list_clear(&f.ids);
    assert_int_equal(fk_encoder_encode_spans(f.e, spans, 5, 0, &f.ids), FK_OK);
    const int32_t expected[] = {'<', 'c', '>', ab, control, '<', 'c', '>'};
    check_ids(&f, expected, 8);
    end(&f);
}

static void one_bos_never_two(void **state)
{
    (void)state;
    fixture f;
    begin(&f, "llama-bpe");
    f.v.spec.bos_id = tiny_add_special(&f.v, "<s>", FK_TOKEN_CONTROL);
    f.v.spec.add_bos = -1; /* this family adds one */
    int32_t bos = f.v.spec.bos_id;
    build(&f);
    const unsigned both = FK_ENCODE_ADD_BOS | FK_ENCODE_PARSE_SPECIAL;
    CHECK_ENCODE(&f, "h", both, bos, 'h');
    CHECK_ENCODE(&f, "<s>h", both, bos, 'h');
    CHECK_ENCODE(&f, "h", 0, 'h');
    CHECK_ENCODE(&f, "", both, bos);
    end(&f);
}

static void a_whole_word_piece_beats_the_merges_where_the_family_says_so(void **state)
{
    (void)state;
    for (int llama = 0; llama < 2; llama++) {
        fixture f;
        begin(&f, llama ? "llama-bpe" : "gpt-2");
        f.v.spec.add_bos = 0;
        int32_t ab = tiny_add_merge(&f.v, "a b");
        int32_t whole = tiny_add_piece(&f.v, "\u0120abz", 5, FK_TOKEN_NORMAL);
        tiny_add_special(&f.v, "cab", FK_TOKEN_CONTROL);
        build(&f);
        if (llama)
            CHECK_ENCODE(&f, " abz", 0, whole);
        else
            CHECK_ENCODE(&f, " abz", 0, ' ', ab, 'z');
        CHECK_ENCODE(&f, "cab", 0, 'c', ab); /* a control token is no word */
        end(&f);
    }
}

static void broken_utf8(void **state)
{
    (void)state;
    fixture f;
    begin(&f, "smollm");
    build(&f);
    CHECK_ENCODE(&f, "a\xff", 0, 'a', 0xEF, 0xBF, 0xBD);
    CHECK_ENCODE(&f, "\xe4\xbd", 0, 0xEF, 0xBF, 0xBD, 0xEF, 0xBF, 0xBD);
    CHECK_ENCODE(&f, "\xc0\x80", 0, 0);
    CHECK_ENCODE(&f, "\xf4\x90\x80\x80", FK_ENCODE_RAW_BYTES, 0xf4, 0x90, 0x80, 0x80);
    CHECK_ENCODE(&f, "\xf4\x90\x80", 0, 0xEF, 0xBF, 0xBD, 0xEF, 0xBF, 0xBD, 0xEF, 0xBF, 0xBD);
    CHECK_ENCODE(&f, "\xff\x80\xe4x", FK_ENCODE_RAW_BYTES, 0xff, 0x80, 0xe4, 'x');
    encode(&f, "\xf4\x90\x80\x80", 4, 0);
    assert_int_equal(f.ids.count, 12);
    /* a character cut by a span border is not put together */
    const fk_text_span spans[] = {{"\xc3", 1, false}, {"\xa9", 1, false}};
    fk_token_list_clear(&f.ids);
    assert_int_equal(fk_encoder_encode_spans(f.e, spans, 2, 0, &f.ids), FK_OK);
    assert_int_equal(f.ids.count, 6);
    assert_int_equal(fk_utf8_invalid_offset("abcdefghij\xc3", 11), 10);
    assert_int_equal(fk_utf8_invalid_offset("abcdefgh\u00e9", 10), 10);
    assert_int_equal(fk_utf8_invalid_offset("\xed\xa0\x80", 3), 0);
    end(&f);
}

/* Any bytes at all: the words cover the text, and raw encoding gives the bytes back. */
static void random_bytes(void **state)
{
    (void)state;
    static const char *const rules[] = {"smollm", "gpt-2", "llama-bpe", "qwen2"};
    static const char *const parts[] = {
        " ",      "  ", "\n",     "\r\n", "'s",       "'LL",      "7",    "\u00bd", "a",          "\u00e9",
        "\u4f60", "!",  "\u3000", "<c>",  "\xe4\xbd", "\xf0\x9f", "\xff", "\x80",   "\U0001f600", "\u0301"};
    for (size_t r = 0; r < sizeof rules / sizeof *rules; r++) {
        fixture f;
        begin(&f, rules[r]);
        tiny_add_merge(&f.v, "a a");
        tiny_add_merge(&f.v, "\u0120 a");
        tiny_add_special(&f.v, "<c>", FK_TOKEN_CONTROL);
        f.v.spec.add_bos = 0;
        build(&f);
        uint64_t random = r + 1;
        for (int trial = 0; trial < 5000; trial++) {
            char text[128];
            size_t bytes = 0;
            for (int part = 0; part < 20; part++) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                const char *p = parts[(random >> 33) % (sizeof parts / sizeof *parts)];
                memcpy(text + bytes, p, strlen(p));
                bytes += strlen(p);
            }
            char *exact = malloc(bytes); /* no byte beyond the end may be read */
            memcpy(exact, text, bytes);
            encode(&f, exact, bytes, FK_ENCODE_RAW_BYTES | (trial % 2 ? FK_ENCODE_PARSE_SPECIAL : 0));
            fk_bytes back = {0};
            assert_int_equal(fk_tokenizer_decode(f.t, f.ids.ids, f.ids.count,
                                                 FK_DECODE_RAW_BYTES | FK_DECODE_SPECIAL, &back),
                             FK_OK);
            assert_int_equal(back.bytes, bytes);
            assert_memory_equal(back.data, text, bytes);
            fk_bytes_deinit(&back);
            free(exact);
        }
        end(&f);
    }
}

static void bytes_without_a_piece(void **state)
{
    (void)state;
    fixture f;
    begin(&f, "smollm");
    f.v.text[4][0] = 'Q'; /* byte 4 ("Ą") is now the piece "Qxx": nothing makes it */
    memcpy(f.v.text[4], "Qxx", 3);
    f.v.pieces[4].bytes = 3;
    tiny_add_merge(&f.v, "a b");
    build(&f);
    for (int round = 0; round < 2; round++) { /* again from the cache of words */
        CHECK_ENCODE(&f,
                     "a\x04"
                     "b \x04",
                     0, 'a', 'b', ' ');
        assert_int_equal(fk_encoder_dropped_bytes(f.e), 2);
    }
    int64_t before = f.ids.count;
    assert_int_equal(fk_encoder_encode(f.e, "ab\x04", 3, FK_ENCODE_STRICT_BYTES, &f.ids), FK_ERROR_INVALID);
    assert_message("0x04");
    assert_int_equal(f.ids.count, before);
    CHECK_ENCODE(&f, "ba", FK_ENCODE_STRICT_BYTES, 'b', 'a');
    assert_int_equal(fk_encoder_dropped_bytes(f.e), 0);
    end(&f);
}

static void names_and_pieces(void **state)
{
    (void)state;
    fixture f;
    begin(&f, "smollm");
    int32_t the = tiny_add_merge(&f.v, "\u0120 t");
    int32_t plain = tiny_add_piece(&f.v, "\u4f60 x", 5, FK_TOKEN_NORMAL); /* not written in the byte map */
    tiny_add_piece(&f.v, "", 0, FK_TOKEN_NORMAL);
    tiny_add_piece(&f.v, "", 0, FK_TOKEN_NORMAL); /* empty pieces are no duplicates */
    int32_t eos[] = {the, plain};
    f.v.spec.eos_ids = eos;
    f.v.spec.num_eos_ids = 2;
    build(&f);
    assert_int_equal(fk_tokenizer_vocab_size(f.t), 260);
    assert_int_equal(fk_tokenizer_find(f.t, fk_piece_of("\u0120t")), the);
    assert_int_equal(fk_tokenizer_find(f.t, fk_piece_of(" t")), -1);
    assert_int_equal(fk_tokenizer_find(f.t, fk_piece_of("")), -1);
    fk_piece piece = fk_tokenizer_piece(f.t, the);
    assert_int_equal(piece.bytes, 2);
    assert_memory_equal(piece.data, " t", 2);
    assert_int_equal(fk_tokenizer_piece(f.t, plain).bytes, 5);
    assert_int_equal(fk_tokenizer_piece(f.t, 258).bytes, 0);
    assert_int_equal(fk_tokenizer_piece(f.t, 260).bytes, 0);
    assert_int_equal(fk_tokenizer_piece(f.t, -1).bytes, 0);
    assert_true(fk_tokenizer_is_eos(f.t, the) && fk_tokenizer_is_eos(f.t, plain));
    assert_false(fk_tokenizer_is_eos(f.t, 0) || fk_tokenizer_is_eos(f.t, -1));
    assert_int_equal(fk_tokenizer_bos_id(f.t), -1);
    end(&f);
}

static void merge_lines(void **state)
{
    (void)state;
    fk_merge_rule rule;
    assert_int_equal(fk_merge_rule_parse(fk_piece_of("\u00a0 \u00a0"), &rule),
                     FK_OK); /* T8: not at Unicode space */
    assert_int_equal(rule.left.bytes, 2);
    assert_int_equal(rule.right.bytes, 2);
    assert_int_equal(fk_merge_rule_parse(fk_piece_of("ab"), &rule), FK_ERROR_INVALID);
    assert_message("'ab'");
    assert_int_equal(fk_merge_rule_parse(fk_piece_of(""), &rule), FK_ERROR_INVALID);
    assert_int_equal(fk_merge_rule_parse(fk_piece_of(" "), &rule), FK_ERROR_INVALID);
}

/* A vocabulary that is refused with a message that has `part` in it. */
static void refuse(const tiny_vocabulary *v, fk_status status, const char *part)
{
    fk_tokenizer *t = (fk_tokenizer *)v;
    assert_int_equal(fk_tokenizer_create(&v->spec, &t), status);
    assert_null(t);
    assert_message(part);
}

static void refused_vocabularies(void **state)
{
    (void)state;
    static tiny_vocabulary good, v;
    tiny_init(&good, "smollm");
    tiny_add_merge(&good, "a b");

    v = good; /* its pointers stay those of `good`, which is not changed below */
    v.spec.pre = "deepseek-v9";
    refuse(&v, FK_ERROR_UNSUPPORTED, "'deepseek-v9'");
    v = good;
    v.spec.vocab_size = 0;
    refuse(&v, FK_ERROR_INVALID, "0 tokens");
    v = good;
    v.spec.num_merges = 0;
    refuse(&v, FK_ERROR_INVALID, "'ab'");
    v = good;
    v.spec.bos_id = 257;
    refuse(&v, FK_ERROR_INVALID, "257");
    v = good;
    v.spec.add_bos = 1;
    refuse(&v, FK_ERROR_INVALID, "begin-of-sequence");
    v = good;
    v.spec.eos_ids = (const int32_t[]){-5};
    v.spec.num_eos_ids = 1;
    refuse(&v, FK_ERROR_INVALID, "-5");

    static const struct {
        const char *left, *right, *part;
    } merges[] = {
        {"zz", "a", "left piece 'zz'"}, {"a", "zz", "right piece 'zz'"}, {"b", "a", "joined piece 'ba'"}};
    for (size_t i = 0; i < sizeof merges / sizeof *merges; i++) {
        fk_merge_rule rules[] = {good.merges[0], {fk_piece_of(merges[i].left), fk_piece_of(merges[i].right)}};
        v = good;
        v.spec.merges = rules;
        v.spec.num_merges = 2;
        refuse(&v, FK_ERROR_INVALID, merges[i].part);
        assert_message("merge 1");
    }

    tiny_init(&v, "smollm");
    tiny_add_piece(&v, "a", 1, FK_TOKEN_CONTROL);
    refuse(&v, FK_ERROR_INVALID, "tokens 97 and 256 are both 'a'");
    tiny_init(&v, "smollm");
    tiny_add_piece(&v, "<0x41>", 6, 6);
    refuse(&v, FK_ERROR_UNSUPPORTED, "token 256 '<0x41>' has type 6");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(byte_map_is_a_bijection),
        cmocka_unit_test(merges_by_rank_then_leftmost),
        cmocka_unit_test(short_and_long_words_follow_the_definition),
        cmocka_unit_test(a_million_equal_characters),
        cmocka_unit_test(pretokenizer_rules),
        cmocka_unit_test(pretokenizer_names),
        cmocka_unit_test(character_classes_are_those_of_unicode_15_1),
        cmocka_unit_test(special_tokens_only_when_asked_for),
        cmocka_unit_test(spans_are_one_text_but_not_of_one_trust),
        cmocka_unit_test(one_bos_never_two),
        cmocka_unit_test(a_whole_word_piece_beats_the_merges_where_the_family_says_so),
        cmocka_unit_test(broken_utf8),
        cmocka_unit_test(random_bytes),
        cmocka_unit_test(bytes_without_a_piece),
        cmocka_unit_test(names_and_pieces),
        cmocka_unit_test(merge_lines),
        cmocka_unit_test(refused_vocabularies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
