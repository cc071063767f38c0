/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of one-pass attention on tensor cores (FlashAttention-2, arXiv:2307.08691) that its kernels share: rows
 * come to shared memory by cp.async, scores, online softmax and output stay in registers as mma.sync fragments. */
#ifndef FK_OPS_FLASH_TILE_CUDA_H
#define FK_OPS_FLASH_TILE_CUDA_H

#include <math.h>

#include "core/cuda_mma.h"
#include "core/cuda_op.h"
#include "core/cuda_vec.h"

/* Sizes of a block: padded head size D, MT fragments of 16 rows a warp, BN keys a tile. */
template <int D_, int MT_, int BN_, int WARPS> struct flash_tile {
    static constexpr int D = D_, MT = MT_, BN = BN_, THREADS = 32 * WARPS, BM = 16 * WARPS * MT;
    static constexpr int PITCH = D + 8; /* an odd number of 16-byte units: ldmatrix meets every bank once */
    static constexpr int SHARED_BYTES = (BM + 4 * BN) * PITCH * 2 + 2 * BN * 4;
};

/* Copies `ROWS` rows of head_size elements to shared memory; features past head_size and rows without a
 * source are zeros
 * (`anywhere` is an address that such a copy names without reading). */
template <typename T, typename Tile, int ROWS, typename Source>
static __device__ __forceinline__ void copy_rows(uint32_t to, int head_size, const T *anywhere, Source source)
{
    constexpr int CHUNKS = Tile::D / 8;
    static_assert(ROWS * CHUNKS % Tile::THREADS == 0, "every thread copies the same number of chunks");
#pragma unroll
    for (int i = 0; i < ROWS * CHUNKS / Tile::THREADS; i++) {
        int item = threadIdx.x + i * Tile::THREADS, row = item / CHUNKS, chunk = item % CHUNKS;
        const T *from = source(row);
        bool valid = from != nullptr && 8 * chunk < head_size;
        fkd_copy_async(to + (row * Tile::PITCH + 8 * chunk) * 2, valid ? from + 8 * chunk : anywhere,
                       valid);
    }
}

/* s += q k^T for the warp's rows and one tile of keys. */
template <typename T, typename Tile>
static __device__ __forceinline__ void multiply_keys(float (&s)[Tile::MT][Tile::BN / 8][4], uint32_t q,
                                              uint32_t k)
{
    constexpr int PITCH = Tile::PITCH, MT = Tile::MT;
    const int lane = threadIdx.x % 32;
    const uint32_t q_lane = q + (lane % 16 * PITCH + lane / 16 * 8) * 2;
    const uint32_t k_lane = k + ((lane / 16 * 8 + lane % 8) * PITCH + lane / 8 % 2 * 8) * 2;
#pragma unroll
    for (int step = 0; step < Tile::D / 16; step++) {
        uint32_t a[MT][4];
#pragma unroll
        for (int m = 0; m < MT; m++) fkd_ldmatrix(a[m], q_lane + (m * 16 * PITCH + step * 16) * 2);
#pragma unroll
        for (int n = 0; n < Tile::BN / 16; n++) {
            uint32_t b[4];
            fkd_ldmatrix(b, k_lane + (n * 16 * PITCH + step * 16) * 2);
#pragma unroll
            for (int m = 0; m < MT; m++) {
                fkd_mma<T>(s[m][2 * n], a[m], b[0], b[1]);
                fkd_mma<T>(s[m][2 * n + 1], a[m], b[2], b[3]);
            }
        }
    }
}

/* o += p v: the scores' fragments are, rounded and packed, the left operands as they lie. */
template <typename T, typename Tile>
static __device__ __forceinline__ void multiply_values(float (&o)[Tile::MT][Tile::D / 8][4],
                                                const float (&p)[Tile::MT][Tile::BN / 8][4], uint32_t v)
{
    constexpr int PITCH = Tile::PITCH, MT = Tile::MT;
    const int lane = threadIdx.x % 32;
    const uint32_t v_lane = v + (lane % 16 * PITCH + lane / 16 * 8) * 2;
#pragma unroll
    for (int step = 0; step < Tile::BN / 16; step++) {
        uint32_t a[MT][4];
#pragma unroll
        for (int m = 0; m < MT; m++) {
            a[m][0] = fkd_pack2<T>(p[m][2 * step][0], p[m][2 * step][1]);
            a[m][1] = fkd_pack2<T>(p[m][2 * step][2], p[m][2 * step][3]);
            a[m][2] = fkd_pack2<T>(p[m][2 * step + 1][0], p[m][2 * step + 1][1]);
            a[m][3] = fkd_pack2<T>(p[m][2 * step + 1][2], p[m][2 * step + 1][3]);
        }
#pragma unroll
        for (int d = 0; d < Tile::D / 16; d++) {
            uint32_t b[4];
            fkd_ldmatrix_transposed(b, v_lane + (step * 16 * PITCH + d * 16) * 2);
#pragma unroll
            for (int m = 0; m < MT; m++) {
                fkd_mma<T>(o[m][2 * d], a[m], b[0], b[1]);
                fkd_mma<T>(o[m][2 * d + 1], a[m], b[2], b[3]);
            }
        }
    }
}

/* Turns scores into probabilities against the largest score so far; `unit` takes scores to log2. Rescales o
 * and l. */
template <typename Tile>
static __device__ __forceinline__ void soften(float (&s)[Tile::MT][Tile::BN / 8][4],
                                       float (&o)[Tile::MT][Tile::D / 8][4], float (&largest)[Tile::MT][2],
                                       float (&l)[Tile::MT][2], float unit)
{
#pragma unroll
    for (int m = 0; m < Tile::MT; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float top = largest[m][half];
#pragma unroll
            for (int n = 0; n < Tile::BN / 8; n++)
                top = fmaxf(top, fmaxf(s[m][n][2 * half], s[m][n][2 * half + 1]));
            top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
            top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
            float base =
                top == -INFINITY ? 0.0f : top * unit; /* a row that sees nothing yet: all zeros, no NaN */
            float keep = fkd_exp2(largest[m][half] * unit - base), sum = 0;
            largest[m][half] = top;
#pragma unroll
            for (int n = 0; n < Tile::BN / 8; n++)
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    float p = fkd_exp2(s[m][n][2 * half + i] * unit - base);
                    s[m][n][2 * half + i] = p;
                    sum += p;
                }
            l[m][half] = l[m][half] * keep + sum;
#pragma unroll
            for (int d = 0; d < Tile::D / 8; d++) o[m][d][2 * half] *= keep, o[m][d][2 * half + 1] *= keep;
        }
}

/* Divides by the sums and writes the warp's rows, over the queries' place in shared memory for 16-byte stores; `row_of`
 * says where a row goes. */
template <typename T, typename Tile, typename Row>
static __device__ __forceinline__ void write_rows(const float (&o)[Tile::MT][Tile::D / 8][4],
                                                  const float (&l)[Tile::MT][2], T *shared, int rows, int head_size,
                                                  Row row_of)
{
    constexpr int PITCH = Tile::PITCH, MT = Tile::MT, CHUNKS = Tile::D / 8;
    const int lane = threadIdx.x % 32, first = threadIdx.x / 32 * 16 * MT;
    __syncwarp();
#pragma unroll
    for (int m = 0; m < MT; m++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float sum = l[m][half];
            sum += __shfl_xor_sync(~0u, sum, 1);
            sum += __shfl_xor_sync(~0u, sum, 2);
            float inverse = sum > 0 ? 1.0f / sum : 0.0f;
            T *row = shared + (first + 16 * m + 8 * half + lane / 4) * PITCH + 2 * (lane % 4);
#pragma unroll
            for (int d = 0; d < CHUNKS; d++)
                *(uint32_t *)(row + 8 * d) =
                    fkd_pack2<T>(o[m][d][2 * half] * inverse, o[m][d][2 * half + 1] * inverse);
        }
    __syncwarp();
    for (int item = lane; item < 16 * MT * CHUNKS; item += 32) {
        int row = first + item / CHUNKS, chunk = item % CHUNKS;
        if (row < rows && 8 * chunk < head_size)
            fkd_store(row_of(row) + 8 * chunk, *(const uint4 *)(shared + row * PITCH + 8 * chunk));
    }
}

#endif
