/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of a tensor-parallel group: processes that make the same calls in the same order, each on its part of
 * the data. One rank has one communicator, used by one thread. Here the ranks are processes of one host over
 * shared memory; whoever adds another transport (MPI between hosts) fills in the same struct.
 *
 * No rank waits for ever: one that died, left or stays away longer than the timeout, and ranks whose calls do
 * not fit together, are an error on all ranks that names the rank. After an error the group is broken and
 * every later call fails. */
#ifndef FK_CORE_COMMUNICATOR_H
#define FK_CORE_COMMUNICATOR_H

#include <stddef.h>
#include <stdint.h>

#include <fk/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fk_communicator fk_communicator;
struct fk_communicator {
    int rank, size;
    /* `part` (host memory, `bytes` of it) of all ranks, one after another in the order of ranks, into `whole`
     * (size * bytes). `what` says what is exchanged ("allreduce f32 [3, 64]"); all ranks must say the same.
     */
    fk_status (*all_gather)(fk_communicator *communicator, const char *what, const void *part, size_t bytes,
                            void *whole);
    void (*destroy)(fk_communicator *communicator);
    /* What a device's library keeps for this group (core/cuda_nccl.cu): made on first use, freed with the
     * communicator. */
    void *device;
    void (*device_destroy)(void *device);
};

/* NULL is fine. */
void fk_communicator_destroy(fk_communicator *communicator);

/* Memory that `size` ranks share. Made before the ranks are forked; each then joins with its own number,
 * once. The creator destroys its mapping when it no longer needs it; ranks keep theirs. */
typedef struct fk_shared_group fk_shared_group;
fk_status fk_shared_group_create(int size, fk_shared_group **out);
void fk_shared_group_destroy(fk_shared_group *group);
/* In the process, and by the thread, that is to be this rank. FK_ERROR_INVALID: no such rank, or it has
 * joined before. */
fk_status fk_shared_group_join(fk_shared_group *group, int rank, int64_t timeout_ms, fk_communicator **out);

#define FK_GROUP_TIMEOUT_MS 300000 /* what collectives usually wait: five minutes */

#ifdef __cplusplus
}
#endif
#endif
