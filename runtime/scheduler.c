/* SPDX-License-Identifier: Apache-2.0 */
/* Admission, chunked prefill, decode and preemption. */
#include "runtime/scheduler.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int64_t blocks_of(const fk_scheduler *s, int64_t tokens)
{
    return (tokens + s->limits.block_size - 1) / s->limits.block_size;
}

fk_status fk_scheduler_init(fk_scheduler *s, const fk_scheduler_limits *limits)
{
    *s = (fk_scheduler){.limits = *limits};
    if (limits->max_num_seqs < 1 || limits->max_batched_tokens < 1 || limits->block_size < 1)
        return fk_fail(FK_ERROR_INVALID, "max_num_seqs %lld, max_batched_tokens %lld, block_size %lld: each is at least 1",
                       (long long)limits->max_num_seqs, (long long)limits->max_batched_tokens,
                       (long long)limits->block_size);
    FK_TRY(fk_block_pool_init(&s->pool, limits->num_blocks));
    s->running = calloc((size_t)limits->max_num_seqs, sizeof(fk_sequence *));
    s->schedule.items = calloc((size_t)limits->max_num_seqs, sizeof *s->schedule.items);
    if (s->running && s->schedule.items) return FK_OK;
    fk_scheduler_deinit(s);
    return fk_fail(FK_ERROR_MEMORY, "out of memory for a scheduler of %lld sequences", (long long)limits->max_num_seqs);
}

static void free_sequence(fk_sequence *sequence)
{
    free(sequence->tokens);
    free(sequence->blocks);
    free(sequence);
}

void fk_scheduler_deinit(fk_scheduler *s)
{
    for (int64_t i = 0; i < s->num_running; i++) free_sequence(s->running[i]);
    for (int64_t i = 0; i < s->num_waiting; i++) free_sequence(s->waiting[i]);
    free(s->running);
    free(s->waiting);
    free(s->schedule.items);
    fk_block_pool_deinit(&s->pool);
    *s = (fk_scheduler){0};
}

/* Makes room for one more waiting sequence, so that giving way cannot fail. */
static fk_status reserve_waiting(fk_scheduler *s)
{
    int64_t needed = s->num_waiting + s->num_running + 1;
    if (needed <= s->waiting_capacity) return FK_OK;
    int64_t capacity = 2 * needed;
    fk_sequence **grown = realloc(s->waiting, (size_t)capacity * sizeof *grown);
    if (!grown) return fk_fail(FK_ERROR_MEMORY, "out of memory for a queue of %lld requests", (long long)capacity);
    s->waiting = grown;
    s->waiting_capacity = capacity;
    return FK_OK;
}

fk_status fk_scheduler_add(fk_scheduler *s, const int32_t *prompt, int64_t length, int64_t max_tokens, fk_sequence **out)
{
    assert(length > 0 && max_tokens > length);
    /* The last token is never computed: nothing follows from it. */
    int64_t blocks = blocks_of(s, max_tokens - 1);
    if (blocks > s->limits.num_blocks)
        return fk_fail(FK_ERROR_INVALID,
                       "a prompt of %lld tokens with up to %lld new ones needs %lld cache blocks of %lld tokens; there are %lld",
                       (long long)length, (long long)(max_tokens - length), (long long)blocks,
                       (long long)s->limits.block_size, (long long)s->limits.num_blocks);
    FK_TRY(reserve_waiting(s));
    fk_sequence *q = calloc(1, sizeof *q);
    /* All the room it will ever need, so that a step cannot run out of host memory half-way. */
    if (q) {
        q->tokens = malloc((size_t)max_tokens * sizeof *q->tokens);
        q->blocks = malloc((size_t)blocks * sizeof *q->blocks);
    }
    if (!q || !q->tokens || !q->blocks) {
        if (q) free_sequence(q);
        return fk_fail(FK_ERROR_MEMORY, "out of memory for a request of %lld tokens", (long long)max_tokens);
    }
    memcpy(q->tokens, prompt, (size_t)length * sizeof *prompt);
    q->request = s->next_request++;
    q->num_tokens = q->num_prompt = length;
    q->max_tokens = max_tokens;
    s->waiting[s->num_waiting++] = q;
    *out = q;
    return FK_OK;
}

/* The newest running sequence waits again, before all others, and will compute its tokens anew. */
static fk_sequence *preempt_newest(fk_scheduler *s)
{
    fk_sequence *q = s->running[--s->num_running];
    fk_block_pool_give(&s->pool, q->blocks, q->num_blocks);
    q->num_blocks = q->num_computed = 0;
    q->answering = false;
    q->num_preempted++;
    memmove(s->waiting + 1, s->waiting, (size_t)s->num_waiting * sizeof *s->waiting);
    s->waiting[0] = q;
    s->num_waiting++;
    s->num_preemptions++;
    s->full = true;
    return q;
}

static bool admit_next(fk_scheduler *s)
{
    if (s->num_waiting == 0 || s->num_running == s->limits.max_num_seqs || s->full) return false;
    fk_sequence *q = s->waiting[0];
    int64_t blocks = blocks_of(s, q->num_tokens);
    if (!fk_block_pool_take(&s->pool, blocks, q->blocks)) return false;
    q->num_blocks = blocks;
    memmove(s->waiting, s->waiting + 1, (size_t)--s->num_waiting * sizeof *s->waiting);
    s->running[s->num_running++] = q;
    return true;
}

static void push(fk_schedule *step, fk_sequence *q, int64_t count)
{
    step->items[step->num_items++] = (fk_schedule_item){.sequence = q,
                                                        .start = q->num_computed,
                                                        .count = count,
                                                        .wants_token = q->num_computed + count == q->num_tokens};
    step->num_tokens += count;
}

static void schedule_prefill(fk_scheduler *s, fk_schedule *step)
{
    for (int64_t i = 0; step->num_tokens < s->limits.max_batched_tokens; i++) {
        if (i == s->num_running && !admit_next(s)) break;
        fk_sequence *q = s->running[i];
        if (q->answering) continue;
        int64_t left = s->limits.max_batched_tokens - step->num_tokens, count = q->num_tokens - q->num_computed;
        push(step, q, count < left ? count : left);
    }
    step->prefill = step->num_items > 0;
}

static void schedule_decode(fk_scheduler *s, fk_schedule *step)
{
    for (int64_t i = 0; i < s->num_running; i++) {
        fk_sequence *q = s->running[i];
        if (!q->answering) continue;
        bool room = q->num_blocks * s->limits.block_size >= q->num_tokens;
        while (!room && i < s->num_running) {
            room = fk_block_pool_take(&s->pool, 1, q->blocks + q->num_blocks);
            if (room) q->num_blocks++;
            else preempt_newest(s); /* q itself when it is the newest: i is past the end then */
        }
        if (room) push(step, q, 1);
    }
}

fk_status fk_scheduler_next(fk_scheduler *s, const fk_schedule **out)
{
    fk_schedule *step = &s->schedule;
    step->num_items = step->num_tokens = 0;
    step->prefill = false;
    *out = step;
    bool any_answering = false;
    for (int64_t i = 0; i < s->num_running; i++) any_answering |= s->running[i]->answering;
    FK_TRY(reserve_waiting(s));
    if (!(s->last_was_prefill && any_answering)) schedule_prefill(s, step);
    if (!step->prefill) schedule_decode(s, step);
    s->last_was_prefill = step->prefill;
    return FK_OK;
}

void fk_scheduler_computed(fk_scheduler *s, const fk_schedule *step)
{
    (void)s;
    for (int64_t i = 0; i < step->num_items; i++) step->items[i].sequence->num_computed += step->items[i].count;
}

void fk_scheduler_append(fk_scheduler *s, fk_sequence *q, int32_t token)
{
    (void)s;
    assert(q->num_computed == q->num_tokens && q->num_tokens < q->max_tokens);
    q->tokens[q->num_tokens++] = token;
    q->answering = true;
}

static bool remove_from(fk_sequence **list, int64_t *count, const fk_sequence *q)
{
    for (int64_t i = 0; i < *count; i++) {
        if (list[i] != q) continue;
        memmove(list + i, list + i + 1, (size_t)(*count - i - 1) * sizeof *list);
        --*count;
        return true;
    }
    return false;
}

void fk_scheduler_end(fk_scheduler *s, fk_sequence *q)
{
    if (remove_from(s->running, &s->num_running, q)) s->full = false;
    else if (!remove_from(s->waiting, &s->num_waiting, q)) assert(!"a sequence of this scheduler");
    fk_block_pool_give(&s->pool, q->blocks, q->num_blocks);
    free_sequence(q);
}

fk_sequence *fk_scheduler_find(const fk_scheduler *s, int64_t request)
{
    for (int64_t i = 0; i < s->num_running; i++)
        if (s->running[i]->request == request) return s->running[i];
    for (int64_t i = 0; i < s->num_waiting; i++)
        if (s->waiting[i]->request == request) return s->waiting[i];
    return NULL;
}
