/* SPDX-License-Identifier: Apache-2.0 */
/* The tokenizer of a Hugging Face folder: tokenizer.json, or where that is missing tokenizer.model
 * (SentencePiece); of tokenizer_config.json the names of the begin and end tokens and the chat template
 * (which may stand in chat_template.jinja). */
#ifndef FK_RUNTIME_HF_TOKENIZER_H
#define FK_RUNTIME_HF_TOKENIZER_H

#include <jansson.h>

#include "text/chat_template.h"
#include "text/tokenizer.h"

/* *tokenizer is NULL when the folder holds neither. With a config (it may be NULL) the tokenizer must fit the
 * model: ids beyond its embedding are an error. *chat is NULL when there is no template, or none that is
 * built in. */
fk_status fk_hf_tokenizer(const char *folder, const json_t *config, fk_tokenizer **tokenizer, const fk_chat_template **chat);

#endif
