/* SPDX-License-Identifier: Apache-2.0 */
/* The few functions of NCCL (https://docs.nvidia.com/deeplearning/nccl) that are needed, declared by hand:
 * the ABI of major version 2. The id that connects the ranks goes from rank 0 to the others through the
 * group's own all_gather. */
#include "core/cuda_nccl.h"

#include <dlfcn.h>
#include <stdio.h>

#include <mutex>

namespace
{

typedef struct ncclComm *comm_t;
struct unique_id {
    char internal[128]; /* NCCL_UNIQUE_ID_BYTES */
};
enum { NCCL_SUCCESS = 0, NCCL_SUM = 0, NCCL_FLOAT16 = 6, NCCL_FLOAT32 = 7, NCCL_BFLOAT16 = 9 };

struct functions {
    int (*get_unique_id)(unique_id *);
    int (*comm_init_rank)(comm_t *, int size, unique_id, int rank);
    int (*all_reduce)(const void *, void *, size_t count, int dtype, int op, comm_t, cudaStream_t);
    int (*comm_abort)(comm_t);
    const char *(*error_string)(int);
};

std::mutex lock;
functions nccl;
bool loaded;

fk_status find(void *library, const char *symbol, void **out)
{
    *out = dlsym(library, symbol);
    return *out ? FK_OK : fk_fail(FK_ERROR_MISSING, "libnccl.so.2 has no %s", symbol);
}

fk_status load()
{
    std::lock_guard<std::mutex> guard(lock);
    if (loaded) return FK_OK;
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) return fk_fail(FK_ERROR_MISSING, "several GPUs need NCCL: %s", dlerror());
    FK_TRY(find(library, "ncclGetUniqueId", (void **)&nccl.get_unique_id));
    FK_TRY(find(library, "ncclCommInitRank", (void **)&nccl.comm_init_rank));
    FK_TRY(find(library, "ncclAllReduce", (void **)&nccl.all_reduce));
    FK_TRY(find(library, "ncclCommAbort", (void **)&nccl.comm_abort));
    FK_TRY(find(library, "ncclGetErrorString", (void **)&nccl.error_string));
    loaded = true;
    return FK_OK;
}

fk_status check(int result, const char *what)
{
    if (result == NCCL_SUCCESS) return FK_OK;
    return fk_fail(FK_ERROR_DEVICE, "%s: %s", what, nccl.error_string(result));
}

void destroy(void *device) /* abort, not destroy: that would wait for ranks that are gone */
{
    (void)nccl.comm_abort((comm_t)device);
}

/* All ranks exchange, also one whose own part failed, so that the others hear of it. */
fk_status connect(fk_communicator *group)
{
    struct hello {
        int failed;
        unique_id id;
    } own = {}, all[64];
    if (group->size > (int)(sizeof all / sizeof *all))
        return fk_fail(FK_ERROR_UNSUPPORTED, "%d ranks with a GPU each: at most %d", group->size,
                       (int)(sizeof all / sizeof *all));
    fk_status status = load();
    if (status == FK_OK && group->rank == 0) status = check(nccl.get_unique_id(&own.id), "ncclGetUniqueId");
    own.failed = status != FK_OK;
    char why[512];
    snprintf(why, sizeof why, "%s", fk_error_message());
    FK_TRY(group->all_gather(group, "NCCL's id", &own, sizeof own, all));
    if (status != FK_OK) return fk_fail(status, "%s", why);
    for (int r = 0; r < group->size; r++)
        if (all[r].failed) return fk_fail(FK_ERROR_DEVICE, "rank %d of %d has no NCCL", r, group->size);
    comm_t comm = nullptr;
    FK_TRY(check(nccl.comm_init_rank(&comm, group->size, all[0].id, group->rank), "ncclCommInitRank"));
    group->device = comm;
    group->device_destroy = destroy;
    return FK_OK;
}

} // namespace

fk_status fkp_nccl_all_reduce(fk_communicator *group, cudaStream_t stream, fk_dtype dtype, const void *input,
                              void *output, int64_t count)
{
    int type = dtype == FK_F32    ? NCCL_FLOAT32
               : dtype == FK_F16  ? NCCL_FLOAT16
               : dtype == FK_BF16 ? NCCL_BFLOAT16
                                  : -1;
    if (type < 0) return fk_fail(FK_ERROR_UNSUPPORTED, "no sum of %s over GPUs", fk_dtype_name(dtype));
    if (!group->device) FK_TRY(connect(group));
    return check(nccl.all_reduce(input, output, (size_t)count, type, NCCL_SUM, (comm_t)group->device, stream),
                 "ncclAllReduce");
}
