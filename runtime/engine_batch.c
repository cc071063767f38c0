/* SPDX-License-Identifier: Apache-2.0 */
/* From a schedule to the tensors of a step. */
#include "runtime/engine_batch.h"

#include <assert.h>
#include <stdlib.h>

#define ALIGNMENT 64u /* of each array: whole cache lines, any vector load */

/* The arrays of a step in host memory, and how long they are together. */
typedef struct host_arrays {
    int64_t *input_ids, *positions, *slot_mapping;
    int64_t *logits_rows, *seed, *offset;
    int32_t *cu_seqlens_q, *seqused_k, *block_table, *top_k;
    float *temperature, *top_p, *min_p;
    size_t bytes;
} host_arrays;

static void *place(host_arrays *arrays, char *base, size_t element_bytes, int64_t count)
{
    void *at = base ? base + arrays->bytes : NULL;
    arrays->bytes += (element_bytes * (size_t)count + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return at;
}

/* base NULL: only counts bytes. */
static host_arrays lay_out(char *base, fk_batch_sizes n)
{
    host_arrays a = {0};
    a.input_ids = place(&a, base, sizeof(int64_t), n.tokens);
    a.positions = place(&a, base, sizeof(int64_t), n.tokens);
    a.slot_mapping = place(&a, base, sizeof(int64_t), n.tokens);
    a.logits_rows = place(&a, base, sizeof(int64_t), n.logits);
    a.seed = place(&a, base, sizeof(int64_t), n.logits);
    a.offset = place(&a, base, sizeof(int64_t), n.logits);
    a.cu_seqlens_q = place(&a, base, sizeof(int32_t), n.sequences + 1);
    a.seqused_k = place(&a, base, sizeof(int32_t), n.sequences);
    a.block_table = place(&a, base, sizeof(int32_t), n.sequences * n.blocks);
    a.top_k = place(&a, base, sizeof(int32_t), n.logits);
    a.temperature = place(&a, base, sizeof(float), n.logits);
    a.top_p = place(&a, base, sizeof(float), n.logits);
    a.min_p = place(&a, base, sizeof(float), n.logits);
    return a;
}

fk_status fk_batch_buffers_init(fk_batch_buffers *buffers, fk_backend *backend, fk_batch_sizes most)
{
    *buffers = (fk_batch_buffers){.backend = backend, .bytes = lay_out(NULL, most).bytes};
    void *device = NULL;
    buffers->host = aligned_alloc(ALIGNMENT, buffers->bytes);
    if (!buffers->host) return fk_fail(FK_ERROR_MEMORY, "out of memory for %zu bytes of step metadata", buffers->bytes);
    fk_status status = backend->alloc(backend, buffers->bytes, &device);
    buffers->device = device;
    if (status != FK_OK) fk_batch_buffers_deinit(buffers);
    return status;
}

void fk_batch_buffers_deinit(fk_batch_buffers *buffers)
{
    free(buffers->host);
    if (buffers->device) buffers->backend->free(buffers->backend, buffers->device);
    *buffers = (fk_batch_buffers){0};
}

static fk_batch_sizes sizes_of(const fk_schedule *schedule)
{
    fk_batch_sizes n = {.tokens = schedule->num_tokens, .sequences = schedule->num_items};
    for (int64_t i = 0; i < schedule->num_items; i++) {
        if (schedule->items[i].sequence->num_blocks > n.blocks) n.blocks = schedule->items[i].sequence->num_blocks;
        n.logits += schedule->items[i].wants_token;
    }
    return n;
}

static void fill_item(const host_arrays *a, const fk_schedule_item *item, int64_t index, int64_t first_token,
                      int64_t block_size, int64_t max_blocks)
{
    const fk_sequence *q = item->sequence;
    for (int64_t i = 0; i < item->count; i++) {
        int64_t position = item->start + i;
        a->input_ids[first_token + i] = q->tokens[position];
        a->positions[first_token + i] = position;
        a->slot_mapping[first_token + i] = q->blocks[position / block_size] * block_size + position % block_size;
    }
    a->cu_seqlens_q[index] = (int32_t)first_token;
    a->seqused_k[index] = (int32_t)(item->start + item->count);
    for (int64_t i = 0; i < max_blocks; i++) /* past the end any valid block: never looked into */
        a->block_table[index * max_blocks + i] = i < q->num_blocks ? q->blocks[i] : 0;
}

static void fill_sampling(const host_arrays *a, const fk_schedule_item *item, int64_t row, int64_t token, bool *greedy)
{
    const fk_sampling *sampling = item->sequence->user;
    a->logits_rows[row] = token;
    a->temperature[row] = sampling->temperature;
    a->top_p[row] = sampling->top_p > 0 ? sampling->top_p : 1;
    a->min_p[row] = sampling->min_p;
    a->top_k[row] = sampling->top_k;
    a->seed[row] = sampling->seed;
    a->offset[row] = item->start + item->count; /* position of the token to come */
    if (sampling->temperature > 0) *greedy = false;
}

/* The device tensor of a host array. */
static fk_tensor on_device(const fk_batch_buffers *buffers, const void *array, fk_dtype dtype, int64_t rows, int64_t cols)
{
    char *data = buffers->device + ((const char *)array - buffers->host);
    return fk_tensor_wrap(data, dtype, buffers->backend->device, cols < 0 ? 1 : 2, (int64_t[]){rows, cols});
}

fk_status fk_batch_build(fk_batch_buffers *buffers, fk_ctx *ctx, const fk_schedule *schedule, int64_t block_size,
                         fk_batch *batch, fk_sampling_rows *sampling)
{
    fk_batch_sizes n = sizes_of(schedule);
    host_arrays a = lay_out(buffers->host, n);
    assert(a.bytes <= buffers->bytes);
    *batch = (fk_batch){0};
    *sampling = (fk_sampling_rows){.greedy = true};
    int64_t token = 0, row = 0;
    for (int64_t i = 0; i < schedule->num_items; i++) {
        const fk_schedule_item *item = &schedule->items[i];
        fill_item(&a, item, i, token, block_size, n.blocks);
        token += item->count;
        if (item->wants_token) fill_sampling(&a, item, row++, token - 1, &sampling->greedy);
        if (item->count > batch->max_seqlen_q) batch->max_seqlen_q = item->count;
        if (a.seqused_k[i] > batch->max_seqlen_k) batch->max_seqlen_k = a.seqused_k[i];
    }
    a.cu_seqlens_q[schedule->num_items] = (int32_t)token;

    batch->input_ids = on_device(buffers, a.input_ids, FK_I64, n.tokens, -1);
    batch->positions = on_device(buffers, a.positions, FK_I64, n.tokens, -1);
    batch->slot_mapping = on_device(buffers, a.slot_mapping, FK_I64, n.tokens, -1);
    batch->cu_seqlens_q = on_device(buffers, a.cu_seqlens_q, FK_I32, n.sequences + 1, -1);
    batch->seqused_k = on_device(buffers, a.seqused_k, FK_I32, n.sequences, -1);
    batch->block_table = on_device(buffers, a.block_table, FK_I32, n.sequences, n.blocks);
    batch->logits_rows = on_device(buffers, a.logits_rows, FK_I64, n.logits, -1);
    sampling->temperature = on_device(buffers, a.temperature, FK_F32, n.logits, -1);
    sampling->top_p = on_device(buffers, a.top_p, FK_F32, n.logits, -1);
    sampling->min_p = on_device(buffers, a.min_p, FK_F32, n.logits, -1);
    sampling->top_k = on_device(buffers, a.top_k, FK_I32, n.logits, -1);
    sampling->seed = on_device(buffers, a.seed, FK_I64, n.logits, -1);
    sampling->offset = on_device(buffers, a.offset, FK_I64, n.logits, -1);
    return buffers->backend->copy(buffers->backend, fk_ctx_stream(ctx), buffers->device, buffers->host, a.bytes,
                                  FK_HOST_TO_DEVICE);
}
