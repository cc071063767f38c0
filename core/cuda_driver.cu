/* SPDX-License-Identifier: Apache-2.0 */
/* Driver functions through the runtime's look-up, and memory that other processes can map: physical memory
 * made with cuMemCreate, shared as a file descriptor, mapped readable and writable for this device. */
#include "core/cuda_backend.h"

#include <unistd.h>

#define DRIVER_API 12000 /* every function below has existed in this form since then */

static fk_status find(const char *symbol, void **out)
{
    cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    cudaError_t error = cudaGetDriverEntryPointByVersion(symbol, out, DRIVER_API, cudaEnableDefault, &found);
    if (error == cudaSuccess && found == cudaDriverEntryPointSuccess && *out) return FK_OK;
    (void)cudaGetLastError();
    return fk_fail(FK_ERROR_MISSING, "the CUDA driver has no %s: it is older than this build needs", symbol);
}

fk_status fkp_cuda_driver_load(fkp_cuda_driver *driver)
{
    FK_TRY(find("cuGetErrorString", (void **)&driver->get_error_string));
    FK_TRY(find("cuCtxResetPersistingL2Cache", (void **)&driver->reset_persisting_l2));
    FK_TRY(find("cuMemGetAllocationGranularity", (void **)&driver->mem_granularity));
    FK_TRY(find("cuMemCreate", (void **)&driver->mem_create));
    FK_TRY(find("cuMemRelease", (void **)&driver->mem_release));
    FK_TRY(find("cuMemExportToShareableHandle", (void **)&driver->mem_export));
    FK_TRY(find("cuMemImportFromShareableHandle", (void **)&driver->mem_import));
    FK_TRY(find("cuMemAddressReserve", (void **)&driver->mem_reserve));
    FK_TRY(find("cuMemAddressFree", (void **)&driver->mem_unreserve));
    FK_TRY(find("cuMemMap", (void **)&driver->mem_map));
    FK_TRY(find("cuMemUnmap", (void **)&driver->mem_unmap));
    return find("cuMemSetAccess", (void **)&driver->mem_access);
}

fk_status fkp_cuda_check_driver(const fkp_cuda_driver *driver, CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS) return FK_OK;
    const char *text = nullptr;
    if (driver->get_error_string(result, &text) != CUDA_SUCCESS || !text) text = "unknown error";
    return fk_fail(result == CUDA_ERROR_OUT_OF_MEMORY ? FK_ERROR_MEMORY : FK_ERROR_DEVICE, "%s: %s (%d)",
                   what, text, (int)result);
}

static CUmemAllocationProp shareable_on(int device)
{
    CUmemAllocationProp prop = {};
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop.location.id = device;
    return prop;
}

/* Maps physical memory at a new address; on failure nothing stays mapped. */
static fk_status map(fk_backend *backend, CUmemGenericAllocationHandle handle, size_t bytes, void **out)
{
    const fkp_cuda_driver *driver = &fkp_cuda_state_of(backend)->driver;
    CUdeviceptr address = 0;
    FK_TRY(
        fkp_cuda_check_driver(driver, driver->mem_reserve(&address, bytes, 0, 0, 0), "cuMemAddressReserve"));
    fk_status status =
        fkp_cuda_check_driver(driver, driver->mem_map(address, bytes, 0, handle, 0), "cuMemMap");
    if (status != FK_OK) {
        (void)driver->mem_unreserve(address, bytes);
        return status;
    }
    CUmemAccessDesc access = {};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = backend->device.id;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    status = fkp_cuda_check_driver(driver, driver->mem_access(address, bytes, &access, 1), "cuMemSetAccess");
    if (status != FK_OK) {
        (void)driver->mem_unmap(address, bytes);
        (void)driver->mem_unreserve(address, bytes);
        return status;
    }
    *out = (void *)address;
    return FK_OK;
}

fk_status fkp_cuda_shared_create(fk_backend *backend, size_t bytes, fk_shared_memory *out)
{
    FK_TRY(fkp_cuda_use(backend));
    FK_TRY(fkp_cuda_check(cudaFree(nullptr),
                          "starting the device")); /* the driver calls below need its context */
    const fkp_cuda_driver *driver = &fkp_cuda_state_of(backend)->driver;
    CUmemAllocationProp prop = shareable_on(backend->device.id);
    size_t granularity = 0;
    FK_TRY(fkp_cuda_check_driver(
        driver, driver->mem_granularity(&granularity, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
        "cuMemGetAllocationGranularity"));
    size_t rounded = (bytes + granularity - 1) / granularity * granularity;
    if (!rounded) rounded = granularity;
    CUmemGenericAllocationHandle handle;
    FK_TRY(fkp_cuda_check_driver(driver, driver->mem_create(&handle, rounded, &prop, 0), "cuMemCreate"));
    int fd = -1;
    void *data = nullptr;
    fk_status status = fkp_cuda_check_driver(
        driver, driver->mem_export(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
        "cuMemExportToShareableHandle");
    if (status == FK_OK) status = map(backend, handle, rounded, &data);
    if (status != FK_OK) {
        if (fd >= 0) close(fd);
        (void)driver->mem_release(handle);
        return status;
    }
    *out = fk_shared_memory{.data = data, .bytes = rounded, .fd = fd, .handle = handle};
    return FK_OK;
}

fk_status fkp_cuda_shared_open(fk_backend *backend, int fd, size_t bytes, fk_shared_memory *out)
{
    FK_TRY(fkp_cuda_use(backend));
    FK_TRY(fkp_cuda_check(cudaFree(nullptr), "starting the device"));
    const fkp_cuda_driver *driver = &fkp_cuda_state_of(backend)->driver;
    CUmemGenericAllocationHandle handle;
    FK_TRY(fkp_cuda_check_driver(
        driver, driver->mem_import(&handle, (void *)(uintptr_t)fd, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
        "cuMemImportFromShareableHandle"));
    void *data = nullptr;
    fk_status status = map(backend, handle, bytes, &data);
    if (status != FK_OK) {
        (void)driver->mem_release(handle);
        return status;
    }
    *out = fk_shared_memory{.data = data, .bytes = bytes, .fd = fd, .handle = handle};
    return FK_OK;
}

void fkp_cuda_shared_close(fk_backend *backend, fk_shared_memory *memory)
{
    const fkp_cuda_driver *driver = &fkp_cuda_state_of(backend)->driver;
    if (memory->data && fkp_cuda_use(backend) == FK_OK) {
        (void)driver->mem_unmap((CUdeviceptr)memory->data, memory->bytes);
        (void)driver->mem_unreserve((CUdeviceptr)memory->data, memory->bytes);
        (void)driver->mem_release((CUmemGenericAllocationHandle)memory->handle);
    }
    if (memory->fd >= 0) close(memory->fd);
    *memory = fk_shared_memory{.data = nullptr, .bytes = 0, .fd = -1, .handle = 0};
}
