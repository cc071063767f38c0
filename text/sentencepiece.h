/* SPDX-License-Identifier: Apache-2.0 */
/* SentencePiece tokenizers (arXiv:1808.06226): BPE and Unigram vocabularies with a score for each piece, out
 * of tokenizer.model files and of GGUF files whose tokenizer.ggml.model is "llama". Ids and text are those of
 * the `sentencepiece` package; of GGUF files, those of llama.cpp, where symbols of the user are cut out of
 * the text first. Control tokens are found in text only where FK_ENCODE_PARSE_SPECIAL allows it, and what is
 * between them is normalized by itself. */
#ifndef FK_TEXT_SENTENCEPIECE_H
#define FK_TEXT_SENTENCEPIECE_H

#include "text/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A tokenizer.model file, or its bytes. FK_ENCODE_ADD_BOS puts the begin token before a text where the model
 * has one (BPE), or the end token behind it (Unigram), as the models published in these forms want it.
 * Refuses, naming the field: damaged files, models of words or characters, normalization in the other
 * direction, unused pieces in BPE. */
fk_status fk_sentencepiece_load(const char *path, fk_tokenizer **out);
fk_status fk_sentencepiece_parse(const void *data, size_t bytes, fk_tokenizer **out);

#ifdef __cplusplus
}
#endif
#endif
