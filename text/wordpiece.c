/* SPDX-License-Identifier: Apache-2.0 */
/* WordPiece, the model of BERT and its kin (MiniLM, ColBERT; arXiv:1609.08144 section 4.1 as BERT simplified
 * it): a word is cut from the left into the longest pieces that the vocabulary has; a word with a rest that
 * no piece begins is unknown as a whole. */
#include "text/encoder_internal.h"

#include <string.h>

static bool inside_character(uint8_t byte)
{
    return (byte & 0xC0) == 0x80;
}

static fk_status unknown(const fkp_pipeline *p, fk_token_list *out, int64_t count)
{
    out->count = count;
    return fk_token_list_push(out, p->unknown_id);
}

fk_status fkp_wordpiece_encode(fk_encoder *e, const uint8_t *word, size_t bytes, fk_token_list *out)
{
    const fkp_pipeline *p = e->t->pipeline;
    const size_t prefix = p->continuing_prefix.bytes;
    const int64_t count = out->count;
    int64_t chars = 0;
    for (size_t i = 0; i < bytes && chars <= p->max_chars; i++) chars += !inside_character(word[i]);
    if (chars > p->max_chars) return unknown(p, out, count);

    /* "##" stands before the word, so that a piece that goes on with it is looked up in place: the prefix is
     * written over the characters already used up. */
    fk_bytes_clear(&e->name);
    FK_TRY(fk_bytes_append(&e->name, p->continuing_prefix.data, prefix));
    FK_TRY(fk_bytes_append(&e->name, word, bytes));
    char *text = e->name.data;
    for (size_t at = prefix, end = prefix + bytes; at < end;) {
        const size_t front = at == prefix ? 0 : prefix; /* bytes of "##" in front of this piece */
        if (front) memcpy(text + at - prefix, p->continuing_prefix.data, prefix);
        const char *begin = text + at - front;
        size_t length = end - at + front;
        if (length > p->longest_piece) length = p->longest_piece;
        int32_t id = -1;
        for (; length > front && id < 0; length -= id < 0) {
            if (begin + length < text + end && inside_character((uint8_t)begin[length])) continue;
            id = fk_tokenizer_find(e->t, (fk_piece){begin, length});
            if (id >= 0 && !p->in_model[id]) id = -1;
        }
        if (id < 0) return unknown(p, out, count);
        FK_TRY(fk_token_list_push(out, id));
        at += length - front;
    }
    return FK_OK;
}
