/* SPDX-License-Identifier: Apache-2.0 */
/* The free list of cache blocks. */
#include "runtime/block_pool.h"

#include <assert.h>
#include <stdlib.h>

fk_status fk_block_pool_init(fk_block_pool *pool, int64_t num_blocks)
{
    *pool = (fk_block_pool){0};
    if (num_blocks < 1 || num_blocks > INT32_MAX)
        return fk_fail(FK_ERROR_INVALID, "a cache of %lld blocks; it takes 1 to %d", (long long)num_blocks, INT32_MAX);
    pool->free_blocks = malloc((size_t)num_blocks * sizeof *pool->free_blocks);
    pool->taken = calloc((size_t)num_blocks, sizeof *pool->taken);
    if (!pool->free_blocks || !pool->taken) {
        fk_block_pool_deinit(pool);
        return fk_fail(FK_ERROR_MEMORY, "out of memory for a list of %lld cache blocks", (long long)num_blocks);
    }
    pool->num_blocks = pool->num_free = num_blocks;
    for (int64_t i = 0; i < num_blocks; i++) pool->free_blocks[i] = (int32_t)(num_blocks - 1 - i); /* block 0 goes first */
    return FK_OK;
}

void fk_block_pool_deinit(fk_block_pool *pool)
{
    free(pool->free_blocks);
    free(pool->taken);
    *pool = (fk_block_pool){0};
}

bool fk_block_pool_take(fk_block_pool *pool, int64_t count, int32_t *out)
{
    if (count > pool->num_free) return false;
    for (int64_t i = 0; i < count; i++) {
        out[i] = pool->free_blocks[--pool->num_free];
        pool->taken[out[i]] = true;
    }
    return true;
}

void fk_block_pool_give(fk_block_pool *pool, const int32_t *blocks, int64_t count)
{
    for (int64_t i = count - 1; i >= 0; i--) { /* so that they are taken again in the same order */
        assert(blocks[i] >= 0 && blocks[i] < pool->num_blocks && pool->taken[blocks[i]]);
        pool->taken[blocks[i]] = false;
        pool->free_blocks[pool->num_free++] = blocks[i];
    }
}
