/* SPDX-License-Identifier: Apache-2.0 */
/* Ids back to text, whole or as a stream. The streaming form takes one id at a time and hands out bytes that
 * never end inside a character: a token may be half of one, so an id may yield nothing and a later one more.
 * All pieces joined are the text that the whole form gives. */
#ifndef FK_TEXT_DETOKENIZER_H
#define FK_TEXT_DETOKENIZER_H

#include "text/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
    FK_DECODE_SPECIAL = 1, /* control tokens are shown by their names; without it they are left out */
    FK_DECODE_RAW_BYTES =
        2 /* bytes that are no UTF-8 come out as they are; without it every longest good beginning,
             or single byte, becomes U+FFFD and the output is always valid UTF-8 */
};

typedef struct fk_detokenizer fk_detokenizer;

/* `t` must outlive it. */
fk_status fk_detokenizer_create(const fk_tokenizer *t, unsigned flags, fk_detokenizer **out);
void fk_detokenizer_destroy(fk_detokenizer *d);
/* Appends the characters that this id completes to `out`. An id outside the vocabulary is an error that names
 * both and changes nothing: the stream can go on. */
fk_status fk_detokenizer_push(fk_detokenizer *d, int32_t id, fk_bytes *out);
/* Appends what was held back, a character that never got complete, and makes the stream empty again. */
fk_status fk_detokenizer_finish(fk_detokenizer *d, fk_bytes *out);

/* The text of `count` ids, appended to `out`. */
fk_status fk_tokenizer_decode(const fk_tokenizer *t, const int32_t *ids, int64_t count, unsigned flags,
                              fk_bytes *out);

#ifdef __cplusplus
}
#endif
#endif
