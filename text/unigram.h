/* SPDX-License-Identifier: Apache-2.0 */
/* The Unigram model (arXiv:1804.10959): of all ways to cut a text into pieces the one with the highest sum of
 * scores (logarithms of probabilities), found by Viterbi's algorithm. A character that is no piece is
 * unknown, at a score below every piece's. */
#ifndef FK_TEXT_UNIGRAM_H
#define FK_TEXT_UNIGRAM_H

#include "text/trie.h"

#include <stdbool.h>

#define FKP_UNKNOWN_PENALTY 10.0 /* an unknown character scores so far below the worst piece */

typedef struct fkp_unigram {
    fkp_trie trie;  /* of the model's pieces; the values are ids */
    double *scores; /* [vocab_size] */
    double unknown_score;
    bool single_precision; /* sums are rounded to float32, as SentencePiece does; else float64, as
                              `tokenizers` does */
} fkp_unigram;

/* The best way to a place in the text. */
typedef struct fkp_unigram_step {
    double score;
    int32_t id;     /* of the last piece, -1: an unknown character */
    int32_t length; /* of it; 0: no way has come here yet */
} fkp_unigram_step;

/* Takes pieces and scores of the ids that `in_model` marks. The worst score gives that of unknown characters.
 */
fk_status fkp_unigram_init(fkp_unigram *u, const fk_piece *pieces, const double *scores,
                           const uint8_t *in_model, int64_t vocab_size);
void fkp_unigram_deinit(fkp_unigram *u);

/* Fills steps [bytes + 1] so that steps[i].length, read forward from 0, is the length of the piece that
 * begins at i, and .id that piece. Time: bytes times the length of the longest piece. The text has the shape
 * of UTF-8; bytes < 2^31. */
void fkp_unigram_cut(const fkp_unigram *u, const uint8_t *text, size_t bytes, fkp_unigram_step *steps);

#endif
