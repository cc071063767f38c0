/* SPDX-License-Identifier: Apache-2.0 */
/* A WordPiece tokenizer out of tokenizer.json. Every field that changes ids is read or, when it says something that is
 * not built here, refused by name: a tokenizer that is nearly right gives wrong ids without a sign. */
#include "core/json.h"
#include "text/wordpiece_internal.h"

#include <stdlib.h>
#include <string.h>

static const fkp_json_limits limits = {.max_depth = 64, .max_values = 8u << 20};
enum { MOST_TOKENS = 4 << 20 };

static fk_status check_type(const json_t *parent, const char *field, const char *wanted, const json_t **object)
{
    *object = json_object_get(parent, field);
    const char *type = json_string_value(json_object_get(*object, "type"));
    if (type && strcmp(type, wanted) == 0) return FK_OK;
    return fk_fail(FK_ERROR_UNSUPPORTED, "%s is '%.80s'; with WordPiece it must be '%s'", field, type ? type : "absent", wanted);
}

static fk_status read_bool(const json_t *parent, const char *where, const char *field, bool fallback, bool *out)
{
    const json_t *value = json_object_get(parent, field);
    *out = value && !json_is_null(value) ? json_is_true(value) : fallback;
    if (!value || json_is_null(value) || json_is_boolean(value)) return FK_OK;
    return fk_fail(FK_ERROR_INVALID, "%s: '%s' must be true or false", where, field);
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

static fk_status read_normalizer(fk_wordpiece *w, const json_t *root)
{
    const json_t *n;
    FK_TRY(check_type(root, "normalizer", "BertNormalizer", &n));
    FK_TRY(read_bool(n, "normalizer", "clean_text", true, &w->normalizer.clean_text));
    FK_TRY(read_bool(n, "normalizer", "handle_chinese_chars", true, &w->normalizer.handle_chinese_chars));
    FK_TRY(read_bool(n, "normalizer", "lowercase", true, &w->normalizer.lowercase));
    FK_TRY(read_bool(n, "normalizer", "strip_accents", w->normalizer.lowercase, &w->normalizer.strip_accents));
    return check_type(root, "pre_tokenizer", "BertPreTokenizer", &n);
}

/* Ids may come in any order and with gaps; texts are copied first, since growing the block moves it. */
typedef struct vocabulary {
    size_t *offsets, *lengths; /* [vocab_size] in the text; length 0: no piece */
} vocabulary;

static fk_status highest_id(const json_t *vocab, const json_t *added, int64_t *count)
{
    const char *name;
    json_t *value;
    int32_t id;
    size_t i;
    *count = 0;
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
    return FK_OK;
}

static fk_status put_piece(fk_wordpiece *w, vocabulary *v, int32_t id, const char *name)
{
    size_t bytes = strlen(name);
    if (v->lengths[id]) {
        if (v->lengths[id] == bytes && memcmp(w->text.data + v->offsets[id], name, bytes) == 0) return FK_OK;
        return fk_fail(FK_ERROR_INVALID, "id %d is both '%.*s' and '%.80s'", id, (int)(v->lengths[id] < 80 ? v->lengths[id] : 80),
                       w->text.data + v->offsets[id], name);
    }
    v->offsets[id] = w->text.bytes;
    v->lengths[id] = bytes;
    return fk_bytes_append(&w->text, name, bytes);
}

static fk_status fill_pieces(fk_wordpiece *w, vocabulary *v, const json_t *vocab, const json_t *added)
{
    const char *name;
    json_t *value;
    int32_t id;
    size_t i;
    json_object_foreach((json_t *)vocab, name, value)
    {
        FK_TRY(read_id(value, name, &id));
        FK_TRY(put_piece(w, v, id, name));
    }
    json_array_foreach(added, i, value)
    {
        FK_TRY(read_id(json_object_get(value, "id"), "added", &id));
        FK_TRY(put_piece(w, v, id, json_string_value(json_object_get(value, "content"))));
    }
    for (int64_t k = 0; k < w->vocab_size; k++)
        w->pieces[k] = (fk_piece){v->lengths[k] ? w->text.data + v->offsets[k] : "", v->lengths[k]};
    return fkp_wordpiece_index(w);
}

static fk_status read_pieces(fk_wordpiece *w, const json_t *vocab, const json_t *added)
{
    FK_TRY(highest_id(vocab, added, &w->vocab_size));
    if (w->vocab_size == 0) return fk_fail(FK_ERROR_INVALID, "model.vocab is empty");
    /* A file of few pieces cannot ask for much memory by one high id. */
    if (w->vocab_size > 16 * ((int64_t)json_object_size(vocab) + (int64_t)json_array_size(added)) + 1024)
        return fk_fail(FK_ERROR_INVALID, "model.vocab has %zu pieces, but ids up to %lld", json_object_size(vocab),
                       (long long)w->vocab_size - 1);
    size_t count = (size_t)w->vocab_size;
    vocabulary v = {calloc(count, sizeof *v.offsets), calloc(count, sizeof *v.lengths)};
    w->pieces = calloc(count, sizeof *w->pieces);
    fk_status status = v.offsets && v.lengths && w->pieces ? fill_pieces(w, &v, vocab, added)
                                                          : fk_fail(FK_ERROR_MEMORY, "no memory for %zu tokens", count);
    free(v.offsets);
    free(v.lengths);
    return status;
}

static fk_status read_model(fk_wordpiece *w, const json_t *root)
{
    const json_t *model;
    FK_TRY(check_type(root, "model", "WordPiece", &model));
    const json_t *vocab = json_object_get(model, "vocab"), *added = json_object_get(root, "added_tokens");
    const char *prefix = json_string_value(json_object_get(model, "continuing_subword_prefix"));
    const char *unknown = json_string_value(json_object_get(model, "unk_token"));
    const json_t *most = json_object_get(model, "max_input_chars_per_word");
    if (!json_is_object(vocab)) return fk_fail(FK_ERROR_INVALID, "model.vocab is no object");
    if (added && !json_is_null(added) && !json_is_array(added)) return fk_fail(FK_ERROR_INVALID, "added_tokens is no array");
    if (!prefix) return fk_fail(FK_ERROR_INVALID, "model.continuing_subword_prefix is no string");
    if (!unknown) return fk_fail(FK_ERROR_INVALID, "model.unk_token is no string");
    w->max_chars = most ? json_integer_value(most) : 100;
    if ((most && !json_is_integer(most)) || w->max_chars < 1 || w->max_chars > 1 << 16)
        return fk_fail(FK_ERROR_INVALID, "model.max_input_chars_per_word must be an integer from 1 to %d", 1 << 16);
    FK_TRY(fk_bytes_append(&w->prefix, prefix, strlen(prefix)));
    FK_TRY(read_pieces(w, vocab, added));
    w->unknown_id = fk_wordpiece_find(w, fk_piece_of(unknown));
    if (w->unknown_id < 0) return fk_fail(FK_ERROR_INVALID, "model.unk_token '%.80s' is not in the vocabulary", unknown);
    return FK_OK;
}

static fk_status check_added(const json_t *token, size_t i)
{
    static const char *const flags[] = {"single_word", "lstrip", "rstrip", "normalized"};
    for (size_t k = 0; k < sizeof flags / sizeof *flags; k++) {
        bool set;
        FK_TRY(read_bool(token, "added_tokens", flags[k], false, &set));
        if (set)
            return fk_fail(FK_ERROR_UNSUPPORTED, "added_tokens[%zu] '%.80s' is %s; with WordPiece that is not built", i,
                           json_string_value(json_object_get(token, "content")), flags[k]);
    }
    return FK_OK;
}

static fk_status read_added(fk_wordpiece *w, const json_t *added)
{
    size_t count = json_array_size(added), i;
    if (count == 0) return FK_OK;
    fk_piece *texts = calloc(count, sizeof *texts);
    w->added = calloc(count, sizeof *w->added);
    fk_status status = texts && w->added ? FK_OK : fk_fail(FK_ERROR_MEMORY, "no memory for %zu added tokens", count);
    for (i = 0; i < count && status == FK_OK; i++) {
        const json_t *token = json_array_get(added, i);
        texts[i] = fk_piece_of(json_string_value(json_object_get(token, "content")));
        w->added[i] = (fkp_added_token){(int32_t)json_integer_value(json_object_get(token, "id")), texts[i].bytes};
        status = check_added(token, i);
    }
    if (status == FK_OK) status = fkp_string_matcher_init(&w->added_matcher, texts, count);
    if (status == FK_OK) w->num_added = count;
    free(texts);
    return status;
}

/* ["[SEP]", 102] of BertProcessing. */
static fk_status push_named(fk_wordpiece *w, const json_t *pair, const char *field, fk_token_list *out)
{
    int32_t id;
    FK_TRY(read_id(json_array_get(pair, 1), field, &id));
    if (id >= w->vocab_size)
        return fk_fail(FK_ERROR_INVALID, "post_processor.%s: id %d is outside the vocabulary of %lld", field, id, (long long)w->vocab_size);
    return fk_token_list_push(out, id);
}

/* The tokens before and after "A" in the template of a single text. */
static fk_status read_template(fk_wordpiece *w, const json_t *processor)
{
    const json_t *parts = json_object_get(processor, "single"), *named = json_object_get(processor, "special_tokens");
    bool seen = false;
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i), *special = json_object_get(part, "SpecialToken");
        if (!special) {
            const char *sequence = json_string_value(json_object_get(json_object_get(part, "Sequence"), "id"));
            if (!sequence || strcmp(sequence, "A") != 0 || seen)
                return fk_fail(FK_ERROR_INVALID, "post_processor.single[%zu] is neither a special token nor the one sequence A", i);
            seen = true;
            continue;
        }
        const char *name = json_string_value(json_object_get(special, "id"));
        const json_t *ids = json_object_get(name ? json_object_get(named, name) : NULL, "ids");
        if (json_array_size(ids) == 0)
            return fk_fail(FK_ERROR_INVALID, "post_processor.special_tokens has no ids for '%.80s'", name ? name : "");
        for (size_t k = 0; k < json_array_size(ids); k++) {
            int32_t id;
            FK_TRY(read_id(json_array_get(ids, k), name, &id));
            if (id >= w->vocab_size)
                return fk_fail(FK_ERROR_INVALID, "post_processor: '%.80s' has id %d, outside the vocabulary of %lld", name, id,
                               (long long)w->vocab_size);
            FK_TRY(fk_token_list_push(seen ? &w->after : &w->before, id));
        }
    }
    return seen ? FK_OK : fk_fail(FK_ERROR_INVALID, "post_processor.single has no sequence A");
}

static fk_status read_post_processor(fk_wordpiece *w, const json_t *processor)
{
    if (!processor || json_is_null(processor)) return FK_OK;
    const char *type = json_string_value(json_object_get(processor, "type"));
    if (type && strcmp(type, "TemplateProcessing") == 0) return read_template(w, processor);
    if (type && strcmp(type, "BertProcessing") == 0) {
        FK_TRY(push_named(w, json_object_get(processor, "cls"), "cls", &w->before));
        return push_named(w, json_object_get(processor, "sep"), "sep", &w->after);
    }
    return fk_fail(FK_ERROR_UNSUPPORTED, "post_processor is '%.80s'; with WordPiece it must be TemplateProcessing or BertProcessing",
                   type ? type : "nameless");
}

static fk_status build(const json_t *root, fk_wordpiece **out)
{
    fk_wordpiece *w = calloc(1, sizeof *w);
    if (!w) return fk_fail(FK_ERROR_MEMORY, "no memory for a tokenizer");
    fk_status status = read_model(w, root);
    if (status == FK_OK) status = read_normalizer(w, root);
    if (status == FK_OK) status = read_added(w, json_object_get(root, "added_tokens"));
    if (status == FK_OK) status = read_post_processor(w, json_object_get(root, "post_processor"));
    if (status == FK_OK) *out = w;
    else fk_wordpiece_destroy(w);
    return status;
}

fk_status fk_wordpiece_parse(const char *json, size_t bytes, fk_wordpiece **out)
{
    *out = NULL;
    json_t *root;
    fk_status status = fkp_json_parse(json, bytes, limits, &root);
    if (status == FK_OK) {
        status = build(root, out);
        json_decref(root);
    }
    return fk_fail_context(status, "tokenizer.json");
}

fk_status fk_wordpiece_load(const char *path, fk_wordpiece **out)
{
    *out = NULL;
    json_t *root;
    FK_TRY(fkp_json_load_file(path, limits, &root));
    fk_status status = build(root, out);
    json_decref(root);
    return fk_fail_context(status, "%s", path);
}
