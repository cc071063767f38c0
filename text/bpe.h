/* SPDX-License-Identifier: Apache-2.0 */
/* Byte-pair encoding of one word (arXiv:1508.07909, over bytes as in GPT-2): the word starts as one symbol a
 * byte; the adjacent pair whose merge stands first in the list is joined, leftmost first, until no pair has a
 * merge. Merges are over ids: whoever builds the table has looked the pieces up once. */
#ifndef FK_TEXT_BPE_H
#define FK_TEXT_BPE_H

#include "text/buffer.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FKP_NO_PIECE (-1) /* a byte that the vocabulary has no piece for */

typedef struct fkp_merge {
    int32_t left, right; /* ids joined */
    int32_t joined;      /* id of the piece they make */
    uint32_t rank;       /* smaller ones are joined first, of equal ones the leftmost; below FKP_NO_RANK */
} fkp_merge;

#define FKP_NO_RANK UINT32_MAX

typedef struct fkp_bpe {
    fkp_merge *slots; /* open addressing over (left, right); free ones have FKP_NO_RANK; power of two, at most
                         half full */
    size_t num_slots;
    size_t num_merges;
    int32_t byte_ids[256]; /* id of the piece of one byte, or FKP_NO_PIECE */
} fkp_bpe;

/* Empty table with room for `merges` merges; byte_ids all FKP_NO_PIECE, for the caller to fill. */
fk_status fkp_bpe_init(fkp_bpe *b, size_t merges);
void fkp_bpe_deinit(fkp_bpe *b);
/* A pair that is there already keeps its first merge. */
fk_status fkp_bpe_add_merge(fkp_bpe *b, fkp_merge merge);

/* Working memory of one thread; starts as {0}. */
typedef struct fkp_bpe_scratch {
    int32_t *initial; /* ids of the bytes of a long word */
    size_t initial_capacity;
    void *symbols;
    size_t symbols_capacity;
    void *heap;
    size_t heap_capacity;
    int64_t dropped_bytes; /* bytes without a piece that were left out, counted over all words */
    uint8_t dropped_byte;  /* the first of them */
} fkp_bpe_scratch;

void fkp_bpe_scratch_deinit(fkp_bpe_scratch *s);

/* Appends the ids of the word. Time n log n, no recursion: a word may be the whole text. Precondition: bytes
 * < 2^31. A byte without a piece merges with nothing and yields no id (as in llama.cpp); it is counted in the
 * scratch. */
fk_status fkp_bpe_encode(const fkp_bpe *b, fkp_bpe_scratch *s, const uint8_t *word, size_t bytes,
                         fk_token_list *out);

/* The same from symbols that the caller has looked up, all of them ids. */
fk_status fkp_bpe_merge(const fkp_bpe *b, fkp_bpe_scratch *s, const int32_t *symbols, size_t count, fk_token_list *out);

#ifdef __cplusplus
}
#endif
#endif
