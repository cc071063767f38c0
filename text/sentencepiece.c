/* SPDX-License-Identifier: Apache-2.0 */
/* The pipeline of a vocabulary of scored pieces: its normalizer, its model, and the text of its pieces. */
#define _GNU_SOURCE /* memmem */
#include "text/sentencepiece_internal.h"

#include "text/marked_words.h"
#include "text/tokenizer_internal.h"
#include "text/tokenizer_json_internal.h" /* fkp_fallback_byte */

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What has to live until the tokenizer is made. */
typedef struct scored_builder {
    const fkp_scored_vocabulary *v;
    fkp_pipeline *p;
    fk_bytes text; /* of all decoded pieces */
    fk_piece *decoded;
    int32_t *types; /* fk_token_type */
    int32_t *ids;   /* of a list of pieces under construction, */
    fk_piece *list; /* and their texts */
} scored_builder;

static fk_status check_pieces(const fkp_scored_vocabulary *v)
{
    for (int64_t id = 0; id < v->size; id++) {
        if (v->types[id] < FKP_PIECE_NORMAL || v->types[id] > FKP_PIECE_BYTE)
            return fk_fail(FK_ERROR_UNSUPPORTED, "piece %lld has type %d; types are 1 to 6", (long long)id,
                           v->types[id]);
        if (!isfinite(v->scores[id]))
            return fk_fail(FK_ERROR_INVALID, "piece %lld has the score %g", (long long)id, v->scores[id]);
        if (v->types[id] == FKP_PIECE_BYTE && fkp_fallback_byte(v->pieces[id]) < 0)
            return fk_fail(FK_ERROR_INVALID, "piece %lld '%.*s' is a byte, but not written as <0x41>",
                           (long long)id, (int)(v->pieces[id].bytes < 80 ? v->pieces[id].bytes : 80),
                           v->pieces[id].data);
        if (v->types[id] == FKP_PIECE_UNUSED && !v->unigram && !v->gguf)
            return fk_fail(FK_ERROR_UNSUPPORTED, "piece %lld is unused; with BPE that is not built",
                           (long long)id);
    }
    return FK_OK;
}

/* Which pieces text becomes, and what stands for characters that have none. */
static void sort_pieces(scored_builder *b)
{
    static const int32_t types_of[] = {[FKP_PIECE_NORMAL] = FK_TOKEN_NORMAL,
                                       [FKP_PIECE_CONTROL] = FK_TOKEN_CONTROL,
                                       [FKP_PIECE_USER_DEFINED] = FK_TOKEN_USER_DEFINED,
                                       [FKP_PIECE_UNUSED] = FK_TOKEN_NORMAL,
                                       [FKP_PIECE_BYTE] = FK_TOKEN_NORMAL};
    fkp_pipeline *p = b->p;
    p->unknown_id = -1;
    for (int byte = 0; byte < 256; byte++) p->fallback_ids[byte] = -1;
    for (int64_t id = 0; id < b->v->size; id++) {
        const int32_t type = b->v->types[id];
        b->types[id] = types_of[type];
        if (type == FKP_PIECE_UNKNOWN) {
            if (p->unknown_id < 0) p->unknown_id = (int32_t)id;
            b->types[id] = b->v->gguf ? FK_TOKEN_UNKNOWN : FK_TOKEN_NORMAL; /* text shows it as its surface */
        }
        if (type == FKP_PIECE_BYTE) p->fallback_ids[fkp_fallback_byte(b->v->pieces[id])] = (int32_t)id;
        p->in_model[id] = b->v->pieces[id].bytes > 0 &&
                          (type == FKP_PIECE_NORMAL || (type == FKP_PIECE_USER_DEFINED && b->v->unigram) ||
                           (type == FKP_PIECE_UNUSED && b->v->gguf));
    }
}

/* Texts and ids of all pieces of a type to the builder's list; how many there are. */
static size_t list_pieces(scored_builder *b, fkp_piece_type first, fkp_piece_type last)
{
    size_t count = 0;
    for (int64_t id = 0; id < b->v->size; id++) {
        if (b->v->types[id] < (int32_t)first || b->v->types[id] > (int32_t)last ||
            b->v->pieces[id].bytes == 0)
            continue;
        b->list[count] = b->v->pieces[id];
        b->ids[count++] = (int32_t)id;
    }
    return count;
}

/* Control tokens, which are cut out of the text where that is allowed; of GGUF files also the symbols of the
 * user. */
static fk_status read_added(scored_builder *b)
{
    fkp_token_set *set = &b->p->raw;
    set->count = list_pieces(b, b->v->gguf ? FKP_PIECE_UNKNOWN : FKP_PIECE_CONTROL,
                             b->v->gguf ? FKP_PIECE_USER_DEFINED : FKP_PIECE_CONTROL);
    FK_TRY(fkp_allocate(&set->tokens, set->count, sizeof *set->tokens));
    for (size_t i = 0; i < set->count; i++) {
        bool plain = b->v->types[b->ids[i]] == FKP_PIECE_USER_DEFINED;
        set->tokens[i] = (fkp_pipeline_token){.id = b->ids[i], .bytes = b->list[i].bytes, .special = !plain};
        set->any_plain |= plain;
    }
    return fkp_string_matcher_init(&set->matcher, b->list, set->count);
}

static fk_status read_normalizer(scored_builder *b)
{
    const fkp_scored_vocabulary *v = b->v;
    fkp_normalizer *n;
    FK_TRY(fkp_normalizer_add(&b->p->normalizer, FKP_NORMALIZE_SENTENCEPIECE, &n));
    FK_TRY(fkp_charsmap_init(&n->charsmap, v->charsmap));
    if (!v->gguf)
        FK_TRY(fkp_trie_init(&b->p->user_defined, b->list, b->ids,
                             list_pieces(b, FKP_PIECE_USER_DEFINED, FKP_PIECE_USER_DEFINED)));
    n->sentencepiece = (fkp_sentencepiece_rules){.add_dummy_prefix = v->add_dummy_prefix,
                                                 .whitespace_suffix = v->whitespace_suffix,
                                                 .remove_extra_whitespaces = v->remove_extra_whitespaces,
                                                 .user_defined = &b->p->user_defined};
    return fk_bytes_append(&n->sentencepiece.space, v->escape_whitespaces ? FKP_MARK : " ",
                           v->escape_whitespaces ? FKP_MARK_BYTES : 1);
}

/* ---- models */

typedef struct scored_id {
    double score;
    int32_t id;
} scored_id;

static int best_first(const void *left, const void *right)
{
    const scored_id *a = left, *b = right;
    return (a->score < b->score) - (a->score > b->score);
}

/* BPE: the pair whose piece scores best is merged first; equal scores are equal ranks. */
static fk_status read_bpe(scored_builder *b)
{
    const fkp_scored_vocabulary *v = b->v;
    scored_id *order = NULL;
    b->p->model = FKP_MODEL_BPE;
    FK_TRY(fkp_allocate(&b->p->ranks, (size_t)v->size, sizeof *b->p->ranks));
    FK_TRY(fkp_allocate(&order, (size_t)v->size, sizeof *order));
    size_t count = 0;
    for (int64_t id = 0; id < v->size; id++) {
        b->p->ranks[id] = FKP_NO_RANK;
        if (b->p->in_model[id]) order[count++] = (scored_id){v->scores[id], (int32_t)id};
    }
    qsort(order, count, sizeof *order, best_first);
    uint32_t rank = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && order[i].score != order[i - 1].score) rank++;
        b->p->ranks[order[i].id] = rank;
    }
    free(order);
    if (!v->escape_whitespaces || v->whitespace_suffix || !fkp_words_stand_alone(v->pieces, v->size))
        return FK_OK;
    return fkp_split_add_marked_words(&b->p->splitter);
}

/* Unigram: a symbol of the user scores better than every piece, a longer one better still. Scores are float32
 * in the file, and sums stay so. */
static fk_status read_unigram(scored_builder *b)
{
    const fkp_scored_vocabulary *v = b->v;
    float worst = INFINITY;
    b->p->model = FKP_MODEL_UNIGRAM;
    FK_TRY(fkp_unigram_init(&b->p->unigram, v->pieces, v->scores, b->p->in_model, v->size));
    for (int64_t id = 0; id < v->size; id++) {
        if (v->types[id] == FKP_PIECE_NORMAL) worst = fminf(worst, (float)v->scores[id]);
        if (v->types[id] == FKP_PIECE_USER_DEFINED)
            b->p->unigram.scores[id] = (float)(0.1 * ((double)v->pieces[id].bytes - 1));
    }
    b->p->unigram.single_precision = true;
    b->p->unigram.unknown_score = worst - (float)FKP_UNKNOWN_PENALTY;
    return FK_OK;
}

/* ---- text */

static fk_status append_decoded(scored_builder *b, int64_t id)
{
    const fkp_scored_vocabulary *v = b->v;
    fk_piece piece = v->pieces[id];
    if (v->types[id] == FKP_PIECE_BYTE) {
        const uint8_t byte = (uint8_t)fkp_fallback_byte(piece);
        return fk_bytes_append(&b->text, &byte, 1);
    }
    if (v->types[id] == FKP_PIECE_UNKNOWN && !v->gguf)
        return fk_bytes_append(&b->text, v->unknown_surface.data, v->unknown_surface.bytes);
    if (v->types[id] == FKP_PIECE_CONTROL) return fk_bytes_append(&b->text, piece.data, piece.bytes);
    for (size_t at = 0; at < piece.bytes;) {
        const char *mark = memmem(piece.data + at, piece.bytes - at, FKP_MARK, FKP_MARK_BYTES);
        size_t end = mark ? (size_t)(mark - piece.data) : piece.bytes;
        FK_TRY(fk_bytes_append(&b->text, piece.data + at, end - at));
        if (mark) FK_TRY(fk_bytes_append(&b->text, " ", 1));
        at = mark ? end + FKP_MARK_BYTES : end;
    }
    return FK_OK;
}

static fk_status decode_pieces(scored_builder *b)
{
    size_t *offsets = NULL;
    FK_TRY(fkp_allocate(&offsets, (size_t)b->v->size, sizeof *offsets));
    fk_status status = fk_bytes_append(&b->text, "", 1); /* so that there is an address */
    for (int64_t id = 0; id < b->v->size && status == FK_OK; id++) {
        offsets[id] = b->text.bytes;
        status = append_decoded(b, id);
    }
    offsets[b->v->size] = b->text.bytes;
    for (int64_t id = 0; id < b->v->size && status == FK_OK; id++)
        b->decoded[id] = (fk_piece){b->text.data + offsets[id], offsets[id + 1] - offsets[id]};
    free(offsets);
    if (status != FK_OK || !(b->v->add_dummy_prefix || b->v->remove_extra_whitespaces)) return status;
    b->p->strip_count = b->v->remove_extra_whitespaces ? INT64_MAX : 1;
    b->p->strip_marks_only = true;
    return fk_bytes_append(&b->p->strip, " ", 1);
}

/* ---- all of it */

static fk_status build(scored_builder *b)
{
    const fkp_scored_vocabulary *v = b->v;
    FK_TRY(check_pieces(v));
    FK_TRY(fkp_allocate(&b->p, 1, sizeof *b->p));
    FK_TRY(fkp_allocate(&b->p->in_model, (size_t)v->size, sizeof *b->p->in_model));
    FK_TRY(fkp_allocate(&b->decoded, (size_t)v->size, sizeof *b->decoded));
    FK_TRY(fkp_allocate(&b->types, (size_t)v->size, sizeof *b->types));
    FK_TRY(fkp_allocate(&b->ids, (size_t)v->size, sizeof *b->ids));
    FK_TRY(fkp_allocate(&b->list, (size_t)v->size, sizeof *b->list));
    b->p->byte_fallback = v->byte_fallback;
    b->p->fuse_unknown = !v->byte_fallback;
    sort_pieces(b);
    FK_TRY(read_added(b));
    FK_TRY(read_normalizer(b));
    FK_TRY(v->unigram ? read_unigram(b) : read_bpe(b));
    FK_TRY(decode_pieces(b));
    if (v->add_bos) FK_TRY(fk_token_list_push(&b->p->before, v->bos_id));
    return v->add_eos ? fk_token_list_push(&b->p->after, v->eos_ids[0]) : FK_OK;
}

fk_status fkp_tokenizer_create_scored(const fkp_scored_vocabulary *v, fk_tokenizer **out)
{
    scored_builder b = {.v = v};
    *out = NULL;
    fk_status status = build(&b);
    if (status == FK_OK) {
        fk_tokenizer_spec spec = {.pieces = v->pieces,
                                  .types = b.types,
                                  .vocab_size = v->size,
                                  .bos_id = v->bos_id,
                                  .eos_ids = v->eos_ids,
                                  .num_eos_ids = v->num_eos_ids};
        fkp_pipeline *pipeline = b.p;
        b.p = NULL;
        status = fkp_tokenizer_create_pipeline(&spec, b.decoded, pipeline, out);
    }
    fkp_pipeline_destroy(b.p);
    fk_bytes_deinit(&b.text);
    free(b.decoded);
    free(b.types);
    free(b.ids);
    free(b.list);
    return status;
}
