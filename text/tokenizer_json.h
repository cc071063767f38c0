/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizers out of Hugging Face's tokenizer.json: BPE, byte-level (GPT-2, Llama 3, Qwen, o200k, DeepSeek)
 * and that of SentencePiece (Llama 2, Mistral); Unigram (T5, XLM-R); WordPiece (BERT, MiniLM, ColBERT); whole
 * words. Ids and text are those of the `tokenizers` package with these differences: a control token is found
 * in text only where FK_ENCODE_PARSE_SPECIAL allows it; what the post-processor puts in front
 * (FK_ENCODE_ADD_BOS asks for it) is not put there twice; and Metaspace's prepend_scheme "first" puts its mark
 * also where a normalizer has taken the very first character away (U+0301 by StripAccents). */
#ifndef FK_TEXT_TOKENIZER_JSON_H
#define FK_TEXT_TOKENIZER_JSON_H

#include "text/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What other files of a model folder call its tokens; a name that is empty or no token means that there is none. */
typedef struct fk_tokenizer_json_options {
    fk_piece bos_token, eos_token;
} fk_tokenizer_json_options;

/* Refuses, naming field and value, whatever would change ids and is not built: a tokenizer that is nearly right gives
 * wrong ids without a sign. "truncation" and "padding" are the caller's business and not read. options may be NULL. */
fk_status fk_tokenizer_json_load(const char *path, const fk_tokenizer_json_options *options, fk_tokenizer **out);
fk_status fk_tokenizer_json_parse(const char *json, size_t bytes, const fk_tokenizer_json_options *options, fk_tokenizer **out);

#ifdef __cplusplus
}
#endif
#endif
