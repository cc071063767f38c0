/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products by cuBLASLt, out = x weight^T + bias, with the algorithm chosen by measurement. */
#ifndef FK_CORE_CUDA_BLAS_H
#define FK_CORE_CUDA_BLAS_H

#include <cuda_runtime.h>

#include <fk/backend.h>

#define FKP_BLAS_WORKSPACE_BYTES ((size_t)32 << 20) /* what NVIDIA advises for Hopper */

/* Row-major matrices of one dtype on the current device: x [m, k], weight [n, k], out [m, n], bias [n].
 * Strides are distances between rows in elements. */
typedef struct fkp_blas_problem {
    int64_t m, n, k;
    fk_dtype dtype;
    const void *x, *weight, *bias; /* bias NULL: none */
    void *out;
    int64_t x_stride, weight_stride, out_stride;
    void *workspace; /* 256-byte aligned */
    size_t workspace_bytes;
} fkp_blas_problem;

/* Another way to compute the problem, timed against cuBLASLt's algorithms. */
typedef cudaError_t (*fkp_blas_rival)(const fkp_blas_problem *problem, cudaStream_t stream);

/* Launches the product on the stream. Sets *done to false, launching nothing, when cuBLASLt has no algorithm
 * for it. The first call of a shape outside of graph capture times the best candidates in place, which takes
 * milliseconds and waits for the stream; FK_TUNE=0 in the environment takes the heuristic's first choice
 * instead. */
fk_status fkp_blas_linear(const fkp_blas_problem *problem, cudaStream_t stream, bool *done);
/* The same with a rival that takes part in the timing; before it is timed, the rival is taken. */
fk_status fkp_blas_linear_or(const fkp_blas_problem *problem, fkp_blas_rival rival, cudaStream_t stream,
                             bool *done);

#endif
