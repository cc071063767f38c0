/* SPDX-License-Identifier: Apache-2.0 */
/* The single checks of `doctor`. Each tries the thing itself: loads the library, starts the tool, makes the namespace. */
#define _GNU_SOURCE
#include <fk/backend.h>

#include <dlfcn.h>
#include <errno.h>
#include <linux/landlock.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/doctor.h"
#include "cli/paths.h"
#include "core/cpu_features.h"
#include "runtime/assets.h"

static const char devices[] = "Devices", tools[] = "Tools and libraries", files[] = "Files",
                  isolation[] = "Isolation of candidates";

static void check_backend(fkp_checks *checks, const char *name, fk_device device, const char *needed_for)
{
    fk_backend *backend;
    fk_device_info info;
    if (fk_backend_get(device, &backend) == FK_OK && backend->describe(backend, &info) == FK_OK)
        fkp_check_add(checks, devices, name, true, needed_for, "%s, %.1f GB; %s", info.name, (double)info.total_bytes / 1e9,
                      info.description);
    else fkp_check_add(checks, devices, name, false, needed_for, "%s", fk_error_message());
}

static void check_cuda_driver(fkp_checks *checks)
{
    static const char needed_for[] = "running on a GPU";
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fkp_check_add(checks, devices, "CUDA driver", false, needed_for, "libcuda.so.1 is not there");
        return;
    }
    int (*init)(unsigned), (*driver_version)(int *), (*device_count)(int *), version = 0, count = 0;
    *(void **)&init = dlsym(library, "cuInit");
    *(void **)&driver_version = dlsym(library, "cuDriverGetVersion");
    *(void **)&device_count = dlsym(library, "cuDeviceGetCount");
    int failed = !init || !driver_version || !device_count ? -1 : init(0);
    if (!failed) failed = driver_version(&version);
    if (!failed) failed = device_count(&count);
    if (failed) fkp_check_add(checks, devices, "CUDA driver", false, needed_for, "the driver answers with error %d", failed);
    else
        fkp_check_add(checks, devices, "CUDA driver", count > 0, needed_for, "CUDA %d.%d, %d device%s", version / 1000,
                      version % 1000 / 10, count, count == 1 ? "" : "s");
}

void fkp_doctor_check_devices(fkp_checks *checks)
{
    fkp_cpu_level level;
    check_backend(checks, "CPU", (fk_device){FK_CPU, 0}, "everything");
    if (fkp_cpu_level_get(&level) == FK_OK)
        fkp_check_add(checks, devices, "CPU level", level != FKP_CPU_SCALAR, "fast CPU kernels", "%s%s", fkp_cpu_level_name(level),
                      level != fkp_cpu_level_detected() ? " (capped by FK_CPU_LEVEL)" : "");
    else fkp_check_add(checks, devices, "CPU level", false, "everything", "%s", fk_error_message());
    check_cuda_driver(checks);
    check_backend(checks, "CUDA backend", (fk_device){FK_CUDA, 0}, "running on a GPU");
}

/* First line that a shell command prints and that holds `word` (NULL: any); false when there is none. */
static bool first_line(const char *command, const char *word, char *buf, size_t size)
{
    FILE *pipe = popen(command, "r");
    bool found = false;
    char line[1024];
    if (!pipe) return false;
    while (fgets(line, sizeof line, pipe)) {
        if (found || (word && !strstr(line, word))) continue;
        snprintf(buf, size, "%.*s", (int)strcspn(line, "\n"), line);
        found = true;
    }
    return pclose(pipe) == 0 && found;
}

static void check_tool(fkp_checks *checks, const char *name, const char *command, const char *word, const char *needed_for)
{
    char line[512];
    bool ok = first_line(command, word, line, sizeof line);
    fkp_check_add(checks, tools, name, ok, needed_for, "%s", ok ? line : "not found");
}

static void check_library(fkp_checks *checks, const char *name, const char *const *sonames, const char *needed_for)
{
    for (; *sonames; sonames++) {
        void *library = dlopen(*sonames, RTLD_NOW | RTLD_LOCAL);
        if (!library) continue;
        char *(*config)(void);
        *(void **)&config = dlsym(library, "openblas_get_config");
        fkp_check_add(checks, tools, name, true, needed_for, "%s%s%s", *sonames, config ? ": " : "", config ? config() : "");
        return;
    }
    fkp_check_add(checks, tools, name, false, needed_for, "not installed; our own kernels do the work");
}

void fkp_doctor_check_tools(fkp_checks *checks)
{
    static const char *const openblas[] = {"libopenblas.so.0", NULL}, *const onednn[] = {"libdnnl.so.3", "libdnnl.so.2", NULL};
    check_tool(checks, "gcc", "gcc --version 2>/dev/null", NULL, "C candidates (or clang)");
    check_tool(checks, "clang", "clang --version 2>/dev/null", NULL, "C candidates (or gcc)");
    check_tool(checks, "nvcc", "PATH=$PATH:/usr/local/cuda/bin; nvcc --version 2>/dev/null", "release", "CUDA candidates");
    check_tool(checks, "python3", "python3 --version 2>/dev/null", NULL, "fetching models, tests");
    check_library(checks, "OpenBLAS", openblas, "the fastest matrix products on the CPU");
    check_library(checks, "oneDNN", onednn, "the fastest bf16 matrix products on the CPU");
}

/* The nearest folder of `path` that exists. */
static void existing_folder(const char *path, char buf[FKP_PATH_SIZE])
{
    snprintf(buf, FKP_PATH_SIZE, "%s", path);
    while (access(buf, F_OK) != 0) {
        char *slash = strrchr(buf, '/');
        if (!slash || slash == buf) {
            snprintf(buf, FKP_PATH_SIZE, "%s", slash ? "/" : ".");
            return;
        }
        *slash = 0;
    }
}

static void check_disk(fkp_checks *checks, const char *name, const char *folder, double needed_gb, const char *needed_for)
{
    char there[FKP_PATH_SIZE];
    struct statvfs info;
    existing_folder(folder, there);
    bool writable = access(there, W_OK) == 0;
    if (statvfs(there, &info) != 0) {
        fkp_check_add(checks, files, name, false, needed_for, "%s: %s", folder, strerror(errno));
        return;
    }
    double free_gb = (double)info.f_bavail * (double)info.f_frsize / 1e9;
    fkp_check_add(checks, files, name, writable && free_gb >= needed_gb, needed_for, "%s, %.1f GB free%s", folder, free_gb,
                  writable ? "" : ", not writable");
}

void fkp_doctor_check_files(fkp_checks *checks)
{
    char path[FKP_PATH_SIZE];
    check_disk(checks, "cache folder", checks->cli->common.cache, 0.3, "models and measurements");
    if (getcwd(path, sizeof path)) check_disk(checks, "this folder", path, 1, "captures and results");
    for (int i = 0; fk_asset_name_at(i); i++) {
        bool there = fk_asset_path(fk_asset_name_at(i), checks->cli->common.cache, path, sizeof path) == FK_OK;
        fkp_check_add(checks, files, fk_asset_name_at(i), there, fk_asset_is_model(i) ? "the demo, tests" : "tests", "%s", there ? path : fk_error_message());
    }
}

/* Whether an unprivileged process may make these namespaces; tried in a child. */
static bool can_unshare(int flags)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) _exit(unshare(flags) == 0 ? 0 : 1);
    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void fkp_doctor_check_isolation(fkp_checks *checks)
{
    static const char needed_for[] = "a sandbox of yours around the judge, for kernels of strangers";
    bool user = can_unshare(CLONE_NEWUSER), network = can_unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWPID);
    fkp_check_add(checks, isolation, "user namespaces", user, needed_for, "%s", user ? "allowed" : "not allowed here");
    fkp_check_add(checks, isolation, "net and pid", network, needed_for, "%s", network ? "allowed" : "not allowed here");
    bool seccomp = prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0;
    fkp_check_add(checks, isolation, "seccomp", seccomp, needed_for, "%s", seccomp ? "in the kernel" : "not in the kernel");
    long landlock = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    if (landlock > 0) fkp_check_add(checks, isolation, "landlock", true, needed_for, "version %ld", landlock);
    else fkp_check_add(checks, isolation, "landlock", false, needed_for, "%s", strerror(errno));
    int memory = (int)syscall(SYS_memfd_create, "fastkernels", 0u);
    fkp_check_add(checks, isolation, "memfd", memory >= 0, "the judge's buffers", "%s", memory >= 0 ? "works" : strerror(errno));
    if (memory >= 0) close(memory);
}
