/* SPDX-License-Identifier: Apache-2.0 */
/* Finding backends: the CPU's is linked in, the others are plugins beside this library. */
#define _GNU_SOURCE
#include <fk/backend.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/backend_cpu.h"

#define MAX_DEVICES 16

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static fk_backend *cpu_backend, *cuda_backends[MAX_DEVICES];

/* Folder of the file this code was loaded from, with the slash. */
static void own_folder(char *buf, size_t size)
{
    Dl_info info;
    buf[0] = 0;
    if (!dladdr((void *)(uintptr_t)fk_backend_get, &info) || !info.dli_fname) return;
    snprintf(buf, size, "%s", info.dli_fname);
    char *slash = strrchr(buf, '/');
    if (slash) slash[1] = 0;
    else buf[0] = 0;
}

static fk_status open_cuda(int id, fk_backend **out)
{
    char folder[3000], path[3072];
    own_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%slibfastkernels_cuda.so", folder);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return fk_fail(FK_ERROR_MISSING, "no CUDA backend: %s", dlerror());
    fk_backend_create_fn create;
    *(void **)&create = dlsym(library, "fk_backend_create");
    if (!create) return fk_fail(FK_ERROR_MISSING, "no CUDA backend: %s has no fk_backend_create", path);
    FK_TRY(create(id, out));
    if ((*out)->abi != FK_BACKEND_ABI)
        return fk_fail(FK_ERROR_MISSING, "no CUDA backend: %s has interface %d, wanted %d", path, (*out)->abi,
                       FK_BACKEND_ABI);
    return FK_OK;
}

fk_status fk_backend_get(fk_device device, fk_backend **out)
{
    fk_status status = FK_OK;
    *out = NULL;
    pthread_mutex_lock(&lock);
    if (device.type == FK_CPU) {
        if (!cpu_backend) status = fkp_backend_cpu_create(&cpu_backend);
        *out = cpu_backend;
    } else if (device.type == FK_CUDA && device.id >= 0 && device.id < MAX_DEVICES) {
        if (!cuda_backends[device.id]) status = open_cuda(device.id, &cuda_backends[device.id]);
        *out = cuda_backends[device.id];
    } else {
        status = fk_fail(FK_ERROR_INVALID, "no such device: type %d number %d", device.type, device.id);
    }
    pthread_mutex_unlock(&lock);
    return status;
}

fk_status fk_device_parse(const char *text, fk_device *out)
{
    fk_backend *backend;
    if (!text || !*text) {
        *out = (fk_device){FK_CUDA, 0};
        if (fk_backend_get(*out, &backend) != FK_OK) *out = (fk_device){FK_CPU, 0};
        return FK_OK;
    }
    if (strcmp(text, "cpu") == 0) {
        *out = (fk_device){FK_CPU, 0};
        return FK_OK;
    }
    if (strncmp(text, "cuda", 4) == 0) {
        char *end = NULL;
        long id = text[4] == ':' ? strtol(text + 5, &end, 10) : 0;
        bool good = text[4] == 0 || (text[4] == ':' && end != text + 5 && *end == 0 && text[5] >= '0' && text[5] <= '9');
        if (good && id >= 0 && id < MAX_DEVICES) {
            *out = (fk_device){FK_CUDA, (int32_t)id};
            return FK_OK;
        }
    }
    return fk_fail(FK_ERROR_INVALID, "device '%s' is none of cpu, cuda, cuda:0 to cuda:%d", text, MAX_DEVICES - 1);
}

const char *fk_device_format(fk_device device, char *buf, size_t size)
{
    if (device.type == FK_CUDA) snprintf(buf, size, "cuda:%d", device.id);
    else snprintf(buf, size, "cpu");
    return buf;
}
