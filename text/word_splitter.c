/* SPDX-License-Identifier: Apache-2.0 */
/* Running the steps of a pre-tokenizer. */
#include "text/word_splitter.h"

#include "text/bert_normalizer.h"
#include "text/byte_map.h"
#define FK_SCAN_CLASSIFY fkp_classify_json
#include "text/scan.h"
#include "text/unicode.h"

#include <stdlib.h>
#include <string.h>

fk_status fkp_split_add(fkp_word_splitter *w, fkp_split_kind kind, fkp_split_step **out)
{
    void *storage = w->steps;
    FK_TRY(fkp_grow(&storage, &w->capacity, w->count + 1, sizeof *w->steps));
    w->steps = storage;
    *out = &w->steps[w->count++];
    **out = (fkp_split_step){.kind = kind, .behavior = FKP_SPLIT_ISOLATED};
    return FK_OK;
}

void fkp_word_splitter_finish(fkp_word_splitter *w)
{
    const fkp_split_step *s = w->steps;
    bool cuts[2] = {false, false};
    for (size_t i = 0; i < w->count && i < 2; i++)
        cuts[i] = s[i].kind == FKP_SPLIT_PATTERN && s[i].behavior == FKP_SPLIT_ISOLATED && !s[i].invert && s[i].pattern.scan;
    if (w->count == 1 && cuts[0] && s[0].pattern.scans_all) w->only = s[0].pattern.scan;
    if (w->count == 2 && cuts[0] && cuts[1] && s[0].pattern.scan == fkp_scan_digit && s[1].pattern.scan == fkp_gpt2_scanner)
        w->only = fkp_digits_gpt2_scanner;
}

void fkp_word_splitter_deinit(fkp_word_splitter *w)
{
    for (size_t i = 0; i < w->count; i++) {
        fkp_pattern_deinit(&w->steps[i].pattern);
        fk_bytes_deinit(&w->steps[i].content);
    }
    free(w->steps);
    *w = (fkp_word_splitter){0};
}

void fkp_split_scratch_deinit(fkp_split_scratch *s)
{
    for (int i = 0; i < 2; i++) {
        fk_bytes_deinit(&s->buffers[i]);
        free(s->lists[i].items);
    }
    *s = (fkp_split_scratch){0};
}

static inline fk_status add_range(fkp_range_list *list, size_t begin, size_t end)
{
    if (begin >= end) return FK_OK;
    if (list->count == list->capacity) {
        void *storage = list->items;
        FK_TRY(fkp_grow(&storage, &list->capacity, list->count + 1, sizeof *list->items));
        list->items = storage;
    }
    list->items[list->count++] = (fkp_range){begin, end};
    return FK_OK;
}

/* ---- cutting by a pattern */

/* What a stretch becomes, piece by piece: matches and what is between them, put together as the behavior says. */
typedef struct cutter {
    const fkp_split_step *step;
    fkp_range_list *out;
    fkp_range open;      /* a piece that may still grow; empty: none */
    bool open_is_match;
    bool previous_match; /* the piece before this one was a match */
} cutter;

static fk_status flush(cutter *c)
{
    fkp_range open = c->open;
    c->open = (fkp_range){0, 0};
    return add_range(c->out, open.begin, open.end);
}

static fk_status cut_piece(cutter *c, size_t begin, size_t end, bool is_match)
{
    is_match ^= c->step->invert;
    bool joins = false;
    switch (c->step->behavior) {
    case FKP_SPLIT_REMOVED: return is_match ? FK_OK : add_range(c->out, begin, end);
    case FKP_SPLIT_ISOLATED: return add_range(c->out, begin, end);
    case FKP_SPLIT_MERGED_WITH_PREVIOUS: joins = is_match && !c->previous_match; break;
    case FKP_SPLIT_MERGED_WITH_NEXT: joins = !is_match && c->open_is_match; break;
    case FKP_SPLIT_CONTIGUOUS: joins = is_match == c->previous_match; break;
    }
    joins = joins && c->open.end > c->open.begin;
    if (!joins) FK_TRY(flush(c));
    c->open = (fkp_range){joins ? c->open.begin : begin, end};
    c->open_is_match = is_match;
    c->previous_match = is_match;
    return FK_OK;
}

static fk_status cut_stretch(const fkp_split_step *step, const uint8_t *text, fkp_range stretch, fkp_range_list *out)
{
    cutter c = {.step = step, .out = out};
    size_t done = stretch.begin, from = stretch.begin;
    for (;;) {
        fkp_range match;
        bool found;
        FK_TRY(fkp_pattern_next(&step->pattern, text, stretch, from, &match, &found));
        if (!found) break;
        if (match.begin > done) FK_TRY(cut_piece(&c, done, match.begin, false));
        if (match.end > match.begin) FK_TRY(cut_piece(&c, match.begin, match.end, true));
        done = from = match.end;
        if (match.end > match.begin) continue;
        if (from == stretch.end) break;
        from += (size_t)fkp_utf8_read(text + from, stretch.end - from).bytes; /* an empty match: go on behind a character */
    }
    if (done < stretch.end) FK_TRY(cut_piece(&c, done, stretch.end, false));
    return flush(&c);
}

static fk_status cut_length(const fkp_split_step *step, const uint8_t *text, fkp_range stretch, fkp_range_list *out)
{
    for (size_t begin = stretch.begin; begin < stretch.end;) {
        size_t end = begin;
        for (int64_t i = 0; i < step->length && end < stretch.end; i++) end += (size_t)fkp_utf8_read(text + end, stretch.end - end).bytes;
        FK_TRY(add_range(out, begin, end));
        begin = end;
    }
    return FK_OK;
}

/* ---- rewriting */

static bool starts_with(fk_piece text, const fk_bytes *beginning)
{
    return text.bytes >= beginning->bytes && memcmp(text.data, beginning->data, beginning->bytes) == 0;
}

static fk_status rewrite_stretch(const fkp_split_step *step, fk_piece text, bool first, fk_bytes *out)
{
    if (step->kind == FKP_SPLIT_BYTE_MAP) {
        for (size_t i = 0; i < text.bytes; i++) {
            uint8_t mapped[4];
            FK_TRY(fk_bytes_append(out, mapped, (size_t)fkp_utf8_write(fkp_byte_to_code_point((uint8_t)text.data[i]), mapped)));
        }
        return FK_OK;
    }
    if (step->kind == FKP_SPLIT_PREFIX) {
        if (!starts_with(text, &step->content)) FK_TRY(fk_bytes_append(out, step->content.data, step->content.bytes));
        return fk_bytes_append(out, text.data, text.bytes);
    }
    bool prepend = step->scheme == FKP_PREPEND_ALWAYS || (step->scheme == FKP_PREPEND_FIRST && first);
    if (prepend && !starts_with(text, &step->content) && text.data[0] != ' ')
        FK_TRY(fk_bytes_append(out, step->content.data, step->content.bytes));
    for (size_t at = 0; at < text.bytes;) {
        const char *space = memchr(text.data + at, ' ', text.bytes - at);
        size_t end = space ? (size_t)(space - text.data) : text.bytes;
        FK_TRY(fk_bytes_append(out, text.data + at, end - at));
        if (space) FK_TRY(fk_bytes_append(out, step->content.data, step->content.bytes));
        at = end + 1;
    }
    return FK_OK;
}

fk_status fkp_split_words(const fkp_word_splitter *w, fkp_split_scratch *s, fk_piece text, bool first, fk_piece *words_text,
                          const fkp_range_list **words)
{
    fkp_range_list *from = &s->lists[0], *to = &s->lists[1];
    fk_bytes *buffer = &s->buffers[0];
    from->count = 0;
    FK_TRY(add_range(from, 0, text.bytes));
    for (size_t i = 0; i < w->count; i++) {
        const fkp_split_step *step = &w->steps[i];
        bool rewrites = step->kind == FKP_SPLIT_METASPACE || step->kind == FKP_SPLIT_PREFIX || step->kind == FKP_SPLIT_BYTE_MAP;
        to->count = 0;
        if (rewrites) fk_bytes_clear(buffer);
        for (size_t k = 0; k < from->count; k++) {
            fkp_range r = from->items[k];
            if (rewrites) {
                size_t start = buffer->bytes;
                FK_TRY(rewrite_stretch(step, (fk_piece){text.data + r.begin, r.end - r.begin}, first && r.begin == 0, buffer));
                FK_TRY(add_range(to, start, buffer->bytes));
            } else if (step->kind == FKP_SPLIT_LENGTH) {
                FK_TRY(cut_length(step, (const uint8_t *)text.data, r, to));
            } else {
                FK_TRY(cut_stretch(step, (const uint8_t *)text.data, r, to));
            }
        }
        if (rewrites) {
            text = (fk_piece){buffer->data ? buffer->data : "", buffer->bytes};
            buffer = buffer == &s->buffers[0] ? &s->buffers[1] : &s->buffers[0];
        }
        fkp_range_list *swap = from;
        from = to;
        to = swap;
    }
    *words_text = text;
    *words = from;
    return FK_OK;
}

/* ---- scanners of the named pre-tokenizers */

static size_t one_of(const uint8_t *text, size_t pos, size_t end, fkp_char_class class)
{
    peeked c = peek(text, pos, end);
    return c.class == class ? pos + c.bytes : pos;
}

static size_t scan_digit(const uint8_t *text, size_t pos, size_t end)
{
    return one_of(text, pos, end, FKP_NUMBER);
}

static size_t scan_digits(const uint8_t *text, size_t pos, size_t end)
{
    return run_end(text, pos, end, FKP_NUMBER);
}

static size_t scan_space(const uint8_t *text, size_t pos, size_t end)
{
    return one_of(text, pos, end, FKP_SPACE);
}

static size_t scan_spaces(const uint8_t *text, size_t pos, size_t end)
{
    return run_end(text, pos, end, FKP_SPACE);
}

static size_t scan_punctuation(const uint8_t *text, size_t pos, size_t end)
{
    fkp_utf8_char c = fkp_utf8_read(text + pos, end - pos);
    return c.state == FKP_UTF8_VALID && fkp_bert_is_punctuation(c.code_point) ? pos + (size_t)c.bytes : pos;
}

/* \w as Unicode's annex 18 has it: alphabetic, marks, decimal digits, connectors, joiners. */
static bool is_word_character(uint32_t c)
{
    if (c == 0x200C || c == 0x200D || (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
        (c >= 0x1F170 && c <= 0x1F189))
        return true;
    if (fkp_classify_json(c) == FKP_LETTER) return true;
    switch (fkp_category(c)) {
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    default: return false;
    }
}

bool fkp_is_word_at(const uint8_t *text, size_t pos, size_t end)
{
    if (pos >= end) return false;
    fkp_utf8_char c = fkp_utf8_read(text + pos, end - pos);
    return c.state == FKP_UTF8_VALID && is_word_character(c.code_point);
}

/* \w+|[^\w\s]+ */
static size_t scan_word_or_other(const uint8_t *text, size_t pos, size_t end)
{
    size_t at = pos;
    while (fkp_is_word_at(text, at, end)) at += (size_t)fkp_utf8_read(text + at, end - at).bytes;
    if (at > pos) return at;
    for (;;) {
        peeked c = peek(text, at, end);
        if (c.class == FKP_SPACE || c.class == FKP_END || fkp_is_word_at(text, at, end)) return at;
        at += c.bytes;
    }
}

const fkp_scanner fkp_scan_digit = scan_digit, fkp_scan_digits = scan_digits, fkp_scan_punctuation = scan_punctuation,
                  fkp_scan_space = scan_space, fkp_scan_spaces = scan_spaces, fkp_scan_word_or_other = scan_word_or_other;
