/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the CUDA backend share: its state, the driver's functions, and the functions that
 * core/cuda_backend.cu puts into the table. */
#ifndef FK_CORE_CUDA_BACKEND_H
#define FK_CORE_CUDA_BACKEND_H

#include <cuda.h>
#include <cuda_runtime.h>

#include <fk/backend.h>

/* Driver functions, found at run time: the plugin must load where there is no driver. */
typedef struct fkp_cuda_driver {
    CUresult (*get_error_string)(CUresult, const char **);
    CUresult (*reset_persisting_l2)(void);
    CUresult (*mem_granularity)(size_t *, const CUmemAllocationProp *, CUmemAllocationGranularity_flags);
    CUresult (*mem_create)(CUmemGenericAllocationHandle *, size_t, const CUmemAllocationProp *,
                           unsigned long long);
    CUresult (*mem_release)(CUmemGenericAllocationHandle);
    CUresult (*mem_export)(void *, CUmemGenericAllocationHandle, CUmemAllocationHandleType,
                           unsigned long long);
    CUresult (*mem_import)(CUmemGenericAllocationHandle *, void *, CUmemAllocationHandleType);
    CUresult (*mem_reserve)(CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long);
    CUresult (*mem_unreserve)(CUdeviceptr, size_t);
    CUresult (*mem_map)(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long);
    CUresult (*mem_unmap)(CUdeviceptr, size_t);
    CUresult (*mem_access)(CUdeviceptr, size_t, const CUmemAccessDesc *, size_t);
} fkp_cuda_driver;

typedef struct fkp_cuda_state {
    cudaDeviceProp properties;
    fkp_cuda_driver driver;
    void *flush_buffer; /* twice the L2; made on first use */
    size_t flush_bytes;
} fkp_cuda_state;

static inline fkp_cuda_state *fkp_cuda_state_of(fk_backend *backend)
{
    return (fkp_cuda_state *)backend->state;
}

/* Makes the backend's device current. */
fk_status fkp_cuda_use(fk_backend *backend);
/* FK_OK, or a failure with CUDA's words: FK_ERROR_MEMORY for a full device, else FK_ERROR_DEVICE. */
fk_status fkp_cuda_check(cudaError_t error, const char *what);
fk_status fkp_cuda_check_driver(const fkp_cuda_driver *driver, CUresult result, const char *what);
fk_status fkp_cuda_driver_load(fkp_cuda_driver *driver);
/* Asks for a kernel of this library on the current device: cudaErrorNoKernelImageForDevice when the build has
 * no code for it. */
cudaError_t fkp_cuda_probe(cudaFuncAttributes *attributes);

fk_status fkp_cuda_describe(fk_backend *backend, fk_device_info *info);
fk_status fkp_cuda_measure(fk_backend *backend, fk_roofline *roofline);
fk_status fkp_cuda_flush_cache(fk_backend *backend, void *stream);
/* Fills the L2 cache with clean lines of `buffer`, which is at least twice as large: first written, so that the lines are
 * its own whatever stood there, then read, so that no write-back of ours falls into what is timed next (2 us on an H200). */
fk_status fkp_cuda_wipe_cache(void *buffer, size_t bytes, cudaStream_t stream);
fk_status fkp_cuda_fill_seeded(fk_backend *backend, void *stream, void *dst, fk_dtype dtype, uint64_t key,
                               int offset, int exponent, uint64_t first, uint64_t count);
fk_status fkp_cuda_shared_create(fk_backend *backend, size_t bytes, fk_shared_memory *out);
fk_status fkp_cuda_shared_open(fk_backend *backend, int fd, size_t bytes, fk_shared_memory *out);
void fkp_cuda_shared_close(fk_backend *backend, fk_shared_memory *memory);

#endif
