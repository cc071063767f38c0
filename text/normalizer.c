/* SPDX-License-Identifier: Apache-2.0 */
/* The normalizers one by one. Unicode's normalization forms use utf8proc's tables; the ordering of marks is done here,
 * because its exchange sort takes quadratic time on a hostile run of marks. */
#include "text/normalizer.h"

#include "text/byte_map.h"
#include "text/normalizer_unicode.h"
#include "text/pretokenizer.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

fk_status fkp_normalizer_add(fkp_normalizer_list *list, fkp_normalizer_kind kind, fkp_normalizer **out)
{
    void *storage = list->steps;
    FK_TRY(fkp_grow(&storage, &list->capacity, list->count + 1, sizeof *list->steps));
    list->steps = storage;
    *out = &list->steps[list->count];
    **out = (fkp_normalizer){.kind = kind};
    list->keeps_ascii = (list->count == 0 || list->keeps_ascii) && kind <= FKP_NORMALIZE_NFKD;
    list->count++;
    return FK_OK;
}

void fkp_normalizer_list_deinit(fkp_normalizer_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        fkp_pattern_deinit(&list->steps[i].pattern);
        fk_bytes_deinit(&list->steps[i].content);
        fkp_charsmap_deinit(&list->steps[i].charsmap);
        fk_bytes_deinit(&list->steps[i].sentencepiece.space);
    }
    free(list->steps);
    *list = (fkp_normalizer_list){0};
}

void fkp_normalizer_scratch_deinit(fkp_normalizer_scratch *s)
{
    fk_bytes_deinit(&s->buffers[0]);
    fk_bytes_deinit(&s->buffers[1]);
    free(s->code_points);
    free(s->sorted);
    *s = (fkp_normalizer_scratch){0};
}

static fk_status append_code_point(fk_bytes *out, uint32_t code_point)
{
    uint8_t utf8[4];
    return fk_bytes_append(out, utf8, (size_t)fkp_utf8_write(code_point, utf8));
}

/* ---- normalization forms */

/* Stable sort of marks by combining class; the keys are the top bits, and merging keeps equal ones in order. */
static void sort_marks(uint32_t *keys, uint32_t *spare, size_t count)
{
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t begin = 0; begin < count; begin += 2 * width) {
            size_t middle = begin + width < count ? begin + width : count;
            size_t end = begin + 2 * width < count ? begin + 2 * width : count;
            size_t left = begin, right = middle;
            for (size_t to = begin; to < end; to++)
                spare[to] = left < middle && (right == end || keys[left] >> 24 <= keys[right] >> 24) ? keys[left++] : keys[right++];
        }
        memcpy(keys, spare, count * sizeof *keys);
    }
}

static int combining_class(int32_t c)
{
    int class = utf8proc_get_property(c)->combining_class;
    return class && FKP_IN(newer_marks, (uint32_t)c) ? 0 : class;
}

static fk_status order_marks(fkp_normalizer_scratch *s, int32_t *points, size_t count)
{
    for (size_t begin = 0; begin < count;) {
        size_t end = begin;
        bool in_order = true;
        int last = 0;
        for (int class; end < count && (class = combining_class(points[end])) != 0; end++, last = class)
            in_order &= class >= last;
        size_t marks = end - begin;
        if (!in_order) {
            void *storage = s->sorted;
            FK_TRY(fkp_grow(&storage, &s->sorted_capacity, 2 * marks, sizeof *s->sorted));
            s->sorted = storage;
            for (size_t i = 0; i < marks; i++)
                s->sorted[i] = (uint32_t)combining_class(points[begin + i]) << 24 | (uint32_t)points[begin + i];
            sort_marks(s->sorted, s->sorted + marks, marks);
            for (size_t i = 0; i < marks; i++) points[begin + i] = (int32_t)(s->sorted[i] & 0xFFFFFF);
        }
        begin = end + 1;
    }
    return FK_OK;
}

/* Valid UTF-8 in, one of the four forms out. */
static fk_status append_form(fkp_normalizer_scratch *s, fkp_normalizer_kind kind, const uint8_t *text, size_t bytes, fk_bytes *out)
{
    enum { LONGEST_DECOMPOSITION = 18 }; /* U+FDFA under NFKD */
    bool compatibility = kind == FKP_NORMALIZE_NFKC || kind == FKP_NORMALIZE_NFKD;
    bool compose = kind == FKP_NORMALIZE_NFC || kind == FKP_NORMALIZE_NFKC;
    const int options = (compatibility ? UTF8PROC_COMPAT : 0) | UTF8PROC_DECOMPOSE | UTF8PROC_STABLE;
    size_t count = 0;
    for (size_t at = 0; at < bytes;) {
        fkp_utf8_char c = fkp_utf8_read(text + at, bytes - at);
        at += (size_t)c.bytes;
        void *storage = s->code_points;
        FK_TRY(fkp_grow(&storage, &s->capacity, count + LONGEST_DECOMPOSITION + 1, sizeof *s->code_points));
        s->code_points = storage;
        if (FKP_IN(newer_decompositions, c.code_point)) {
            s->code_points[count++] = (int32_t)c.code_point;
            continue;
        }
        int boundary = 0;
        utf8proc_ssize_t added = utf8proc_decompose_char((int32_t)c.code_point, s->code_points + count, LONGEST_DECOMPOSITION,
                                                         (utf8proc_option_t)options, &boundary);
        if (added < 0 || added > LONGEST_DECOMPOSITION) return fk_fail(FK_ERROR_INTERNAL, "U+%04X does not decompose", c.code_point);
        count += (size_t)added;
    }
    FK_TRY(order_marks(s, s->code_points, count));
    if (compose) {
        utf8proc_ssize_t left = utf8proc_normalize_utf32(s->code_points, (utf8proc_ssize_t)count, UTF8PROC_COMPOSE | UTF8PROC_STABLE);
        if (left < 0) return fk_fail(FK_ERROR_INTERNAL, "text of %zu code points does not compose", count);
        count = (size_t)left;
    }
    for (size_t i = 0; i < count; i++) FK_TRY(append_code_point(out, (uint32_t)s->code_points[i]));
    return FK_OK;
}

static size_t ascii_end(const uint8_t *text, size_t bytes)
{
    size_t at = 0;
    for (uint64_t eight; at + 8 <= bytes; at += 8) {
        memcpy(&eight, text + at, 8);
        if (eight & 0x8080808080808080u) break;
    }
    while (at < bytes && text[at] < 0x80) at++;
    return at;
}

/* Runs of ASCII are copied, but for the character before another one, which may take a mark. */
static fk_status normalization_form(fkp_normalizer_scratch *s, fkp_normalizer_kind kind, fk_piece text, fk_bytes *out)
{
    const uint8_t *data = (const uint8_t *)text.data;
    for (size_t at = 0; at < text.bytes;) {
        size_t ascii = ascii_end(data + at, text.bytes - at);
        bool last = at + ascii == text.bytes;
        size_t copied = last || ascii == 0 ? ascii : ascii - 1;
        FK_TRY(fk_bytes_append(out, data + at, copied));
        at += copied;
        /* From here to the next two ASCII characters in a row, or to a bad byte. */
        size_t end = at;
        while (end < text.bytes && !(end > at && data[end] < 0x80 && data[end - 1] < 0x80)) {
            fkp_utf8_char c = fkp_utf8_read(data + end, text.bytes - end);
            if (c.state != FKP_UTF8_VALID) break;
            end += (size_t)c.bytes;
        }
        FK_TRY(append_form(s, kind, data + at, end - at, out));
        bool bad = end < text.bytes && data[end] >= 0x80;
        if (bad) FK_TRY(fk_bytes_append(out, data + end, 1));
        at = end + bad;
    }
    return FK_OK;
}

/* ---- the others */

/* Rust's lowercase of one character: U+0130 is the only one that becomes two. */
static fk_status append_lowercase(fk_bytes *out, uint32_t c)
{
    if (c == 0x130) return fk_bytes_append(out, "i\xCC\x87", 3);
    for (size_t i = 0; c >= newer_capitals[0].first && i < sizeof newer_capitals / sizeof *newer_capitals; i++) {
        const struct newer_capitals *n = &newer_capitals[i];
        if (c >= n->first && c <= n->last && (c - n->first) % n->step == 0) return append_code_point(out, (uint32_t)((int32_t)c + n->distance));
    }
    return append_code_point(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)c));
}

static bool is_mark(uint32_t c)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    if (c == 0x1CF2 || c == 0x1CF3) return true; /* letters by now */
    if (FKP_IN(newer_marks, c)) return false;
    return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC || category == UTF8PROC_CATEGORY_ME;
}

static fk_status append_nmt(fk_bytes *out, uint32_t c)
{
    bool gone = (c >= 0x01 && c <= 0x08) || c == 0x0B || (c >= 0x0E && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
    bool space = c == 0x09 || c == 0x0A || c == 0x0C || c == 0x0D || c == 0x1680 || (c >= 0x200B && c <= 0x200F) || c == 0x2028 ||
                 c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
    return gone ? FK_OK : append_code_point(out, space ? ' ' : c);
}

/* What BERT's word splitter reads as words stands here as text: ideographs get spaces on both sides. */
static fk_status append_bert(fk_bytes *out, const fkp_bert_normalizer *n, uint32_t c)
{
    fkp_bert_output normal;
    fkp_bert_normalize(n, c, &normal);
    if (normal.ideograph) FK_TRY(fk_bytes_append(out, " ", 1));
    for (int i = 0; i < normal.count; i++)
        FK_TRY(append_code_point(
            out, normal.classes[i] == FKP_BERT_SPACE && n->clean_text ? ' ' : normal.code_points[i]));
    return normal.ideograph ? fk_bytes_append(out, " ", 1) : FK_OK;
}

static fk_status each_character(const fkp_normalizer *step, fk_piece text, fk_bytes *out)
{
    const uint8_t *data = (const uint8_t *)text.data;
    for (size_t at = 0; at < text.bytes;) {
        fkp_utf8_char c = fkp_utf8_read(data + at, text.bytes - at);
        if (c.state != FKP_UTF8_VALID) {
            FK_TRY(fk_bytes_append(out, data + at, 1));
            at++;
            continue;
        }
        at += (size_t)c.bytes;
        switch (step->kind) {
        case FKP_NORMALIZE_LOWERCASE: FK_TRY(append_lowercase(out, c.code_point)); break;
        case FKP_NORMALIZE_STRIP_ACCENTS:
            if (!is_mark(c.code_point)) FK_TRY(append_code_point(out, c.code_point));
            break;
        case FKP_NORMALIZE_NMT: FK_TRY(append_nmt(out, c.code_point)); break;
        default: FK_TRY(append_bert(out, &step->bert, c.code_point));
        }
    }
    return FK_OK;
}

static fk_status strip(const fkp_normalizer *step, fk_piece text, fk_bytes *out)
{
    const uint8_t *data = (const uint8_t *)text.data;
    size_t begin = 0, end = 0; /* of what is kept; `end` after the last character that is no space */
    bool inside = !step->left;
    for (size_t at = 0; at < text.bytes;) {
        fkp_utf8_char c = fkp_utf8_read(data + at, text.bytes - at);
        bool space = c.state == FKP_UTF8_VALID && fkp_classify(c.code_point) == FKP_SPACE;
        if (!space && !inside) {
            begin = at;
            inside = true;
        }
        at += (size_t)c.bytes;
        if (!space) end = at;
    }
    if (!inside) return FK_OK;
    if (!step->right) end = text.bytes;
    return end > begin ? fk_bytes_append(out, data + begin, end - begin) : FK_OK;
}

static fk_status replace(const fkp_normalizer *step, fk_piece text, fk_bytes *out)
{
    const uint8_t *data = (const uint8_t *)text.data;
    const fkp_range all = {0, text.bytes};
    size_t done = 0;
    for (size_t from = 0;;) {
        fkp_range match;
        bool found;
        FK_TRY(fkp_pattern_next(&step->pattern, data, all, from, &match, &found));
        if (!found) break;
        FK_TRY(fk_bytes_append(out, data + done, match.begin - done));
        FK_TRY(fk_bytes_append(out, step->content.data, step->content.bytes));
        done = from = match.end;
        if (match.end > match.begin) continue;
        if (from == text.bytes) break;
        from += (size_t)fkp_utf8_read(data + from, text.bytes - from).bytes; /* an empty match: go on behind a character */
    }
    return fk_bytes_append(out, data + done, text.bytes - done);
}

static fk_status map_bytes(fk_piece text, fk_bytes *out)
{
    for (size_t i = 0; i < text.bytes; i++) FK_TRY(append_code_point(out, fkp_byte_to_code_point((uint8_t)text.data[i])));
    return FK_OK;
}

static fk_status run_step(const fkp_normalizer *step, fkp_normalizer_scratch *s, fk_piece text, fk_bytes *out)
{
    switch (step->kind) {
    case FKP_NORMALIZE_NFC:
    case FKP_NORMALIZE_NFD:
    case FKP_NORMALIZE_NFKC:
    case FKP_NORMALIZE_NFKD: return normalization_form(s, step->kind, text, out);
    case FKP_NORMALIZE_STRIP: return strip(step, text, out);
    case FKP_NORMALIZE_REPLACE: return replace(step, text, out);
    case FKP_NORMALIZE_PREPEND:
        if (text.bytes > 0) FK_TRY(fk_bytes_append(out, step->content.data, step->content.bytes));
        return fk_bytes_append(out, text.data, text.bytes);
    case FKP_NORMALIZE_BYTE_LEVEL: return map_bytes(text, out);
    case FKP_NORMALIZE_CHARSMAP:
        return fkp_charsmap_normalize(&step->charsmap, text, out);
    case FKP_NORMALIZE_SENTENCEPIECE:
        return fkp_sentencepiece_normalize(&step->charsmap, &step->sentencepiece, text, out);
    default: return each_character(step, text, out);
    }
}

fk_status fkp_normalize(const fkp_normalizer_list *list, fkp_normalizer_scratch *s, fk_piece text, fk_piece *out)
{
    *out = text;
    if (list->count == 0 || (list->keeps_ascii && ascii_end((const uint8_t *)text.data, text.bytes) == text.bytes)) return FK_OK;
    for (size_t i = 0; i < list->count; i++) {
        fk_bytes *to = &s->buffers[i % 2];
        fk_bytes_clear(to);
        FK_TRY(run_step(&list->steps[i], s, *out, to));
        *out = (fk_piece){to->data ? to->data : "", to->bytes};
    }
    return FK_OK;
}
