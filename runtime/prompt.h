/* SPDX-License-Identifier: Apache-2.0 */
/* From what a person types to token ids: through the model's chat template, or as it stands. */
#ifndef FK_RUNTIME_PROMPT_H
#define FK_RUNTIME_PROMPT_H

#include <fk/model.h>

#include "text/buffer.h"

typedef struct fk_prompt {
    fk_piece text;
    fk_piece system; /* {0}: the template's own */
    bool raw;        /* no template: a text to be continued */
} fk_prompt;

/* Appends the ids. Refused: text that is no UTF-8 (offset and byte are named), a model without tokenizer, or one without a
 * chat template where that is asked for. */
fk_status fk_prompt_encode(const fk_model *model, const fk_prompt *prompt, fk_token_list *out);
/* FK_ERROR_INVALID, with offset and value of the first byte that is no UTF-8; `what` names the text. */
fk_status fk_check_utf8(const char *what, fk_piece text);

#endif
