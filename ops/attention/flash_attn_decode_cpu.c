/* SPDX-License-Identifier: Apache-2.0 */
/* Attention of one new token per sequence over the paged cache on the CPU: tasks are the query heads of one KV head with
 * SPLIT_KEYS of the sequence's keys (see paged_attention_cpu.h); a second pass joins the parts of a head. The split depends
 * on the sequence alone, so that results depend neither on threads nor on the batch. */
#include "core/cpu_op.h"
#include "ops/attention/paged_attention_cpu.h"

#define SPLIT_KEYS 256 /* a multiple of ATTN_KEYS */

typedef struct decode_job {
    const fk_flash_attn_decode_args *args;
    paged_attention attention;
    attn_task *tasks; /* sequence by sequence, for each row block of each KV head its splits in order */
    int64_t num_tasks;
    int parts;
    float *work;
    float *partial; /* [task][row][padded E + 2]: sums, largest, total */
} decode_job;

static int64_t partial_floats(const decode_job *job)
{
    return attn_padded(&job->attention) + 2;
}

static int64_t partial_rows(const decode_job *job)
{
    int64_t group = job->attention.q->shape[1] / job->attention.k->shape[2];
    return group < ATTN_ROWS ? group : ATTN_ROWS;
}

static float *partial_row(const decode_job *job, int64_t task, int row)
{
    return job->partial + (task * partial_rows(job) + row) * partial_floats(job);
}

static void split_part(void *user, int64_t begin, int64_t end)
{
    const decode_job *job = user;
    int64_t padded = attn_padded(&job->attention);
    for (int64_t p = begin; p < end; p++) {
        attn_work w = attn_work_in(&job->attention, job->work + p * attn_work_floats(&job->attention));
        for (int64_t i = job->num_tasks * p / job->parts; i < job->num_tasks * (p + 1) / job->parts; i++) {
            const attn_task *task = &job->tasks[i];
            if (attn_few(&job->attention, task)) attn_few_run(&job->attention, task, &w);
            else attn_run(&job->attention, task, &w);
            for (int r = 0; r < task->rows; r++) {
                float *to = partial_row(job, i, r);
                for (int64_t e = 0; e < padded; e += FKP_LANES) fkp_v_store_f32(to + e, fkp_v_load_f32(attn_sum(task, &w, r, e)));
                to[padded] = w.largest[r];
                to[padded + 1] = w.total[r];
            }
        }
    }
}

/* Joins the splits [first, first + count) of one row block. The first split's partial rows hold the result on the way. */
static void join(const decode_job *job, int64_t first, int64_t count)
{
    const attn_task *task = &job->tasks[first];
    const fk_tensor *out = job->args->out;
    int64_t features = out->shape[2], padded = attn_padded(&job->attention), group = out->shape[1] / job->attention.k->shape[2];
    for (int r = 0; r < task->rows; r++) {
        float largest = -INFINITY, total = 0, *sum = partial_row(job, first, r);
        for (int64_t s = 0; s < count; s++) {
            float other = partial_row(job, first + s, r)[padded];
            if (other > largest) largest = other;
        }
        if (largest == -INFINITY) largest = 0; /* no key: every factor and every sum is 0 */
        for (int64_t s = 0; s < count; s++) {
            const float *from = partial_row(job, first + s, r);
            float factor = fkp_s_exp(from[padded] - largest);
            total += factor * from[padded + 1];
            for (int64_t e = 0; e < padded; e += FKP_LANES) {
                fkp_vf x = fkp_v_load_f32(from + e) * factor;
                fkp_v_store_f32(sum + e, s == 0 ? x : fkp_v_load_f32(sum + e) + x);
            }
        }
        int64_t at = task->first_token * out->strides[0] + (task->kv_head * group + task->first_row + r) * out->strides[1], e = 0;
        float inverse = total == 0 ? 0 : 1 / total;
        for (; e + FKP_LANES <= features; e += FKP_LANES)
            fkp_v_store(out->data, out->dtype, at + e, fkp_v_load_f32(sum + e) * inverse);
        for (; e < features; e++) fkp_s_store(out->data, out->dtype, at + e, sum[e] * inverse);
    }
}

/* Tasks of one sequence; with job->tasks NULL they are only counted. An empty sequence has one task a row block, without
 * keys, which gives zeros. */
static void add_tasks(decode_job *job, int64_t sequence, int64_t length)
{
    const paged_attention *a = &job->attention;
    int64_t group = a->q->shape[1] / a->k->shape[2], begin, end;
    paged_visible(length - 1, length, true, a->window_size, &begin, &end);
    begin = begin / ATTN_KEYS * ATTN_KEYS;
    for (int64_t head = 0; head < a->k->shape[2]; head++)
        for (int64_t row = 0; row < group; row += ATTN_ROWS) {
            int64_t key = begin;
            do {
                int64_t next = (key / SPLIT_KEYS + 1) * SPLIT_KEYS;
                if (job->tasks)
                    job->tasks[job->num_tasks] =
                        (attn_task){.sequence = sequence, .kv_head = head, .first_token = sequence, .queries = 1, .length = length,
                                    .first_row = row, .rows = group - row < ATTN_ROWS ? (int)(group - row) : ATTN_ROWS,
                                    .key_begin = key, .key_end = next < end ? next : end, .causal = true};
                job->num_tasks++;
                key = next;
            } while (key < end);
        }
}

static fk_status run(fk_ctx *ctx, const fk_flash_attn_decode_args *a)
{
    decode_job job = {.args = a,
                      .attention = {.q = a->q, .k = a->k, .v = a->v, .seqused_k = a->seqused_k, .block_table = a->block_table,
                                    .max_seqlen_k = a->max_seqlen_k, .window_size = a->window_size,
                                    .scale = paged_scale(a->softmax_scale, a->q), .softcap = (double)a->softcap}};
    int64_t sequences = a->q->shape[0];
    if (fk_tensor_numel(a->q) == 0) return FK_OK;
    for (int64_t b = 0; b < sequences; b++) {
        int64_t length;
        FK_TRY(paged_length(ctx, &job.attention, b, &length));
        add_tasks(&job, b, length);
    }
    attn_task *tasks = fk_ctx_scratch(ctx, sizeof *tasks * (size_t)job.num_tasks);
    job.parts = fk_ctx_threads(ctx) < job.num_tasks ? fk_ctx_threads(ctx) : (int)job.num_tasks;
    job.work = fk_ctx_scratch(ctx, sizeof(float) * (size_t)(job.parts * attn_work_floats(&job.attention)));
    job.partial = fk_ctx_scratch(ctx, sizeof(float) * (size_t)(job.num_tasks * partial_rows(&job) * partial_floats(&job)));
    if (!tasks || !job.work || !job.partial) return fk_ctx_status(ctx);
    job.tasks = tasks;
    job.num_tasks = 0;
    for (int64_t b = 0; b < sequences; b++) add_tasks(&job, b, fkp_int1(a->seqused_k, b));
    fkp_parallel_for(job.parts, job.parts, 1, split_part, &job);
    for (int64_t first = 0, next; first < job.num_tasks; first = next) {
        for (next = first + 1; next < job.num_tasks; next++) {
            const attn_task *x = &tasks[first], *y = &tasks[next];
            if (x->sequence != y->sequence || x->kv_head != y->kv_head || x->first_row != y->first_row) break;
        }
        join(&job, first, next - first);
    }
    return FK_OK;
}

static bool supports(const fk_flash_attn_decode_args *a)
{
    return attn_supports(a->q, a->k, a->v, a->out);
}

FK_CPU_OP_IF(flash_attn_decode, run, supports);
