/* SPDX-License-Identifier: Apache-2.0 */
/* The pre-tokenizer rules as scanners. They follow llama.cpp's reading of the expressions, which is the
 * oracle for GGUF files: contractions are matched by ASCII letters only, and an expression of several steps
 * looks ahead no further than the stretch that the step before cut out. */
#include "text/pretokenizer.h"

#include "text/scan.h"
#include "text/unicode.h"

#include <string.h>

static bool is_white_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
           c == 0x3000;
}

static fkp_char_class class_of(utf8proc_category_t category, uint32_t c)
{
    switch (category) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
        return FKP_LETTER;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
        return FKP_NUMBER;
    default:
        return is_white_space(c) ? FKP_SPACE : FKP_OTHER;
    }
}

fkp_char_class fkp_classify(uint32_t c)
{
    if (c < 0x80) return (fkp_char_class)ascii_class[c];
    /* CJK extension I: the letters that Unicode 15.1 has and 15.0 (utf8proc 2.8, Debian 12) has not. */
    if (c >= 0x2EBF0 && c <= 0x2EE5D) return FKP_LETTER;
    return class_of(utf8proc_category((utf8proc_int32_t)c), c);
}

fkp_char_class fkp_classify_json(uint32_t c)
{
    return c < 0x80 ? (fkp_char_class)ascii_class[c] : class_of(fkp_category(c), c);
}

static size_t gpt2_word_end(const uint8_t *text, size_t pos, size_t end)
{
    return gpt2_rule(text, pos, end, false);
}

static size_t smollm_word_end(const uint8_t *text, size_t pos, size_t end)
{
    return gpt2_rule(text, pos, end, true);
}

static size_t llama3_word_end(const uint8_t *text, size_t pos, size_t end)
{
    return llama3_rule(text, pos, end, 3, FOLD_ASCII);
}

static size_t qwen2_word_end(const uint8_t *text, size_t pos, size_t end)
{
    return llama3_rule(text, pos, end, 1, FOLD_ASCII);
}

static const fkp_pretokenizer pretokenizers[] = {
    /* name, rule, ignore_merges, add_bos */
    {"smollm", smollm_word_end, false, false}, {"starcoder", smollm_word_end, false, false},
    {"refact", smollm_word_end, false, false}, {"command-r", smollm_word_end, false, false},
    {"gpt-2", gpt2_word_end, false, false},    {"llama-bpe", llama3_word_end, true, true},
    {"llama3", llama3_word_end, true, true},   {"llama-v3", llama3_word_end, true, true},
    {"qwen2", qwen2_word_end, false, false},
};

fk_status fkp_pretokenizer_find(const char *name, const fkp_pretokenizer **out)
{
    const size_t count = sizeof pretokenizers / sizeof *pretokenizers;
    for (size_t i = 0; i < count; i++)
        if (strcmp(name, pretokenizers[i].name) == 0) {
            *out = &pretokenizers[i];
            return FK_OK;
        }
    char known[256] = "";
    for (size_t i = 0; i < count; i++) {
        if (i) strncat(known, ", ", sizeof known - strlen(known) - 1);
        strncat(known, pretokenizers[i].name, sizeof known - strlen(known) - 1);
    }
    return fk_fail(FK_ERROR_UNSUPPORTED, "unknown pre-tokenizer '%s' (known: %s)", name, known);
}
