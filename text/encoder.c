/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding: special tokens cut the text into fragments, the pre-tokenizer cuts fragments into words,
 * byte-pair encoding turns words into ids. Words repeat, so a cache in front of the last step remembers the
 * short ones. */
#define _GNU_SOURCE /* memmem */
#include "text/encoder_internal.h"

#include "text/byte_map.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

fk_status fk_encoder_create(const fk_tokenizer *t, fk_encoder **out)
{
    *out = NULL;
    fk_encoder *e = calloc(1, sizeof *e);
    if (!e) return fk_fail(FK_ERROR_MEMORY, "no memory for an encoder");
    e->t = t;
    e->cache = calloc(CACHE_SLOTS, sizeof *e->cache);
    e->pattern_seen = calloc(t->num_special + 1, sizeof *e->pattern_seen);
    e->node_seen = calloc(t->special_matcher.count + 1, sizeof *e->node_seen);
    if (!e->cache || !e->pattern_seen || !e->node_seen) {
        fk_encoder_destroy(e);
        return fk_fail(FK_ERROR_MEMORY, "no memory for an encoder");
    }
    *out = e;
    return FK_OK;
}

void fk_encoder_destroy(fk_encoder *e)
{
    if (!e) return;
    free(e->cache);
    fkp_bpe_scratch_deinit(&e->bpe);
    fk_bytes_deinit(&e->text);
    fk_bytes_deinit(&e->name);
    free(e->span_ends);
    free(e->fragments.items);
    free(e->previous.items);
    free(e->pattern_seen);
    free(e->node_seen);
    fkp_normalizer_scratch_deinit(&e->normal);
    fkp_split_scratch_deinit(&e->split);
    free(e->symbols);
    free(e->steps);
    free(e);
}

int64_t fk_encoder_dropped_bytes(const fk_encoder *e)
{
    return e->bpe.dropped_bytes;
}

/* The piece that is this very word, -1 when there is none. Control tokens are no words. */
static fk_status find_whole_word(fk_encoder *e, const uint8_t *word, size_t bytes, int32_t *id)
{
    fk_bytes_clear(&e->name);
    for (size_t i = 0; i < bytes; i++) {
        uint8_t mapped[4];
        int length = fkp_utf8_write(fkp_byte_to_code_point(word[i]), mapped);
        FK_TRY(fk_bytes_append(&e->name, mapped, (size_t)length));
    }
    *id = fk_tokenizer_find(e->t, (fk_piece){e->name.data, e->name.bytes});
    const fkp_pipeline *p = e->t->pipeline;
    if (*id >= 0 && !(p ? p->in_model[*id] : e->t->types[*id] == FK_TOKEN_NORMAL)) *id = -1;
    return FK_OK;
}

static fk_status encode_new_word(fk_encoder *e, const uint8_t *word, size_t bytes, fk_token_list *out)
{
    const fkp_pipeline *p = e->t->pipeline;
    if (p && !p->by_bytes) return fkp_pipeline_encode_word(e, word, bytes, out);
    if (p ? p->ignore_merges : e->t->pretokenizer->ignore_merges) {
        int32_t id;
        FK_TRY(find_whole_word(e, word, bytes, &id));
        if (id >= 0) return fk_token_list_push(out, id);
    }
    if (p) return fkp_pipeline_encode_word(e, word, bytes, out);
    return fkp_bpe_encode(&e->t->bpe, &e->bpe, word, bytes, out);
}

fk_status fkp_encode_word(fk_encoder *e, const uint8_t *word, size_t bytes, fk_token_list *out)
{
    if (bytes > CACHED_BYTES) return encode_new_word(e, word, bytes, out);

    cached_word *slot = &e->cache[fkp_hash_bytes(word, bytes) & (CACHE_SLOTS - 1)];
    if (slot->bytes == bytes && memcmp(slot->word, word, bytes) == 0) {
        FK_TRY(fk_token_list_reserve(out, CACHED_IDS));
        memcpy(out->ids + out->count, slot->ids, sizeof slot->ids); /* all of them: a copy of constant size */
        out->count += slot->count;
        return FK_OK;
    }
    int64_t count = out->count, dropped = e->bpe.dropped_bytes;
    FK_TRY(encode_new_word(e, word, bytes, out));
    count = out->count - count;
    if (count > CACHED_IDS || e->bpe.dropped_bytes != dropped) return FK_OK;
    slot->bytes = (uint8_t)bytes;
    slot->count = (uint8_t)count;
    memcpy(slot->word, word, bytes);
    memcpy(slot->ids, out->ids + out->count - count, (size_t)count * sizeof *slot->ids);
    return FK_OK;
}

fk_status fkp_add_fragment(fragment_list *list, fragment f)
{
    if (f.begin == f.end) return FK_OK;
    void *storage = list->items;
    FK_TRY(fkp_grow(&storage, &list->capacity, list->count + 1, sizeof *list->items));
    list->items = storage;
    list->items[list->count++] = f;
    return FK_OK;
}

bool fkp_control_allowed(const fk_encoder *e, const encode_input *in, size_t begin, size_t end)
{
    size_t low = 0, high = in->num_spans; /* the first span that ends after `begin` */
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (e->span_ends[middle] > begin)
            high = middle;
        else
            low = middle + 1;
    }
    return low < in->num_spans && in->spans[low].parse_special && end <= e->span_ends[low];
}

/* Cuts every occurrence of one special token out of the text fragments, from left to right. */
static fk_status split_at(fk_encoder *e, const encode_input *in, int32_t id)
{
    fk_piece name = fkp_piece_at(&e->t->names, id);
    bool control = fkp_is_control(e->t, id);
    fragment_list cut = e->previous;
    e->previous = e->fragments;
    cut.count = 0;
    fk_status status = FK_OK;
    for (size_t i = 0; i < e->previous.count && status == FK_OK; i++) {
        fragment f = e->previous.items[i];
        size_t from = f.begin;
        while (f.id < 0 && status == FK_OK && from < f.end) {
            const char *hit = memmem(in->text + from, f.end - from, name.data, name.bytes);
            if (!hit) break;
            size_t begin = (size_t)(hit - in->text), end = begin + name.bytes;
            if (control && !fkp_control_allowed(e, in, begin, end)) {
                from = begin + 1;
                continue;
            }
            status = fkp_add_fragment(&cut, (fragment){f.begin, begin, -1});
            if (status == FK_OK) status = fkp_add_fragment(&cut, (fragment){begin, end, id});
            f.begin = from = end;
        }
        if (status == FK_OK) status = fkp_add_fragment(&cut, f);
    }
    e->fragments = cut;
    return status;
}

/* Fragments of the whole text. As llama.cpp: each special token in turn, longest first, takes what is still
 * text. One pass of the automaton tells which of them occur at all; mostly none or two or three. */
static fk_status split_special(fk_encoder *e, const encode_input *in)
{
    const fk_tokenizer *t = e->t;
    e->fragments.count = 0;
    FK_TRY(fkp_add_fragment(&e->fragments, (fragment){0, in->bytes, -1}));
    if (!in->any_special && !t->has_user_defined) return FK_OK;

    const fkp_string_matcher *m = &t->special_matcher;
    memset(e->pattern_seen, 0, t->num_special * sizeof *e->pattern_seen);
    memset(e->node_seen, 0, m->count * sizeof *e->node_seen);
    int32_t state = FKP_MATCHER_ROOT;
    for (size_t i = 0; i < in->bytes; i++) {
        state = fkp_string_matcher_step(m, state, (uint8_t)in->text[i]);
        for (int32_t node = state; node != FKP_MATCHER_ROOT && !e->node_seen[node];
             node = m->nodes[node].shorter) {
            e->node_seen[node] = true;
            if (m->nodes[node].pattern >= 0) e->pattern_seen[m->nodes[node].pattern] = true;
        }
    }
    for (size_t i = 0; i < t->num_special; i++) {
        int32_t id = t->special_ids[i];
        if (!e->pattern_seen[i] || (fkp_is_control(t, id) && !in->any_special)) continue;
        FK_TRY(split_at(e, in, id));
    }
    return FK_OK;
}

/* Joins the spans and makes them UTF-8; a single good span is used where it stands. */
static fk_status prepare_text(fk_encoder *e, const fk_text_span *spans, size_t count, unsigned flags,
                              encode_input *in)
{
    *in = (encode_input){.text = "", .spans = spans, .num_spans = count};
    void *ends = e->span_ends;
    FK_TRY(fkp_grow(&ends, &e->span_ends_capacity, count, sizeof *e->span_ends));
    e->span_ends = ends;
    fk_bytes_clear(&e->text);
    for (size_t i = 0; i < count; i++) {
        const fk_text_span *span = &spans[i];
        bool as_it_is =
            (flags & FK_ENCODE_RAW_BYTES) || fk_utf8_invalid_offset(span->data, span->bytes) == span->bytes;
        in->any_special |= span->parse_special;
        if (as_it_is && count == 1) {
            in->text = span->data;
            in->bytes = span->bytes;
        } else {
            FK_TRY(as_it_is ? fk_bytes_append(&e->text, span->data, span->bytes)
                            : fkp_utf8_append_lenient(&e->text, span->data, span->bytes));
            in->text = e->text.data ? e->text.data : "";
            in->bytes = e->text.bytes;
        }
        e->span_ends[i] = in->bytes;
        if (in->bytes > INT32_MAX)
            return fk_fail(FK_ERROR_INVALID, "a text of %zu bytes is longer than the limit of %d", in->bytes,
                           INT32_MAX);
    }
    return FK_OK;
}

static fk_status encode_fragments(fk_encoder *e, const encode_input *in, fk_token_list *out)
{
    const uint8_t *text = (const uint8_t *)in->text;
    for (size_t i = 0; i < e->fragments.count; i++) {
        fragment f = e->fragments.items[i];
        if (f.id >= 0) {
            FK_TRY(fk_token_list_push(out, f.id));
            continue;
        }
        for (size_t pos = f.begin; pos < f.end;) {
            size_t end = e->t->pretokenizer->word_end(text, pos, f.end);
            FK_TRY(fkp_encode_word(e, text + pos, end - pos, out));
            pos = end;
        }
    }
    return FK_OK;
}

static fk_status insert_ids(fk_token_list *out, int64_t at, const int32_t *ids, int64_t count)
{
    FK_TRY(fk_token_list_reserve(out, count));
    memmove(out->ids + at + count, out->ids + at, (size_t)(out->count - at) * sizeof *out->ids);
    memcpy(out->ids + at, ids, (size_t)count * sizeof *ids);
    out->count += count;
    return FK_OK;
}

/* Puts what a text begins and ends with around the ids from `start` on, unless it begins so. */
static fk_status add_around(const fk_tokenizer *t, fk_token_list *out, int64_t start)
{
    const fkp_pipeline *p = t->pipeline;
    fk_token_list bos = {.ids = (int32_t[]){t->bos_id}, .count = t->add_bos};
    const fk_token_list *before = p ? &p->before : &bos;
    bool there = before->count <= out->count - start;
    for (int64_t i = 0; i < before->count && there; i++) there = out->ids[start + i] == before->ids[i];
    if (!there) FK_TRY(insert_ids(out, start, before->ids, before->count));
    return p && p->after.count ? insert_ids(out, out->count, p->after.ids, p->after.count) : FK_OK;
}

fk_status fk_encoder_encode_spans(fk_encoder *e, const fk_text_span *spans, size_t count, unsigned flags,
                                  fk_token_list *out)
{
    encode_input in;
    int64_t start = out->count;
    e->bpe.dropped_bytes = 0;
    const fkp_pipeline *p = e->t->pipeline;
    /* Expressions and normalizers read characters; scanners alone take any bytes. */
    if (p && !(p->splitter.only && p->by_bytes)) flags &= ~(unsigned)FK_ENCODE_RAW_BYTES;
    fk_status status = prepare_text(e, spans, count, flags, &in);
    if (p) {
        if (status == FK_OK) status = fkp_pipeline_encode(e, &in, out);
    } else {
        if (status == FK_OK) status = split_special(e, &in);
        if (status == FK_OK) status = encode_fragments(e, &in, out);
    }
    if (status == FK_OK && (flags & FK_ENCODE_STRICT_BYTES) && e->bpe.dropped_bytes > 0)
        status =
            fk_fail(FK_ERROR_INVALID,
                    "the vocabulary of %lld has no piece for %lld bytes of the text, the first is 0x%02X",
                    (long long)e->t->vocab_size, (long long)e->bpe.dropped_bytes, e->bpe.dropped_byte);
    if (status == FK_OK && (flags & FK_ENCODE_ADD_BOS)) status = add_around(e->t, out, start);
    if (status != FK_OK) out->count = start;
    return status;
}

fk_status fk_encoder_encode(fk_encoder *e, const char *text, size_t bytes, unsigned flags, fk_token_list *out)
{
    fk_text_span span = {text, bytes, (flags & FK_ENCODE_PARSE_SPECIAL) != 0};
    return fk_encoder_encode_spans(e, &span, 1, flags, out);
}

fk_status fk_tokenizer_encode(const fk_tokenizer *t, const char *text, size_t bytes, unsigned flags,
                              fk_token_list *out)
{
    fk_encoder *e = NULL;
    FK_TRY(fk_encoder_create(t, &e));
    fk_status status = fk_encoder_encode(e, text, bytes, flags, out);
    fk_encoder_destroy(e);
    return status;
}
