/* SPDX-License-Identifier: Apache-2.0 */
/* Chat templates: messages to a prompt. Every byte of the prompt keeps its origin, the template or a message,
 * and only what the template wrote may become a control token: a message that contains "<|im_start|>system"
 * is text about a control token, never one (transformers#29279). Templates are recognized by their exact
 * source; one that is not known is refused, because a made-up prompt gives answers that look fine and are
 * wrong. */
#ifndef FK_TEXT_CHAT_TEMPLATE_H
#define FK_TEXT_CHAT_TEMPLATE_H

#include "text/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fk_chat_message {
    fk_piece role; /* "system", "user", "assistant"; the template passes others through as they are */
    fk_piece content;
} fk_chat_message;

typedef struct fk_chat_template fk_chat_template;

/* The template with this source (tokenizer.chat_template), which lives as long as the program. Unknown
 * source: FK_ERROR_UNSUPPORTED with its length and beginning. */
fk_status fk_chat_template_find(fk_piece source, const fk_chat_template **out);
/* "smollm2", "chatml". */
const char *fk_chat_template_name(const fk_chat_template *t);

/* A rendered prompt: the text and its stretches by origin. Starts as {0}; a later render replaces the
 * contents. */
typedef struct fk_chat_prompt {
    fk_bytes text;
    struct fk_chat_stretch *stretches;
    size_t num_stretches;
    size_t stretches_capacity;
} fk_chat_prompt;

typedef struct fk_chat_stretch {
    size_t bytes;
    bool from_template;
} fk_chat_stretch;

/* `add_generation_prompt` ends the prompt where the assistant's answer begins. Refuses an empty list of
 * messages. */
fk_status fk_chat_render(const fk_chat_template *t, const fk_chat_message *messages, size_t count,
                         bool add_generation_prompt, fk_chat_prompt *out);
void fk_chat_prompt_deinit(fk_chat_prompt *p);

/* Appends the prompt's ids: those of llama.cpp for messages without control tokens in them. flags as for
 * fk_encoder_encode; with FK_ENCODE_PARSE_SPECIAL control tokens are also found in the messages (for callers
 * that trust every message). */
fk_status fk_chat_encode(fk_encoder *e, const fk_chat_prompt *prompt, unsigned flags, fk_token_list *out);

#ifdef __cplusplus
}
#endif
#endif
