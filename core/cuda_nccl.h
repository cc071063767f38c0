/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives of the ranks' GPUs through NCCL, opened at run time: nothing here links to it. */
#ifndef FK_CORE_CUDA_NCCL_H
#define FK_CORE_CUDA_NCCL_H

#include <cuda_runtime.h>

#include <fk/tensor.h>

#include "core/communicator.h"

/* The sum over ranks of `count` floats, in `stream`; input and output may be the same. Every rank has a GPU
 * of its own. The first call of a group connects the GPUs: it allocates and waits, so it can't stand in a
 * graph. FK_ERROR_MISSING without NCCL. What a rank exchanges is not compared here, as the CPU's group does:
 * that would cost each call a trip over the host. */
fk_status fkp_nccl_all_reduce(fk_communicator *group, cudaStream_t stream, fk_dtype dtype, const void *input,
                              void *output, int64_t count);

#endif
