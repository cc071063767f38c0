/* SPDX-License-Identifier: Apache-2.0 */
/* Merging one word: short words by scanning for the best pair, long ones with a heap of pairs over a linked
 * list of symbols. Both join the same pairs in the same order. */
#include "text/bpe.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT_WORD = 32 }; /* bytes; below it n*n steps over two small arrays are cheaper than a heap */

static size_t slot_of(const fkp_bpe *b, int32_t left, int32_t right)
{
    uint64_t key = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    key *= 0x9E3779B97F4A7C15u; /* 2^64 / golden ratio: spreads neighbouring ids */
    return (size_t)(key ^ key >> 32) & (b->num_slots - 1);
}

/* The pair's merge, or the free slot where it would stand, whose rank is FKP_NO_RANK. */
static fkp_merge *find_merge(const fkp_bpe *b, int32_t left, int32_t right)
{
    size_t slot = slot_of(b, left, right);
    for (;; slot = (slot + 1) & (b->num_slots - 1)) {
        fkp_merge *m = &b->slots[slot];
        if ((m->left == left && m->right == right) || m->rank == FKP_NO_RANK) return m;
    }
}

static fk_status allocate_slots(fkp_bpe *b, size_t num_slots)
{
    b->slots = malloc(num_slots * sizeof *b->slots);
    if (!b->slots) return fk_fail(FK_ERROR_MEMORY, "no memory for %zu merges", num_slots / 2);
    b->num_slots = num_slots;
    for (size_t i = 0; i < num_slots; i++)
        b->slots[i] = (fkp_merge){FKP_NO_PIECE, FKP_NO_PIECE, FKP_NO_PIECE, FKP_NO_RANK};
    return FK_OK;
}

fk_status fkp_bpe_init(fkp_bpe *b, size_t merges)
{
    size_t num_slots = 16;
    *b = (fkp_bpe){0};
    while (num_slots < 2 * merges) num_slots *= 2;
    for (int byte = 0; byte < 256; byte++) b->byte_ids[byte] = FKP_NO_PIECE;
    return allocate_slots(b, num_slots);
}

void fkp_bpe_deinit(fkp_bpe *b)
{
    free(b->slots);
    *b = (fkp_bpe){0};
}

static fk_status grow(fkp_bpe *b)
{
    fkp_merge *old = b->slots;
    size_t old_slots = b->num_slots;
    fk_status status = allocate_slots(b, 2 * old_slots);
    if (status != FK_OK) {
        b->slots = old;
        return status;
    }
    for (size_t i = 0; i < old_slots; i++)
        if (old[i].rank != FKP_NO_RANK) *find_merge(b, old[i].left, old[i].right) = old[i];
    free(old);
    return FK_OK;
}

fk_status fkp_bpe_add_merge(fkp_bpe *b, fkp_merge merge)
{
    assert(merge.rank < FKP_NO_RANK && merge.left >= 0 && merge.right >= 0);
    if (2 * (b->num_merges + 1) > b->num_slots) FK_TRY(grow(b));
    fkp_merge *slot = find_merge(b, merge.left, merge.right);
    if (slot->rank != FKP_NO_RANK) return FK_OK;
    *slot = merge;
    b->num_merges++;
    return FK_OK;
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
    int32_t joined[SHORT_WORD]; /* of the pair (i, i + 1): the id they make, */
    uint32_t ranks[SHORT_WORD]; /* and the rank of their merge */
    uint8_t first_byte[SHORT_WORD];
    for (size_t i = 0; i < count; i++) {
        ids[i] = symbols[i];
        first_byte[i] = word ? word[i] : 0;
    }
    for (size_t i = 0; i + 1 < count; i++) {
        const fkp_merge *m = find_merge(b, ids[i], ids[i + 1]);
        ranks[i] = m->rank;
        joined[i] = m->joined;
    }
    while (count > 1) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < count; i++)
            if (ranks[i] < ranks[best]) best = i;
        if (ranks[best] == FKP_NO_RANK) break;
        ids[best] = joined[best];
        count--;
        for (size_t i = best + 1; i < count; i++) {
            ids[i] = ids[i + 1];
            first_byte[i] = first_byte[i + 1];
            if (i + 1 < count) {
                ranks[i] = ranks[i + 1];
                joined[i] = joined[i + 1];
            }
        }
        for (size_t i = best > 0 ? best - 1 : 0; i <= best && i + 1 < count; i++) {
            const fkp_merge *m = find_merge(b, ids[i], ids[i + 1]);
            ranks[i] = m->rank;
            joined[i] = m->joined;
        }
    }
    for (size_t i = 0; i < count; i++) emit(s, ids[i], first_byte[i], out);
}

/* A symbol of a long word; symbol i begins at byte i of the word. */
typedef struct symbol {
    int32_t id;
    int32_t previous, next; /* -1 at the ends */
    int32_t joined;         /* what it makes with the next one, */
    uint32_t rank; /* and the rank of that merge; FKP_NO_RANK also once it is part of the one before it */
} symbol;

/* The heap holds rank << 32 | index of the left symbol: the smallest key is the pair to join next. An entry
 * is stale when the symbol there has another rank by now. */
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

static void push_pair(const fkp_bpe *b, symbol *symbols, uint64_t *heap, size_t *count, int32_t left)
{
    if (left < 0) return;
    symbol *s = &symbols[left];
    s->rank = FKP_NO_RANK;
    if (s->next < 0) return;
    const fkp_merge *m = find_merge(b, s->id, symbols[s->next].id);
    s->rank = m->rank;
    s->joined = m->joined;
    if (s->rank != FKP_NO_RANK) heap_push(heap, count, (uint64_t)s->rank << 32 | (uint32_t)left);
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
        symbols[i] = (symbol){initial[i], (int32_t)i - 1, i + 1 < bytes ? (int32_t)i + 1 : -1, FKP_NO_PIECE,
                              FKP_NO_RANK};
    for (size_t i = 0; i + 1 < bytes; i++) push_pair(b, symbols, heap, &in_heap, (int32_t)i);

    while (in_heap > 0) {
        uint64_t key = heap_pop(heap, &in_heap);
        int32_t left = (int32_t)(uint32_t)key, right = symbols[left].next;
        if (symbols[left].rank != key >> 32) continue;
        symbols[left].id = symbols[left].joined;
        symbols[left].next = symbols[right].next;
        symbols[right].rank = FKP_NO_RANK;
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
