/* SPDX-License-Identifier: Apache-2.0 */
/* What the pre-tokenizer scanners are made of: reading one classed character, runs, white space, contractions, and the
 * two rules that both pre-tokenizers of GGUF names and those of tokenizer.json use. */
#ifndef FK_TEXT_SCAN_H
#define FK_TEXT_SCAN_H

#include "text/pretokenizer.h"
#include "text/utf8.h"

/* The class of a code point beyond ASCII: an includer may name another version of Unicode. */
#ifndef FK_SCAN_CLASSIFY
#define FK_SCAN_CLASSIFY fkp_classify
#endif

/* One code point of the text: its class and length. */
typedef struct peeked {
    fkp_char_class class;
    size_t bytes;
} peeked;

#define O FKP_OTHER
#define L FKP_LETTER
#define N FKP_NUMBER
#define S FKP_SPACE
static const uint8_t ascii_class[128] = {
    O, O, O, O, O, O, O, O, O, S, S, S, S, S, O, O, /* 0x00: tab, newline, vertical tab, form feed, return */
    O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, /* 0x10 */
    S, O, O, O, O, O, O, O, O, O, O, O, O, O, O, O, /* 0x20 */
    N, N, N, N, N, N, N, N, N, N, O, O, O, O, O, O, /* 0x30 */
    O, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, /* 0x40 */
    L, L, L, L, L, L, L, L, L, L, L, O, O, O, O, O, /* 0x50 */
    O, L, L, L, L, L, L, L, L, L, L, L, L, L, L, L, /* 0x60 */
    L, L, L, L, L, L, L, L, L, L, L, O, O, O, O, O, /* 0x70 */
};
#undef O
#undef L
#undef N
#undef S

static inline peeked peek_wide(const uint8_t *text, size_t pos, size_t end)
{
    fkp_utf8_char c = fkp_utf8_read(text + pos, end - pos);
    if (c.state != FKP_UTF8_VALID) return (peeked){FKP_OTHER, 1};
    return (peeked){FK_SCAN_CLASSIFY(c.code_point), (size_t)c.bytes};
}

static inline peeked peek(const uint8_t *text, size_t pos, size_t end)
{
    if (pos >= end) return (peeked){FKP_END, 0};
    if (text[pos] < 0x80) return (peeked){(fkp_char_class)ascii_class[text[pos]], 1};
    return peek_wide(text, pos, end);
}

/* End of the run of `class` that goes on at pos. */
static inline size_t run_end(const uint8_t *text, size_t pos, size_t end, fkp_char_class class)
{
    for (peeked c = peek(text, pos, end); c.class == class; c = peek(text, pos, end)) pos += c.bytes;
    return pos;
}

/* Which letters are the same in a contraction. */
typedef enum folding {
    FOLD_NONE,
    FOLD_ASCII,  /* capitals, as llama.cpp reads (?i:...) */
    FOLD_UNICODE /* the long s too, as Unicode's case folding and Oniguruma have it */
} folding;

/* Length of 's 't 'm 'd 're 've 'll at pos, 0 when there is none. */
static inline size_t contraction(const uint8_t *text, size_t pos, size_t end, folding fold)
{
    if (pos >= end || text[pos] != '\'' || end - pos < 2) return 0;
    /* The bit turns an ASCII capital into its small letter; no other byte becomes one here. */
    uint8_t bit = fold != FOLD_NONE ? 0x20 : 0;
    uint8_t first = text[pos + 1] | bit;
    if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
    if (end - pos < 3) return 0;
    if (fold == FOLD_UNICODE && text[pos + 1] == 0xC5 && text[pos + 2] == 0xBF) return 3; /* U+017F */
    uint8_t second = text[pos + 2] | bit;
    bool pair =
        (first == 'r' && second == 'e') || (first == 'v' && second == 'e') || (first == 'l' && second == 'l');
    return pair ? 3 : 0;
}

/* White space from pos: the whole run at the end of the stretch or when it is one character, else all but its
 * last character, which goes with the next word: \s+(?!\S)|\s+. `numbers_end`: a number ends the stretch. */
static inline size_t space_end(const uint8_t *text, size_t pos, size_t end, bool numbers_end)
{
    size_t last = pos, next = pos;
    peeked c = peek(text, next, end);
    for (; c.class == FKP_SPACE; c = peek(text, next, end)) {
        last = next;
        next += c.bytes;
    }
    bool stretch_ends = c.class == FKP_END || (numbers_end && c.class == FKP_NUMBER);
    return stretch_ends || last == pos ? next : last;
}

/* 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 * With `single_numbers` a first step \p{N} has cut every number character out, and the expression then sees
 * the stretches between them. */
static inline size_t gpt2_rule(const uint8_t *text, size_t pos, size_t end, bool single_numbers)
{
    size_t short_form = contraction(text, pos, end, FOLD_NONE);
    if (short_form) return pos + short_form;

    peeked c = peek(text, pos, end);
    if (single_numbers && c.class == FKP_NUMBER) return pos + c.bytes;
    size_t body = pos;
    if (text[pos] == ' ') {
        body = pos + 1;
        c = peek(text, body, end);
        if (single_numbers && c.class == FKP_NUMBER) return body;
    }
    if (c.class == FKP_SPACE || c.class == FKP_END) return space_end(text, pos, end, single_numbers);
    return run_end(text, body + c.bytes, end, c.class);
}

/* \s*[\r\n]+|\s+(?!\S)|\s+ */
static inline size_t break_or_space_end(const uint8_t *text, size_t pos, size_t end)
{
    peeked c;
    size_t after_break = 0;
    for (size_t next = pos; (c = peek(text, next, end)).class == FKP_SPACE;) {
        bool breaks = text[next] == '\r' || text[next] == '\n';
        next += c.bytes;
        if (breaks) after_break = next;
    }
    return after_break ? after_break : space_end(text, pos, end, false);
}

/* (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,max_digits}|
 * ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+| \s+(?!\S)|\s+ */
static inline size_t llama3_rule(const uint8_t *text, size_t pos, size_t end, int max_digits, folding fold)
{
    size_t short_form = contraction(text, pos, end, fold);
    if (short_form) return pos + short_form;

    peeked c = peek(text, pos, end);
    bool line_break = text[pos] == '\r' || text[pos] == '\n';
    if (c.class == FKP_LETTER) return run_end(text, pos + c.bytes, end, FKP_LETTER);
    if (c.class == FKP_NUMBER) {
        for (int digits = 0; digits < max_digits && c.class == FKP_NUMBER; digits++) {
            pos += c.bytes;
            c = peek(text, pos, end);
        }
        return pos;
    }
    if (!line_break && peek(text, pos + c.bytes, end).class == FKP_LETTER)
        return run_end(text, pos + c.bytes, end, FKP_LETTER);

    size_t body = text[pos] == ' ' ? pos + 1 : pos;
    if (peek(text, body, end).class == FKP_OTHER) {
        body = run_end(text, body, end, FKP_OTHER);
        while (body < end && (text[body] == '\r' || text[body] == '\n')) body++;
        return body;
    }

    return break_or_space_end(text, pos, end);
}

#endif
