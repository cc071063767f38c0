/* SPDX-License-Identifier: Apache-2.0 */
/* The two growable arrays that text processing fills: bytes and token ids. The caller owns them, starts with
 * {0}, and may use one again after _clear without a new allocation. Functions that fill one append to what is
 * there. */
#ifndef FK_TEXT_BUFFER_H
#define FK_TEXT_BUFFER_H

#include "fk/status.h"

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A borrowed stretch of bytes, not terminated: a vocabulary piece, a message, a stop string. */
typedef struct fk_piece {
    const char *data;
    size_t bytes;
} fk_piece;

/* The fk_piece of a string with a terminator; the terminator is not part of it. */
fk_piece fk_piece_of(const char *text);

typedef struct fk_bytes {
    char *data; /* NULL while empty; no terminator */
    size_t bytes;
    size_t capacity;
} fk_bytes;

fk_status fk_bytes_append(fk_bytes *b, const void *data, size_t bytes);
static inline void fk_bytes_clear(fk_bytes *b)
{
    b->bytes = 0;
}
void fk_bytes_deinit(fk_bytes *b);

typedef struct fk_token_list {
    int32_t *ids;
    int64_t count;
    int64_t capacity;
} fk_token_list;

/* Room for `extra` more ids, so that pushing them cannot fail. */
fk_status fk_token_list_reserve(fk_token_list *list, int64_t extra);
fk_status fk_token_list_push(fk_token_list *list, int32_t id);
static inline void fk_token_list_clear(fk_token_list *list)
{
    list->count = 0;
}
void fk_token_list_deinit(fk_token_list *list);

/* Zeroed memory for `count` elements of `size` bytes and one more, to be freed; *out is a pointer to them. */
fk_status fkp_allocate(void *out, size_t count, size_t size);

/* Grows *data (elements of `size` bytes) to at least `needed` elements, at least doubling; *capacity is
 * updated. */
fk_status fkp_grow(void **data, size_t *capacity, size_t needed, size_t size);

#ifdef __cplusplus
}
#endif
#endif
