/* SPDX-License-Identifier: Apache-2.0 */
/* Penalties on the CPU: the tokens of both lists are counted, then each is met once more and its count taken. Only logits of tokens in the
 * lists are touched. Rows are split over threads. */
#include <string.h>

#include "core/cpu_op.h"
#include "core/simd.h"
#include "core/threads.h"
#include "ops/sampling/penalty.h"

typedef struct penalty_job {
    const fk_apply_penalties_args *args;
    int parts;
    int32_t *counts; /* [part][V], all 0 */
} penalty_job;

static int64_t token_at(const fk_tensor *tokens, int64_t b, int64_t i)
{
    return ((const int64_t *)tokens->data)[b * tokens->strides[0] + i * tokens->strides[1]];
}

static void count_tokens(const fk_tensor *tokens, int64_t b, int64_t v, int32_t each, int32_t *counts)
{
    for (int64_t i = 0; i < tokens->shape[1]; i++) {
        int64_t token = token_at(tokens, b, i);
        if (token < 0 || token >= v) continue;
        if (each == PENALTY_PROMPT) counts[token] |= PENALTY_PROMPT;
        else counts[token] += each;
    }
}

static void take_tokens(const fk_apply_penalties_args *a, const fk_tensor *tokens, int64_t b, int32_t *counts)
{
    const fk_tensor *logits = a->logits;
    float presence = fkp_s_load(a->presence_penalties->data, FK_F32, b * a->presence_penalties->strides[0]);
    float frequency = fkp_s_load(a->frequency_penalties->data, FK_F32, b * a->frequency_penalties->strides[0]);
    float repetition = fkp_s_load(a->repetition_penalties->data, FK_F32, b * a->repetition_penalties->strides[0]);
    for (int64_t i = 0; i < tokens->shape[1]; i++) {
        int64_t token = token_at(tokens, b, i);
        if (token < 0 || token >= logits->shape[1] || counts[token] == 0) continue;
        int64_t at = b * logits->strides[0] + token * logits->strides[1];
        float x = fkp_s_load(logits->data, logits->dtype, at);
        fkp_s_store(logits->data, logits->dtype, at, penalized(x, counts[token], presence, frequency, repetition));
        counts[token] = 0;
    }
}

static void rows_part(void *user, int64_t begin, int64_t end)
{
    const penalty_job *job = user;
    const fk_apply_penalties_args *a = job->args;
    int64_t rows = a->logits->shape[0], v = a->logits->shape[1];
    for (int64_t p = begin; p < end; p++) {
        int32_t *counts = job->counts + p * v;
        for (int64_t b = rows * p / job->parts; b < rows * (p + 1) / job->parts; b++) {
            count_tokens(a->prompt_tokens_tensor, b, v, PENALTY_PROMPT, counts);
            count_tokens(a->output_tokens_tensor, b, v, PENALTY_ANSWER, counts);
            take_tokens(a, a->prompt_tokens_tensor, b, counts);
            take_tokens(a, a->output_tokens_tensor, b, counts);
        }
    }
}

static fk_status run(fk_ctx *ctx, const fk_apply_penalties_args *a)
{
    int64_t rows = a->logits->shape[0], v = a->logits->shape[1];
    if (rows == 0 || v == 0) return FK_OK;
    penalty_job job = {.args = a, .parts = fk_ctx_threads(ctx) < rows ? fk_ctx_threads(ctx) : (int)rows};
    size_t bytes = sizeof(int32_t) * (size_t)(job.parts * v);
    job.counts = fk_ctx_scratch(ctx, bytes);
    if (!job.counts) return fk_ctx_status(ctx);
    memset(job.counts, 0, bytes);
    fkp_parallel_for(job.parts, job.parts, 1, rows_part, &job);
    return FK_OK;
}

FK_CPU_OP(apply_penalties, run);
