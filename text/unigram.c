/* SPDX-License-Identifier: Apache-2.0 */
/* Viterbi's algorithm over the pieces that begin at each character. */
#include "text/unigram.h"

#include "text/utf8.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

fk_status fkp_unigram_init(fkp_unigram *u, const fk_piece *pieces, const double *scores,
                           const uint8_t *in_model, int64_t vocab_size)
{
    size_t size = (size_t)vocab_size, count = 0;
    *u = (fkp_unigram){0};
    u->scores = calloc(size + 1, sizeof *u->scores);
    fk_piece *texts = calloc(size + 1, sizeof *texts);
    int32_t *ids = calloc(size + 1, sizeof *ids);
    fk_status status =
        u->scores && texts && ids ? FK_OK : fk_fail(FK_ERROR_MEMORY, "no memory for %zu pieces", size);
    for (size_t id = 0; id < size && status == FK_OK; id++) {
        if (!in_model[id] || pieces[id].bytes == 0) continue;
        if (count == 0 || scores[id] < u->unknown_score) u->unknown_score = scores[id];
        texts[count] = pieces[id];
        ids[count++] = (int32_t)id;
    }
    u->unknown_score -= FKP_UNKNOWN_PENALTY;
    if (status == FK_OK) memcpy(u->scores, scores, size * sizeof *scores);
    if (status == FK_OK) status = fkp_trie_init(&u->trie, texts, ids, count);
    free(texts);
    free(ids);
    return status;
}

void fkp_unigram_deinit(fkp_unigram *u)
{
    fkp_trie_deinit(&u->trie);
    free(u->scores);
    *u = (fkp_unigram){0};
}

/* The way that ends with this piece, if it is the best one to its end so far. */
static inline void offer(const fkp_unigram *u, fkp_unigram_step *end, double score, int32_t id, size_t length)
{
    if (u->single_precision) score = (float)score;
    if (end->length == 0 || score > end->score) *end = (fkp_unigram_step){score, id, (int32_t)length};
}

/* SentencePiece's sums start again from 0 when they are large, so that float32 still tells them apart: every
 * way is counted from the best one to `begin`. */
static void start_again(fkp_unigram_step *steps, size_t begin, size_t reached)
{
    const float offset = (float)steps[begin].score;
    for (size_t i = begin; i <= reached; i++)
        if (steps[i].length > 0) steps[i].score = (float)((float)steps[i].score - offset);
}

void fkp_unigram_cut(const fkp_unigram *u, const uint8_t *text, size_t bytes, fkp_unigram_step *steps)
{
    const double most = 100000;
    size_t reached = 0; /* the last place with a way to it */
    memset(steps, 0, (bytes + 1) * sizeof *steps);
    for (size_t begin = 0, next; begin < bytes; begin = next) {
        if (u->single_precision && fabs(steps[begin].score) > most) start_again(steps, begin, reached);
        const double before = steps[begin].score;
        bool single = false; /* the character is a piece by itself */
        next = begin + fkp_utf8_length(text + begin, bytes - begin);
        int32_t node = FKP_TRIE_ROOT;
        for (size_t at = begin;
             u->trie.nodes && at < bytes && (node = fkp_trie_child(&u->trie, node, text[at])) >= 0; at++) {
            const int32_t id = u->trie.nodes[node].value;
            if (id < 0) continue;
            if (at >= reached) reached = at + 1;
            offer(u, &steps[at + 1], u->scores[id] + before, id, at + 1 - begin);
            single |= at + 1 == next;
        }
        if (!single && next > reached) reached = next;
        if (!single) offer(u, &steps[next], u->unknown_score + before, -1, next - begin);
    }
    /* Back from the end, turning each step around. */
    fkp_unigram_step after = {0};
    for (size_t end = bytes;;) {
        fkp_unigram_step step = steps[end];
        steps[end] = after;
        if (end == 0) break;
        after = step;
        end -= (size_t)step.length;
    }
}
