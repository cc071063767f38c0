/* SPDX-License-Identifier: Apache-2.0 */
/* Arena allocation. */
#include "core/arena.h"

#include <stdlib.h>

#define ALIGNMENT 256u

void fk_arena_init(fk_arena *arena, fk_backend *backend, size_t chunk_bytes)
{
    *arena = (fk_arena){.backend = backend, .chunk_bytes = chunk_bytes};
}

void fk_arena_deinit(fk_arena *arena)
{
    for (size_t i = 0; i < arena->num_chunks; i++) arena->backend->free(arena->backend, arena->chunks[i].data);
    free(arena->chunks);
    *arena = (fk_arena){.backend = arena->backend, .chunk_bytes = arena->chunk_bytes};
}

static fk_status add_chunk(fk_arena *arena, size_t bytes)
{
    if (arena->num_chunks == arena->capacity) {
        size_t capacity = arena->capacity ? 2 * arena->capacity : 8;
        void *grown = realloc(arena->chunks, capacity * sizeof *arena->chunks);
        if (!grown) return fk_fail(FK_ERROR_MEMORY, "out of memory for %zu chunk entries", capacity);
        arena->chunks = grown;
        arena->capacity = capacity;
    }
    if (bytes < arena->chunk_bytes) bytes = arena->chunk_bytes;
    void *data;
    FK_TRY(arena->backend->alloc(arena->backend, bytes, &data));
    arena->chunks[arena->num_chunks++] = (struct fkp_chunk){data, bytes};
    return FK_OK;
}

fk_status fk_arena_alloc(fk_arena *arena, size_t bytes, void **out)
{
    if (bytes > SIZE_MAX - ALIGNMENT) return fk_fail(FK_ERROR_MEMORY, "allocation of %zu bytes", bytes);
    bytes = (bytes + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
    while (arena->at.chunk < arena->num_chunks) {
        struct fkp_chunk *chunk = &arena->chunks[arena->at.chunk];
        if (bytes <= chunk->bytes - arena->at.used) {
            *out = chunk->data + arena->at.used;
            arena->at.used += bytes;
            return FK_OK;
        }
        arena->at = (fk_mark){arena->at.chunk + 1, 0};
    }
    FK_TRY(add_chunk(arena, bytes));
    *out = arena->chunks[arena->at.chunk].data;
    arena->at.used = bytes;
    return FK_OK;
}

fk_status fk_arena_tensor(fk_arena *arena, fk_dtype dtype, int ndim, const int64_t *shape, fk_tensor *out)
{
    void *data;
    int64_t elements = 1;
    for (int i = 0; i < ndim; i++)
        if (__builtin_mul_overflow(elements, shape[i], &elements) || elements > INT64_MAX / 8)
            return fk_fail(FK_ERROR_MEMORY, "tensor too large: dim %d of %d is %lld", i, ndim, (long long)shape[i]);
    FK_TRY(fk_arena_alloc(arena, ((size_t)elements * (size_t)fk_dtype_bits(dtype) + 7) / 8, &data));
    *out = fk_tensor_wrap(data, dtype, arena->backend->device, ndim, shape);
    return FK_OK;
}

size_t fk_arena_reserved(const fk_arena *arena)
{
    size_t bytes = 0;
    for (size_t i = 0; i < arena->num_chunks; i++) bytes += arena->chunks[i].bytes;
    return bytes;
}
