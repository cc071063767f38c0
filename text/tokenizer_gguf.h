/* SPDX-License-Identifier: Apache-2.0 */
/* The tokenizer and chat template that a GGUF file carries, from its tokenizer.* metadata. */
#ifndef FK_TEXT_TOKENIZER_GGUF_H
#define FK_TEXT_TOKENIZER_GGUF_H

#include "core/gguf.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

/* Reads tokenizer.ggml.model ("gpt2", byte-level BPE with pre and merges; "llama", BPE of SentencePiece with
 * scores and add_space_prefix), tokens, token_type, bos_token_id, add_bos_token and eos_token_id,
 * eot_token_id, eom_token_id. Ids that end a generation are these and the control tokens with the names that
 * end a turn or a text (<|im_end|>, <|endoftext|>, <|eot_id|>, ...), as in llama.cpp. The file may be closed
 * afterwards. */
fk_status fk_tokenizer_create_gguf(const fk_gguf *gguf, fk_tokenizer **out);
/* tokenizer.chat_template. FK_ERROR_MISSING when the file has none. */
fk_status fk_chat_template_find_gguf(const fk_gguf *gguf, const fk_chat_template **out);

#endif
