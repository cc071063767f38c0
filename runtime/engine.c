/* SPDX-License-Identifier: Apache-2.0 */
/* The engine's step: schedule, build the batch, forward, choose tokens, take them in. */
#define _GNU_SOURCE
#include "runtime/engine.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <fk/backend.h>
#include <fk/ops.h>

#include "core/arena.h"
#include "core/dtype.h"
#include "runtime/engine_batch.h"
#include "runtime/penalties.h"
#include "runtime/scheduler.h"
#include "text/tokenizer.h"

#define DEFAULT_NUM_SEQS 32
#define DEFAULT_BLOCK_SIZE 16
#define DEFAULT_BATCHED_TOKENS 2048
#define DEFAULT_CPU_CACHE_BYTES ((int64_t)1 << 30)
#define DEVICE_SHARE 0.85 /* of a device's memory for weights and cache; the rest is for activations and libraries */

/* What a sequence's `user` is. */
typedef struct request {
    fk_sampling sampling; /* first: the batch reads it */
    int32_t *stop_ids, *forced;
    int64_t num_forced;
} request;

struct fk_engine {
    const fk_model *model;
    const fk_model_info *info;
    fk_ctx *ctx;
    fk_backend *backend;
    fk_arena cache_arena;
    fk_kv_cache cache;
    int64_t cache_bytes, max_model_len, max_num_seqs;
    fk_scheduler scheduler;
    fk_batch_buffers buffers;
    int64_t *ids;          /* [max_num_seqs] */
    fk_step_token *tokens; /* [max_num_seqs] */
    bool keep_logits;
    float *logits;
    fk_penalty_buffer penalties;
    void *raw_logits;
    size_t logits_bytes, raw_logits_bytes;
    int32_t *eos_ids; /* from the config; the tokenizer has its own */
    int64_t num_eos_ids;
    fk_status failed;
    char *message; /* of the failure */
};

/* ---- life */

static int64_t or_default(int64_t value, int64_t instead)
{
    return value > 0 ? value : instead;
}

static fk_status default_cache_bytes(fk_engine *e, int64_t *bytes)
{
    *bytes = DEFAULT_CPU_CACHE_BYTES;
    if (e->backend->device.type == FK_CPU) return FK_OK;
    fk_device_info info;
    FK_TRY(e->backend->describe(e->backend, &info));
    *bytes = (int64_t)(DEVICE_SHARE * (double)info.total_bytes) - fk_model_weight_bytes(e->model);
    if (*bytes > 0) return FK_OK;
    return fk_fail(FK_ERROR_MEMORY, "no room for a cache: %s has %lld bytes, the weights take %lld", info.name,
                   (long long)info.total_bytes, (long long)fk_model_weight_bytes(e->model));
}

/* Fills in max_model_len, max_num_seqs and the scheduler's limits. */
static fk_status choose_limits(fk_engine *e, const fk_engine_options *o, fk_scheduler_limits *limits)
{
    int64_t model_len = e->info->max_position_embeddings;
    if (o->max_model_len > model_len)
        return fk_fail(FK_ERROR_INVALID, "max_model_len %lld is more than the context of %s, %lld tokens",
                       (long long)o->max_model_len, fk_model_name(e->model), (long long)model_len);
    e->max_num_seqs = or_default(o->max_num_seqs, DEFAULT_NUM_SEQS);
    e->max_model_len = or_default(o->max_model_len, model_len);
    *limits = (fk_scheduler_limits){.max_num_seqs = e->max_num_seqs,
                                    .block_size = or_default(o->block_size, DEFAULT_BLOCK_SIZE),
                                    .num_blocks = o->num_blocks};
    int64_t block_bytes = 2 * e->info->num_layers * limits->block_size * e->info->num_kv_heads * e->info->head_size *
                          (fk_dtype_bits(fk_model_dtype(e->model)) / 8);
    if (limits->num_blocks <= 0) {
        int64_t bytes = o->cache_bytes, one = (e->max_model_len + limits->block_size - 1) / limits->block_size;
        if (bytes <= 0) FK_TRY(default_cache_bytes(e, &bytes));
        if (__builtin_mul_overflow(one, e->max_num_seqs, &limits->num_blocks) || limits->num_blocks > bytes / block_bytes)
            limits->num_blocks = bytes / block_bytes;
        if (limits->num_blocks == 0)
            return fk_fail(FK_ERROR_MEMORY, "a cache of %lld bytes does not hold one block of %lld", (long long)bytes,
                           (long long)block_bytes);
    }
    e->cache_bytes = limits->num_blocks * block_bytes;
    if (o->max_model_len <= 0 && e->max_model_len > limits->num_blocks * limits->block_size)
        e->max_model_len = limits->num_blocks * limits->block_size;
    limits->max_batched_tokens = or_default(o->max_batched_tokens, DEFAULT_BATCHED_TOKENS);
    return FK_OK;
}

/* Zeroed: a kernel may load a whole block and mask by multiplying. */
static fk_status create_cache(fk_engine *e, const fk_scheduler_limits *limits)
{
    int64_t layers = e->info->num_layers;
    int64_t shape[4] = {limits->num_blocks, limits->block_size, e->info->num_kv_heads, e->info->head_size};
    e->cache = (fk_kv_cache){.num_layers = layers, .num_blocks = shape[0], .block_size = shape[1]};
    e->cache.key = calloc((size_t)(2 * layers), sizeof *e->cache.key);
    if (!e->cache.key) return fk_fail(FK_ERROR_MEMORY, "out of memory for %lld layers", (long long)layers);
    e->cache.value = e->cache.key + layers;
    for (int64_t i = 0; i < 2 * layers; i++) {
        fk_tensor *t = &e->cache.key[i];
        FK_TRY(fk_arena_tensor(&e->cache_arena, fk_model_dtype(e->model), 4, shape, t));
        FK_TRY(e->backend->fill_bytes(e->backend, fk_ctx_stream(e->ctx), t->data, 0, fk_tensor_nbytes(t)));
    }
    return FK_OK;
}

/* eos_token_id of the config: a number or a list of them. */
static fk_status read_eos_ids(fk_engine *e)
{
    const json_t *field = json_object_get((const json_t *)fk_model_config(e->model), "eos_token_id");
    size_t count = json_is_array(field) ? json_array_size(field) : json_is_integer(field) ? 1 : 0;
    if (count == 0) return FK_OK;
    e->eos_ids = calloc(count, sizeof *e->eos_ids);
    if (!e->eos_ids) return fk_fail(FK_ERROR_MEMORY, "out of memory for %zu end tokens", count);
    for (size_t i = 0; i < count; i++)
        e->eos_ids[i] = (int32_t)json_integer_value(json_is_array(field) ? json_array_get(field, i) : field);
    e->num_eos_ids = (int64_t)count;
    return FK_OK;
}

static fk_status set_up(fk_engine *e, const fk_engine_options *o)
{
    fk_scheduler_limits limits;
    FK_TRY(fk_ctx_create(&(fk_ctx_options){.device = fk_model_device(e->model),
                                           .threads = o->threads,
                                           .references_only = o->references_only},
                         &e->ctx));
    e->backend = fk_ctx_backend(e->ctx);
    fk_arena_init(&e->cache_arena, e->backend, 1); /* a chunk a tensor */
    FK_TRY(choose_limits(e, o, &limits));
    FK_TRY(fk_scheduler_init(&e->scheduler, &limits));
    FK_TRY(create_cache(e, &limits));
    FK_TRY(read_eos_ids(e));
    int64_t tokens = limits.max_batched_tokens > limits.max_num_seqs ? limits.max_batched_tokens : limits.max_num_seqs;
    FK_TRY(fk_batch_buffers_init(&e->buffers, e->backend,
                                 (fk_batch_sizes){.tokens = tokens,
                                                  .sequences = limits.max_num_seqs,
                                                  .blocks = (e->max_model_len + limits.block_size - 1) / limits.block_size,
                                                  .logits = limits.max_num_seqs}));
    e->ids = calloc((size_t)e->max_num_seqs, sizeof *e->ids);
    e->tokens = calloc((size_t)e->max_num_seqs, sizeof *e->tokens);
    if (!e->ids || !e->tokens) return fk_fail(FK_ERROR_MEMORY, "out of memory for the tokens of a step");
    return fk_ctx_synchronize(e->ctx);
}

fk_status fk_engine_create(const fk_model *model, const fk_engine_options *options, fk_engine **out)
{
    *out = NULL;
    if (fk_model_is_encoder(model))
        return fk_fail(FK_ERROR_INVALID, "model %s is an encoder: it gives vectors, not tokens", fk_model_name(model));
    fk_engine *e = calloc(1, sizeof *e);
    if (!e) return fk_fail(FK_ERROR_MEMORY, "out of memory for an engine");
    e->model = model;
    e->info = fk_model_get_info(model);
    fk_status status = set_up(e, options);
    if (status == FK_OK) *out = e;
    else fk_engine_destroy(e);
    return status;
}

static void free_request(request *r)
{
    if (!r) return;
    free(r->stop_ids);
    free(r->forced);
    free(r);
}

void fk_engine_destroy(fk_engine *e)
{
    if (!e) return;
    for (int64_t i = 0; i < e->scheduler.num_running; i++) free_request(e->scheduler.running[i]->user);
    for (int64_t i = 0; i < e->scheduler.num_waiting; i++) free_request(e->scheduler.waiting[i]->user);
    fk_scheduler_deinit(&e->scheduler);
    if (e->ctx) {
        e->backend->stream_synchronize(e->backend, fk_ctx_stream(e->ctx)); /* nothing runs on what goes now */
        fk_batch_buffers_deinit(&e->buffers);
        fk_arena_deinit(&e->cache_arena);
    }
    fk_ctx_destroy(e->ctx);
    free(e->cache.key);
    free(e->ids);
    free(e->tokens);
    free(e->logits);
    free(e->raw_logits);
    free(e->penalties.memory);
    free(e->eos_ids);
    free(e->message);
    free(e);
}

fk_ctx *fk_engine_ctx(fk_engine *e)
{
    return e->ctx;
}

const fk_model *fk_engine_model(const fk_engine *e)
{
    return e->model;
}

int64_t fk_engine_max_model_len(const fk_engine *e)
{
    return e->max_model_len;
}

fk_engine_stats fk_engine_get_stats(const fk_engine *e)
{
    const fk_scheduler *s = &e->scheduler;
    return (fk_engine_stats){.num_running = s->num_running,
                             .num_waiting = s->num_waiting,
                             .num_blocks = s->pool.num_blocks,
                             .free_blocks = s->pool.num_free,
                             .block_size = s->limits.block_size,
                             .num_preemptions = s->num_preemptions,
                             .cache_bytes = e->cache_bytes};
}

/* ---- requests */

static fk_status copy_ids(const int32_t *ids, int64_t count, int32_t **out)
{
    *out = malloc((size_t)(count > 0 ? count : 1) * sizeof **out);
    if (!*out) return fk_fail(FK_ERROR_MEMORY, "out of memory for %lld token ids", (long long)count);
    if (count > 0) memcpy(*out, ids, (size_t)count * sizeof **out);
    return FK_OK;
}

static fk_status check_ids(const fk_engine *e, const char *what, const int32_t *ids, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= e->info->vocab_size)
            return fk_fail(FK_ERROR_INVALID, "%s: id %d at position %lld is outside the vocabulary of %lld", what, ids[i],
                           (long long)i, (long long)e->info->vocab_size);
    return FK_OK;
}

static fk_status check_sampling(const fk_sampling *s)
{
    if (!(s->temperature >= 0)) return fk_fail(FK_ERROR_INVALID, "temperature %g is below 0", (double)s->temperature);
    if (!(s->top_p >= 0)) return fk_fail(FK_ERROR_INVALID, "top_p %g is below 0", (double)s->top_p);
    if (!(s->min_p >= 0 && s->min_p <= 1)) return fk_fail(FK_ERROR_INVALID, "min_p %g is outside 0 to 1", (double)s->min_p);
    FK_TRY(fk_penalties_check(s));
    if (s->max_tokens < 0) return fk_fail(FK_ERROR_INVALID, "max_tokens %lld is below 0", (long long)s->max_tokens);
    return FK_OK;
}

fk_status fk_engine_add(fk_engine *e, const int32_t *prompt, int64_t length, const fk_sampling *sampling, int64_t *number)
{
    if (length < 1) return fk_fail(FK_ERROR_INVALID, "the prompt is empty: %s needs at least one token", fk_model_name(e->model));
    FK_TRY(check_ids(e, "prompt", prompt, length));
    FK_TRY(check_sampling(sampling));
    if (length >= e->max_model_len)
        return fk_fail(FK_ERROR_INVALID, "a prompt of %lld tokens leaves no room for an answer in the context of %lld",
                       (long long)length, (long long)e->max_model_len);
    int64_t room = e->max_model_len - length;
    int64_t new_tokens = sampling->max_tokens > 0 && sampling->max_tokens < room ? sampling->max_tokens : room;

    request *r = calloc(1, sizeof *r);
    if (!r) return fk_fail(FK_ERROR_MEMORY, "out of memory for a request");
    r->sampling = *sampling;
    fk_sequence *sequence;
    fk_status status = copy_ids(sampling->stop_ids, sampling->num_stop_ids, &r->stop_ids);
    if (status == FK_OK) status = fk_scheduler_add(&e->scheduler, prompt, length, length + new_tokens, &sequence);
    if (status != FK_OK) {
        free_request(r);
        return status;
    }
    r->sampling.stop_ids = r->stop_ids;
    sequence->user = r;
    *number = sequence->request;
    return FK_OK;
}

fk_status fk_engine_force(fk_engine *e, int64_t number, const int32_t *ids, int64_t count)
{
    fk_sequence *sequence = fk_scheduler_find(&e->scheduler, number);
    if (!sequence) return fk_fail(FK_ERROR_INVALID, "no request %lld", (long long)number);
    FK_TRY(check_ids(e, "forced tokens", ids, count));
    request *r = sequence->user;
    free(r->forced);
    r->num_forced = 0;
    FK_TRY(copy_ids(ids, count, &r->forced));
    r->num_forced = count;
    return FK_OK;
}

static void end(fk_engine *e, fk_sequence *sequence)
{
    free_request(sequence->user);
    fk_scheduler_end(&e->scheduler, sequence);
}

void fk_engine_cancel(fk_engine *e, int64_t number)
{
    fk_sequence *sequence = fk_scheduler_find(&e->scheduler, number);
    if (sequence) end(e, sequence);
}

void fk_engine_keep_logits(fk_engine *e, bool on)
{
    e->keep_logits = on;
}

bool fk_engine_idle(const fk_engine *e)
{
    return e->scheduler.num_running == 0 && e->scheduler.num_waiting == 0;
}

/* ---- the step */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static fk_status grow(void **data, size_t *have, size_t bytes)
{
    if (bytes <= *have) return FK_OK;
    free(*data);
    *have = 0;
    *data = malloc(bytes);
    if (!*data) return fk_fail(FK_ERROR_MEMORY, "out of memory for %zu bytes of logits", bytes);
    *have = bytes;
    return FK_OK;
}

static fk_status copy_to_host(fk_engine *e, void *dst, const fk_tensor *t)
{
    return e->backend->copy(e->backend, fk_ctx_stream(e->ctx), dst, t->data, fk_tensor_nbytes(t), FK_DEVICE_TO_HOST);
}

static fk_status fetch_logits(fk_engine *e, const fk_tensor *logits)
{
    FK_TRY(grow(&e->raw_logits, &e->raw_logits_bytes, fk_tensor_nbytes(logits)));
    void *converted = e->logits;
    fk_status status = grow(&converted, &e->logits_bytes, (size_t)fk_tensor_numel(logits) * sizeof(float));
    e->logits = converted;
    FK_TRY(status);
    FK_TRY(copy_to_host(e, e->raw_logits, logits));
    FK_TRY(fk_ctx_synchronize(e->ctx));
    fk_convert_to_f32(e->logits, e->raw_logits, logits->dtype, fk_tensor_numel(logits));
    return FK_OK;
}

/* Computes the scheduled tokens; chosen tokens go to e->ids, one per row of logits. */
static fk_status compute(fk_engine *e, const fk_schedule *schedule)
{
    fk_ctx *ctx = e->ctx;
    fk_batch batch;
    fk_sampling_rows rows;
    fk_ctx_reset(ctx);
    FK_TRY(fk_batch_build(&e->buffers, ctx, schedule, e->scheduler.limits.block_size, &batch, &rows));
    fk_tensor logits = fk_model_forward(ctx, e->model, &batch, &e->cache);
    FK_TRY(fk_ctx_status(ctx));
    if (batch.logits_rows.shape[0] == 0) return fk_ctx_synchronize(ctx);
    if (e->keep_logits) FK_TRY(fetch_logits(e, &logits)); /* as the model gives them */
    FK_TRY(fk_penalties_apply(ctx, schedule, logits, &e->penalties));
    fk_tensor ids = rows.greedy ? fk_argmax(ctx, logits).output
                                : fk_sample(ctx, logits, rows.top_k, rows.top_p, rows.seed, rows.offset, rows.temperature, rows.min_p).output;
    FK_TRY(fk_ctx_status(ctx)); /* before anything is read back */
    FK_TRY(copy_to_host(e, e->ids, &ids));
    return fk_ctx_synchronize(ctx);
}

static bool is_stop(const fk_engine *e, const fk_sampling *sampling, int32_t id)
{
    for (int64_t i = 0; i < sampling->num_stop_ids; i++)
        if (sampling->stop_ids[i] == id) return true;
    if (sampling->ignore_eos) return false;
    for (int64_t i = 0; i < e->num_eos_ids; i++)
        if (e->eos_ids[i] == id) return true;
    const fk_tokenizer *tokenizer = fk_model_tokenizer(e->model);
    return tokenizer && fk_tokenizer_is_eos(tokenizer, id);
}

static fk_status take_token(fk_engine *e, fk_sequence *sequence, int64_t id, fk_step_token *out)
{
    const request *r = sequence->user;
    int64_t answered = sequence->num_tokens - sequence->num_prompt;
    if (id < 0 || id >= e->info->vocab_size)
        return fk_fail(FK_ERROR_INVALID, "request %lld: the logits for token %lld have no largest value (NaN; wrong weights or a wrong kernel); sampling gave %lld",
                       (long long)sequence->request, (long long)sequence->num_tokens, (long long)id);
    *out = (fk_step_token){.request = sequence->request, .id = (int32_t)id, .sampled = (int32_t)id};
    if (answered < r->num_forced) out->id = r->forced[answered];
    fk_scheduler_append(&e->scheduler, sequence, out->id);
    if (is_stop(e, &r->sampling, out->id)) out->finish = FK_FINISH_STOP;
    else if (sequence->num_tokens == sequence->max_tokens) out->finish = FK_FINISH_LENGTH;
    return FK_OK;
}

static fk_status step(fk_engine *e, fk_step *out)
{
    const fk_schedule *schedule;
    FK_TRY(fk_scheduler_next(&e->scheduler, &schedule));
    if (schedule->num_items == 0) return FK_OK;
    FK_TRY(compute(e, schedule));
    fk_scheduler_computed(&e->scheduler, schedule);
    out->prefill = schedule->prefill;
    out->num_new = schedule->num_tokens;
    for (int64_t i = 0; i < schedule->num_items; i++) {
        if (!schedule->items[i].wants_token) continue;
        int64_t row = out->num_tokens++;
        FK_TRY(take_token(e, schedule->items[i].sequence, e->ids[row], &e->tokens[row]));
        if (e->tokens[row].finish != FK_RUNNING) end(e, schedule->items[i].sequence);
    }
    out->tokens = e->tokens;
    if (e->keep_logits && out->num_tokens > 0) out->logits = e->logits;
    return FK_OK;
}

fk_status fk_engine_step(fk_engine *e, fk_step *out)
{
    double start = now();
    *out = (fk_step){0};
    if (e->failed != FK_OK) return fk_fail(e->failed, "%s", e->message ? e->message : "the engine failed before");
    fk_status status = step(e, out);
    if (status != FK_OK) {
        e->failed = status;
        e->message = strdup(fk_error_message());
        *out = (fk_step){0};
        return status;
    }
    out->seconds = now() - start;
    return FK_OK;
}
