/* SPDX-License-Identifier: Apache-2.0 */
/* WordPiece, the tokenizer of BERT and its kin (MiniLM, ColBERT): words of the normalized text are cut from the left
 * into the longest pieces that the vocabulary has. Built from a tokenizer.json; ids are those of the `tokenizers`
 * package. Read-only once made, so threads share it. */
#ifndef FK_TEXT_WORDPIECE_H
#define FK_TEXT_WORDPIECE_H

#include "text/buffer.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fk_wordpiece fk_wordpiece;

/* From a tokenizer.json file, or its bytes. Refuses, naming field and value: another model than WordPiece, another
 * normalizer than BertNormalizer, another pre-tokenizer than BertPreTokenizer, post-processors other than
 * BertProcessing and TemplateProcessing, added tokens that are normalized or stripped, ids that are doubled or out of
 * range. "truncation" and "padding" are the caller's business and not read. */
fk_status fk_wordpiece_load(const char *path, fk_wordpiece **out);
fk_status fk_wordpiece_parse(const char *json, size_t bytes, fk_wordpiece **out);
void fk_wordpiece_destroy(fk_wordpiece *w);

/* One above the highest id. */
int64_t fk_wordpiece_vocab_size(const fk_wordpiece *w);
/* The id of a piece as the file writes it ("[SEP]", "##ing"); -1 when there is none. */
int32_t fk_wordpiece_find(const fk_wordpiece *w, fk_piece text);
/* The piece as the file writes it; empty for ids that have none. */
fk_piece fk_wordpiece_piece(const fk_wordpiece *w, int32_t id);

/* Appends the ids of one text; `add_special` puts the post-processor's tokens around them ([CLS] ... [SEP]). Special
 * tokens written in the text become their ids, as in the reference. Linear time. Text that is no UTF-8 is an error
 * that names the offset; after an error the list is as before. */
fk_status fk_wordpiece_encode(const fk_wordpiece *w, const char *text, size_t bytes, bool add_special, fk_token_list *out);

#ifdef __cplusplus
}
#endif
#endif
