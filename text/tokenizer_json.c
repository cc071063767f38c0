/* SPDX-License-Identifier: Apache-2.0 */
/* Model, vocabulary and added tokens out of tokenizer.json, and the tokenizer made of all parts. */
#include "text/tokenizer_json.h"

#include "text/marked_words.h"
#include "text/tokenizer_internal.h"
#include "text/tokenizer_json_internal.h"

#include <stdlib.h>
#include <string.h>

static const fkp_json_limits limits = {.max_depth = 64, .max_values = 8u << 20};
enum { MOST_TOKENS = 4 << 20 };

/* What has to live until the tokenizer is made. */
typedef struct json_vocabulary {
    int64_t size;
    fk_piece *pieces;   /* [size], in the JSON */
    fk_piece *decoded;  /* [size], in decoded_text */
    size_t *offsets;    /* [size + 1] of decoded pieces */
    fk_bytes decoded_text;
    int32_t *types; /* [size] fk_token_type */
    double *scores; /* [size] of Unigram; else NULL */
    fk_merge_rule *merges;
    int64_t num_merges;
    fkp_pipeline *pipeline;
    fkp_decoder *decoder;
} json_vocabulary;

static void vocabulary_deinit(json_vocabulary *v)
{
    free(v->pieces);
    free(v->decoded);
    free(v->offsets);
    fk_bytes_deinit(&v->decoded_text);
    free(v->types);
    free(v->scores);
    free(v->merges);
    fkp_pipeline_destroy(v->pipeline);
    fkp_decoder_destroy(v->decoder);
}

static fk_status read_id(const json_t *value, const char *name, int32_t *id)
{
    *id = -1;
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;
    if (number < 0 || number >= MOST_TOKENS)
        return fk_fail(FK_ERROR_INVALID, "the id of token '%.80s' must be an integer from 0 to %d", name, MOST_TOKENS - 1);
    *id = (int32_t)number;
    return FK_OK;
}

/* ---- vocabulary */

static fk_status count_ids(const json_t *vocab, const json_t *added, int64_t *count)
{
    const char *name;
    json_t *value;
    int32_t id;
    size_t i;
    *count = (int64_t)json_array_size(vocab); /* Unigram's list; else it is an object */
    json_object_foreach((json_t *)vocab, name, value)
    {
        FK_TRY(read_id(value, name, &id));
        if (id >= *count) *count = id + 1;
    }
    json_array_foreach(added, i, value)
    {
        const char *content = json_string_value(json_object_get(value, "content"));
        if (!content || !*content) return fk_fail(FK_ERROR_INVALID, "added_tokens[%zu] has no 'content'", i);
        FK_TRY(read_id(json_object_get(value, "id"), content, &id));
        if (id >= *count) *count = id + 1;
    }
    /* A file of few pieces cannot ask for much memory by one high id. */
    size_t pieces = json_object_size(vocab) + json_array_size(vocab) + json_array_size(added);
    if (*count > MOST_TOKENS)
        return fk_fail(FK_ERROR_INVALID, "the vocabulary has %lld tokens, more than %d", (long long)*count,
                       MOST_TOKENS);
    if (*count > 16 * (int64_t)pieces + 1024)
        return fk_fail(FK_ERROR_INVALID, "the vocabulary has %zu tokens, but ids up to %lld", pieces, (long long)*count - 1);
    return *count ? FK_OK : fk_fail(FK_ERROR_INVALID, "model.vocab is empty");
}

static fk_status put_piece(json_vocabulary *v, int32_t id, const char *name, size_t bytes)
{
    fk_piece *there = &v->pieces[id];
    if (there->bytes && (there->bytes != bytes || memcmp(there->data, name, bytes) != 0))
        return fk_fail(FK_ERROR_INVALID, "id %d is both '%.80s' and '%.80s'", id, there->data, name);
    *there = (fk_piece){name, bytes};
    return FK_OK;
}

static fk_status put_model_piece(json_vocabulary *v, int32_t id, const char *name, size_t bytes)
{
    FK_TRY(put_piece(v, id, name, bytes));
    v->types[id] = FK_TOKEN_NORMAL;
    v->pipeline->in_model[id] = 1;
    if (bytes > v->pipeline->longest_piece) v->pipeline->longest_piece = bytes;
    return FK_OK;
}

/* Unigram's pieces: [piece, score] in the order of ids. */
static fk_status read_scored(json_vocabulary *v, const json_t *vocab)
{
    size_t id;
    json_t *entry;
    FK_TRY(fkp_allocate(&v->scores, (size_t)v->size, sizeof *v->scores));
    json_array_foreach(vocab, id, entry)
    {
        const json_t *name = json_array_get(entry, 0), *score = json_array_get(entry, 1);
        if (json_array_size(entry) != 2 || !json_is_string(name) || !json_is_number(score))
            return fk_fail(FK_ERROR_INVALID, "model.vocab[%zu] is no [piece, score]", id);
        v->scores[id] = json_number_value(score);
        FK_TRY(put_model_piece(v, (int32_t)id, json_string_value(name), json_string_length(name)));
    }
    return FK_OK;
}

static fk_status read_vocabulary(json_vocabulary *v, const json_t *vocab, const json_t *added)
{
    const char *name;
    json_t *value;
    int32_t id;
    size_t i;
    FK_TRY(count_ids(vocab, added, &v->size));
    size_t size = (size_t)v->size;
    FK_TRY(fkp_allocate(&v->pieces, size, sizeof *v->pieces));
    FK_TRY(fkp_allocate(&v->decoded, size, sizeof *v->decoded));
    FK_TRY(fkp_allocate(&v->offsets, size, sizeof *v->offsets));
    FK_TRY(fkp_allocate(&v->types, size, sizeof *v->types));
    FK_TRY(fkp_allocate(&v->pipeline->in_model, size, 1));
    for (int64_t k = 0; k < v->size; k++) {
        v->pieces[k] = (fk_piece){"", 0};
        v->types[k] = FK_TOKEN_UNUSED;
    }
    json_object_foreach((json_t *)vocab, name, value)
    {
        FK_TRY(read_id(value, name, &id));
        FK_TRY(put_model_piece(v, id, name, strlen(name)));
    }
    if (json_is_array(vocab)) FK_TRY(read_scored(v, vocab));
    json_array_foreach(added, i, value)
    {
        const json_t *content = json_object_get(value, "content");
        bool special;
        FK_TRY(read_id(json_object_get(value, "id"), "added", &id));
        FK_TRY(put_piece(v, id, json_string_value(content), json_string_length(content)));
        FK_TRY(fkp_json_bool(value, "added_tokens", "special", false, &special));
        v->types[id] = special ? FK_TOKEN_CONTROL : FK_TOKEN_USER_DEFINED;
    }
    return FK_OK;
}

/* The id of a piece of the model, -1 when there is none. */
static int32_t find_piece(const json_t *vocab, fk_piece name)
{
    const json_t *id = json_object_getn(vocab, name.data, name.bytes);
    if (json_is_integer(id)) return (int32_t)json_integer_value(id);
    for (size_t i = 0; i < json_array_size(vocab); i++) {
        const json_t *piece = json_array_get(json_array_get(vocab, i), 0);
        if (json_string_length(piece) == name.bytes &&
            memcmp(json_string_value(piece), name.data, name.bytes) == 0)
            return (int32_t)i;
    }
    return -1;
}

/* ---- merges: "a b" or ["a", "b"] */

static fk_status read_merge(const json_t *entry, size_t rank, fk_merge_rule *out)
{
    if (json_is_string(entry))
        return fk_fail_context(fk_merge_rule_parse((fk_piece){json_string_value(entry), json_string_length(entry)}, out), "model.merges[%zu]", rank);
    const json_t *left = json_array_get(entry, 0), *right = json_array_get(entry, 1);
    if (json_array_size(entry) != 2 || json_string_length(left) == 0 || json_string_length(right) == 0)
        return fk_fail(FK_ERROR_INVALID, "model.merges[%zu] is neither \"left right\" nor [\"left\", \"right\"]", rank);
    out->left = (fk_piece){json_string_value(left), json_string_length(left)};
    out->right = (fk_piece){json_string_value(right), json_string_length(right)};
    return FK_OK;
}

static fk_status read_merges(json_vocabulary *v, const json_t *merges)
{
    if (!json_is_array(merges)) return fk_fail(FK_ERROR_INVALID, "model.merges is no array");
    v->num_merges = (int64_t)json_array_size(merges);
    FK_TRY(fkp_allocate(&v->merges, (size_t)v->num_merges, sizeof *v->merges));
    for (size_t rank = 0; rank < (size_t)v->num_merges; rank++) FK_TRY(read_merge(json_array_get(merges, rank), rank, &v->merges[rank]));
    return FK_OK;
}

/* ---- model */

#define KNOWN_MODELS "BPE, Unigram, WordPiece and WordLevel are read"

static fk_status read_model_kind(const json_t *model, fkp_model_kind *out)
{
    static const char *const names[] = {[FKP_MODEL_BPE] = "BPE",
                                        [FKP_MODEL_WORDPIECE] = "WordPiece",
                                        [FKP_MODEL_WORDLEVEL] = "WordLevel",
                                        [FKP_MODEL_UNIGRAM] = "Unigram"};
    const char *type = json_string_value(json_object_get(model, "type"));
    if (!json_is_object(model)) return fk_fail(FK_ERROR_INVALID, "model is no object");
    *out = FKP_MODEL_BPE;
    /* The oldest files leave the type out; merges tell. */
    if (!type)
        return json_object_get(model, "merges")
                   ? FK_OK
                   : fk_fail(FK_ERROR_UNSUPPORTED, "model has no 'type'; " KNOWN_MODELS);
    for (size_t kind = 0; kind < sizeof names / sizeof *names; kind++)
        if (strcmp(type, names[kind]) == 0) {
            *out = (fkp_model_kind)kind;
            return FK_OK;
        }
    return fk_fail(FK_ERROR_UNSUPPORTED, "model.type is '%.80s'; " KNOWN_MODELS, type);
}

static fk_status check_model(const json_t *model, fkp_model_kind kind)
{
    const json_t *vocab = json_object_get(model, "vocab");
    const json_t *dropout = fkp_json_field(model, "dropout");
    if (dropout && json_number_value(dropout) != 0)
        return fk_fail(FK_ERROR_UNSUPPORTED, "model.dropout is %g; ids would be random",
                       json_number_value(dropout));
    if (kind == FKP_MODEL_UNIGRAM)
        return json_is_array(vocab) ? FK_OK : fk_fail(FK_ERROR_INVALID, "model.vocab is no array");
    return json_is_object(vocab) ? FK_OK : fk_fail(FK_ERROR_INVALID, "model.vocab is no object");
}

static fk_status read_unigram(json_vocabulary *v, const json_t *model)
{
    const json_t *unknown = fkp_json_field(model, "unk_id");
    const size_t count = json_array_size(json_object_get(model, "vocab"));
    v->pipeline->unknown_id = -1;
    if (unknown) FK_TRY(read_id(unknown, "unk_id", &v->pipeline->unknown_id));
    if (unknown && (size_t)v->pipeline->unknown_id >= count)
        return fk_fail(FK_ERROR_INVALID, "model.unk_id is %d, the vocabulary has %zu pieces",
                       v->pipeline->unknown_id, count);
    return fkp_unigram_init(&v->pipeline->unigram, v->pieces, v->scores, v->pipeline->in_model, v->size);
}

static fk_status read_model(json_vocabulary *v, const json_t *model, const json_t *added)
{
    fkp_pipeline *p = v->pipeline;
    const json_t *vocab = json_object_get(model, "vocab");
    fk_piece unknown, prefix, suffix;
    FK_TRY(read_model_kind(model, &p->model));
    FK_TRY(check_model(model, p->model));
    const bool merges = p->model == FKP_MODEL_BPE, unigram = p->model == FKP_MODEL_UNIGRAM;
    FK_TRY(fkp_json_text(model, "model", "unk_token", !merges && !unigram, &unknown));
    FK_TRY(
        fkp_json_text(model, "model", "continuing_subword_prefix", p->model == FKP_MODEL_WORDPIECE, &prefix));
    FK_TRY(fkp_json_text(model, "model", "end_of_word_suffix", false, &suffix));
    FK_TRY(fkp_json_bool(model, "model", "fuse_unk", unigram, &p->fuse_unknown));
    FK_TRY(fkp_json_bool(model, "model", "byte_fallback", false, &p->byte_fallback));
    FK_TRY(fkp_json_bool(model, "model", "ignore_merges", false, &p->ignore_merges));
    FK_TRY(fk_bytes_append(&p->continuing_prefix, prefix.data, prefix.bytes));
    FK_TRY(fk_bytes_append(&p->end_suffix, suffix.data, suffix.bytes));
    FK_TRY(read_vocabulary(v, vocab, added));
    if (unigram) FK_TRY(read_unigram(v, model));
    if (merges) FK_TRY(read_merges(v, json_object_get(model, "merges")));
    if (p->model == FKP_MODEL_WORDPIECE)
        FK_TRY(fkp_json_count(model, "model", "max_input_chars_per_word", 100, 1 << 16, &p->max_chars));
    if (!unigram) p->unknown_id = unknown.bytes ? find_piece(vocab, unknown) : -1;
    if ((unknown.bytes || !(merges || unigram)) && p->unknown_id < 0)
        return fk_fail(FK_ERROR_INVALID, "model.unk_token '%.80s' is not in model.vocab", unknown.data);
    for (int byte = 0; byte < 256; byte++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", byte);
        p->fallback_ids[byte] = p->byte_fallback ? find_piece(vocab, fk_piece_of(name)) : -1;
    }
    return FK_OK;
}

/* ---- added tokens */

static fk_status add_token(fkp_token_set *set, fk_piece *texts, const json_t *token, fk_piece text, int32_t id)
{
    fkp_pipeline_token *t = &set->tokens[set->count];
    *t = (fkp_pipeline_token){.id = id, .bytes = text.bytes};
    FK_TRY(fkp_json_bool(token, "added_tokens", "special", false, &t->special));
    FK_TRY(fkp_json_bool(token, "added_tokens", "single_word", false, &t->single_word));
    FK_TRY(fkp_json_bool(token, "added_tokens", "lstrip", false, &t->lstrip));
    FK_TRY(fkp_json_bool(token, "added_tokens", "rstrip", false, &t->rstrip));
    set->any_plain |= !t->special;
    texts[set->count++] = text;
    return FK_OK;
}

/* Texts that are looked for in normalized text are normalized themselves; `normal` holds them. */
static fk_status sort_added(fkp_pipeline *p, const json_t *added, fk_piece *raw, fk_piece *normalized, fk_bytes *normal, size_t *offsets)
{
    fkp_normalizer_scratch scratch = {0};
    fk_status status = FK_OK;
    for (size_t i = 0; i < json_array_size(added) && status == FK_OK; i++) {
        const json_t *token = json_array_get(added, i), *content = json_object_get(token, "content");
        fk_piece text = {json_string_value(content), json_string_length(content)};
        int32_t id = (int32_t)json_integer_value(json_object_get(token, "id"));
        bool special, in_normalized;
        status = fkp_json_bool(token, "added_tokens", "special", false, &special);
        if (status == FK_OK) status = fkp_json_bool(token, "added_tokens", "normalized", !special, &in_normalized);
        if (status != FK_OK) break;
        if (!in_normalized || p->normalizer.count == 0) {
            status = add_token(&p->raw, raw, token, text, id);
            continue;
        }
        status = fkp_normalize(&p->normalizer, &scratch, text, &text);
        if (status != FK_OK || text.bytes == 0) continue; /* nothing is left to look for */
        offsets[p->normalized.count] = normal->bytes;
        status = fk_bytes_append(normal, text.data, text.bytes);
        if (status == FK_OK) status = add_token(&p->normalized, normalized, token, text, id);
    }
    for (size_t i = 0; i < p->normalized.count; i++) normalized[i] = (fk_piece){normal->data + offsets[i], p->normalized.tokens[i].bytes};
    fkp_normalizer_scratch_deinit(&scratch);
    return status;
}

static fk_status read_added(fkp_pipeline *p, const json_t *added)
{
    size_t count = json_array_size(added), *offsets = NULL;
    fk_piece *raw = NULL, *normalized = NULL;
    fk_bytes normal = {0};
    fk_status status = fkp_allocate(&raw, count, sizeof *raw);
    if (status == FK_OK) status = fkp_allocate(&normalized, count, sizeof *normalized);
    if (status == FK_OK) status = fkp_allocate(&offsets, count, sizeof *offsets);
    if (status == FK_OK) status = fkp_allocate(&p->raw.tokens, count, sizeof *p->raw.tokens);
    if (status == FK_OK) status = fkp_allocate(&p->normalized.tokens, count, sizeof *p->normalized.tokens);
    if (status == FK_OK) status = sort_added(p, added, raw, normalized, &normal, offsets);
    if (status == FK_OK) status = fkp_string_matcher_init(&p->raw.matcher, raw, p->raw.count);
    if (status == FK_OK) status = fkp_string_matcher_init(&p->normalized.matcher, normalized, p->normalized.count);
    fk_bytes_deinit(&normal);
    free(raw);
    free(normalized);
    free(offsets);
    return status;
}

/* ---- all of it */

static fk_status decode_pieces(json_vocabulary *v)
{
    FK_TRY(fk_bytes_append(&v->decoded_text, "", 1)); /* so that there is an address */
    for (int64_t id = 0; id < v->size; id++) {
        v->offsets[id] = v->decoded_text.bytes;
        if (v->types[id] != FK_TOKEN_UNUSED)
            FK_TRY(fkp_decoder_append(v->decoder, v->pieces[id], v->types[id] != FK_TOKEN_NORMAL, &v->decoded_text));
    }
    v->offsets[v->size] = v->decoded_text.bytes;
    for (int64_t id = 0; id < v->size; id++)
        v->decoded[id] = (fk_piece){v->decoded_text.data + v->offsets[id], v->offsets[id + 1] - v->offsets[id]};
    return FK_OK;
}

/* A text that comes to BPE as one word is cut where that changes nothing. */
static fk_status cut_at_marks(json_vocabulary *v)
{
    fkp_pipeline *p = v->pipeline;
    const fkp_word_splitter *w = &p->splitter;
    bool cut = false; /* by Metaspace itself */
    for (size_t i = 1; i < w->count; i++)
        cut |= w->steps[i - 1].kind == FKP_SPLIT_METASPACE && w->steps[i].kind == FKP_SPLIT_PATTERN;
    if (p->model != FKP_MODEL_BPE || p->by_bytes || cut) return FK_OK;
    if (p->continuing_prefix.bytes || p->end_suffix.bytes) return FK_OK; /* the place in the word counts */
    return fkp_words_stand_alone(v->pieces, v->size) ? fkp_split_add_marked_words(&p->splitter) : FK_OK;
}

static fk_status read_all(json_vocabulary *v, const json_t *root)
{
    const json_t *model = json_object_get(root, "model"), *added = fkp_json_field(root, "added_tokens");
    FK_TRY(fkp_allocate(&v->pipeline, 1, sizeof *v->pipeline));
    if (added && !json_is_array(added)) return fk_fail(FK_ERROR_INVALID, "added_tokens is no array");
    FK_TRY(read_model(v, model, added));
    fkp_pipeline *p = v->pipeline;
    /* Where symbols are more than single bytes, the byte map is really written and words are read as characters. */
    bool map_bytes = p->byte_fallback || p->continuing_prefix.bytes || p->end_suffix.bytes;
    FK_TRY(fkp_read_normalizer(json_object_get(root, "normalizer"), &p->normalizer));
    FK_TRY(fkp_read_pre_tokenizer(json_object_get(root, "pre_tokenizer"), map_bytes, &p->splitter, &p->by_bytes));
    FK_TRY(cut_at_marks(v));
    FK_TRY(read_added(p, added));
    FK_TRY(fkp_read_post_processor(json_object_get(root, "post_processor"), v->size, p));
    FK_TRY(fkp_decoder_create(json_object_get(root, "decoder"), p, &v->decoder));
    return decode_pieces(v);
}

/* The id of a piece by its name, -1 when there is none. */
static int32_t id_of(const json_vocabulary *v, fk_piece name)
{
    for (int64_t id = 0; id < v->size && name.bytes > 0; id++)
        if (v->pieces[id].bytes == name.bytes && memcmp(v->pieces[id].data, name.data, name.bytes) == 0) return (int32_t)id;
    return -1;
}

static fk_status create(const json_t *root, const fk_tokenizer_json_options *options, fk_tokenizer **out)
{
    json_vocabulary v = {0};
    fk_status status = read_all(&v, root);
    if (status == FK_OK) {
        int32_t eos = options ? id_of(&v, options->eos_token) : -1;
        fk_tokenizer_spec spec = {.pieces = v.pieces, .types = v.types, .vocab_size = v.size, .merges = v.merges,
                                  .num_merges = v.num_merges, .bos_id = options ? id_of(&v, options->bos_token) : -1,
                                  .eos_ids = &eos, .num_eos_ids = eos >= 0};
        fkp_pipeline *pipeline = v.pipeline;
        v.pipeline = NULL;
        status = fkp_tokenizer_create_pipeline(&spec, v.decoded, pipeline, out);
    }
    vocabulary_deinit(&v);
    return status;
}

fk_status fk_tokenizer_json_parse(const char *json, size_t bytes, const fk_tokenizer_json_options *options, fk_tokenizer **out)
{
    *out = NULL;
    json_t *root;
    fk_status status = fkp_json_parse(json, bytes, limits, &root);
    if (status == FK_OK) {
        status = create(root, options, out);
        json_decref(root);
    }
    return fk_fail_context(status, "tokenizer.json");
}

fk_status fk_tokenizer_json_load(const char *path, const fk_tokenizer_json_options *options, fk_tokenizer **out)
{
    *out = NULL;
    json_t *root;
    FK_TRY(fkp_json_load_file(path, limits, &root));
    fk_status status = create(root, options, out);
    json_decref(root);
    return fk_fail_context(status, "%s", path);
}
