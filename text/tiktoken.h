/* SPDX-License-Identifier: Apache-2.0 */
/* Rank files of the `tiktoken` package: byte-level BPE as a list of byte strings, each with its rank, which
 * is its id too. A line is the string in base64, a space and the rank. How text is cut into words and which
 * special tokens there are is no part of the file: an encoding of that package says it, by name. */
#ifndef FK_TEXT_TIKTOKEN_H
#define FK_TEXT_TIKTOKEN_H

#include "text/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Ids are those of tiktoken with all special tokens allowed (FK_ENCODE_PARSE_SPECIAL) or none; any bytes can
 * be encoded (FK_ENCODE_RAW_BYTES). encoding: "gpt2", "r50k_base", "p50k_base", "p50k_edit", "cl100k_base" or
 * "o200k_base"; NULL in _load: the one whose name the file's name begins with. Refuses damaged lines by their
 * number, equal strings and ranks, and special tokens whose id is a rank. */
fk_status fk_tiktoken_load(const char *path, const char *encoding, fk_tokenizer **out);
fk_status fk_tiktoken_parse(const void *data, size_t bytes, const char *encoding, fk_tokenizer **out);

#ifdef __cplusplus
}
#endif
#endif
