/* SPDX-License-Identifier: Apache-2.0 */
/* WordPiece encoding: added tokens cut the text, the normalizer makes words of what is between, and each word is cut
 * into its longest pieces from the left; a word with a rest that no piece begins is unknown as a whole. */
#include "text/wordpiece_internal.h"

#include "text/tokenizer_internal.h" /* fkp_hash_bytes */
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

static size_t find_slot(const fk_wordpiece *w, const char *text, size_t bytes)
{
    size_t slot = (size_t)fkp_hash_bytes((const uint8_t *)text, bytes) & (w->num_slots - 1);
    for (; w->slots[slot]; slot = (slot + 1) & (w->num_slots - 1)) {
        fk_piece there = w->pieces[w->slots[slot] - 1];
        if (there.bytes == bytes && memcmp(there.data, text, bytes) == 0) break;
    }
    return slot;
}

fk_status fkp_wordpiece_index(fk_wordpiece *w)
{
    w->num_slots = 16;
    while (w->num_slots < 2 * (size_t)w->vocab_size) w->num_slots *= 2;
    w->slots = calloc(w->num_slots, sizeof *w->slots);
    if (!w->slots) return fk_fail(FK_ERROR_MEMORY, "no memory for %lld pieces", (long long)w->vocab_size);
    for (int64_t id = 0; id < w->vocab_size; id++) {
        fk_piece piece = w->pieces[id];
        if (piece.bytes == 0) continue;
        size_t slot = find_slot(w, piece.data, piece.bytes);
        if (w->slots[slot])
            return fk_fail(FK_ERROR_INVALID, "tokens %u and %lld are both '%.*s'", w->slots[slot] - 1, (long long)id,
                           (int)(piece.bytes < 80 ? piece.bytes : 80), piece.data);
        w->slots[slot] = (uint32_t)id + 1;
        if (piece.bytes > w->longest) w->longest = piece.bytes;
    }
    return FK_OK;
}

void fk_wordpiece_destroy(fk_wordpiece *w)
{
    if (!w) return;
    fk_bytes_deinit(&w->text);
    fk_bytes_deinit(&w->prefix);
    free(w->pieces);
    free(w->slots);
    free(w->added);
    fkp_string_matcher_deinit(&w->added_matcher);
    fk_token_list_deinit(&w->before);
    fk_token_list_deinit(&w->after);
    free(w);
}

int64_t fk_wordpiece_vocab_size(const fk_wordpiece *w)
{
    return w->vocab_size;
}

int32_t fk_wordpiece_find(const fk_wordpiece *w, fk_piece text)
{
    return text.bytes ? (int32_t)w->slots[find_slot(w, text.data, text.bytes)] - 1 : -1;
}

fk_piece fk_wordpiece_piece(const fk_wordpiece *w, int32_t id)
{
    return id >= 0 && id < w->vocab_size ? w->pieces[id] : (fk_piece){"", 0};
}

/* A word under construction: the prefix "##", then its characters, so that a piece that goes on with the word is looked
 * up in place: the prefix is written over the characters already used up. */
typedef struct word {
    fk_bytes text;
    int64_t chars;
} word;

static void begin_word(const fk_wordpiece *w, word *word)
{
    word->text.bytes = w->prefix.bytes;
    word->chars = 0;
}

static bool inside_character(const char *byte)
{
    return ((uint8_t)*byte & 0xC0) == 0x80;
}

/* Cuts the word into pieces and begins the next one. */
static fk_status finish_word(const fk_wordpiece *w, word *word, fk_token_list *out)
{
    if (word->chars == 0) return FK_OK;
    const size_t prefix = w->prefix.bytes, end = word->text.bytes;
    char *text = word->text.data;
    int64_t start_count = out->count;
    bool known = word->chars <= w->max_chars;
    for (size_t at = prefix; known && at < end;) {
        size_t front = at == prefix ? 0 : prefix; /* bytes of "##" in front of this piece */
        if (front) memcpy(text + at - prefix, w->prefix.data, prefix);
        const char *begin = text + at - front;
        size_t bytes = end - at + front;
        if (bytes > w->longest) bytes = w->longest;
        int32_t id = -1;
        for (; bytes > front; bytes--) {
            if (begin + bytes < text + end && inside_character(begin + bytes)) continue;
            id = fk_wordpiece_find(w, (fk_piece){begin, bytes});
            if (id >= 0) break;
        }
        known = id >= 0;
        if (known) FK_TRY(fk_token_list_push(out, id));
        at += bytes - front;
    }
    if (!known) {
        out->count = start_count;
        FK_TRY(fk_token_list_push(out, w->unknown_id));
    }
    begin_word(w, word);
    return FK_OK;
}

/* One character of the normalized text. Of a word that is too long only the length still matters. */
static fk_status add_character(const fk_wordpiece *w, word *word, uint32_t code_point, fkp_bert_class class, fk_token_list *out)
{
    if (class != FKP_BERT_WORD) FK_TRY(finish_word(w, word, out));
    if (class == FKP_BERT_SPACE) return FK_OK;
    uint8_t utf8[4];
    int bytes = fkp_utf8_write(code_point, utf8);
    if (word->chars <= w->max_chars) FK_TRY(fk_bytes_append(&word->text, utf8, (size_t)bytes));
    word->chars++;
    return class == FKP_BERT_ALONE ? finish_word(w, word, out) : FK_OK;
}

/* A stretch without added tokens; the text is valid UTF-8. */
static fk_status encode_stretch(const fk_wordpiece *w, word *word, const uint8_t *text, size_t bytes, fk_token_list *out)
{
    fkp_bert_output normal;
    begin_word(w, word);
    for (size_t at = 0; at < bytes;) {
        fkp_utf8_char c = fkp_utf8_read(text + at, bytes - at);
        at += (size_t)c.bytes;
        fkp_bert_normalize(&w->normalizer, c.code_point, &normal);
        for (int i = 0; i < normal.count; i++)
            FK_TRY(add_character(w, word, normal.code_points[i], (fkp_bert_class)normal.classes[i], out));
    }
    return finish_word(w, word, out);
}

/* The next added token at or after *begin: leftmost, then longest. False when there is none. */
static bool next_added(const fk_wordpiece *w, const uint8_t *text, size_t bytes, size_t *begin, size_t *found)
{
    const fkp_string_matcher *m = &w->added_matcher;
    int32_t state = FKP_MATCHER_ROOT;
    bool have = false;
    size_t best_begin = 0, best = 0;
    if (w->num_added == 0) return false;
    for (size_t at = *begin; at < bytes; at++) {
        state = fkp_string_matcher_step(m, state, text[at]);
        for (int32_t node = state; node != FKP_MATCHER_ROOT; node = m->nodes[node].shorter) {
            int32_t pattern = m->nodes[node].pattern;
            if (pattern < 0) continue;
            size_t from = at + 1 - w->added[pattern].bytes;
            if (have && (from > best_begin || (from == best_begin && w->added[pattern].bytes < w->added[best].bytes))) continue;
            have = true;
            best_begin = from;
            best = (size_t)pattern;
        }
        /* What the automaton still holds began after the match: nothing can come before it or be longer. */
        if (have && at + 1 - (size_t)m->nodes[state].depth > best_begin) break;
    }
    *begin = best_begin;
    *found = best;
    return have;
}

static fk_status encode_text(const fk_wordpiece *w, word *word, const uint8_t *text, size_t bytes, fk_token_list *out)
{
    size_t from = 0;
    FK_TRY(fk_bytes_append(&word->text, w->prefix.data, w->prefix.bytes));
    while (from < bytes) {
        size_t begin = from, which = 0;
        bool hit = next_added(w, text, bytes, &begin, &which);
        size_t end = hit ? begin : bytes;
        FK_TRY(encode_stretch(w, word, text + from, end - from, out));
        if (hit) FK_TRY(fk_token_list_push(out, w->added[which].id));
        from = hit ? begin + w->added[which].bytes : bytes;
    }
    return FK_OK;
}

static fk_status append_ids(fk_token_list *out, const fk_token_list *ids)
{
    for (int64_t i = 0; i < ids->count; i++) FK_TRY(fk_token_list_push(out, ids->ids[i]));
    return FK_OK;
}

fk_status fk_wordpiece_encode(const fk_wordpiece *w, const char *text, size_t bytes, bool add_special, fk_token_list *out)
{
    size_t invalid = fk_utf8_invalid_offset(text, bytes);
    if (invalid < bytes)
        return fk_fail(FK_ERROR_INVALID, "the text is no UTF-8: byte 0x%02X at offset %zu", (uint8_t)text[invalid], invalid);
    int64_t count = out->count;
    word word = {0};
    fk_status status = add_special ? append_ids(out, &w->before) : FK_OK;
    if (status == FK_OK) status = encode_text(w, &word, (const uint8_t *)text, bytes, out);
    if (status == FK_OK && add_special) status = append_ids(out, &w->after);
    if (status != FK_OK) out->count = count;
    fk_bytes_deinit(&word.text);
    return status;
}
