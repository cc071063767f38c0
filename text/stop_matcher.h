/* SPDX-License-Identifier: Apache-2.0 */
/* Stop strings over a stream of text: the text goes through, except that an end which may still grow into a
 * stop string is held back until it is decided. With the stop "DEF" and the pieces "ABCD" and "EFG", "ABC"
 * comes out and the stream has stopped. */
#ifndef FK_TEXT_STOP_MATCHER_H
#define FK_TEXT_STOP_MATCHER_H

#include "text/buffer.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { FK_MAX_STOP_STRINGS = 16, FK_MAX_STOP_BYTES = 4096 };

typedef struct fk_stop_matcher fk_stop_matcher;

/* Copies the strings; none is fine and stops never. Refuses more than FK_MAX_STOP_STRINGS, an empty string,
 * one longer than FK_MAX_STOP_BYTES, and one that is not UTF-8 (it could cut a character). */
fk_status fk_stop_matcher_create(const fk_piece *stops, size_t count, fk_stop_matcher **out);
void fk_stop_matcher_destroy(fk_stop_matcher *m);
/* Appends the part of the text so far that no stop string can take back to `out`. Once *stopped is set the
 * text before the stop string has come out, and whatever follows is dropped. When several strings end at the
 * same byte, the longest counts. */
fk_status fk_stop_matcher_push(fk_stop_matcher *m, const char *text, size_t bytes, fk_bytes *out,
                               bool *stopped);
/* The text is over: appends what was held back (nothing after a stop) and makes the stream empty again. */
fk_status fk_stop_matcher_finish(fk_stop_matcher *m, fk_bytes *out);

#ifdef __cplusplus
}
#endif
#endif
