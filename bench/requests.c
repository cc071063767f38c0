/* SPDX-License-Identifier: Apache-2.0 */
/* A scenario's requests as token ids, and running them on an engine. */
#define _GNU_SOURCE
#include "bench/scenario.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/seeded.h"
#include "runtime/embedder.h"
#include "runtime/prompt.h"

static fk_status copy(fkp_request *request, const int32_t *ids, int64_t count)
{
    request->ids = malloc((size_t)count * sizeof *ids);
    if (!request->ids) return fk_fail(FK_ERROR_MEMORY, "out of memory for %lld token ids", (long long)count);
    memcpy(request->ids, ids, (size_t)count * sizeof *ids);
    request->length = count;
    return FK_OK;
}

/* A function of the scenario's name and the request's number alone. */
static void draw(const char *name, int64_t number, int64_t vocab_size, int32_t *ids, int64_t count)
{
    uint64_t key = 0;
    for (const char *c = name; *c; c++) key = fkp_mix64(key ^ (uint64_t)(unsigned char)*c);
    key = fkp_mix64(key ^ (uint64_t)number);
    for (int64_t i = 0; i < count; i++) ids[i] = (int32_t)(fkp_mix64(key + (uint64_t)i) % (uint64_t)vocab_size);
}

static fk_status encode(const fkp_scenario *scenario, const fkp_scenario_request *from, const fk_model *model, int64_t number,
                        fkp_request *to)
{
    bool encoder = fk_model_is_encoder(model);
    to->max_tokens = encoder ? 0 : from->max_tokens;
    if (encoder && (from->system || from->raw))
        return fk_fail(FK_ERROR_INVALID, "system and raw say how a chat is written; %s is an encoder", fk_model_name(model));
    if (from->ids) return copy(to, from->ids, from->num_ids);
    if (from->random_ids) {
        int64_t context = fk_model_get_info(model)->max_position_embeddings;
        if (from->random_ids + to->max_tokens > context)
            return fk_fail(FK_ERROR_INVALID, "%lld random_ids and %lld tokens more; the context of %s holds %lld", (long long)from->random_ids,
                           (long long)to->max_tokens, fk_model_name(model), (long long)context);
        to->ids = malloc((size_t)from->random_ids * sizeof *to->ids);
        if (!to->ids) return fk_fail(FK_ERROR_MEMORY, "out of memory for %lld token ids", (long long)from->random_ids);
        to->length = from->random_ids;
        draw(scenario->name, number, fk_model_get_info(model)->vocab_size, to->ids, to->length);
        return FK_OK;
    }
    fk_token_list list = {0};
    fk_prompt prompt = {.text = fk_piece_of(from->prompt), .raw = from->raw};
    if (from->system) prompt.system = fk_piece_of(from->system);
    fk_text_role role = number == 0 ? FK_TEXT_QUERY : FK_TEXT_DOCUMENT; /* bench/encoder_runs.h */
    fk_status status = encoder ? fk_embedder_tokenize(model, prompt.text, role, &list, NULL) : fk_prompt_encode(model, &prompt, &list);
    if (status == FK_OK) status = copy(to, list.ids, list.count);
    fk_token_list_deinit(&list);
    return status;
}

fk_status fkp_requests_create(const fkp_scenario *scenario, const fk_model *model, int64_t most, fkp_requests *out)
{
    int64_t total = 0;
    for (int64_t i = 0; i < scenario->num_requests; i++) total += scenario->requests[i].count;
    if (most > 0 && most < total) total = most;
    *out = (fkp_requests){.max_num_seqs = total < scenario->max_num_seqs ? total : scenario->max_num_seqs};
    out->items = calloc((size_t)total, sizeof *out->items);
    if (!out->items) return fk_fail(FK_ERROR_MEMORY, "out of memory for %lld requests", (long long)total);
    fk_status status = FK_OK;
    for (int64_t i = 0; i < scenario->num_requests && status == FK_OK; i++)
        for (int64_t c = 0; c < scenario->requests[i].count && out->count < total && status == FK_OK; c++) {
            fkp_request *to = &out->items[out->count];
            status = encode(scenario, &scenario->requests[i], model, out->count, to);
            out->count++;
            if (to->length + to->max_tokens > out->longest) out->longest = to->length + to->max_tokens;
        }
    if (status == FK_OK) return FK_OK;
    fk_fail_context(status, "request %lld of scenario %s", (long long)out->count, scenario->name);
    fkp_requests_deinit(out);
    return status;
}

void fkp_requests_deinit(fkp_requests *requests)
{
    for (int64_t i = 0; i < requests->count; i++) free(requests->items[i].ids);
    free(requests->items);
    *requests = (fkp_requests){0};
}

fk_engine_options fkp_requests_engine(const fkp_requests *requests)
{
    return (fk_engine_options){.max_num_seqs = requests->max_num_seqs, .max_model_len = requests->longest};
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static fk_status allocate(const fkp_requests *requests, fkp_answers *a)
{
    size_t n = (size_t)requests->count;
    *a = (fkp_answers){.ids = calloc(n, sizeof *a->ids),
                       .lengths = calloc(n, sizeof *a->lengths),
                       .first_s = calloc(n, sizeof *a->first_s),
                       .last_s = calloc(n, sizeof *a->last_s)};
    if (!a->ids || !a->lengths || !a->first_s || !a->last_s) return fk_fail(FK_ERROR_MEMORY, "out of memory for answers");
    a->count = requests->count;
    for (int64_t i = 0; i < a->count; i++) {
        a->ids[i] = calloc((size_t)requests->items[i].max_tokens, sizeof **a->ids);
        if (!a->ids[i]) return fk_fail(FK_ERROR_MEMORY, "out of memory for answers");
    }
    return FK_OK;
}

static fk_status run(const fkp_requests *requests, fk_engine *engine, const fkp_watch *watch, fkp_answers *a)
{
    int64_t vocab_size = fk_model_get_info(fk_engine_model(engine))->vocab_size;
    int64_t first = 0;
    FK_TRY(allocate(requests, a));
    double start = now();
    for (int64_t i = 0; i < requests->count; i++) {
        const fkp_request *q = &requests->items[i];
        int64_t number;
        fk_status status = fk_engine_add(engine, q->ids, q->length,
                                         &(fk_sampling){.max_tokens = q->max_tokens, .ignore_eos = true}, &number);
        if (status != FK_OK) return fk_fail_context(status, "request %lld", (long long)i + 1);
        if (i == 0) first = number; /* numbers follow one another */
        if (watch->forced) FK_TRY(fk_engine_force(engine, number, watch->forced->ids[i], watch->forced->lengths[i]));
    }
    while (!fk_engine_idle(engine)) {
        if (watch->interrupted && watch->interrupted()) return fk_fail(FK_ERROR_INTERRUPTED, "interrupted");
        fk_step step;
        FK_TRY(fk_engine_step(engine, &step));
        double at = now() - start;
        for (int64_t t = 0; t < step.num_tokens; t++) {
            int64_t i = step.tokens[t].request - first;
            if (a->lengths[i] == 0) a->first_s[i] = at;
            a->last_s[i] = at;
            if (watch->token)
                watch->token(watch->user, i, a->lengths[i], &step.tokens[t], step.logits ? step.logits + t * vocab_size : NULL);
            a->ids[i][a->lengths[i]++] = step.tokens[t].id;
            a->tokens++;
        }
    }
    a->seconds = now() - start;
    return FK_OK;
}

fk_status fkp_requests_run(const fkp_requests *requests, fk_engine *engine, bool (*interrupted)(void), fkp_answers *out)
{
    return fkp_requests_run_watched(requests, engine, &(fkp_watch){.interrupted = interrupted}, out);
}

fk_status fkp_requests_run_watched(const fkp_requests *requests, fk_engine *engine, const fkp_watch *watch, fkp_answers *out)
{
    fk_status status = run(requests, engine, watch, out);
    if (status != FK_OK) fkp_answers_deinit(out);
    return status;
}

void fkp_answers_deinit(fkp_answers *a)
{
    for (int64_t i = 0; i < a->count; i++) free(a->ids[i]);
    free(a->ids);
    free(a->lengths);
    free(a->first_s);
    free(a->last_s);
    *a = (fkp_answers){0};
}
