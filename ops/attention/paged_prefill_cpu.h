/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of many queries a sequence over a paged cache on the CPU: tasks are blocks of rows of one KV head of one sequence
 * (see paged_attention_cpu.h), dealt to the threads in turn, because causal rows grow longer towards the end. */
#ifndef FK_OPS_PAGED_PREFILL_CPU_H
#define FK_OPS_PAGED_PREFILL_CPU_H

#include "core/threads.h"
#include "ops/attention/paged_attention_cpu.h"

typedef struct prefill_job {
    paged_attention attention;
    const fk_tensor *out;
    bool causal;
    attn_task *tasks;
    int64_t num_tasks;
    int parts;
    float *work;
} prefill_job;

static inline void prefill_store_rows(const prefill_job *job, const attn_task *task, const attn_work *w)
{
    const fk_tensor *out = job->out;
    int64_t features = out->shape[2], group = out->shape[1] / job->attention.k->shape[2];
    for (int r = 0; r < task->rows; r++) {
        int64_t row = task->first_row + r, e = 0;
        int64_t at = (task->first_token + row / group) * out->strides[0] + (task->kv_head * group + row % group) * out->strides[1];
        float inverse = w->total[r] == 0 ? 0 : 1 / w->total[r]; /* a row that sees no key gives zeros */
        for (; e + FKP_LANES <= features; e += FKP_LANES)
            fkp_v_store(out->data, out->dtype, at + e, fkp_v_load_f32(attn_sum(task, w, r, e)) * inverse);
        for (; e < features; e++) fkp_s_store(out->data, out->dtype, at + e, *attn_sum(task, w, r, e) * inverse);
    }
}

static inline void prefill_part(void *user, int64_t begin, int64_t end)
{
    const prefill_job *job = user;
    for (int64_t p = begin; p < end; p++) {
        attn_work w = attn_work_in(&job->attention, job->work + p * attn_work_floats(&job->attention));
        for (int64_t i = p; i < job->num_tasks; i += job->parts) {
            attn_run(&job->attention, &job->tasks[i], &w);
            prefill_store_rows(job, &job->tasks[i], &w);
        }
    }
}

/* The tasks of one sequence, appended to job->tasks: blocks of rows, for each the KV heads. */
static inline void prefill_add_tasks(prefill_job *job, int64_t sequence, int64_t first_token, int64_t queries, int64_t length)
{
    const paged_attention *a = &job->attention;
    int64_t group = a->q->shape[1] / a->k->shape[2], rows = queries * group;
    for (int64_t row = 0; row < rows; row += ATTN_ROWS)
        for (int64_t head = 0; head < a->k->shape[2]; head++) {
            attn_task task = {.sequence = sequence, .kv_head = head, .first_token = first_token, .queries = queries,
                              .length = length, .first_row = row, .rows = rows - row < ATTN_ROWS ? (int)(rows - row) : ATTN_ROWS,
                              .causal = job->causal};
            int64_t position = length - queries, ignored;
            paged_visible(position + row / group, length, task.causal, a->window_size, &task.key_begin, &ignored);
            paged_visible(position + (row + task.rows - 1) / group, length, task.causal, a->window_size, &ignored, &task.key_end);
            task.key_begin = task.key_begin / ATTN_KEYS * ATTN_KEYS;
            job->tasks[job->num_tasks++] = task;
        }
}

static inline fk_status paged_prefill_cpu(fk_ctx *ctx, const paged_attention *attention, const fk_tensor *cu_seqlens_q,
                                          int64_t max_seqlen_q, bool causal, const fk_tensor *out)
{
    prefill_job job = {.attention = *attention, .out = out, .causal = causal};
    int64_t num_tokens = attention->q->shape[0], sequences = attention->seqused_k->shape[0], start = 0;
    int64_t group = attention->q->shape[1] / attention->k->shape[2];
    int64_t most = (num_tokens * group / ATTN_ROWS + sequences) * attention->k->shape[2];
    job.tasks = fk_ctx_scratch(ctx, sizeof(attn_task) * (size_t)(most + 1));
    if (!job.tasks) return fk_ctx_status(ctx);
    for (int64_t b = 0; b < sequences; b++) {
        int64_t stop = fkp_int1(cu_seqlens_q, b + 1), length;
        if (fkp_int1(cu_seqlens_q, b) != start || stop < start || stop > num_tokens || stop - start > max_seqlen_q)
            return fk_ctx_fail(ctx, FK_ERROR_INVALID, "cu_seqlens_q has %lld, %lld for sequence %lld, wanted to go on at %lld with at most %lld of %lld queries",
                               (long long)fkp_int1(cu_seqlens_q, b), (long long)stop, (long long)b, (long long)start,
                               (long long)max_seqlen_q, (long long)num_tokens);
        FK_TRY(paged_length(ctx, &job.attention, b, &length));
        prefill_add_tasks(&job, b, start, stop - start, length);
        start = stop;
    }
    if (start != num_tokens)
        return fk_ctx_fail(ctx, FK_ERROR_INVALID, "cu_seqlens_q ends at %lld of %lld queries", (long long)start, (long long)num_tokens);
    if (job.num_tasks == 0 || attention->q->shape[2] == 0) return FK_OK;
    job.parts = fk_ctx_threads(ctx) < job.num_tasks ? fk_ctx_threads(ctx) : (int)job.num_tasks;
    job.work = fk_ctx_scratch(ctx, sizeof(float) * (size_t)(job.parts * attn_work_floats(&job.attention)));
    if (!job.work) return fk_ctx_status(ctx);
    fkp_parallel_for(job.parts, job.parts, 1, prefill_part, &job);
    return FK_OK;
}

#endif
