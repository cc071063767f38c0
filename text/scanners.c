/* SPDX-License-Identifier: Apache-2.0 */
/* The expressions of the usual tokenizer.json files as scanners, found by their exact text. Classes are Unicode's, and
 * (?i:...) folds as Oniguruma does it. A scanner for one more expression is a function and a row of the table. */
#include "text/pattern.h"
#define FK_SCAN_CLASSIFY fkp_classify_json
#include "text/scan.h"
#include "text/unicode.h"

#include <string.h>

/* Sets of general categories, one bit each. */
#define BIT(category) (1u << UTF8PROC_CATEGORY_##category)
enum {
    LOWER_ONLY = BIT(LL),
    CASELESS = BIT(LM) | BIT(LO),
    UPPER_ONLY = BIT(LU) | BIT(LT),
    MARK = BIT(MN) | BIT(MC) | BIT(ME),
    LETTER = LOWER_ONLY | CASELESS | UPPER_ONLY,
    NUMBER = BIT(ND) | BIT(NL) | BIT(NO),
    PUNCTUATION = BIT(PC) | BIT(PD) | BIT(PS) | BIT(PE) | BIT(PI) | BIT(PF) | BIT(PO),
    SYMBOL = BIT(SM) | BIT(SC) | BIT(SK) | BIT(SO),
    UPPER_CASE = UPPER_ONLY | CASELESS | MARK, /* [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}] */
    LOWER_CASE = LOWER_ONLY | CASELESS | MARK, /* [\p{Ll}\p{Lm}\p{Lo}\p{M}] */
};

/* One character: its code point (that of a bad byte belongs to no set), category bit and length; 0 at the end. */
typedef struct character {
    uint32_t code_point;
    uint32_t category;
    size_t bytes;
} character;

/* clang-format off: a row for 16 characters */
/* Category bits of ASCII, so that it is not looked up. */
static const uint32_t ascii_category[128] = {
    BIT(CC), BIT(CC), BIT(CC), BIT(CC), BIT(CC), BIT(CC), BIT(CC), BIT(CC),
    BIT(CC), BIT(CC), BIT(CC), BIT(CC), BIT(CC), BIT(CC), BIT(CC), BIT(CC), /* 0x00 */
    BIT(CC), BIT(CC), BIT(CC), BIT(CC), BIT(CC), BIT(CC), BIT(CC), BIT(CC),
    BIT(CC), BIT(CC), BIT(CC), BIT(CC), BIT(CC), BIT(CC), BIT(CC), BIT(CC), /* 0x10 */
    BIT(ZS), BIT(PO), BIT(PO), BIT(PO), BIT(SC), BIT(PO), BIT(PO), BIT(PO),
    BIT(PS), BIT(PE), BIT(PO), BIT(SM), BIT(PO), BIT(PD), BIT(PO), BIT(PO), /* 0x20 */
    BIT(ND), BIT(ND), BIT(ND), BIT(ND), BIT(ND), BIT(ND), BIT(ND), BIT(ND),
    BIT(ND), BIT(ND), BIT(PO), BIT(PO), BIT(SM), BIT(SM), BIT(SM), BIT(PO), /* 0x30 */
    BIT(PO), BIT(LU), BIT(LU), BIT(LU), BIT(LU), BIT(LU), BIT(LU), BIT(LU),
    BIT(LU), BIT(LU), BIT(LU), BIT(LU), BIT(LU), BIT(LU), BIT(LU), BIT(LU), /* 0x40 */
    BIT(LU), BIT(LU), BIT(LU), BIT(LU), BIT(LU), BIT(LU), BIT(LU), BIT(LU),
    BIT(LU), BIT(LU), BIT(LU), BIT(PS), BIT(PO), BIT(PE), BIT(SK), BIT(PC), /* 0x50 */
    BIT(SK), BIT(LL), BIT(LL), BIT(LL), BIT(LL), BIT(LL), BIT(LL), BIT(LL),
    BIT(LL), BIT(LL), BIT(LL), BIT(LL), BIT(LL), BIT(LL), BIT(LL), BIT(LL), /* 0x60 */
    BIT(LL), BIT(LL), BIT(LL), BIT(LL), BIT(LL), BIT(LL), BIT(LL), BIT(LL),
    BIT(LL), BIT(LL), BIT(LL), BIT(PS), BIT(SM), BIT(PE), BIT(SM), BIT(CC), /* 0x70 */
};
/* clang-format on */

static inline character read_character(const uint8_t *text, size_t pos, size_t end)
{
    if (pos >= end) return (character){0, 0, 0};
    if (text[pos] < 0x80) return (character){text[pos], ascii_category[text[pos]], 1};
    fkp_utf8_char c = fkp_utf8_read(text + pos, end - pos);
    if (c.state != FKP_UTF8_VALID) return (character){UINT32_MAX, 0, 1};
    return (character){c.code_point, 1u << fkp_category(c.code_point), (size_t)c.bytes};
}

static size_t set_end(const uint8_t *text, size_t pos, size_t end, uint32_t set)
{
    for (character c = read_character(text, pos, end); c.category & set; c = read_character(text, pos, end)) pos += c.bytes;
    return pos;
}

static inline bool breaks_line(uint8_t byte)
{
    return byte == '\r' || byte == '\n';
}

static size_t breaks_end(const uint8_t *text, size_t pos, size_t end, bool slash)
{
    while (pos < end && (breaks_line(text[pos]) || (slash && text[pos] == '/'))) pos++;
    return pos;
}

static size_t numbers_end(const uint8_t *text, size_t pos, size_t end, int most)
{
    for (int i = 0; i < most; i++) {
        peeked c = peek(text, pos, end);
        if (c.class != FKP_NUMBER) break;
        pos += c.bytes;
    }
    return pos;
}

/* [UPPER_CASE]*[LOWER_CASE]+ at pos, pos when it does not match: the capitals give back down to the last of them that is
 * also a small one. */
static size_t lower_word(const uint8_t *text, size_t pos, size_t end)
{
    size_t at = pos, last = pos; /* end of the last character that is in both sets */
    character c = read_character(text, at, end);
    for (; c.category & UPPER_CASE; c = read_character(text, at, end)) {
        at += c.bytes;
        if (c.category & LOWER_CASE) last = at;
    }
    return c.category & LOWER_CASE ? set_end(text, at, end, LOWER_CASE) : last;
}

/* [UPPER_CASE]+[LOWER_CASE]* */
static size_t upper_word(const uint8_t *text, size_t pos, size_t end)
{
    size_t upper = set_end(text, pos, end, UPPER_CASE);
    return upper == pos ? pos : set_end(text, upper, end, LOWER_CASE);
}

/* o200k and its kin: words by case, an optional contraction at the end of a word. */
static inline size_t cased_rule(const uint8_t *text, size_t pos, size_t end, int max_digits, bool contractions)
{
    character c = read_character(text, pos, end);
    bool prefix = !breaks_line(text[pos]) && !(c.category & (LETTER | NUMBER));
    size_t word = pos;
    size_t after = pos + c.bytes, stop;
    if (prefix && (stop = lower_word(text, after, end)) > after) word = stop;
    else if ((stop = lower_word(text, pos, end)) > pos) word = stop;
    else if (prefix && (stop = upper_word(text, after, end)) > after) word = stop;
    else if ((stop = upper_word(text, pos, end)) > pos) word = stop;
    if (word > pos) return word + (contractions ? contraction(text, word, end, FOLD_UNICODE) : 0);
    if (c.category & NUMBER) return numbers_end(text, pos, end, max_digits);

    size_t body = text[pos] == ' ' ? pos + 1 : pos;
    size_t other = run_end(text, body, end, FKP_OTHER);
    if (other > body) return breaks_end(text, other, end, true);
    return break_or_space_end(text, pos, end);
}

static size_t o200k(const uint8_t *text, size_t pos, size_t end)
{
    return cased_rule(text, pos, end, 3, true);
}

static size_t tekken(const uint8_t *text, size_t pos, size_t end)
{
    return cased_rule(text, pos, end, 1, false);
}

static size_t gpt2(const uint8_t *text, size_t pos, size_t end)
{
    return gpt2_rule(text, pos, end, false);
}

static size_t digits_gpt2(const uint8_t *text, size_t pos, size_t end)
{
    return gpt2_rule(text, pos, end, true);
}

static size_t llama3(const uint8_t *text, size_t pos, size_t end)
{
    return llama3_rule(text, pos, end, 3, FOLD_UNICODE);
}

/* The same, but white space that reaches the end is one word even where it breaks lines: \s++$ comes first.
 */
static size_t cl100k(const uint8_t *text, size_t pos, size_t end)
{
    if (peek(text, pos, end).class == FKP_SPACE && run_end(text, pos, end, FKP_SPACE) == end) return end;
    return llama3(text, pos, end);
}

static size_t qwen2(const uint8_t *text, size_t pos, size_t end)
{
    return llama3_rule(text, pos, end, 1, FOLD_UNICODE);
}

/* Qwen3.5: marks are letters. */
static size_t qwen35(const uint8_t *text, size_t pos, size_t end)
{
    size_t short_form = contraction(text, pos, end, FOLD_UNICODE);
    if (short_form) return pos + short_form;
    character c = read_character(text, pos, end);
    size_t after = pos + c.bytes, word;
    if (!breaks_line(text[pos]) && !(c.category & (LETTER | NUMBER)) && (word = set_end(text, after, end, LETTER | MARK)) > after)
        return word;
    if ((word = set_end(text, pos, end, LETTER | MARK)) > pos) return word;
    if (c.category & NUMBER) return after;
    size_t body = text[pos] == ' ' ? pos + 1 : pos, other = body;
    for (;;) {
        peeked next = peek(text, other, end);
        if (next.class != FKP_OTHER || (read_character(text, other, end).category & MARK)) break;
        other += next.bytes;
    }
    if (other > body) return breaks_end(text, other, end, false);
    return break_or_space_end(text, pos, end);
}

/* ---- DeepSeek's three steps */

static size_t three_numbers(const uint8_t *text, size_t pos, size_t end)
{
    return numbers_end(text, pos, end, 3);
}

static size_t one_number(const uint8_t *text, size_t pos, size_t end)
{
    return numbers_end(text, pos, end, 1);
}

/* [一-龥぀-ゟ゠-ヿ]+ */
static size_t han_and_kana(const uint8_t *text, size_t pos, size_t end)
{
    for (;;) {
        character c = read_character(text, pos, end);
        if (!((c.code_point >= 0x4E00 && c.code_point <= 0x9FA5) || (c.code_point >= 0x3040 && c.code_point <= 0x30FF))) return pos;
        pos += c.bytes;
    }
}

static bool ascii_letter(const uint8_t *text, size_t pos, size_t end)
{
    return pos < end && (uint8_t)((text[pos] | 0x20) - 'a') < 26;
}

static size_t deepseek(const uint8_t *text, size_t pos, size_t end)
{
    character c = read_character(text, pos, end);
    size_t after = pos + c.bytes, stop;
    if (c.code_point < 0x80 && (c.category & (PUNCTUATION | SYMBOL)) && ascii_letter(text, after, end)) {
        while (ascii_letter(text, after, end)) after++;
        return after;
    }
    if (!breaks_line(text[pos]) && !(c.category & (LETTER | PUNCTUATION | SYMBOL)) &&
        (stop = set_end(text, after, end, LETTER | MARK)) > after)
        return stop;
    if ((stop = set_end(text, pos, end, LETTER | MARK)) > pos) return stop;
    size_t body = text[pos] == ' ' ? pos + 1 : pos;
    if ((stop = set_end(text, body, end, PUNCTUATION | SYMBOL)) > body) return breaks_end(text, stop, end, false);
    return peek(text, pos, end).class == FKP_SPACE ? break_or_space_end(text, pos, end) : pos;
}

const fkp_scanner fkp_gpt2_scanner = gpt2, fkp_digits_gpt2_scanner = digits_gpt2, fkp_cl100k_scanner = cl100k,
                  fkp_o200k_scanner = o200k;

#define SPACES "\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define SHORT_FORMS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define LOWER_WORD "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
#define UPPER_WORD "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*"
#define OTHERS " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"
#define SLASHED " ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|"

static const struct known {
    const char *expression;
    fkp_scanner scan;
    bool scans_all;
} known[] = {
    {"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+", gpt2, true},
    {SHORT_FORMS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|" OTHERS SPACES, llama3, true},
    {SHORT_FORMS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|" OTHERS SPACES, qwen2, true},
    {SHORT_FORMS "|[^\\r\\n\\p{L}\\p{N}]?[\\p{L}\\p{M}]+|\\p{N}| ?[^\\s\\p{L}\\p{M}\\p{N}]+[\\r\\n]*|" SPACES, qwen35, true},
    {LOWER_WORD SHORT_FORMS "?|" UPPER_WORD SHORT_FORMS "?|\\p{N}{1,3}|" SLASHED SPACES, o200k, true},
    {LOWER_WORD "|" UPPER_WORD "|\\p{N}|" SLASHED SPACES, tekken, true},
    {"\\p{N}{1,3}", three_numbers, false},
    {"\\p{N}", one_number, false},
    {"[一-龥぀-ゟ゠-ヿ]+", han_and_kana, false},
    {"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\\r\\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\\r\\n]*|" SPACES,
     deepseek, false},
};

/* Files write line breaks within an expression as they are or as \r and \n: the same to its reader. */
static bool same_expression(fk_piece text, const char *known)
{
    for (size_t i = 0; i < text.bytes; i++) {
        const char escape[] = {'\\', text.data[i] == '\r' ? 'r' : 'n', 0};
        bool breaks = breaks_line((uint8_t)text.data[i]);
        if (breaks ? strncmp(known, escape, 2) != 0 : *known != text.data[i]) return false;
        known += breaks ? 2 : 1;
    }
    return *known == 0;
}

fkp_scanner fkp_scanner_find(fk_piece expression, bool *scans_all)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!same_expression(expression, known[i].expression)) continue;
        *scans_all = known[i].scans_all;
        return known[i].scan;
    }
    return NULL;
}
