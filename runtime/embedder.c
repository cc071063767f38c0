/* SPDX-License-Identifier: Apache-2.0 */
/* Encoding in passes, and scoring. Host arrays are copied into the step arena; results come back as float32. */
#include "runtime/embedder.h"

#include <stdlib.h>
#include <string.h>

#include <fk/backend.h>

#include "core/dtype.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

#define DEFAULT_NUM_SEQS 32
#define DEFAULT_BATCHED_TOKENS 4096
#define MAX_SKIPLIST 64
#define MIN_LENGTH 3 /* of a text: [CLS], a marker, [SEP] */
#define SCORED_BYTES ((int64_t)64 << 20) /* of document vectors on the device at once */

struct fk_embedder {
    const fk_model *model;
    const fk_model_info *info;
    fk_ctx *ctx;
    fk_backend *backend;
    int64_t max_num_seqs, max_batched_tokens;
    int64_t skiplist[MAX_SKIPLIST]; /* ids of punctuation, which ColBERT leaves out of documents */
    int64_t num_skiplist;
};

/* ---- life */

static void find_punctuation(fk_embedder *e, const fk_tokenizer *tokenizer)
{
    for (char c = '!'; c <= '~'; c++) {
        bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
        int32_t id = alphanumeric ? -1 : fk_tokenizer_find(tokenizer, (fk_piece){&c, 1});
        if (id >= 0 && e->num_skiplist < MAX_SKIPLIST) e->skiplist[e->num_skiplist++] = id;
    }
}

static fk_status set_up(fk_embedder *e, const fk_embedder_options *o)
{
    if (!fk_model_is_encoder(e->model))
        return fk_fail(FK_ERROR_INVALID, "model %s is no encoder: it gives tokens, not vectors", fk_model_name(e->model));
    e->info = fk_model_get_info(e->model);
    e->max_num_seqs = o->max_num_seqs > 0 ? o->max_num_seqs : DEFAULT_NUM_SEQS;
    e->max_batched_tokens = o->max_batched_tokens > 0 ? o->max_batched_tokens : DEFAULT_BATCHED_TOKENS;
    int64_t length = 0; /* a mistake in the folder is told here, once */
    FK_TRY(fk_config_int_optional(fk_model_config(e->model), "max_seq_length", MIN_LENGTH, &length));
    if (e->info->token_vectors && fk_model_tokenizer(e->model))
        find_punctuation(e, fk_model_tokenizer(e->model));
    FK_TRY(fk_ctx_create(&(fk_ctx_options){.device = fk_model_device(e->model),
                                           .threads = o->threads,
                                           .references_only = o->references_only},
                         &e->ctx));
    e->backend = fk_ctx_backend(e->ctx);
    return FK_OK;
}

fk_status fk_embedder_create(const fk_model *model, const fk_embedder_options *options, fk_embedder **out)
{
    fk_embedder *e = calloc(1, sizeof *e);
    *out = NULL;
    if (!e) return fk_fail(FK_ERROR_MEMORY, "out of memory for an embedder");
    e->model = model;
    fk_status status = set_up(e, options);
    if (status == FK_OK) *out = e;
    else fk_embedder_destroy(e);
    return status;
}

void fk_embedder_destroy(fk_embedder *e)
{
    if (!e) return;
    fk_ctx_destroy(e->ctx);
    free(e);
}

fk_ctx *fk_embedder_ctx(fk_embedder *e)
{
    return e->ctx;
}

int64_t fk_embedder_max_length(const fk_model *model)
{
    int64_t positions = fk_model_get_info(model)->max_position_embeddings, length = positions;
    fk_config_int_optional(fk_model_config(model), "max_seq_length", MIN_LENGTH, &length);
    return length < positions ? length : positions;
}

void fk_vectors_deinit(fk_vectors *v)
{
    free(v->starts);
    free(v->values);
    *v = (fk_vectors){0};
}

/* ---- text */

/* ColBERT's marker stands behind the first token (arXiv:2004.12832 section 3.2). Queries are not filled up
 * with [MASK] tokens as there: those would have to be hidden from the others, which packed attention cannot
 * do. */
static int32_t marker_of(const fk_model *model, const fk_tokenizer *tokenizer, fk_text_role role)
{
    if (!fk_model_get_info(model)->token_vectors) return -1;
    return fk_tokenizer_find(tokenizer, fk_piece_of(role == FK_TEXT_QUERY ? "[unused0]" : "[unused1]"));
}

static fk_status shape_ids(int64_t max_length, int32_t marker, int64_t first, fk_token_list *ids, int64_t *cut)
{
    int64_t count = ids->count - first, room = max_length - (marker >= 0);
    if (count > room) { /* the last token, [SEP], stays the last */
        *cut = count - room;
        ids->ids[first + room - 1] = ids->ids[ids->count - 1];
        ids->count = first + room;
    }
    if (marker < 0) return FK_OK;
    FK_TRY(fk_token_list_push(ids, 0));
    memmove(ids->ids + first + 2, ids->ids + first + 1, (size_t)(ids->count - first - 2) * sizeof *ids->ids);
    ids->ids[first + 1] = marker;
    return FK_OK;
}

fk_status fk_embedder_tokenize(const fk_model *model, fk_piece text, fk_text_role role, fk_token_list *out, int64_t *cut)
{
    const fk_tokenizer *tokenizer = fk_model_tokenizer(model);
    int64_t first = out->count, left_out = 0;
    if (!tokenizer)
        return fk_fail(FK_ERROR_INVALID, "model %s has no tokenizer: give the text as token ids",
                       fk_model_name(model));
    size_t invalid = fk_utf8_invalid_offset(text.data, text.bytes);
    if (invalid < text.bytes)
        return fk_fail(FK_ERROR_INVALID, "the text is no UTF-8: byte 0x%02X at offset %zu",
                       (uint8_t)text.data[invalid], invalid);
    FK_TRY(fk_tokenizer_encode(tokenizer, text.data, text.bytes, FK_ENCODE_PARSE_SPECIAL | FK_ENCODE_ADD_BOS,
                               out));
    fk_status status =
        shape_ids(fk_embedder_max_length(model), marker_of(model, tokenizer, role), first, out, &left_out);
    if (status != FK_OK) out->count = first;
    if (cut) *cut = left_out;
    return status;
}

/* ---- passes */

/* Host memory to a new tensor of the step arena. The host's may go when the context has been synchronized. */
static fk_tensor upload(fk_embedder *e, const void *data, fk_dtype dtype, int ndim, const int64_t *shape)
{
    fk_tensor t = fk_ctx_tensor(e->ctx, dtype, ndim, shape);
    size_t bytes = fk_tensor_nbytes(&t);
    if (fk_ctx_status(e->ctx) != FK_OK || bytes == 0) return t;
    fk_status status = e->backend->copy(e->backend, fk_ctx_stream(e->ctx), t.data, data, bytes, FK_HOST_TO_DEVICE);
    if (status != FK_OK) fk_ctx_fail(e->ctx, status, "%s", fk_error_message());
    return t;
}

/* A device tensor to float32 on the host. */
static fk_status download(fk_embedder *e, const fk_tensor *t, float *to)
{
    FK_TRY(fk_ctx_status(e->ctx)); /* before anything is read back */
    int64_t n = fk_tensor_numel(t);
    size_t bytes = fk_tensor_nbytes(t);
    bool direct = t->dtype == FK_F32;
    void *raw = direct ? to : malloc(bytes + 1);
    if (!raw) return fk_fail(FK_ERROR_MEMORY, "out of memory for %zu bytes of vectors", bytes);
    fk_status status = e->backend->copy(e->backend, fk_ctx_stream(e->ctx), raw, t->data, bytes, FK_DEVICE_TO_HOST);
    if (status == FK_OK) status = fk_ctx_synchronize(e->ctx);
    if (status == FK_OK && !direct) fk_convert_to_f32(to, raw, t->dtype, n);
    if (!direct) free(raw);
    return status;
}

static fk_status check_sequence(const fk_embedder *e, const fk_id_span *s, int64_t number)
{
    if (s->length < 1) return fk_fail(FK_ERROR_INVALID, "text %lld has no tokens", (long long)number + 1);
    if (s->length > e->info->max_position_embeddings)
        return fk_fail(FK_ERROR_INVALID, "text %lld has %lld tokens; %s has positions for %lld", (long long)number + 1,
                       (long long)s->length, fk_model_name(e->model), (long long)e->info->max_position_embeddings);
    for (int64_t i = 0; i < s->length; i++)
        if (s->ids[i] < 0 || s->ids[i] >= e->info->vocab_size)
            return fk_fail(FK_ERROR_INVALID, "text %lld: id %d at position %lld is outside the vocabulary of %lld", (long long)number + 1,
                           s->ids[i], (long long)i, (long long)e->info->vocab_size);
    return FK_OK;
}

/* Sequences from `first` on that go into one pass. */
static int64_t pass_length(const fk_embedder *e, const fk_id_span *sequences, int64_t first, int64_t count, int64_t *tokens)
{
    int64_t n = 0;
    *tokens = 0;
    while (first + n < count && n < e->max_num_seqs && (n == 0 || *tokens + sequences[first + n].length <= e->max_batched_tokens))
        *tokens += sequences[first + n++].length;
    return n;
}

static fk_status one_pass(fk_embedder *e, const fk_id_span *sequences, int64_t count, int64_t tokens, float *out)
{
    int64_t *ids = malloc((size_t)(3 * tokens) * sizeof *ids), *positions = ids + tokens, *types = positions + tokens, at = 0;
    int32_t *starts = malloc((size_t)(count + 1) * sizeof *starts);
    fk_encode_batch batch = {0};
    fk_status status = ids && starts ? FK_OK : fk_fail(FK_ERROR_MEMORY, "out of memory for %lld token ids", (long long)tokens);
    if (status == FK_OK) {
        memset(types, 0, (size_t)tokens * sizeof *types);
        starts[0] = 0;
        for (int64_t s = 0; s < count; s++) {
            for (int64_t i = 0; i < sequences[s].length; i++, at++) {
                ids[at] = sequences[s].ids[i];
                positions[at] = i;
            }
            starts[s + 1] = (int32_t)at;
            if (sequences[s].length > batch.max_seqlen) batch.max_seqlen = sequences[s].length;
        }
        fk_ctx_reset(e->ctx);
        batch.input_ids = upload(e, ids, FK_I64, 1, &tokens);
        batch.positions = upload(e, positions, FK_I64, 1, &tokens);
        batch.token_type_ids = upload(e, types, FK_I64, 1, &tokens);
        batch.cu_seqlens = upload(e, starts, FK_I32, 1, (int64_t[]){count + 1});
        fk_tensor vectors = fk_model_encode(e->ctx, e->model, &batch);
        status = download(e, &vectors, out);
        if (status != FK_OK) fk_ctx_synchronize(e->ctx); /* nothing reads the arrays now */
    }
    free(ids);
    free(starts);
    return status;
}

static fk_status encode(fk_embedder *e, const fk_id_span *sequences, int64_t count, bool (*interrupted)(void), fk_vectors *out)
{
    for (int64_t i = 0; i < count; i++) {
        FK_TRY(check_sequence(e, &sequences[i], i));
        out->starts[i + 1] = out->starts[i] + (e->info->token_vectors ? sequences[i].length : 1);
    }
    out->values = malloc((size_t)(out->starts[count] * out->features + 1) * sizeof *out->values);
    if (!out->values) return fk_fail(FK_ERROR_MEMORY, "out of memory for %lld vectors", (long long)out->starts[count]);
    for (int64_t first = 0; first < count;) {
        int64_t tokens, n = pass_length(e, sequences, first, count, &tokens);
        if (interrupted && interrupted()) return fk_fail(FK_ERROR_INTERRUPTED, "interrupted");
        FK_TRY(one_pass(e, sequences + first, n, tokens, out->values + out->starts[first] * out->features));
        first += n;
    }
    return FK_OK;
}

fk_status fk_embedder_encode(fk_embedder *e, const fk_id_span *sequences, int64_t count, bool (*interrupted)(void), fk_vectors *out)
{
    *out = (fk_vectors){.count = count, .features = e->info->embedding_size};
    out->starts = calloc((size_t)count + 1, sizeof *out->starts);
    fk_status status = out->starts ? encode(e, sequences, count, interrupted, out)
                                   : fk_fail(FK_ERROR_MEMORY, "out of memory for %lld texts", (long long)count);
    if (status != FK_OK) fk_vectors_deinit(out);
    return status;
}

/* ---- scores */

static int64_t rows_of(const fk_vectors *v, int64_t i)
{
    return v->starts[i + 1] - v->starts[i];
}

/* The vectors of documents [first, first + n), padded to `longest` rows with zeros, in the model's dtype. */
static fk_status pad_vectors(const fk_embedder *e, const fk_vectors *v, int64_t first, int64_t n, int64_t longest, void **out)
{
    fk_dtype dtype = fk_model_dtype(e->model);
    size_t element = (size_t)fk_dtype_bits(dtype) / 8, row = (size_t)v->features * element;
    char *to = calloc((size_t)(n * longest) + 1, row);
    *out = to;
    if (!to) return fk_fail(FK_ERROR_MEMORY, "out of memory for the vectors of %lld documents", (long long)n);
    for (int64_t i = 0; i < n; i++)
        fk_convert_from_f32(to + (size_t)(i * longest) * row, dtype, v->values + v->starts[first + i] * v->features,
                            rows_of(v, first + i) * v->features);
    return FK_OK;
}

static fk_status score_some(fk_embedder *e, const fk_vectors *queries, int64_t query, const fk_vectors *v, const fk_id_span *documents,
                            int64_t first, int64_t n, int64_t longest, float *scores)
{
    void *vectors = NULL, *asked = NULL;
    int64_t *ids = malloc((size_t)(n * longest) * sizeof *ids), features = v->features;
    fk_status status = ids ? FK_OK : fk_fail(FK_ERROR_MEMORY, "out of memory for %lld token ids", (long long)(n * longest));
    if (status == FK_OK) status = pad_vectors(e, v, first, n, longest, &vectors);
    if (status == FK_OK) status = pad_vectors(e, queries, query, 1, rows_of(queries, query), &asked);
    for (int64_t i = 0; status == FK_OK && i < n; i++)
        for (int64_t t = 0; t < longest; t++)
            ids[i * longest + t] = t < documents[first + i].length ? documents[first + i].ids[t] : e->info->pad_token_id;
    if (status == FK_OK) {
        fk_dtype dtype = fk_model_dtype(e->model);
        fk_ctx_reset(e->ctx);
        fk_score_batch batch = {.query = upload(e, asked, dtype, 2, (int64_t[]){rows_of(queries, query), features}),
                                .vectors = upload(e, vectors, dtype, 3, (int64_t[]){n, longest, features})};
        if (e->info->token_vectors) batch.ids = upload(e, ids, FK_I64, 2, (int64_t[]){n, longest});
        if (e->info->token_vectors && e->num_skiplist > 0) batch.skiplist = upload(e, e->skiplist, FK_I64, 1, &e->num_skiplist);
        fk_tensor found = fk_model_score(e->ctx, e->model, &batch);
        status = download(e, &found, scores + first);
        if (status != FK_OK) fk_ctx_synchronize(e->ctx);
    }
    free(ids);
    free(vectors);
    free(asked);
    return status;
}

fk_status fk_embedder_score(fk_embedder *e, const fk_vectors *queries, int64_t query, const fk_vectors *v, const fk_id_span *documents,
                            float *scores)
{
    int64_t row_bytes = v->features * fk_dtype_bits(fk_model_dtype(e->model)) / 8;
    for (int64_t first = 0; first < v->count;) {
        int64_t n = 0, longest = 0;
        while (first + n < v->count) { /* at least one */
            int64_t rows = rows_of(v, first + n) > longest ? rows_of(v, first + n) : longest;
            if (n > 0 && rows * (n + 1) * row_bytes > SCORED_BYTES) break;
            longest = rows;
            n++;
        }
        FK_TRY(score_some(e, queries, query, v, documents, first, n, longest, scores));
        first += n;
    }
    return FK_OK;
}
