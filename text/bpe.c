/* SPDX-License-Identifier: Apache-2.0 */
/* Merging one word: short words by scanning for the best pair, long ones with a heap of pairs over a linked
 * list of symbols. Both join the same pairs in the same order. */
#include "text/bpe.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT_WORD = 32 }; /* bytes; below it n*n steps over two small arrays are cheaper than a heap */
#define NO_RANK UINT32_MAX

static size_t slot_of(const fkp_bpe *b, int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    key *= 0x9E3779B97F4A7C15u; /* 2^64 / golden ratio: spreads neighbouring ids */
    return (size_t)(key ^ key >> 32) & (b->num_slots - 1);
}

/* Rank of the pair's merge, NO_RANK when it has none. */
static uint32_t rank_of(const fkp_bpe *b, int32_t left, int32_t right)
{
    for (size_t slot = slot_of(b, left, right);; slot = (slot + 1) & (b->num_slots - 1)) {
        uint32_t rank_plus_1 = b->slots[slot];
        if (rank_plus_1 == 0) return NO_RANK;
        const fkp_merge *m = &b->merges[rank_plus_1 - 1];
        if (m->left == left && m->right == right) return rank_plus_1 - 1;
    }
}

fk_status fkp_bpe_init(fkp_bpe *b, size_t max_merges)
{
    *b = (fkp_bpe){.num_slots = 16};
    while (b->num_slots < 2 * max_merges) b->num_slots *= 2;
    b->merges = calloc(max_merges ? max_merges : 1, sizeof *b->merges);
    b->slots = calloc(b->num_slots, sizeof *b->slots);
    for (int byte = 0; byte < 256; byte++) b->byte_ids[byte] = FKP_NO_PIECE;
    if (b->merges && b->slots) return FK_OK;
    fkp_bpe_deinit(b);
    return fk_fail(FK_ERROR_MEMORY, "no memory for %zu merges", max_merges);
}

void fkp_bpe_deinit(fkp_bpe *b)
{
    free(b->merges);
    free(b->slots);
    *b = (fkp_bpe){0};
}

void fkp_bpe_add_merge(fkp_bpe *b, fkp_merge merge)
{
    uint32_t rank = (uint32_t)b->num_merges++;
    b->merges[rank] = merge;
    size_t slot = slot_of(b, merge.left, merge.right);
    while (b->slots[slot]) {
        const fkp_merge *there = &b->merges[b->slots[slot] - 1];
        if (there->left == merge.left && there->right == merge.right) return;
        slot = (slot + 1) & (b->num_slots - 1);
    }
    b->slots[slot] = rank + 1;
}

void fkp_bpe_scratch_deinit(fkp_bpe_scratch *s)
{
    free(s->initial);
    free(s->symbols);
    free(s->heap);
    *s = (fkp_bpe_scratch){0};
}

static void emit(fkp_bpe_scratch *s, int32_t id, uint8_t byte, fk_token_list *out)
{
    if (id != FKP_NO_PIECE)
        out->ids[out->count++] = id; /* reserved by the caller */
    else if (s->dropped_bytes++ == 0)
        s->dropped_byte = byte;
}

/* Of both: [count] symbols; `word` is the byte of each, for those without a piece, or NULL when all have one. */
static void merge_short(const fkp_bpe *b, fkp_bpe_scratch *s, const int32_t *symbols, const uint8_t *word, size_t count,
                        fk_token_list *out)
{
    int32_t ids[SHORT_WORD];
    uint32_t ranks[SHORT_WORD]; /* of the pair (i, i + 1) */
    uint8_t first_byte[SHORT_WORD];
    for (size_t i = 0; i < count; i++) {
        ids[i] = symbols[i];
        first_byte[i] = word ? word[i] : 0;
    }
    for (size_t i = 0; i + 1 < count; i++) ranks[i] = rank_of(b, ids[i], ids[i + 1]);

    while (count > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < count; i++)
            if (ranks[i] < ranks[best]) best = i;
        if (ranks[best] == NO_RANK) break;
        ids[best] = b->merges[ranks[best]].joined;
        count--;
        for (size_t i = best + 1; i < count; i++) {
            ids[i] = ids[i + 1];
            first_byte[i] = first_byte[i + 1];
            if (i + 1 < count) ranks[i] = ranks[i + 1];
        }
        if (best > 0) ranks[best - 1] = rank_of(b, ids[best - 1], ids[best]);
        if (best + 1 < count) ranks[best] = rank_of(b, ids[best], ids[best + 1]);
    }
    for (size_t i = 0; i < count; i++) emit(s, ids[i], first_byte[i], out);
}

/* A symbol of a long word; symbol i begins at byte i of the word. */
typedef struct symbol {
    int32_t id;
    int32_t previous, next; /* -1 at the ends */
    bool joined;            /* has become part of the symbol before it */
} symbol;

/* The heap holds rank << 32 | index of the left symbol: the smallest key is the pair to join next. An entry
 * is stale when the symbols there are no longer the pair of that rank. */
static void heap_push(uint64_t *heap, size_t *count, uint64_t key)
{
    size_t at = (*count)++;
    for (; at > 0 && heap[(at - 1) / 2] > key; at = (at - 1) / 2) heap[at] = heap[(at - 1) / 2];
    heap[at] = key;
}

static uint64_t heap_pop(uint64_t *heap, size_t *count)
{
    uint64_t top = heap[0], last = heap[--*count];
    size_t at = 0;
    for (size_t child = 1; child < *count; at = child, child = 2 * at + 1) {
        if (child + 1 < *count && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= last) break;
        heap[at] = heap[child];
    }
    heap[at] = last;
    return top;
}

static void push_pair(const fkp_bpe *b, const symbol *symbols, uint64_t *heap, size_t *count, int32_t left)
{
    if (left < 0 || symbols[left].next < 0) return;
    uint32_t rank = rank_of(b, symbols[left].id, symbols[symbols[left].next].id);
    if (rank != NO_RANK) heap_push(heap, count, (uint64_t)rank << 32 | (uint32_t)left);
}

static fk_status merge_long(const fkp_bpe *b, fkp_bpe_scratch *s, const int32_t *initial, const uint8_t *word, size_t bytes,
                            fk_token_list *out)
{
    /* Each of the at most n - 1 joins pushes at most two pairs and pops its own. */
    FK_TRY(fkp_grow(&s->symbols, &s->symbols_capacity, bytes, sizeof(symbol)));
    FK_TRY(fkp_grow(&s->heap, &s->heap_capacity, 2 * bytes, sizeof(uint64_t)));
    symbol *symbols = s->symbols;
    uint64_t *heap = s->heap;
    size_t in_heap = 0;
    for (size_t i = 0; i < bytes; i++)
        symbols[i] =
            (symbol){initial[i], (int32_t)i - 1, i + 1 < bytes ? (int32_t)i + 1 : -1, false};
    for (size_t i = 0; i + 1 < bytes; i++) push_pair(b, symbols, heap, &in_heap, (int32_t)i);

    while (in_heap > 0) {
        uint64_t key = heap_pop(heap, &in_heap);
        const fkp_merge *merge = &b->merges[key >> 32];
        int32_t left = (int32_t)(uint32_t)key, right = symbols[left].next;
        if (symbols[left].joined || right < 0) continue;
        if (symbols[left].id != merge->left || symbols[right].id != merge->right) continue;
        symbols[left].id = merge->joined;
        symbols[left].next = symbols[right].next;
        symbols[right].joined = true;
        if (symbols[right].next >= 0) symbols[symbols[right].next].previous = left;
        push_pair(b, symbols, heap, &in_heap, symbols[left].previous);
        push_pair(b, symbols, heap, &in_heap, left);
    }
    for (int32_t i = 0; i >= 0; i = symbols[i].next) emit(s, symbols[i].id, word ? word[i] : 0, out);
    return FK_OK;
}

fk_status fkp_bpe_encode(const fkp_bpe *b, fkp_bpe_scratch *s, const uint8_t *word, size_t bytes,
                         fk_token_list *out)
{
    assert(bytes <= INT32_MAX);
    if (bytes == 0) return FK_OK;
    FK_TRY(fk_token_list_reserve(out, (int64_t)bytes));
    int32_t on_stack[SHORT_WORD], *initial = on_stack;
    if (bytes > SHORT_WORD) {
        void *storage = s->initial;
        FK_TRY(fkp_grow(&storage, &s->initial_capacity, bytes, sizeof *s->initial));
        initial = s->initial = storage;
    }
    for (size_t i = 0; i < bytes; i++) initial[i] = b->byte_ids[word[i]];
    if (bytes > SHORT_WORD) return merge_long(b, s, initial, word, bytes, out);
    merge_short(b, s, initial, word, bytes, out);
    return FK_OK;
}

fk_status fkp_bpe_merge(const fkp_bpe *b, fkp_bpe_scratch *s, const int32_t *symbols, size_t count, fk_token_list *out)
{
    assert(count <= INT32_MAX);
    if (count == 0) return FK_OK;
    FK_TRY(fk_token_list_reserve(out, (int64_t)count));
    if (count > SHORT_WORD) return merge_long(b, s, symbols, NULL, count, out);
    merge_short(b, s, symbols, NULL, count, out);
    return FK_OK;
}
