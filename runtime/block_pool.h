/* SPDX-License-Identifier: Apache-2.0 */
/* Which blocks of the key and value cache are free. A sequence's tokens stand in blocks of equal size anywhere in the cache;
 * a block table says where. Pure bookkeeping over numbers: it knows neither device nor model. */
#ifndef FK_RUNTIME_BLOCK_POOL_H
#define FK_RUNTIME_BLOCK_POOL_H

#include <fk/status.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct fk_block_pool {
    int64_t num_blocks, num_free;
    int32_t *free_blocks; /* a stack: the block given back last is taken first, while it may still be in a cache */
    bool *taken;          /* [num_blocks] */
} fk_block_pool;

/* Caller's storage. num_blocks from 1 to 2^31 - 1. */
fk_status fk_block_pool_init(fk_block_pool *pool, int64_t num_blocks);
void fk_block_pool_deinit(fk_block_pool *pool);
/* Takes `count` blocks into `out`, or none and returns false when fewer are free. */
bool fk_block_pool_take(fk_block_pool *pool, int64_t count, int32_t *out);
/* Gives blocks back; each must be taken (asserted). */
void fk_block_pool_give(fk_block_pool *pool, const int32_t *blocks, int64_t count);

#endif
