/* SPDX-License-Identifier: Apache-2.0 */
/* Decoders of tokenizer.json. All but what they do to the beginning of a text concerns one piece at a time, so it is
 * done once, when the table of decoded pieces is made, and a stream costs no more than a look into that table. */
#include "text/tokenizer_json_internal.h"

#include "text/byte_map.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

typedef enum decode_kind { DECODE_BYTE_LEVEL, DECODE_BYTE_FALLBACK, DECODE_REPLACE, DECODE_STRIP, DECODE_WORD_PIECE, DECODE_SPACED } decode_kind;

typedef struct decode_step {
    decode_kind kind;
    fkp_pattern pattern; /* REPLACE */
    fk_bytes content;    /* REPLACE: by this; STRIP: of this; WORD_PIECE: the prefix */
    int64_t start, stop; /* STRIP */
    bool cleanup;        /* WORD_PIECE */
} decode_step;

enum { MOST_STEPS = 16 };

struct fkp_decoder {
    decode_step steps[MOST_STEPS];
    size_t count;
    bool fused; /* what follows sees the text as one piece */
};

static fk_status add_step(fkp_decoder *d, decode_kind kind, decode_step **out)
{
    if (d->count == MOST_STEPS) return fk_fail(FK_ERROR_UNSUPPORTED, "a decoder of more than %d steps is not built", MOST_STEPS);
    *out = &d->steps[d->count++];
    **out = (decode_step){.kind = kind};
    return FK_OK;
}

static fk_status read_strip(const json_t *part, fkp_decoder *d, fkp_pipeline *p)
{
    const char *where = "decoder Strip";
    fk_piece content;
    int64_t start, stop;
    decode_step *step = NULL;
    FK_TRY(fkp_json_text(part, where, "content", true, &content));
    FK_TRY(fkp_json_count(part, where, "start", 0, INT32_MAX, &start));
    FK_TRY(fkp_json_count(part, where, "stop", 0, INT32_MAX, &stop));
    if (content.bytes == 0) return fk_fail(FK_ERROR_INVALID, "%s: 'content' is empty", where);
    if (!d->fused) {
        FK_TRY(add_step(d, DECODE_STRIP, &step));
        step->start = start;
        step->stop = stop;
        return fk_bytes_append(&step->content, content.data, content.bytes);
    }
    if (stop > 0) return fk_fail(FK_ERROR_UNSUPPORTED, "%s: 'stop' %lld at the end of a text is not built", where, (long long)stop);
    if (p->strip_count > 0) return fk_fail(FK_ERROR_UNSUPPORTED, "%s twice is not built", where);
    p->strip_count = start;
    return fk_bytes_append(&p->strip, content.data, content.bytes);
}

static fk_status read_metaspace(const json_t *part, fkp_decoder *d, fkp_pipeline *p)
{
    const char *where = "decoder Metaspace";
    fk_piece replacement;
    fkp_prepend_scheme scheme;
    decode_step *step = NULL;
    FK_TRY(fkp_json_text(part, where, "replacement", true, &replacement));
    FK_TRY(fkp_read_prepend_scheme(part, where, &scheme));
    FK_TRY(add_step(d, DECODE_REPLACE, &step));
    FK_TRY(fk_fail_context(fkp_pattern_init_string(&step->pattern, replacement), "%s", where));
    FK_TRY(fk_bytes_append(&step->content, " ", 1));
    if (scheme == FKP_PREPEND_NEVER) return FK_OK;
    if (d->count > 1) return fk_fail(FK_ERROR_UNSUPPORTED, "%s after another decoder is not built", where);
    return fk_bytes_append(&p->drop_from_first, replacement.data, replacement.bytes);
}

static fk_status read_word_piece(const json_t *part, fkp_decoder *d, fkp_pipeline *p)
{
    fk_piece prefix;
    decode_step *step = NULL;
    FK_TRY(add_step(d, DECODE_WORD_PIECE, &step));
    FK_TRY(fkp_json_text(part, "decoder WordPiece", "prefix", true, &prefix));
    FK_TRY(fkp_json_bool(part, "decoder WordPiece", "cleanup", true, &step->cleanup));
    FK_TRY(fk_bytes_append(&step->content, prefix.data, prefix.bytes));
    p->strip_count = 1;
    return fk_bytes_append(&p->strip, " ", 1);
}

static fk_status read_decoder(const json_t *part, fkp_decoder *d, fkp_pipeline *p)
{
    const char *type;
    decode_step *step = NULL;
    FK_TRY(fkp_json_type(part, "decoder", &type));
    if (strcmp(type, "Sequence") == 0) {
        const json_t *list = json_object_get(part, "decoders");
        if (!json_is_array(list)) return fk_fail(FK_ERROR_INVALID, "decoder: 'decoders' is no array");
        for (size_t i = 0; i < json_array_size(list); i++) FK_TRY(read_decoder(json_array_get(list, i), d, p));
        return FK_OK;
    }
    if (strcmp(type, "Strip") == 0) return read_strip(part, d, p);
    if (strcmp(type, "Fuse") == 0) {
        d->fused = true;
        return FK_OK;
    }
    if (d->fused) return fk_fail(FK_ERROR_UNSUPPORTED, "decoder '%.80s' after Fuse is not built", type);
    if (strcmp(type, "ByteLevel") == 0) return add_step(d, DECODE_BYTE_LEVEL, &step);
    if (strcmp(type, "ByteFallback") == 0) return add_step(d, DECODE_BYTE_FALLBACK, &step);
    if (strcmp(type, "Metaspace") == 0) return read_metaspace(part, d, p);
    if (strcmp(type, "WordPiece") == 0) return read_word_piece(part, d, p);
    if (strcmp(type, "Replace") == 0) {
        fk_piece content;
        FK_TRY(add_step(d, DECODE_REPLACE, &step));
        FK_TRY(fkp_json_text(part, "decoder Replace", "content", true, &content));
        FK_TRY(fk_bytes_append(&step->content, content.data, content.bytes));
        return fkp_read_pattern(part, "decoder Replace", &step->pattern);
    }
    return fk_fail(FK_ERROR_UNSUPPORTED, "decoder '%.80s' is not built", type);
}

fk_status fkp_decoder_create(const json_t *part, fkp_pipeline *p, fkp_decoder **out)
{
    *out = calloc(1, sizeof **out);
    if (!*out) return fk_fail(FK_ERROR_MEMORY, "no memory for a decoder");
    fk_status status;
    if (part && !json_is_null(part)) {
        status = read_decoder(part, *out, p);
    } else { /* pieces with a space between */
        decode_step *step = NULL;
        status = add_step(*out, DECODE_SPACED, &step);
        p->strip_count = 1;
        if (status == FK_OK) status = fk_bytes_append(&p->strip, " ", 1);
    }
    if (status == FK_OK) return FK_OK;
    fkp_decoder_destroy(*out);
    *out = NULL;
    return status;
}

void fkp_decoder_destroy(fkp_decoder *d)
{
    if (!d) return;
    for (size_t i = 0; i < d->count; i++) {
        fkp_pattern_deinit(&d->steps[i].pattern);
        fk_bytes_deinit(&d->steps[i].content);
    }
    free(d);
}

/* ---- one piece */

/* Bytes of a piece in the byte map; one with any other character in it stands for itself. */
static fk_status byte_level(fk_piece piece, fk_bytes *out)
{
    const uint8_t *text = (const uint8_t *)piece.data;
    for (size_t at = 0; at < piece.bytes;) {
        fkp_utf8_char c = fkp_utf8_read(text + at, piece.bytes - at);
        int byte = c.state == FKP_UTF8_VALID ? fkp_code_point_to_byte(c.code_point) : -1;
        if (byte < 0) {
            fk_bytes_clear(out);
            return fk_bytes_append(out, piece.data, piece.bytes);
        }
        uint8_t value = (uint8_t)byte;
        FK_TRY(fk_bytes_append(out, &value, 1));
        at += (size_t)c.bytes;
    }
    return FK_OK;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The byte of "<0x41>", -1 for any other piece. */
int fkp_fallback_byte(fk_piece piece)
{
    if (piece.bytes != 6 || memcmp(piece.data, "<0x", 3) != 0 || piece.data[5] != '>') return -1;
    int high = hex_digit(piece.data[3]), low = hex_digit(piece.data[4]);
    return high < 0 || low < 0 ? -1 : 16 * high + low;
}

static fk_status replace_all(const decode_step *step, fk_piece piece, fk_bytes *out)
{
    const uint8_t *text = (const uint8_t *)piece.data;
    const fkp_range all = {0, piece.bytes};
    size_t done = 0;
    for (size_t from = 0;;) {
        fkp_range match;
        bool found;
        FK_TRY(fkp_pattern_next(&step->pattern, text, all, from, &match, &found));
        if (!found) break;
        FK_TRY(fk_bytes_append(out, text + done, match.begin - done));
        FK_TRY(fk_bytes_append(out, step->content.data, step->content.bytes));
        done = from = match.end;
        if (match.end > match.begin) continue;
        if (from == piece.bytes) break;
        from += (size_t)fkp_utf8_read(text + from, piece.bytes - from).bytes;
    }
    return fk_bytes_append(out, text + done, piece.bytes - done);
}

static bool begins_with(fk_piece text, const fk_bytes *beginning)
{
    return text.bytes >= beginning->bytes && beginning->bytes > 0 && memcmp(text.data, beginning->data, beginning->bytes) == 0;
}

static fk_status strip(const decode_step *step, fk_piece piece, fk_bytes *out)
{
    const size_t unit = step->content.bytes;
    for (int64_t i = 0; i < step->start && begins_with(piece, &step->content); i++) piece = (fk_piece){piece.data + unit, piece.bytes - unit};
    for (int64_t i = 0; i < step->stop && piece.bytes >= unit && memcmp(piece.data + piece.bytes - unit, step->content.data, unit) == 0; i++)
        piece.bytes -= unit;
    return fk_bytes_append(out, piece.data, piece.bytes);
}

/* English as it was before BERT's splitter: no space before what follows a word directly. */
static fk_status clean_up(fk_bytes *text)
{
    static const char *const from[] = {" .", " ?", " !", " ,", " ' ", " n't", " 'm", " do not", " 's", " 've", " 're"};
    static const char *const to[] = {".", "?", "!", ",", "'", "n't", "'m", " don't", "'s", "'ve", "'re"};
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
        decode_step step = {.kind = DECODE_REPLACE};
        fk_bytes cleaned = {0};
        FK_TRY(fkp_pattern_init_string(&step.pattern, fk_piece_of(from[i])));
        fk_status status = fk_bytes_append(&step.content, to[i], strlen(to[i]));
        if (status == FK_OK) status = replace_all(&step, (fk_piece){text->data ? text->data : "", text->bytes}, &cleaned);
        fkp_pattern_deinit(&step.pattern);
        fk_bytes_deinit(&step.content);
        fk_bytes_deinit(text);
        *text = cleaned;
        FK_TRY(status);
    }
    return FK_OK;
}

static fk_status run_step(const decode_step *step, fk_piece piece, fk_bytes *out)
{
    int byte;
    switch (step->kind) {
    case DECODE_BYTE_LEVEL: return byte_level(piece, out);
    case DECODE_REPLACE: return replace_all(step, piece, out);
    case DECODE_STRIP: return strip(step, piece, out);
    case DECODE_BYTE_FALLBACK:
        byte = fkp_fallback_byte(piece);
        if (byte >= 0) return fk_bytes_append(out, &(uint8_t){(uint8_t)byte}, 1);
        break;
    case DECODE_WORD_PIECE:
        if (begins_with(piece, &step->content)) piece = (fk_piece){piece.data + step->content.bytes, piece.bytes - step->content.bytes};
        else FK_TRY(fk_bytes_append(out, " ", 1));
        FK_TRY(fk_bytes_append(out, piece.data, piece.bytes));
        return step->cleanup ? clean_up(out) : FK_OK;
    case DECODE_SPACED: FK_TRY(fk_bytes_append(out, " ", 1)); break;
    }
    return fk_bytes_append(out, piece.data, piece.bytes);
}

fk_status fkp_decoder_append(const fkp_decoder *d, fk_piece piece, bool added, fk_bytes *out)
{
    fk_bytes buffers[2] = {{0}, {0}};
    fk_status status = FK_OK;
    int turn = 0;
    for (size_t i = 0; i < d->count && status == FK_OK; i++) {
        if (added && d->steps[i].kind == DECODE_BYTE_LEVEL) continue; /* added tokens are plain text */
        fk_bytes *to = &buffers[turn ^= 1];
        fk_bytes_clear(to);
        status = run_step(&d->steps[i], piece, to);
        piece = (fk_piece){to->data ? to->data : "", to->bytes};
    }
    if (status == FK_OK) status = fk_bytes_append(out, piece.data, piece.bytes);
    fk_bytes_deinit(&buffers[0]);
    fk_bytes_deinit(&buffers[1]);
    return status;
}
