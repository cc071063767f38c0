/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8, read strictly (Unicode table 3-7: no overlong forms, no surrogates, nothing above U+10FFFF). */
#ifndef FK_TEXT_UTF8_H
#define FK_TEXT_UTF8_H

#include "text/buffer.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FK_REPLACEMENT "\xEF\xBF\xBD" /* U+FFFD */

typedef enum fkp_utf8_state {
    FKP_UTF8_VALID,      /* a whole character */
    FKP_UTF8_INCOMPLETE, /* a good beginning, and the input ends there */
    FKP_UTF8_INVALID     /* no character begins with these bytes */
} fkp_utf8_state;

/* One step of reading: what stands at the front, how many bytes it takes, and the code point when VALID. For
 * the other two `bytes` is the longest good beginning (at least 1), which is what one U+FFFD stands for in
 * the usual practice. */
typedef struct fkp_utf8_char {
    fkp_utf8_state state;
    uint32_t code_point;
    int bytes;
} fkp_utf8_char;

/* Precondition: bytes > 0. */
fkp_utf8_char fkp_utf8_read(const uint8_t *text, size_t bytes);

/* The bytes that such a step takes. */
static inline size_t fkp_utf8_length(const uint8_t *text, size_t bytes)
{
    return text[0] < 0x80 ? 1 : (size_t)fkp_utf8_read(text, bytes).bytes;
}

/* Offset of the first byte that belongs to no character; `bytes` when the whole text is valid. Callers that
 * must refuse such text name this offset and the byte there. */
size_t fk_utf8_invalid_offset(const char *text, size_t bytes);

/* Appends text that is not valid UTF-8 as llama.cpp reads it, so that ids agree there too: an overlong form
 * becomes the character that it spells, an encoded surrogate stays, and every other byte that belongs to no
 * character (also those of forms above U+10FFFF, on which llama.cpp gives up) becomes U+FFFD. Valid text
 * comes out unchanged. */
fk_status fkp_utf8_append_lenient(fk_bytes *out, const char *text, size_t bytes);

/* Writes the code point's UTF-8 into buf (4 bytes); returns the length. */
int fkp_utf8_write(uint32_t code_point, uint8_t buf[4]);

#ifdef __cplusplus
}
#endif
#endif
