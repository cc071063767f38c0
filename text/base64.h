/* SPDX-License-Identifier: Apache-2.0 */
/* Base64 (RFC 4648 section 4), as tokenizer files write bytes in text. */
#ifndef FK_TEXT_BASE64_H
#define FK_TEXT_BASE64_H

#include "text/buffer.h"

/* Appends the bytes that the text stands for. Strict: whole groups of four, padding at the end only, no other
 * characters; the message names the offset of the first that is wrong. After an error `out` is as before. */
fk_status fkp_base64_append(fk_bytes *out, fk_piece text);

#endif
