/* SPDX-License-Identifier: Apache-2.0 */
/* Detokenizer: the bytes of the ids, let out character by character. At most 3 bytes are ever held back, the
 * beginning of a UTF-8 character that the next id may complete. */
#include "text/detokenizer.h"

#include "text/pipeline.h"
#include "text/tokenizer_internal.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

struct fk_detokenizer {
    const fk_tokenizer *t;
    unsigned flags;
    uint8_t held[4]; /* good beginning of a character, not complete */
    size_t held_bytes;
    /* tokenizer.json only: the beginning of the text */
    bool begun;       /* some piece has come */
    bool stripped;    /* nothing more goes from the front */
    int64_t strips;   /* that have been done */
};

fk_status fk_detokenizer_create(const fk_tokenizer *t, unsigned flags, fk_detokenizer **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out) return fk_fail(FK_ERROR_MEMORY, "no memory for a detokenizer");
    (*out)->t = t;
    (*out)->flags = flags;
    return FK_OK;
}

void fk_detokenizer_destroy(fk_detokenizer *d)
{
    free(d);
}

/* Lets out bytes that are no character. */
static fk_status append_bad(const fk_detokenizer *d, const uint8_t *text, size_t bytes, fk_bytes *out)
{
    if (d->flags & FK_DECODE_RAW_BYTES) return fk_bytes_append(out, text, bytes);
    return fk_bytes_append(out, FK_REPLACEMENT, 3);
}

/* Takes the bytes of `text` that decide about the held beginning; *taken of them are used up. */
static fk_status continue_held(fk_detokenizer *d, const uint8_t *text, size_t bytes, size_t *taken,
                               fk_bytes *out)
{
    *taken = 0;
    while (d->held_bytes > 0 && *taken < bytes) {
        d->held[d->held_bytes] = text[*taken];
        fkp_utf8_char c = fkp_utf8_read(d->held, d->held_bytes + 1);
        if (c.state == FKP_UTF8_INVALID) { /* the new byte belongs to what follows */
            FK_TRY(append_bad(d, d->held, d->held_bytes, out));
            d->held_bytes = 0;
            return FK_OK;
        }
        d->held_bytes++;
        ++*taken;
        if (c.state == FKP_UTF8_VALID) {
            FK_TRY(fk_bytes_append(out, d->held, d->held_bytes));
            d->held_bytes = 0;
        }
    }
    return FK_OK;
}

static fk_status append_text(fk_detokenizer *d, const uint8_t *text, size_t bytes, fk_bytes *out)
{
    size_t pos;
    FK_TRY(continue_held(d, text, bytes, &pos, out));
    while (pos < bytes) {
        size_t good = fk_utf8_invalid_offset((const char *)text + pos, bytes - pos);
        FK_TRY(fk_bytes_append(out, text + pos, good));
        pos += good;
        if (pos == bytes) break;
        fkp_utf8_char c = fkp_utf8_read(text + pos, bytes - pos);
        if (c.state == FKP_UTF8_INCOMPLETE) {
            memcpy(d->held, text + pos, (size_t)c.bytes);
            d->held_bytes = (size_t)c.bytes;
        } else {
            FK_TRY(append_bad(d, text + pos, (size_t)c.bytes, out));
        }
        pos += (size_t)c.bytes;
    }
    return FK_OK;
}

/* The first piece without one string wherever it stands. Its name is looked at, as it says where that string was. */
static fk_status append_first(fk_detokenizer *d, int32_t id, const fk_bytes *gone, fk_bytes *out)
{
    fk_piece name = fkp_piece_at(&d->t->names, id);
    fk_status status = FK_OK;
    for (size_t at = 0; at < name.bytes && status == FK_OK;) {
        bool goes = name.bytes - at >= gone->bytes && memcmp(name.data + at, gone->data, gone->bytes) == 0;
        if (!goes) status = append_text(d, (const uint8_t *)name.data + at, 1, out);
        at += goes ? gone->bytes : 1;
    }
    return status;
}

/* A piece as it stands at this place of the text: its front may go at the beginning. */
static fk_status append_piece(fk_detokenizer *d, int32_t id, fk_bytes *out)
{
    fk_piece piece = fk_tokenizer_piece(d->t, id);
    const fkp_pipeline *p = d->t->pipeline;
    bool first = !d->begun;
    d->begun = true;
    if (p && first && p->drop_from_first.bytes > 0) return append_first(d, id, &p->drop_from_first, out);
    if (p && p->strip_marks_only && piece.bytes > 0 && !d->stripped) {
        fk_piece name = fkp_piece_at(&d->t->names, id);
        d->stripped = name.bytes < 3 || memcmp(name.data, "\xE2\x96\x81", 3) != 0;
    }
    while (p && !d->stripped && piece.bytes > 0) {
        const size_t unit = p->strip.bytes;
        d->stripped = d->strips >= p->strip_count || piece.bytes < unit || memcmp(piece.data, p->strip.data, unit) != 0;
        if (d->stripped) break;
        piece = (fk_piece){piece.data + unit, piece.bytes - unit};
        d->strips++;
    }
    return append_text(d, (const uint8_t *)piece.data, piece.bytes, out);
}

fk_status fk_detokenizer_push(fk_detokenizer *d, int32_t id, fk_bytes *out)
{
    if (id < 0 || id >= fk_tokenizer_vocab_size(d->t))
        return fk_fail(FK_ERROR_INVALID, "token id %d is outside the vocabulary of %lld tokens", id,
                       (long long)fk_tokenizer_vocab_size(d->t));
    if (!(d->flags & FK_DECODE_SPECIAL) && fk_tokenizer_is_special(d->t, id)) return FK_OK;
    return append_piece(d, id, out);
}

fk_status fk_detokenizer_finish(fk_detokenizer *d, fk_bytes *out)
{
    d->begun = d->stripped = false;
    d->strips = 0;
    size_t held = d->held_bytes;
    d->held_bytes = 0;
    return held ? append_bad(d, d->held, held, out) : FK_OK;
}

fk_status fk_tokenizer_decode(const fk_tokenizer *t, const int32_t *ids, int64_t count, unsigned flags,
                              fk_bytes *out)
{
    fk_detokenizer d = {.t = t, .flags = flags};
    for (int64_t i = 0; i < count; i++) FK_TRY(fk_detokenizer_push(&d, ids[i], out));
    return fk_detokenizer_finish(&d, out);
}
