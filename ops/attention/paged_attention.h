/* SPDX-License-Identifier: Apache-2.0 */
/* What the references of attention over a paged cache share: one query of one head against its keys, the counting of
 * work, and generated sequences. Token j of sequence b is in block block_table[b][j / S], slot j % S. */
#ifndef FK_OPS_PAGED_ATTENTION_H
#define FK_OPS_PAGED_ATTENTION_H

#include <math.h>

#include <fk/ctx.h>

#include "core/element.h"
#include "core/random.h"

typedef struct paged_attention {
    const fk_tensor *q, *k, *v; /* [T, H, E], [N, S, K, E] twice */
    const fk_tensor *seqused_k, *block_table;
    int64_t max_seqlen_k;
    int64_t window_size; /* negative: none */
    double scale, softcap;
    /* NULL, or [H, T, C] with stride 0 where it repeats: bool, True where a query sees a key, or floats added to the scores.
     * Column 0 is the key that stands as far from the end as the sequence has queries; keys outside the columns are seen. */
    const fk_tensor *mask;
} paged_attention;

/* A mask [T, C] that all heads share. */
static inline fk_tensor paged_mask_of_rows(const fk_tensor *rows, int64_t heads)
{
    fk_tensor mask = *rows;
    mask.ndim = 3;
    mask.shape[2] = rows->shape[1], mask.strides[2] = rows->strides[1];
    mask.shape[1] = rows->shape[0], mask.strides[1] = rows->strides[0];
    mask.shape[0] = heads, mask.strides[0] = 0;
    return mask;
}

/* What the mask adds to the score of head h of a query with key j: the mask's row of the query and column of the key. */
static inline double paged_mask(const paged_attention *a, int64_t h, int64_t row, int64_t column)
{
    if (!a->mask || column < 0 || column >= a->mask->shape[2]) return 0;
    double x = fk_load_element(fkp_at3(a->mask, h, row, column), a->mask->dtype);
    return a->mask->dtype != FK_BOOL ? x : x != 0 ? 0 : -INFINITY;
}

/* The softmax scale of a call: 0 stands for 1/sqrt(E). */
static inline double paged_scale(float softmax_scale, const fk_tensor *q)
{
    return softmax_scale != 0 ? (double)softmax_scale : 1 / sqrt((double)q->shape[2]);
}

/* Room for the scores of one query; NULL with the context's error. */
static inline double *paged_scores(fk_ctx *ctx, const paged_attention *a)
{
    int64_t room = a->block_table->shape[1] * a->k->shape[1];
    return fk_ctx_scratch(ctx, (size_t)(room < a->max_seqlen_k || a->max_seqlen_k < 0 ? room : a->max_seqlen_k) * sizeof(double));
}

/* Cached tokens of sequence b, checked together with the blocks that hold them. */
static inline fk_status paged_length(fk_ctx *ctx, const paged_attention *a, int64_t b, int64_t *length)
{
    int64_t block_size = a->k->shape[1], n = fkp_int1(a->seqused_k, b), room = a->block_table->shape[1] * block_size;
    *length = 0;
    if (n < 0 || n > room || n > a->max_seqlen_k)
        return fk_ctx_fail(ctx, FK_ERROR_INVALID, "seqused_k[%lld] is %lld, but the block table has room for %lld and max_seqlen_k is %lld",
                           (long long)b, (long long)n, (long long)room, (long long)a->max_seqlen_k);
    for (int64_t i = 0; i * block_size < n; i++) {
        int64_t block = fkp_int(a->block_table, fkp_at2(a->block_table, b, i));
        if (block < 0 || block >= a->k->shape[0])
            return fk_ctx_fail(ctx, FK_ERROR_INVALID, "block_table[%lld][%lld] is %lld, but the cache has %lld blocks",
                               (long long)b, (long long)i, (long long)block, (long long)a->k->shape[0]);
    }
    *length = n;
    return FK_OK;
}

/* Keys [*begin, *end) that the query at `position` of a sequence with `length` cached tokens sees. */
static inline void paged_visible(int64_t position, int64_t length, bool causal, int64_t window_size, int64_t *begin, int64_t *end)
{
    *end = causal && position + 1 < length ? position + 1 : length;
    *begin = window_size >= 0 && position - window_size > 0 ? position - window_size : 0;
    if (*end < *begin) *end = *begin;
}

/* out[t, h] = softmax over keys [begin, end) times values; zeros when there are none. `scores` has room for end - begin. With a
 * mask, the query has row mask_row and key mask_key column 0. */
static inline void paged_attend_masked(const paged_attention *a, int64_t b, int64_t t, int64_t h, int64_t begin, int64_t end,
                                       double *scores, const fk_tensor *out, int64_t mask_row, int64_t mask_key)
{
    int64_t features = a->q->shape[2], block_size = a->k->shape[1], kv_head = h / (a->q->shape[1] / a->k->shape[2]);
    double largest = -INFINITY, sum = 0;
    for (int64_t j = begin; j < end; j++) {
        int64_t block = fkp_int(a->block_table, fkp_at2(a->block_table, b, j / block_size));
        double score = 0;
        for (int64_t e = 0; e < features; e++)
            score += fk_load_element(fkp_at3(a->q, t, h, e), a->q->dtype) *
                     fk_load_element(fkp_at4(a->k, block, j % block_size, kv_head, e), a->k->dtype);
        score *= a->scale;
        if (a->softcap > 0) score = a->softcap * tanh(score / a->softcap);
        score += paged_mask(a, h, mask_row, j - mask_key);
        scores[j - begin] = score;
        if (score > largest) largest = score;
    }
    if (largest == -INFINITY) end = begin; /* all masked */
    for (int64_t j = begin; j < end; j++) sum += scores[j - begin] = exp(scores[j - begin] - largest);
    for (int64_t e = 0; e < features; e++) {
        double value = 0;
        for (int64_t j = begin; j < end; j++) {
            int64_t block = fkp_int(a->block_table, fkp_at2(a->block_table, b, j / block_size));
            value += scores[j - begin] * fk_load_element(fkp_at4(a->v, block, j % block_size, kv_head, e), a->v->dtype);
        }
        fk_store_element(fkp_at3(out, t, h, e), out->dtype, begin < end ? value / sum : 0);
    }
}

static inline void paged_attend(const paged_attention *a, int64_t b, int64_t t, int64_t h, int64_t begin, int64_t end,
                                double *scores, const fk_tensor *out)
{
    paged_attend_masked(a, b, t, h, begin, end, scores, out, 0, 0);
}

/* Attention of all queries, those of a sequence one after another: the specification of flash_attn_prefill and of what is
 * like it. */
static inline fk_status paged_prefill(fk_ctx *ctx, const paged_attention *p, const fk_tensor *cu_seqlens_q, int64_t max_seqlen_q,
                                      bool causal, const fk_tensor *out)
{
    double *scores = paged_scores(ctx, p);
    if (!scores) return fk_ctx_status(ctx);
    int64_t num_tokens = p->q->shape[0], start = 0;
    for (int64_t b = 0; b < p->seqused_k->shape[0]; b++) {
        int64_t stop = fkp_int1(cu_seqlens_q, b + 1), length = 0;
        if (fkp_int1(cu_seqlens_q, b) != start || stop < start || stop > num_tokens || stop - start > max_seqlen_q)
            return fk_ctx_fail(ctx, FK_ERROR_INVALID, "cu_seqlens_q has %lld, %lld for sequence %lld, wanted to go on at %lld with at most %lld of %lld queries",
                               (long long)fkp_int1(cu_seqlens_q, b), (long long)stop, (long long)b, (long long)start,
                               (long long)max_seqlen_q, (long long)num_tokens);
        FK_TRY(paged_length(ctx, p, b, &length));
        for (int64_t t = start; t < stop; t++) {
            int64_t begin, end;
            paged_visible(length - (stop - t), length, causal, p->window_size, &begin, &end);
            for (int64_t h = 0; h < p->q->shape[1]; h++)
                paged_attend_masked(p, b, t, h, begin, end, scores, out, t - start, length - (stop - start));
        }
        start = stop;
    }
    if (start == num_tokens) return FK_OK;
    return fk_ctx_fail(ctx, FK_ERROR_INVALID, "cu_seqlens_q ends at %lld of %lld queries", (long long)start, (long long)num_tokens);
}

static inline fk_status paged_check(fk_ctx *ctx, const fk_tensor *q, const fk_tensor *k)
{
    if (k->shape[2] > 0 && q->shape[1] % k->shape[2] == 0) return FK_OK;
    return fk_ctx_fail(ctx, FK_ERROR_INVALID, "%lld query heads are no multiple of %lld KV heads", (long long)q->shape[1],
                       (long long)k->shape[2]);
}

/* Work of attending, from the integers of the call when the host can read them; else every sequence counts as the
 * longest. pairs: queries times keys they see; keys: keys that must be read. cu_seqlens_q is NULL for one query each. */
static inline void paged_work(int64_t num_queries, const fk_tensor *cu_seqlens_q, const fk_tensor *seqused_k, int64_t max_seqlen_k,
                              bool causal, int64_t window_size, double *pairs, double *keys)
{
    bool exact = seqused_k->device.type == FK_CPU && seqused_k->data && (!cu_seqlens_q || cu_seqlens_q->data);
    int64_t sequences = seqused_k->shape[0];
    *pairs = *keys = 0;
    for (int64_t b = 0; b < sequences; b++) {
        int64_t queries = 1;
        if (cu_seqlens_q)
            queries = exact ? fkp_int1(cu_seqlens_q, b + 1) - fkp_int1(cu_seqlens_q, b) : num_queries / sequences;
        int64_t length = exact ? fkp_int1(seqused_k, b) : max_seqlen_k, first = length;
        for (int64_t i = 0; i < queries; i++) {
            int64_t begin, end;
            paged_visible(length - queries + i, length, causal, window_size, &begin, &end);
            *pairs += (double)(end - begin);
            if (begin < first) first = begin;
        }
        *keys += (double)(length - first);
    }
}

/* Lengths and blocks of B sequences: the first has max_seqlen_k tokens (as many as fit), of four or more one is empty; used
 * blocks are distinct and scattered over the cache, unused entries are 0. A sequence has at least as many tokens as queries
 * where the cache has room; cu_seqlens_q is NULL when each has one. */
static inline void paged_fill_cache(fk_random *random, const fk_tensor *cu_seqlens_q, const fk_tensor *seqused_k,
                                    const fk_tensor *block_table, int64_t num_blocks, int64_t block_size, int64_t max_seqlen_k)
{
    int64_t sequences = seqused_k->shape[0], entries = block_table->shape[1], used = 0;
    int64_t stride = fkp_random_stride(random, num_blocks);
    for (int64_t b = 0; b < sequences; b++) {
        int64_t least = cu_seqlens_q ? fkp_int1(cu_seqlens_q, b + 1) - fkp_int1(cu_seqlens_q, b) : 1;
        int64_t most = (num_blocks - used) / (sequences - b) * block_size; /* a fair share of what is left */
        if (most > entries * block_size) most = entries * block_size;
        if (most > max_seqlen_k) most = max_seqlen_k;
        int64_t length = b == 0 || most <= least ? most : least + fkp_random_below(random, most - least + 1);
        if (sequences >= 4 && b == 1) length = 0;
        fkp_set_int(seqused_k, fkp_at1(seqused_k, b), length);
        for (int64_t i = 0; i < entries; i++) {
            int64_t block = i * block_size < length ? num_blocks - 1 - used++ * stride % num_blocks : 0;
            fkp_set_int(block_table, fkp_at2(block_table, b, i), block);
        }
    }
}

/* Splits T queries over the sequences, none with more than max_seqlen_q, the first with as many as it may have. */
static inline void paged_fill_cu_seqlens(fk_random *random, const fk_tensor *cu_seqlens_q, int64_t num_tokens, int64_t max_seqlen_q)
{
    int64_t sequences = cu_seqlens_q->shape[0] - 1, start = 0;
    for (int64_t b = 0; b < sequences; b++) {
        fkp_set_int(cu_seqlens_q, fkp_at1(cu_seqlens_q, b), start);
        int64_t left = num_tokens - start, least = left - (sequences - 1 - b) * max_seqlen_q;
        int64_t most = left < max_seqlen_q ? left : max_seqlen_q;
        if (least < 0) least = 0;
        start += b == 0 || least >= most ? most : least + fkp_random_below(random, most - least + 1);
    }
    fkp_set_int(cu_seqlens_q, fkp_at1(cu_seqlens_q, sequences), start);
}

/* Positions and slots of the new tokens, which are the last of each sequence. Tokens of a sequence without room are padding:
 * position 0, slot -1. `positions` may be NULL. */
static inline void paged_fill_tokens(const fk_tensor *cu_seqlens_q, const fk_tensor *seqused_k, const fk_tensor *block_table,
                                     int64_t block_size, const fk_tensor *positions, const fk_tensor *slot_mapping)
{
    for (int64_t b = 0; b < seqused_k->shape[0]; b++) {
        int64_t start = fkp_int1(cu_seqlens_q, b), stop = fkp_int1(cu_seqlens_q, b + 1), length = fkp_int1(seqused_k, b);
        for (int64_t t = start; t < stop; t++) {
            int64_t position = length - (stop - t), slot = -1;
            if (position >= 0)
                slot = fkp_int(block_table, fkp_at2(block_table, b, position / block_size)) * block_size + position % block_size;
            fkp_set_int(slot_mapping, fkp_at1(slot_mapping, t), slot);
            if (positions) fkp_set_int(positions, fkp_at1(positions, t), position > 0 ? position : 0);
        }
    }
}

/* Keeps |x| below 3: with scores far apart softmax is a step, whose place rounding errors move. */
static inline void paged_limit(const fk_tensor *t)
{
    int64_t n = fk_tensor_numel(t);
    for (int64_t i = 0; i < n; i++) {
        void *element = fk_tensor_at(t, i);
        double x = fk_load_element(element, t->dtype);
        if (fabs(x) > 3) fk_store_element(element, t->dtype, fmod(x, 3));
    }
}

#endif
