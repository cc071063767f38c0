/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/penalties.h"

#include <stdlib.h>

#include <fk/ops.h>

static float repetition_of(const fk_sampling *s)
{
    return s->repetition_penalty > 0 ? s->repetition_penalty : 1;
}

static bool has_penalty(const fk_sampling *s)
{
    return s->presence_penalty != 0 || s->frequency_penalty != 0 || repetition_of(s) != 1;
}

fk_status fk_penalties_check(const fk_sampling *s)
{
    const struct {
        const char *name;
        float value, least, most;
    } all[] = {{"presence_penalty", s->presence_penalty, -2, 2}, {"frequency_penalty", s->frequency_penalty, -2, 2},
               {"repetition_penalty", s->repetition_penalty, 0, 10}};
    for (int i = 0; i < 3; i++)
        if (!(all[i].value >= all[i].least && all[i].value <= all[i].most))
            return fk_fail(FK_ERROR_INVALID, "%s %g is outside %g to %g", all[i].name, (double)all[i].value, (double)all[i].least, (double)all[i].most);
    return FK_OK;
}

/* A device tensor with those contents. */
static fk_tensor upload(fk_ctx *ctx, fk_dtype dtype, int ndim, const int64_t *shape, const void *host)
{
    fk_backend *backend = fk_ctx_backend(ctx);
    fk_tensor t = fk_ctx_tensor(ctx, dtype, ndim, shape);
    if (fk_ctx_status(ctx) != FK_OK || fk_tensor_numel(&t) == 0) return t;
    fk_status status = backend->copy(backend, fk_ctx_stream(ctx), t.data, (void *)(uintptr_t)host, fk_tensor_nbytes(&t), FK_HOST_TO_DEVICE);
    if (status != FK_OK) fk_ctx_fail(ctx, status, "%s", fk_error_message());
    return t;
}

/* tokens[0, count) to a row of `room`, then padding. */
static void list_tokens(int64_t *to, int64_t room, const int32_t *tokens, int64_t count)
{
    for (int64_t i = 0; i < room; i++) to[i] = i < count ? tokens[i] : -1;
}

fk_status fk_penalties_apply(fk_ctx *ctx, const fk_schedule *schedule, fk_tensor logits, fk_penalty_buffer *buffer)
{
    int64_t rows = logits.shape[0], prompt = 0, answer = 0;
    bool any = false;
    for (int64_t i = 0; i < schedule->num_items; i++) {
        const fk_sequence *q = schedule->items[i].sequence;
        if (!schedule->items[i].wants_token || !has_penalty(q->user)) continue;
        any = true;
        if (q->num_prompt > prompt) prompt = q->num_prompt;
        if (q->num_tokens - q->num_prompt > answer) answer = q->num_tokens - q->num_prompt;
    }
    if (!any) return FK_OK;
    size_t bytes = (size_t)rows * ((size_t)(prompt + answer) * sizeof(int64_t) + 3 * sizeof(float));
    if (bytes > buffer->bytes) {
        free(buffer->memory);
        *buffer = (fk_penalty_buffer){.memory = malloc(bytes), .bytes = bytes};
        if (!buffer->memory) {
            buffer->bytes = 0;
            return fk_fail(FK_ERROR_MEMORY, "out of memory for %zu bytes of tokens to penalize", bytes);
        }
    }
    int64_t *prompts = buffer->memory, *answers = prompts + rows * prompt, row = 0;
    float *presence = (float *)(answers + rows * answer), *frequency = presence + rows, *repetition = frequency + rows;
    for (int64_t i = 0; i < schedule->num_items; i++) {
        const fk_sequence *q = schedule->items[i].sequence;
        if (!schedule->items[i].wants_token) continue;
        const fk_sampling *s = q->user;
        bool listed = has_penalty(s); /* the others' lists are empty */
        list_tokens(prompts + row * prompt, prompt, q->tokens, listed ? q->num_prompt : 0);
        list_tokens(answers + row * answer, answer, q->tokens + q->num_prompt, listed ? q->num_tokens - q->num_prompt : 0);
        presence[row] = s->presence_penalty, frequency[row] = s->frequency_penalty, repetition[row] = repetition_of(s);
        row++;
    }
    const int64_t prompt_shape[] = {rows, prompt}, answer_shape[] = {rows, answer};
    fk_apply_penalties(ctx, logits, upload(ctx, FK_I64, 2, prompt_shape, prompts), upload(ctx, FK_I64, 2, answer_shape, answers),
                       upload(ctx, FK_F32, 1, &rows, presence), upload(ctx, FK_F32, 1, &rows, frequency),
                       upload(ctx, FK_F32, 1, &rows, repetition));
    return fk_ctx_status(ctx);
}
