/* SPDX-License-Identifier: Apache-2.0 */
/* Reading rank files, and the encodings of tiktoken/openai_public.py. */
#include "text/tiktoken.h"

#include "core/file_map.h"
#include "text/base64.h"
#include "text/byte_map.h"
#include "text/pipeline.h"
#include "text/tokenizer_internal.h"
#include "text/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TOKENS = 4 << 20, MOST_SPECIAL = 5 };

typedef struct special_token {
    const char *text;
    int32_t id;
} special_token;

#define END_OF_TEXT "<|endoftext|>"

static const struct encoding {
    const char *name;
    const fkp_scanner *scan;
    special_token special[MOST_SPECIAL + 1]; /* the first ends a text */
} encodings[] = {
    {"gpt2", &fkp_gpt2_scanner, {{END_OF_TEXT, 50256}}},
    {"r50k_base", &fkp_gpt2_scanner, {{END_OF_TEXT, 50256}}},
    {"p50k_base", &fkp_gpt2_scanner, {{END_OF_TEXT, 50256}}},
    {"p50k_edit",
     &fkp_gpt2_scanner,
     {{END_OF_TEXT, 50256}, {"<|fim_prefix|>", 50281}, {"<|fim_middle|>", 50282}, {"<|fim_suffix|>", 50283}}},
    {"cl100k_base",
     &fkp_cl100k_scanner,
     {{END_OF_TEXT, 100257},
      {"<|fim_prefix|>", 100258},
      {"<|fim_middle|>", 100259},
      {"<|fim_suffix|>", 100260},
      {"<|endofprompt|>", 100276}}},
    {"o200k_base", &fkp_o200k_scanner, {{END_OF_TEXT, 199999}, {"<|endofprompt|>", 200018}}},
};
enum { NUM_ENCODINGS = sizeof encodings / sizeof *encodings };

static fk_status find_encoding(const char *name, bool is_file, const struct encoding **out)
{
    char known[160] = "";
    for (size_t i = 0; i < NUM_ENCODINGS; i++) {
        const char *there = encodings[i].name;
        *out = &encodings[i];
        if (is_file ? strncmp(name, there, strlen(there)) == 0 : strcmp(name, there) == 0) return FK_OK;
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "", there);
    }
    if (is_file)
        return fk_fail(FK_ERROR_UNSUPPORTED,
                       "the name of a rank file must begin with that of its encoding (%s)", known);
    return fk_fail(FK_ERROR_UNSUPPORTED, "unknown encoding '%s' (known: %s)", name, known);
}

/* A byte string of the file: [begin, end) of the text. */
typedef struct ranked {
    size_t begin, end;
    int32_t id;
} ranked;

/* What has to live until the tokenizer is made. */
typedef struct rank_file {
    fk_bytes text;  /* all byte strings, */
    fk_bytes names; /* and the same in the byte map */
    ranked *tokens;
    size_t count, capacity;
    int64_t size;               /* one above the highest id */
    fk_piece *pieces, *decoded; /* [size] */
    int32_t *types;
    fkp_pipeline *pipeline;
} rank_file;

/* ---- the file */

static fk_status read_rank(fk_piece text, int32_t *out)
{
    int64_t rank = 0;
    for (size_t i = 0; i < text.bytes && rank < MOST_TOKENS; i++) {
        if (text.data[i] < '0' || text.data[i] > '9')
            return fk_fail(FK_ERROR_INVALID, "the rank is no number");
        rank = 10 * rank + text.data[i] - '0';
    }
    if (text.bytes == 0 || rank >= MOST_TOKENS)
        return fk_fail(FK_ERROR_INVALID, "the rank must be a number from 0 to %d", MOST_TOKENS - 1);
    *out = (int32_t)rank;
    return FK_OK;
}

static fk_status read_line(rank_file *f, fk_piece line)
{
    const char *space = memchr(line.data, ' ', line.bytes);
    if (!space) return fk_fail(FK_ERROR_INVALID, "no space between token and rank");
    const size_t bytes = (size_t)(space - line.data);
    void *storage = f->tokens;
    FK_TRY(fkp_grow(&storage, &f->capacity, f->count + 1, sizeof *f->tokens));
    f->tokens = storage;
    ranked *token = &f->tokens[f->count++];
    *token = (ranked){.begin = f->text.bytes};
    FK_TRY(fkp_base64_append(&f->text, (fk_piece){line.data, bytes}));
    token->end = f->text.bytes;
    if (token->end == token->begin) return fk_fail(FK_ERROR_INVALID, "the token is empty");
    FK_TRY(read_rank((fk_piece){space + 1, line.bytes - bytes - 1}, &token->id));
    if (token->id >= f->size) f->size = token->id + 1;
    return FK_OK;
}

static fk_status read_lines(rank_file *f, const char *data, size_t bytes)
{
    for (size_t at = 0, number = 1, end; at < bytes; at = end + 1, number++) {
        const char *newline = memchr(data + at, '\n', bytes - at);
        end = newline ? (size_t)(newline - data) : bytes;
        size_t length = end - at - (end > at && data[end - 1] == '\r');
        if (length == 0) continue;
        if (f->count == MOST_TOKENS) return fk_fail(FK_ERROR_INVALID, "more than %d tokens", MOST_TOKENS);
        FK_TRY(fk_fail_context(read_line(f, (fk_piece){data + at, length}), "line %zu", number));
    }
    if (f->count == 0) return fk_fail(FK_ERROR_INVALID, "the file holds no tokens");
    /* Few tokens cannot ask for much memory by one high rank; the special tokens' ids are given. */
    if (f->size > 16 * (int64_t)f->count + 1024)
        return fk_fail(FK_ERROR_INVALID, "the file has %zu tokens, but ranks up to %lld", f->count,
                       (long long)f->size - 1);
    return FK_OK;
}

/* ---- the tokenizer */

static fk_status map_names(rank_file *f, size_t *ends)
{
    for (size_t i = 0; i < f->count; i++) {
        for (size_t at = f->tokens[i].begin; at < f->tokens[i].end; at++) {
            uint8_t utf8[4];
            FK_TRY(fk_bytes_append(
                &f->names, utf8,
                (size_t)fkp_utf8_write(fkp_byte_to_code_point((uint8_t)f->text.data[at]), utf8)));
        }
        ends[i] = f->names.bytes;
    }
    return FK_OK;
}

static fk_status fill_pieces(rank_file *f)
{
    size_t *ends = NULL;
    FK_TRY(fkp_allocate(&ends, f->count, sizeof *ends));
    fk_status status = map_names(f, ends);
    for (int64_t id = 0; id < f->size && status == FK_OK; id++) {
        f->pieces[id] = f->decoded[id] = (fk_piece){"", 0};
        f->types[id] = FK_TOKEN_UNUSED;
        f->pipeline->ranks[id] = FKP_NO_RANK;
    }
    for (size_t i = 0; i < f->count && status == FK_OK; i++) {
        const ranked *t = &f->tokens[i];
        const size_t begin = i ? ends[i - 1] : 0;
        if (f->types[t->id] != FK_TOKEN_UNUSED)
            status = fk_fail(FK_ERROR_INVALID, "two tokens have the rank %d", t->id);
        f->pieces[t->id] = (fk_piece){f->names.data + begin, ends[i] - begin};
        f->decoded[t->id] = (fk_piece){f->text.data + t->begin, t->end - t->begin};
        f->types[t->id] = FK_TOKEN_NORMAL;
        f->pipeline->ranks[t->id] = (uint32_t)t->id;
        f->pipeline->in_model[t->id] = 1;
    }
    free(ends);
    return status;
}

static fk_status add_special(rank_file *f, const struct encoding *encoding)
{
    fkp_token_set *set = &f->pipeline->raw;
    fk_piece texts[MOST_SPECIAL];
    FK_TRY(fkp_allocate(&set->tokens, MOST_SPECIAL, sizeof *set->tokens));
    for (const special_token *s = encoding->special; s->text; s++) {
        const fk_piece text = fk_piece_of(s->text);
        if (f->types[s->id] != FK_TOKEN_UNUSED)
            return fk_fail(FK_ERROR_INVALID,
                           "%s's special token '%s' has the id %d, which is a rank of the file",
                           encoding->name, s->text, s->id);
        f->pieces[s->id] = f->decoded[s->id] = text;
        f->types[s->id] = FK_TOKEN_CONTROL;
        texts[set->count] = text;
        set->tokens[set->count++] = (fkp_pipeline_token){.id = s->id, .bytes = text.bytes, .special = true};
    }
    return fkp_string_matcher_init(&set->matcher, texts, set->count);
}

static fk_status build(rank_file *f, const struct encoding *encoding, const void *data, size_t bytes)
{
    FK_TRY(read_lines(f, data, bytes));
    for (const special_token *s = encoding->special; s->text; s++)
        if (s->id >= f->size) f->size = s->id + 1;
    FK_TRY(fkp_allocate(&f->pipeline, 1, sizeof *f->pipeline));
    FK_TRY(fkp_allocate(&f->pieces, (size_t)f->size, sizeof *f->pieces));
    FK_TRY(fkp_allocate(&f->decoded, (size_t)f->size, sizeof *f->decoded));
    FK_TRY(fkp_allocate(&f->types, (size_t)f->size, sizeof *f->types));
    fkp_pipeline *p = f->pipeline;
    FK_TRY(fkp_allocate(&p->ranks, (size_t)f->size, sizeof *p->ranks));
    FK_TRY(fkp_allocate(&p->in_model, (size_t)f->size, sizeof *p->in_model));
    p->model = FKP_MODEL_BPE;
    p->by_bytes = true;
    p->ignore_merges = true; /* a word that is a token is that token */
    p->unknown_id = -1;
    FK_TRY(fill_pieces(f));
    FK_TRY(add_special(f, encoding));
    fkp_split_step *step;
    FK_TRY(fkp_split_add(&p->splitter, FKP_SPLIT_PATTERN, &step));
    step->pattern = fkp_pattern_of_scanner(*encoding->scan);
    step->pattern.scans_all = true;
    fkp_word_splitter_finish(&p->splitter);
    return FK_OK;
}

static fk_status parse(const void *data, size_t bytes, const struct encoding *encoding, fk_tokenizer **out)
{
    rank_file f = {0};
    fk_status status = build(&f, encoding, data, bytes);
    if (status == FK_OK) {
        fk_tokenizer_spec spec = {.pieces = f.pieces,
                                  .types = f.types,
                                  .vocab_size = f.size,
                                  .bos_id = -1,
                                  .eos_ids = &encoding->special[0].id,
                                  .num_eos_ids = 1};
        fkp_pipeline *pipeline = f.pipeline;
        f.pipeline = NULL;
        status = fkp_tokenizer_create_pipeline(&spec, f.decoded, pipeline, out);
    }
    fkp_pipeline_destroy(f.pipeline);
    fk_bytes_deinit(&f.text);
    fk_bytes_deinit(&f.names);
    free(f.tokens);
    free(f.pieces);
    free(f.decoded);
    free(f.types);
    return status;
}

fk_status fk_tiktoken_parse(const void *data, size_t bytes, const char *encoding, fk_tokenizer **out)
{
    const struct encoding *e;
    *out = NULL;
    FK_TRY(find_encoding(encoding, false, &e));
    return fk_fail_context(parse(data, bytes, e, out), "rank file");
}

fk_status fk_tiktoken_load(const char *path, const char *encoding, fk_tokenizer **out)
{
    const struct encoding *e;
    const char *slash = strrchr(path, '/');
    fkp_file_map map;
    *out = NULL;
    fk_status status = find_encoding(encoding ? encoding : slash ? slash + 1 : path, !encoding, &e);
    if (status == FK_OK) status = fkp_file_map_open(&map, path);
    if (status != FK_OK) return fk_fail_context(status, "%s", path);
    status = parse(map.data, map.size, e, out);
    fkp_file_map_close(&map);
    return fk_fail_context(status, "%s", path);
}
