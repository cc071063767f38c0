/* SPDX-License-Identifier: Apache-2.0 */
/* The normalizer's character classes and its order of steps: clean, isolate ideographs, decompose and drop marks,
 * lower case; then the splitter's classes on what came out. */
#include "text/bert_normalizer.h"

#include "text/bert_unicode.h"

#include <stddef.h>
#include <utf8proc.h>

static bool in_ranges(const fkp_code_point_range *ranges, size_t count, uint32_t c)
{
    size_t low = 0, high = count; /* the first range that ends at or after c */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges[middle].last < c) low = middle + 1;
        else high = middle;
    }
    return low < count && ranges[low].first <= c;
}
#define IN(ranges, c) in_ranges(ranges, sizeof(ranges) / sizeof *(ranges), c)

static bool is_white_space(uint32_t c)
{
    return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

/* General category C but for the three controls that count as white space. */
static bool is_control(uint32_t c)
{
    if (c == '\t' || c == '\n' || c == '\r') return false;
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CO:
        return !IN(not_control, c);
    default:
        return false;
    }
}

bool fkp_bert_is_punctuation(uint32_t c)
{
    if (c < 0x80) return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
        return !IN(not_punctuation, c);
    default:
        return c == 0x166D || c == 0x111C9; /* no punctuation any more */
    }
}

/* Nonspacing marks: what accents are once they are decomposed. */
static bool is_mark(uint32_t c)
{
    if (utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_MN) return !IN(not_mark, c);
    return c == 0x1734; /* a spacing mark by now */
}

/* The blocks that BERT calls Chinese; kana and hangul are not among them. */
static bool is_ideograph(uint32_t c)
{
    static const uint32_t blocks[][2] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF}, {0x2A700, 0x2B73F},
                                         {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF}, {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        if (c >= blocks[i][0] && c <= blocks[i][1]) return true;
    return false;
}

static void emit(fkp_bert_output *out, uint32_t c, bool ideograph)
{
    if (out->count == FKP_BERT_MOST) return;
    fkp_bert_class class = FKP_BERT_WORD;
    if (is_white_space(c)) class = FKP_BERT_SPACE;
    else if (ideograph || fkp_bert_is_punctuation(c)) class = FKP_BERT_ALONE;
    out->code_points[out->count] = c;
    out->classes[out->count++] = (uint8_t)class;
}

/* The full mapping: only capital I with a dot becomes two. */
static void emit_lower(fkp_bert_output *out, uint32_t c, bool ideograph)
{
    if (c == 0x130) {
        emit(out, 'i', ideograph);
        emit(out, 0x307, ideograph);
    } else {
        emit(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)c), ideograph);
    }
}

void fkp_bert_normalize(const fkp_bert_normalizer *n, uint32_t c, fkp_bert_output *out)
{
    out->count = 0;
    out->ideograph = false;
    if (n->clean_text) {
        if (c == 0 || c == 0xFFFD || is_control(c)) return;
        if (is_white_space(c)) c = ' ';
    }
    bool ideograph = out->ideograph = n->handle_chinese_chars && is_ideograph(c);
    utf8proc_int32_t parts[FKP_BERT_MOST] = {(utf8proc_int32_t)c};
    utf8proc_ssize_t count = 1;
    if (n->strip_accents && c >= 0x80) {
        int boundary = 0;
        count = utf8proc_decompose_char((utf8proc_int32_t)c, parts, FKP_BERT_MOST, UTF8PROC_DECOMPOSE | UTF8PROC_STABLE, &boundary);
        if (count < 1 || count > FKP_BERT_MOST) { /* a noncharacter: stands for itself */
            parts[0] = (utf8proc_int32_t)c;
            count = 1;
        }
    }
    for (utf8proc_ssize_t i = 0; i < count; i++) {
        if (n->strip_accents && is_mark((uint32_t)parts[i])) continue;
        if (n->lowercase) emit_lower(out, (uint32_t)parts[i], ideograph);
        else emit(out, (uint32_t)parts[i], ideograph);
    }
}
