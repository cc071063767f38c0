/* SPDX-License-Identifier: Apache-2.0 */
/* How row norms divide rows over threads: a block reads its rows once, VPT packs of 16 bytes a thread and row, and keeps them
 * in registers. With many rows the memory must stay busy: few threads a row with several packs each, and two rows a block where
 * registers allow, all loaded before the first is reduced. With few rows the latency counts: many threads, one pack each. Rows of
 * up to 32 packs take one warp each, several to a block. */
#ifndef FK_CORE_CUDA_NORM_H
#define FK_CORE_CUDA_NORM_H

#include "core/cuda_op.h"

#define FKP_NORM_WARP_ROWS 8     /* rows side by side in a block where one warp holds a row */
#define FKP_NORM_MANY_ROWS 1024  /* from here bandwidth counts: about 8 rows a multiprocessor */

typedef struct fkp_norm_plan {
    int packs_per_thread; /* 1, 2, 4 or 8; 0: the row does not fit */
    dim3 block;           /* x: threads a row; y: rows side by side, more than 1 only where x is 32 */
} fkp_norm_plan;

/* Largest x * y of a kernel with that many packs a thread. */
constexpr int fkp_norm_max_threads(int packs_per_thread)
{
    return packs_per_thread <= 2 ? 512 : packs_per_thread == 4 ? 128 : 256;
}

static inline fkp_norm_plan fkp_norm_plan_for(int64_t packs, int64_t rows)
{
    if (packs <= 0 || packs > 8 * fkp_norm_max_threads(8)) return fkp_norm_plan{0, dim3(1, 1, 1)};
    int per_thread = packs <= 128 ? 1
                     : rows >= FKP_NORM_MANY_ROWS ? (packs <= 4 * fkp_norm_max_threads(4) ? 4 : 8)
                     : packs <= fkp_norm_max_threads(1) ? 1
                     : packs <= 2 * fkp_norm_max_threads(2) ? 2
                                                            : 8;
    unsigned threads = (unsigned)((packs + per_thread - 1) / per_thread + 31) / 32 * 32;
    return fkp_norm_plan{per_thread, dim3(threads, threads == 32 ? FKP_NORM_WARP_ROWS : 1, 1)};
}

/* Blocks for rows when a block holds `block_rows` of them. */
static inline unsigned fkp_norm_blocks(int64_t rows, int64_t block_rows)
{
    return (unsigned)((rows + block_rows - 1) / block_rows);
}

#endif
