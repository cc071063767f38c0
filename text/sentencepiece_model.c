/* SPDX-License-Identifier: Apache-2.0 */
/* tokenizer.model: a ModelProto of SentencePiece's sentencepiece_model.proto, of which the fields below are
 * read. */
#include "text/sentencepiece_internal.h"

#include "core/file_map.h"
#include "text/protobuf.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PIECES = 4 << 20 };
enum { MODEL_UNIGRAM = 1, MODEL_BPE = 2 };

typedef struct model_file {
    fk_piece *pieces;
    double *scores;
    int32_t *types;
    int64_t count;
    int64_t model_type;
    fk_piece bos_piece, eos_piece;
    int32_t eos_id;
    fkp_scored_vocabulary v;
} model_file;

/* A SentencePiece message: its text, score and type, which absent are empty, 0 and NORMAL. */
static fk_status read_piece(model_file *f, fk_piece message, int64_t id)
{
    fkp_protobuf_field field;
    bool end;
    float score = 0;
    int64_t type = FKP_PIECE_NORMAL;
    fk_piece text = {"", 0};
    for (;;) {
        FK_TRY(fkp_protobuf_next(&message, &field, &end));
        if (end) break;
        if (field.number == 1) FK_TRY(fkp_protobuf_bytes(&field, "pieces.piece", &text));
        if (field.number == 2) FK_TRY(fkp_protobuf_float(&field, "pieces.score", &score));
        if (field.number == 3) FK_TRY(fkp_protobuf_int(&field, "pieces.type", &type));
    }
    if (text.bytes == 0) return fk_fail(FK_ERROR_INVALID, "pieces[%lld] is empty", (long long)id);
    f->pieces[id] = text;
    f->scores[id] = score;
    f->types[id] = type < 0 || type > INT32_MAX ? -1 : (int32_t)type; /* refused when the tokenizer is made */
    return FK_OK;
}

static fk_status read_trainer_spec(model_file *f, fk_piece message)
{
    fkp_protobuf_field field;
    for (bool end;;) {
        FK_TRY(fkp_protobuf_next(&message, &field, &end));
        if (end) return FK_OK;
        switch (field.number) {
        case 3:
            FK_TRY(fkp_protobuf_int(&field, "trainer_spec.model_type", &f->model_type));
            break;
        case 24:
            FK_TRY(fkp_protobuf_bool(&field, "trainer_spec.treat_whitespace_as_suffix",
                                     &f->v.whitespace_suffix));
            break;
        case 35:
            FK_TRY(fkp_protobuf_bool(&field, "trainer_spec.byte_fallback", &f->v.byte_fallback));
            break;
        case 44:
            FK_TRY(fkp_protobuf_bytes(&field, "trainer_spec.unk_surface", &f->v.unknown_surface));
            break;
        case 46:
            FK_TRY(fkp_protobuf_bytes(&field, "trainer_spec.bos_piece", &f->bos_piece));
            break;
        case 47:
            FK_TRY(fkp_protobuf_bytes(&field, "trainer_spec.eos_piece", &f->eos_piece));
            break;
        default:
            break;
        }
    }
}

static fk_status read_normalizer_spec(model_file *f, fk_piece message)
{
    fkp_protobuf_field field;
    for (bool end;;) {
        FK_TRY(fkp_protobuf_next(&message, &field, &end));
        if (end) return FK_OK;
        switch (field.number) {
        case 2:
            FK_TRY(fkp_protobuf_bytes(&field, "normalizer_spec.precompiled_charsmap", &f->v.charsmap));
            break;
        case 3:
            FK_TRY(fkp_protobuf_bool(&field, "normalizer_spec.add_dummy_prefix", &f->v.add_dummy_prefix));
            break;
        case 4:
            FK_TRY(fkp_protobuf_bool(&field, "normalizer_spec.remove_extra_whitespaces",
                                     &f->v.remove_extra_whitespaces));
            break;
        case 5:
            FK_TRY(fkp_protobuf_bool(&field, "normalizer_spec.escape_whitespaces", &f->v.escape_whitespaces));
            break;
        default:
            break;
        }
    }
}

/* Rules by which decoded text would be changed. */
static fk_status check_denormalizer_spec(fk_piece message)
{
    fkp_protobuf_field field;
    for (bool end;;) {
        FK_TRY(fkp_protobuf_next(&message, &field, &end));
        if (end) return FK_OK;
        if (field.number == 2 && field.bytes.bytes > 0)
            return fk_fail(FK_ERROR_UNSUPPORTED, "denormalizer_spec has rules; that is not built");
    }
}

static fk_status count_pieces(fk_piece model, int64_t *count)
{
    fkp_protobuf_field field;
    *count = 0;
    for (bool end;;) {
        FK_TRY(fkp_protobuf_next(&model, &field, &end));
        if (end) break;
        *count += field.number == 1;
    }
    if (*count > 0 && *count <= MOST_PIECES) return FK_OK;
    return fk_fail(FK_ERROR_INVALID, "the model has %lld pieces; 1 to %d are read", (long long)*count,
                   MOST_PIECES);
}

static fk_status read_fields(model_file *f, fk_piece model)
{
    fkp_protobuf_field field;
    fk_piece message;
    int64_t id = 0;
    for (bool end;;) {
        FK_TRY(fkp_protobuf_next(&model, &field, &end));
        if (end) return FK_OK;
        if (field.number < 1 || field.number > 5 || field.number == 4)
            continue; /* 4: sentences that the trainer tests itself with */
        FK_TRY(fkp_protobuf_bytes(&field, "a message of the model", &message));
        switch (field.number) {
        case 1:
            FK_TRY(read_piece(f, message, id++));
            break;
        case 2:
            FK_TRY(read_trainer_spec(f, message));
            break;
        case 3:
            FK_TRY(read_normalizer_spec(f, message));
            break;
        default:
            FK_TRY(check_denormalizer_spec(message));
        }
    }
}

/* The id of the control token of that name, -1 when there is none. */
static int32_t control_of(const model_file *f, fk_piece name)
{
    for (int64_t id = 0; id < f->count; id++)
        if (f->types[id] == FKP_PIECE_CONTROL && f->pieces[id].bytes == name.bytes &&
            memcmp(f->pieces[id].data, name.data, name.bytes) == 0)
            return (int32_t)id;
    return -1;
}

static fk_status read_model(model_file *f, fk_piece model, fk_tokenizer **out)
{
    FK_TRY(count_pieces(model, &f->count));
    f->pieces = calloc((size_t)f->count, sizeof *f->pieces);
    f->scores = calloc((size_t)f->count, sizeof *f->scores);
    f->types = calloc((size_t)f->count, sizeof *f->types);
    if (!f->pieces || !f->scores || !f->types)
        return fk_fail(FK_ERROR_MEMORY, "no memory for %lld pieces", (long long)f->count);
    FK_TRY(read_fields(f, model));
    if (f->model_type != MODEL_UNIGRAM && f->model_type != MODEL_BPE)
        return fk_fail(FK_ERROR_UNSUPPORTED,
                       "trainer_spec.model_type is %lld; 1 (Unigram) and 2 (BPE) are read",
                       (long long)f->model_type);
    fkp_scored_vocabulary *v = &f->v;
    v->pieces = f->pieces;
    v->scores = f->scores;
    v->types = f->types;
    v->size = f->count;
    v->unigram = f->model_type == MODEL_UNIGRAM;
    v->bos_id = control_of(f, f->bos_piece);
    f->eos_id = control_of(f, f->eos_piece);
    v->eos_ids = &f->eos_id;
    v->num_eos_ids = f->eos_id >= 0;
    v->add_bos = !v->unigram && v->bos_id >= 0;
    v->add_eos = v->unigram && f->eos_id >= 0;
    return fkp_tokenizer_create_scored(v, out);
}

fk_status fk_sentencepiece_parse(const void *data, size_t bytes, fk_tokenizer **out)
{
    *out = NULL;
    model_file f = {
        .model_type = MODEL_UNIGRAM, .bos_piece = fk_piece_of("<s>"), .eos_piece = fk_piece_of("</s>")};
    f.v = (fkp_scored_vocabulary){.add_dummy_prefix = true,
                                  .remove_extra_whitespaces = true,
                                  .escape_whitespaces = true,
                                  .charsmap = {"", 0},
                                  .unknown_surface = fk_piece_of(" \xE2\x81\x87 ")}; /* U+2047 */
    fk_status status = read_model(&f, (fk_piece){data, bytes}, out);
    free(f.pieces);
    free(f.scores);
    free(f.types);
    return fk_fail_context(status, "SentencePiece model");
}

fk_status fk_sentencepiece_load(const char *path, fk_tokenizer **out)
{
    fkp_file_map map;
    *out = NULL;
    FK_TRY(fkp_file_map_open(&map, path));
    fk_status status = fk_sentencepiece_parse(map.data, map.size, out);
    fkp_file_map_close(&map);
    return fk_fail_context(status, "%s", path);
}
