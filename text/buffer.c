/* SPDX-License-Identifier: Apache-2.0 */
/* Growable arrays of bytes and token ids. */
#include "text/buffer.h"

#include <stdlib.h>
#include <string.h>

fk_piece fk_piece_of(const char *text)
{
    return (fk_piece){text, strlen(text)};
}

fk_status fkp_allocate(void *out, size_t count, size_t size)
{
    void *memory = count < SIZE_MAX ? calloc(count + 1, size) : NULL;
    if (!memory) return fk_fail(FK_ERROR_MEMORY, "no memory for %zu elements of %zu bytes", count, size);
    memcpy(out, &memory, sizeof memory);
    return FK_OK;
}

fk_status fkp_grow(void **data, size_t *capacity, size_t needed, size_t size)
{
    if (needed <= *capacity) return FK_OK;
    size_t grown = *capacity > SIZE_MAX / 2 ? needed : *capacity * 2;
    if (grown < needed) grown = needed;
    if (grown < 16) grown = 16;
    void *moved = grown <= SIZE_MAX / size ? realloc(*data, grown * size) : NULL;
    if (!moved) return fk_fail(FK_ERROR_MEMORY, "no memory for %zu elements of %zu bytes", grown, size);
    *data = moved;
    *capacity = grown;
    return FK_OK;
}

fk_status fk_bytes_append(fk_bytes *b, const void *data, size_t bytes)
{
    if (bytes == 0) return FK_OK;
    if (bytes > SIZE_MAX - b->bytes) return fk_fail(FK_ERROR_MEMORY, "no memory for %zu more bytes", bytes);
    void *storage = b->data;
    FK_TRY(fkp_grow(&storage, &b->capacity, b->bytes + bytes, 1));
    b->data = storage;
    memcpy(b->data + b->bytes, data, bytes);
    b->bytes += bytes;
    return FK_OK;
}

void fk_bytes_deinit(fk_bytes *b)
{
    free(b->data);
    *b = (fk_bytes){0};
}

fk_status fk_token_list_reserve(fk_token_list *list, int64_t extra)
{
    if (extra <= list->capacity - list->count) return FK_OK;
    size_t capacity = (size_t)list->capacity;
    void *storage = list->ids;
    FK_TRY(fkp_grow(&storage, &capacity, (size_t)list->count + (size_t)extra, sizeof *list->ids));
    list->ids = storage;
    list->capacity = (int64_t)capacity;
    return FK_OK;
}

fk_status fk_token_list_push(fk_token_list *list, int32_t id)
{
    if (list->count == list->capacity) FK_TRY(fk_token_list_reserve(list, 1));
    list->ids[list->count++] = id;
    return FK_OK;
}

void fk_token_list_deinit(fk_token_list *list)
{
    free(list->ids);
    *list = (fk_token_list){0};
}
