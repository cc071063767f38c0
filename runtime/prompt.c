/* SPDX-License-Identifier: Apache-2.0 */
/* Prompts to ids. */
#include "runtime/prompt.h"

#include "text/chat_template.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

fk_status fk_check_utf8(const char *what, fk_piece text)
{
    size_t offset = fk_utf8_invalid_offset(text.data, text.bytes);
    if (offset == text.bytes) return FK_OK;
    return fk_fail(FK_ERROR_INVALID, "%s is no UTF-8: byte 0x%02X at offset %zu of %zu", what,
                   (unsigned)(unsigned char)text.data[offset], offset, text.bytes);
}

static fk_status encode_chat(const fk_model *model, fk_encoder *encoder, const fk_prompt *prompt, fk_token_list *out)
{
    const fk_chat_template *chat = fk_model_chat_template(model);
    if (!chat)
        return fk_fail(FK_ERROR_INVALID, "model %s has no chat template: give the prompt as it is (raw)", fk_model_name(model));
    fk_chat_message messages[2];
    size_t count = 0;
    if (prompt->system.data) messages[count++] = (fk_chat_message){fk_piece_of("system"), prompt->system};
    messages[count++] = (fk_chat_message){fk_piece_of("user"), prompt->text};
    fk_chat_prompt rendered = {0};
    fk_status status = fk_chat_render(chat, messages, count, true, &rendered);
    if (status == FK_OK) status = fk_chat_encode(encoder, &rendered, FK_ENCODE_ADD_BOS, out);
    fk_chat_prompt_deinit(&rendered);
    return status;
}

fk_status fk_prompt_encode(const fk_model *model, const fk_prompt *prompt, fk_token_list *out)
{
    const fk_tokenizer *tokenizer = fk_model_tokenizer(model);
    if (!tokenizer)
        return fk_fail(FK_ERROR_INVALID, "model %s has no tokenizer: give the prompt as token ids", fk_model_name(model));
    FK_TRY(fk_check_utf8("the prompt", prompt->text));
    if (prompt->system.data) FK_TRY(fk_check_utf8("the system message", prompt->system));
    fk_encoder *encoder;
    FK_TRY(fk_encoder_create(tokenizer, &encoder));
    fk_status status = prompt->raw ? fk_encoder_encode(encoder, prompt->text.data, prompt->text.bytes,
                                                       FK_ENCODE_ADD_BOS | FK_ENCODE_PARSE_SPECIAL, out)
                                   : encode_chat(model, encoder, prompt, out);
    fk_encoder_destroy(encoder);
    return status;
}
