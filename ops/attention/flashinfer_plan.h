/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of flashinfer_decode and flashinfer_prefill, [1 + requests, 8] int32; C and CUDA.
 *
 * An item is a tile of a request's queries with one chunk of its keys: what a block of threads does for one KV head. Items
 * of a request stand tile by tile, the chunks of a tile side by side. Keys are split only where the tiles are too few to
 * fill a large machine: into chunks of PLAN_CHUNK * 2^k tokens, with the smallest k that gives no more items than
 * PLAN_BLOCKS a KV head. */
#ifndef FK_OPS_FLASHINFER_PLAN_H
#define FK_OPS_FLASHINFER_PLAN_H

#include <stdint.h>
#include <string.h>

#define PLAN_COLUMNS 8
#define PLAN_BLOCKS 512 /* ARBITRARY: a few waves of the largest devices */
#define PLAN_CHUNK 256
#define PLAN_TILE_ROWS 64 /* queries of a tile times heads of a group, where a group is not larger */

/* Row 0. */
enum { PLAN_ITEMS, PLAN_CHUNK_TOKENS, PLAN_TILE_QUERIES, PLAN_CAUSAL, PLAN_WINDOW, PLAN_SCALE_BITS, PLAN_CAP_BITS, PLAN_REQUESTS };
/* Row 1 + r. */
enum { PLAN_FIRST_QUERY, PLAN_QUERIES, PLAN_LENGTH, PLAN_CHUNKS, PLAN_FIRST_ITEM, PLAN_TILES, PLAN_FIRST_PAGE, PLAN_PAGES };

#ifdef __CUDACC__
#define PLAN_FN static __host__ __device__ inline
#else
#define PLAN_FN static inline
#endif

PLAN_FN int32_t plan_ceil(int64_t n, int64_t by)
{
    return (int32_t)((n + by - 1) / by);
}

/* Chunks of a request with so many keys; one where there are none. */
PLAN_FN int32_t plan_chunks(int32_t length, int32_t chunk_tokens)
{
    return length > 0 ? plan_ceil(length, chunk_tokens) : 1;
}

PLAN_FN int32_t plan_tile_queries(int64_t group)
{
    return group < PLAN_TILE_ROWS ? (int32_t)(PLAN_TILE_ROWS / group) : 1;
}

/* Items that keys may be split into. */
PLAN_FN int32_t plan_most_items(int64_t num_kv_heads)
{
    return num_kv_heads < PLAN_BLOCKS ? (int32_t)(PLAN_BLOCKS / num_kv_heads) : 1;
}

/* Float options travel as their bits. */
static inline int32_t plan_bits(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

#endif
