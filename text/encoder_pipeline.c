/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding by tokenizer.json: added tokens cut the text, the normalizer rewrites what is between and added tokens are
 * looked for once more, the pre-tokenizer cuts words, the model makes ids of them. */
#include "text/encoder_internal.h"

#include "text/byte_map.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

void fkp_pipeline_destroy(fkp_pipeline *p)
{
    if (!p) return;
    fkp_string_matcher_deinit(&p->raw.matcher);
    fkp_string_matcher_deinit(&p->normalized.matcher);
    free(p->raw.tokens);
    free(p->normalized.tokens);
    fkp_normalizer_list_deinit(&p->normalizer);
    fkp_word_splitter_deinit(&p->splitter);
    fkp_unigram_deinit(&p->unigram);
    fkp_trie_deinit(&p->user_defined);
    free(p->ranks);
    fk_bytes_deinit(&p->continuing_prefix);
    fk_bytes_deinit(&p->end_suffix);
    free(p->in_model);
    fk_token_list_deinit(&p->before);
    fk_token_list_deinit(&p->after);
    fk_bytes_deinit(&p->drop_from_first);
    fk_bytes_deinit(&p->strip);
    free(p);
}

/* ---- the model: symbols of a word, then merges */

/* Symbols of one word under construction. A character without a piece waits, so that several may become one. */
typedef struct symbol_list {
    fk_encoder *e;
    size_t count;
    bool unknown_waits;
} symbol_list;

static fk_status push_symbol(symbol_list *s, int32_t id)
{
    void *storage = s->e->symbols;
    FK_TRY(fkp_grow(&storage, &s->e->symbols_capacity, s->count + 1, sizeof *s->e->symbols));
    s->e->symbols = storage;
    s->e->symbols[s->count++] = id;
    return FK_OK;
}

static fk_status flush_unknown(symbol_list *s)
{
    if (!s->unknown_waits) return FK_OK;
    s->unknown_waits = false;
    return push_symbol(s, s->e->t->pipeline->unknown_id);
}

static fk_status push_missing(symbol_list *s, const uint8_t *bytes, size_t count)
{
    const fkp_pipeline *p = s->e->t->pipeline;
    bool falls_back = p->byte_fallback;
    for (size_t i = 0; i < count && falls_back; i++) falls_back = p->fallback_ids[bytes[i]] >= 0;
    if (falls_back) {
        for (size_t i = 0; i < count; i++) FK_TRY(push_symbol(s, p->fallback_ids[bytes[i]]));
        return FK_OK;
    }
    if (p->unknown_id < 0) {
        if (s->e->bpe.dropped_bytes == 0) s->e->bpe.dropped_byte = bytes[0];
        s->e->bpe.dropped_bytes += (int64_t)count;
        return FK_OK;
    }
    if (!p->fuse_unknown) FK_TRY(flush_unknown(s));
    s->unknown_waits = true;
    return FK_OK;
}

/* The piece that one character is, by its place in the word; -1 when there is none. */
static fk_status find_symbol(fk_encoder *e, fk_piece character, bool first, bool last, int32_t *id)
{
    const fkp_pipeline *p = e->t->pipeline;
    fk_piece name = character;
    if ((!first && p->continuing_prefix.bytes) || (last && p->end_suffix.bytes)) {
        fk_bytes_clear(&e->name);
        if (!first) FK_TRY(fk_bytes_append(&e->name, p->continuing_prefix.data, p->continuing_prefix.bytes));
        FK_TRY(fk_bytes_append(&e->name, character.data, character.bytes));
        if (last) FK_TRY(fk_bytes_append(&e->name, p->end_suffix.data, p->end_suffix.bytes));
        name = (fk_piece){e->name.data, e->name.bytes};
    }
    *id = fk_tokenizer_find(e->t, name);
    if (*id >= 0 && !p->in_model[*id]) *id = -1;
    return FK_OK;
}

static fk_status symbols_by_bytes(symbol_list *s, const uint8_t *word, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        int32_t id = s->e->t->bpe.byte_ids[word[i]];
        if (id == FKP_NO_PIECE) {
            FK_TRY(push_missing(s, word + i, 1));
            continue;
        }
        FK_TRY(flush_unknown(s));
        FK_TRY(push_symbol(s, id));
    }
    return flush_unknown(s);
}

static fk_status symbols_by_characters(symbol_list *s, const uint8_t *word, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        size_t length;
        int32_t id = fkp_trie_longest(&s->e->t->pipeline->user_defined, word + at, bytes - at, &length);
        if (id < 0) length = fkp_utf8_length(word + at, bytes - at);
        if (id < 0)
            FK_TRY(find_symbol(s->e, (fk_piece){(const char *)word + at, length}, at == 0,
                               at + length == bytes, &id));
        if (id >= 0) {
            FK_TRY(flush_unknown(s));
            FK_TRY(push_symbol(s, id));
        } else {
            FK_TRY(push_missing(s, word + at, length));
        }
        at += length;
    }
    return flush_unknown(s);
}

static fk_status encode_whole(fk_encoder *e, const uint8_t *word, size_t bytes, fk_token_list *out)
{
    const fkp_pipeline *p = e->t->pipeline;
    int32_t id = fk_tokenizer_find(e->t, (fk_piece){(const char *)word, bytes});
    return fk_token_list_push(out, id >= 0 && p->in_model[id] ? id : p->unknown_id);
}

/* Unknown characters in a row are one, which may be a piece after all (the text of the unknown token). */
static fk_status encode_unigram(fk_encoder *e, const uint8_t *word, size_t bytes, fk_token_list *out)
{
    const fkp_pipeline *p = e->t->pipeline;
    symbol_list s = {.e = e};
    void *storage = e->steps;
    FK_TRY(fkp_grow(&storage, &e->steps_capacity, bytes + 1, sizeof *e->steps));
    e->steps = storage;
    fkp_unigram_cut(&p->unigram, word, bytes, e->steps);
    for (size_t at = 0, end; at < bytes; at = end) {
        int32_t id = e->steps[at].id;
        end = at + (size_t)e->steps[at].length;
        if (id < 0 || id == p->unknown_id) {
            while (p->fuse_unknown && end < bytes &&
                   (e->steps[end].id < 0 || e->steps[end].id == p->unknown_id))
                end += (size_t)e->steps[end].length;
            id = fk_tokenizer_find(e->t, (fk_piece){(const char *)word + at, end - at});
            if (id >= 0 && !p->in_model[id]) id = -1;
        }
        FK_TRY(id >= 0 ? push_symbol(&s, id) : push_missing(&s, word + at, end - at));
        FK_TRY(flush_unknown(&s));
    }
    for (size_t i = 0; i < s.count; i++) FK_TRY(fk_token_list_push(out, e->symbols[i]));
    return FK_OK;
}

static fk_status encode_bpe(fk_encoder *e, const uint8_t *word, size_t bytes, fk_token_list *out)
{
    const fkp_pipeline *p = e->t->pipeline;
    if (p->ignore_merges && !p->by_bytes) {
        int32_t id = fk_tokenizer_find(e->t, (fk_piece){(const char *)word, bytes});
        if (id >= 0 && p->in_model[id]) return fk_token_list_push(out, id);
    }
    if (p->by_bytes) {
        bool all = true;
        for (size_t i = 0; i < bytes && all; i++) all = e->t->bpe.byte_ids[word[i]] != FKP_NO_PIECE;
        if (all) return fkp_bpe_encode(&e->t->bpe, &e->bpe, word, bytes, out);
    }
    symbol_list s = {.e = e};
    FK_TRY(p->by_bytes ? symbols_by_bytes(&s, word, bytes) : symbols_by_characters(&s, word, bytes));
    return fkp_bpe_merge(&e->t->bpe, &e->bpe, e->symbols, s.count, out);
}

fk_status fkp_pipeline_encode_word(fk_encoder *e, const uint8_t *word, size_t bytes, fk_token_list *out)
{
    switch (e->t->pipeline->model) {
    case FKP_MODEL_WORDPIECE:
        return fkp_wordpiece_encode(e, word, bytes, out);
    case FKP_MODEL_WORDLEVEL:
        return encode_whole(e, word, bytes, out);
    case FKP_MODEL_UNIGRAM:
        return encode_unigram(e, word, bytes, out);
    default:
        return encode_bpe(e, word, bytes, out);
    }
}

/* ---- words */

/* A stretch without added tokens. */
static fk_status encode_stretch(fk_encoder *e, fk_piece text, bool first, fk_token_list *out)
{
    const fkp_pipeline *p = e->t->pipeline;
    const uint8_t *data = (const uint8_t *)text.data;
    if (p->splitter.only) {
        for (size_t pos = 0; pos < text.bytes;) {
            size_t end = p->splitter.only(data, pos, text.bytes);
            FK_TRY(fkp_encode_word(e, data + pos, end - pos, out));
            pos = end;
        }
        return FK_OK;
    }
    const fkp_range_list *words;
    FK_TRY(fkp_split_words(&p->splitter, &e->split, text, first, &text, &words));
    data = (const uint8_t *)text.data;
    for (size_t i = 0; i < words->count; i++)
        FK_TRY(fkp_encode_word(e, data + words->items[i].begin, words->items[i].end - words->items[i].begin, out));
    return FK_OK;
}

/* ---- added tokens */

/* The next token of the set at or after `from`: leftmost, then longest. False when there is none. */
static bool next_token(const fkp_token_set *set, const uint8_t *text, size_t bytes, size_t from, size_t *begin, size_t *which)
{
    const fkp_string_matcher *m = &set->matcher;
    int32_t state = FKP_MATCHER_ROOT;
    bool have = false;
    for (size_t at = from; at < bytes; at++) {
        state = fkp_string_matcher_step(m, state, text[at]);
        for (int32_t node = state; node != FKP_MATCHER_ROOT; node = m->nodes[node].shorter) {
            int32_t pattern = m->nodes[node].pattern;
            if (pattern < 0) continue;
            size_t start = at + 1 - set->tokens[pattern].bytes;
            if (have && (start > *begin || (start == *begin && set->tokens[pattern].bytes < set->tokens[*which].bytes))) continue;
            have = true;
            *begin = start;
            *which = (size_t)pattern;
        }
        /* What the automaton still holds began after the match: nothing can come before it or be longer. */
        if (have && at + 1 - (size_t)m->nodes[state].depth > *begin) break;
    }
    return have;
}

/* Where the character before `at` begins. */
static size_t step_back(const uint8_t *text, size_t at)
{
    size_t begin = at - 1;
    while (begin > 0 && at - begin < 4 && (text[begin] & 0xC0) == 0x80) begin--;
    return begin;
}

static bool is_space_at(const uint8_t *text, size_t at, size_t end)
{
    fkp_utf8_char c = fkp_utf8_read(text + at, end - at);
    return c.state == FKP_UTF8_VALID && fkp_classify_json(c.code_point) == FKP_SPACE;
}

typedef struct token_search {
    const fkp_token_set *set;
    const encode_input *in; /* the input that the text is, for where control tokens may stand; NULL: by `special_allowed` */
    bool special_allowed;
} token_search;

/* Fragments of the text to `list`, which the caller has emptied. */
static fk_status cut_tokens(fk_encoder *e, const token_search *s, const uint8_t *text, size_t bytes, fragment_list *list)
{
    size_t done = 0, from = 0, begin = 0, which = 0;
    bool any = s->set->count > 0 && (s->special_allowed || s->set->any_plain);
    while (any && next_token(s->set, text, bytes, from, &begin, &which)) {
        const fkp_pipeline_token *token = &s->set->tokens[which];
        size_t end = begin + token->bytes;
        from = end;
        if (token->special && !(s->in ? fkp_control_allowed(e, s->in, begin, end) : s->special_allowed)) continue;
        if (token->single_word && ((begin > 0 && fkp_is_word_at(text, step_back(text, begin), begin)) || fkp_is_word_at(text, end, bytes)))
            continue;
        while (token->lstrip && begin > done && is_space_at(text, step_back(text, begin), begin)) begin = step_back(text, begin);
        while (token->rstrip && end < bytes && is_space_at(text, end, bytes)) end += (size_t)fkp_utf8_read(text + end, bytes - end).bytes;
        if (done < begin) FK_TRY(fkp_add_fragment(list, (fragment){done, begin, -1}));
        FK_TRY(fkp_add_fragment(list, (fragment){begin, end, token->id}));
        done = end;
        if (from < end) from = end;
    }
    return done < bytes ? fkp_add_fragment(list, (fragment){done, bytes, -1}) : FK_OK;
}

/* Text between raw tokens: normalized, then cut at the tokens that are looked for in normalized text. */
static fk_status encode_between(fk_encoder *e, fk_piece text, bool first, bool special_allowed, fk_token_list *out)
{
    const fkp_pipeline *p = e->t->pipeline;
    FK_TRY(fkp_normalize(&p->normalizer, &e->normal, text, &text));
    if (p->normalized.count == 0) return encode_stretch(e, text, first, out);
    const token_search search = {&p->normalized, NULL, special_allowed};
    e->previous.count = 0;
    FK_TRY(cut_tokens(e, &search, (const uint8_t *)text.data, text.bytes, &e->previous));
    for (size_t i = 0; i < e->previous.count; i++) {
        fragment f = e->previous.items[i];
        if (f.id >= 0) FK_TRY(fk_token_list_push(out, f.id));
        else FK_TRY(encode_stretch(e, (fk_piece){text.data + f.begin, f.end - f.begin}, first && f.begin == 0, out));
    }
    return FK_OK;
}

fk_status fkp_pipeline_encode(fk_encoder *e, const encode_input *in, fk_token_list *out)
{
    const token_search search = {&e->t->pipeline->raw, in, in->any_special};
    e->fragments.count = 0;
    FK_TRY(cut_tokens(e, &search, (const uint8_t *)in->text, in->bytes, &e->fragments));
    for (size_t i = 0; i < e->fragments.count; i++) {
        fragment f = e->fragments.items[i];
        if (f.id >= 0) {
            FK_TRY(fk_token_list_push(out, f.id));
            continue;
        }
        bool special_allowed = in->any_special && fkp_control_allowed(e, in, f.begin, f.end);
        FK_TRY(encode_between(e, (fk_piece){in->text + f.begin, f.end - f.begin}, f.begin == 0, special_allowed, out));
    }
    return FK_OK;
}
