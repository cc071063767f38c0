/* SPDX-License-Identifier: Apache-2.0 */
/* A bump allocator over chunks of one backend's memory: allocation is an addition, freeing is one call for everything, and
 * marks give back what came after them (activations of one layer). Chunks stay for reuse until the arena goes. */
#ifndef FK_CORE_ARENA_H
#define FK_CORE_ARENA_H

#include <fk/backend.h>
#include <fk/ctx.h>

typedef struct fk_arena {
    fk_backend *backend;
    struct fkp_chunk { char *data; size_t bytes; } *chunks;
    size_t num_chunks, capacity;
    fk_mark at;
    size_t chunk_bytes; /* size of a new chunk, at least */
} fk_arena;

/* Caller's storage; takes no memory until the first allocation. */
void fk_arena_init(fk_arena *arena, fk_backend *backend, size_t chunk_bytes);
void fk_arena_deinit(fk_arena *arena);
/* Memory aligned to 256 bytes; FK_ERROR_MEMORY names the size. */
fk_status fk_arena_alloc(fk_arena *arena, size_t bytes, void **out);
/* A contiguous tensor in the arena, uninitialised. */
fk_status fk_arena_tensor(fk_arena *arena, fk_dtype dtype, int ndim, const int64_t *shape, fk_tensor *out);
static inline void fk_arena_reset(fk_arena *arena)
{
    arena->at = (fk_mark){0, 0};
}
/* Bytes in chunks, used or not. */
size_t fk_arena_reserved(const fk_arena *arena);

#endif
