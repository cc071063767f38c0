/* SPDX-License-Identifier: Apache-2.0 */
/* GGUF metadata to the arrays that a tokenizer is built from. */
#include "text/tokenizer_gguf.h"

#include "text/sentencepiece_internal.h"

#include <stdlib.h>
#include <string.h>

/* Control tokens with these names end a generation even when the file names only one of them. */
static const char *const end_names[] = {"<|im_end|>",      "<|endoftext|>", "<|eot_id|>", "<|eom_id|>",
                                        "<|end_of_text|>", "<|end|>",       "<|return|>", "<EOT>"};
static const char *const end_keys[] = {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
                                       "tokenizer.ggml.eom_token_id"};
enum {
    NUM_END_NAMES = sizeof end_names / sizeof *end_names,
    NUM_END_KEYS = sizeof end_keys / sizeof *end_keys
};

/* What has to live until the tokenizer is made. */
typedef struct gguf_vocabulary {
    char *pre;
    fk_piece *pieces;
    int32_t *types;
    fk_merge_rule *merges;
    double *scores;
    int32_t eos_ids[NUM_END_KEYS + NUM_END_NAMES];
} gguf_vocabulary;

static fk_status no_memory(size_t count)
{
    return fk_fail(FK_ERROR_MEMORY, "no memory for a vocabulary of %zu tokens", count);
}

/* "gpt2" is byte-level BPE, "llama" BPE of SentencePiece. */
static fk_status read_model(const fk_gguf *gguf, bool *sentencepiece)
{
    fk_gguf_string model;
    FK_TRY(fk_gguf_get_string(gguf, "tokenizer.ggml.model", &model));
    *sentencepiece = model.size == 5 && memcmp(model.data, "llama", 5) == 0;
    if (*sentencepiece || (model.size == 4 && memcmp(model.data, "gpt2", 4) == 0)) return FK_OK;
    return fk_fail(FK_ERROR_UNSUPPORTED, "tokenizer.ggml.model is '%.*s'; 'gpt2' and 'llama' are read",
                   (int)(model.size < 80 ? model.size : 80), model.data);
}

static fk_status read_names(const fk_gguf *gguf, gguf_vocabulary *v, fk_tokenizer_spec *spec)
{
    fk_gguf_string pre;
    FK_TRY(fk_gguf_get_string(gguf, "tokenizer.ggml.pre", &pre));
    v->pre = calloc(pre.size + 1, 1);
    if (!v->pre) return no_memory(0);
    memcpy(v->pre, pre.data, pre.size);
    spec->pre = v->pre;
    return FK_OK;
}

static fk_status read_pieces(const fk_gguf *gguf, gguf_vocabulary *v, fk_tokenizer_spec *spec)
{
    const fk_gguf_string *tokens;
    size_t count;
    FK_TRY(fk_gguf_get_strings(gguf, "tokenizer.ggml.tokens", &tokens, &count));
    if (count > INT32_MAX) return fk_fail(FK_ERROR_INVALID, "tokenizer.ggml.tokens has %zu tokens", count);
    v->pieces = calloc(count + 1, sizeof *v->pieces);
    if (!v->pieces) return no_memory(count);
    for (size_t i = 0; i < count; i++) v->pieces[i] = (fk_piece){tokens[i].data, tokens[i].size};
    spec->pieces = v->pieces;
    spec->vocab_size = (int64_t)count;

    if (!fk_gguf_has(gguf, "tokenizer.ggml.token_type")) return FK_OK;
    fk_gguf_array types;
    FK_TRY(fk_gguf_get_integers(gguf, "tokenizer.ggml.token_type", &types));
    if (types.count != count)
        return fk_fail(FK_ERROR_INVALID, "tokenizer.ggml.token_type has %zu entries for %zu tokens",
                       types.count, count);
    v->types = calloc(count + 1, sizeof *v->types);
    if (!v->types) return no_memory(count);
    for (size_t i = 0; i < count; i++) {
        int64_t type = fk_gguf_array_i64(&types, i);
        v->types[i] = type < 0 || type > INT32_MAX
                          ? -1
                          : (int32_t)type; /* refused by name when the tokenizer is made */
    }
    spec->types = v->types;
    return FK_OK;
}

static fk_status read_merges(const fk_gguf *gguf, gguf_vocabulary *v, fk_tokenizer_spec *spec)
{
    const fk_gguf_string *lines;
    size_t count;
    FK_TRY(fk_gguf_get_strings(gguf, "tokenizer.ggml.merges", &lines, &count));
    v->merges = calloc(count + 1, sizeof *v->merges);
    if (!v->merges) return no_memory(count);
    for (size_t i = 0; i < count; i++)
        FK_TRY(fk_fail_context(fk_merge_rule_parse((fk_piece){lines[i].data, lines[i].size}, &v->merges[i]),
                               "tokenizer.ggml.merges[%zu]", i));
    spec->merges = v->merges;
    spec->num_merges = (int64_t)count;
    return FK_OK;
}

/* The id under the key, -1 when the file has none. */
static fk_status read_id(const fk_gguf *gguf, const char *key, int64_t vocab_size, int32_t *id)
{
    *id = -1;
    if (!fk_gguf_has(gguf, key)) return FK_OK;
    int64_t value;
    FK_TRY(fk_gguf_get_i64(gguf, key, &value));
    if (value < 0 || value >= vocab_size)
        return fk_fail(FK_ERROR_INVALID, "%s is %lld, outside the vocabulary of %lld tokens", key,
                       (long long)value, (long long)vocab_size);
    *id = (int32_t)value;
    return FK_OK;
}

static bool is_end_name(fk_piece name)
{
    for (int i = 0; i < NUM_END_NAMES; i++)
        if (strlen(end_names[i]) == name.bytes && memcmp(end_names[i], name.data, name.bytes) == 0)
            return true;
    return false;
}

static fk_status read_ends(const fk_gguf *gguf, gguf_vocabulary *v, fk_tokenizer_spec *spec)
{
    FK_TRY(read_id(gguf, "tokenizer.ggml.bos_token_id", spec->vocab_size, &spec->bos_id));
    spec->add_bos = -1;
    if (fk_gguf_has(gguf, "tokenizer.ggml.add_bos_token")) {
        bool add_bos;
        FK_TRY(fk_gguf_get_bool(gguf, "tokenizer.ggml.add_bos_token", &add_bos));
        spec->add_bos = add_bos;
    }
    spec->eos_ids = v->eos_ids;
    for (int i = 0; i < NUM_END_KEYS; i++) {
        int32_t id;
        FK_TRY(read_id(gguf, end_keys[i], spec->vocab_size, &id));
        if (id >= 0) v->eos_ids[spec->num_eos_ids++] = id;
    }
    for (int64_t id = 0; id < spec->vocab_size && spec->num_eos_ids < NUM_END_KEYS + NUM_END_NAMES; id++)
        if (spec->types && spec->types[id] == FK_TOKEN_CONTROL && is_end_name(spec->pieces[id]))
            v->eos_ids[spec->num_eos_ids++] = (int32_t)id;
    return FK_OK;
}

static fk_status read_vocabulary(const fk_gguf *gguf, gguf_vocabulary *v, fk_tokenizer_spec *spec)
{
    FK_TRY(read_names(gguf, v, spec));
    FK_TRY(read_pieces(gguf, v, spec));
    FK_TRY(read_merges(gguf, v, spec));
    return read_ends(gguf, v, spec);
}

static fk_status read_scores(const fk_gguf *gguf, gguf_vocabulary *v, const fk_tokenizer_spec *spec)
{
    fk_gguf_array scores;
    FK_TRY(fk_gguf_get_numbers(gguf, "tokenizer.ggml.scores", &scores));
    if ((int64_t)scores.count != spec->vocab_size)
        return fk_fail(FK_ERROR_INVALID, "tokenizer.ggml.scores has %zu entries for %lld tokens",
                       scores.count, (long long)spec->vocab_size);
    if (!v->types)
        return fk_fail(FK_ERROR_INVALID, "tokenizer.ggml.token_type is missing; with scores it is needed");
    v->scores = calloc(scores.count + 1, sizeof *v->scores);
    if (!v->scores) return no_memory(scores.count);
    for (size_t i = 0; i < scores.count; i++) v->scores[i] = fk_gguf_array_f64(&scores, i);
    return FK_OK;
}

static fk_status read_flag(const fk_gguf *gguf, const char *key, bool fallback, bool *out)
{
    *out = fallback;
    return fk_gguf_has(gguf, key) ? fk_gguf_get_bool(gguf, key, out) : FK_OK;
}

static fk_status create_scored(const fk_gguf *gguf, gguf_vocabulary *v, fk_tokenizer **out)
{
    fk_tokenizer_spec spec = {0};
    FK_TRY(read_pieces(gguf, v, &spec));
    FK_TRY(read_scores(gguf, v, &spec));
    FK_TRY(read_ends(gguf, v, &spec));
    fkp_scored_vocabulary scored = {.pieces = v->pieces,
                                    .scores = v->scores,
                                    .types = v->types,
                                    .size = spec.vocab_size,
                                    .gguf = true,
                                    .byte_fallback = true,
                                    .escape_whitespaces = true,
                                    .charsmap = {"", 0},
                                    .unknown_surface = {"", 0},
                                    .bos_id = spec.bos_id,
                                    .eos_ids = spec.eos_ids,
                                    .num_eos_ids = spec.num_eos_ids};
    FK_TRY(read_flag(gguf, "tokenizer.ggml.add_space_prefix", true, &scored.add_dummy_prefix));
    scored.add_bos = spec.add_bos != 0 && spec.bos_id >= 0;
    if (spec.add_bos > 0 && spec.bos_id < 0)
        return fk_fail(FK_ERROR_INVALID,
                       "texts must begin with a begin-of-sequence token, but its id is not given");
    return fkp_tokenizer_create_scored(&scored, out);
}

fk_status fk_tokenizer_create_gguf(const fk_gguf *gguf, fk_tokenizer **out)
{
    *out = NULL;
    gguf_vocabulary v = {0};
    fk_tokenizer_spec spec = {0};
    bool sentencepiece;
    fk_status status = read_model(gguf, &sentencepiece);
    if (status == FK_OK && sentencepiece) {
        status = create_scored(gguf, &v, out);
    } else if (status == FK_OK) {
        status = read_vocabulary(gguf, &v, &spec);
        if (status == FK_OK) status = fk_tokenizer_create(&spec, out);
    }
    free(v.scores);
    free(v.pre);
    free(v.pieces);
    free(v.types);
    free(v.merges);
    return status;
}

fk_status fk_chat_template_find_gguf(const fk_gguf *gguf, const fk_chat_template **out)
{
    fk_gguf_string source;
    FK_TRY(fk_gguf_get_string(gguf, "tokenizer.chat_template", &source));
    return fk_chat_template_find((fk_piece){source.data, source.size}, out);
}
