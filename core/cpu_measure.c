/* SPDX-License-Identifier: Apache-2.0 */
/* Description, cache flush and roofline of the CPU. The matrix rate is the machine's fused multiply-add peak: independent
 * accumulators on every thread, as many as hide the latency. */
#define _GNU_SOURCE
#include "core/cpu_measure.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/cpu_features.h"
#include "core/threads.h"

#define MIN_CACHE_BYTES ((int64_t)8 << 20) /* where the system does not tell its last-level cache */
#define REPEATS 5

/* A file below /sys/devices/system/cpu/cpu<n>/cache/index3 as a number ("32768K", "0"); -1 when there is none. */
static int64_t read_cache_file(int cpu, const char *name)
{
    char path[128], text[32] = "";
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index3/%s", cpu, name);
    FILE *f = fopen(path, "r");
    if (!f) return -1;
    bool got = fgets(text, sizeof text, f) != NULL;
    fclose(f);
    char *end;
    long long value = strtoll(text, &end, 10);
    if (!got || end == text) return -1;
    return *end == 'K' ? value << 10 : *end == 'M' ? value << 20 : value;
}

/* The third-level caches that this process's processors share, added up. sysconf tells the socket's, of which a virtual
 * machine may have a slice. */
static int64_t last_level_cache_bytes(void)
{
    cpu_set_t set;
    int64_t bytes = 0;
    uint64_t seen = 0; /* ids below 64; more are counted as seen */
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
            if (!CPU_ISSET(cpu, &set)) continue;
            int64_t id = read_cache_file(cpu, "id"), size = read_cache_file(cpu, "size");
            if (id < 0 || id > 63 || size <= 0 || (seen >> id & 1)) continue;
            seen |= (uint64_t)1 << id;
            bytes += size;
        }
    if (bytes <= 0) bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    if (bytes <= 0) bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
    return bytes < MIN_CACHE_BYTES ? MIN_CACHE_BYTES : bytes;
}

static void read_model_name(char *buf, size_t size)
{
    snprintf(buf, size, "x86-64 CPU");
    FILE *f = fopen("/proc/cpuinfo", "r");
    if (!f) return;
    char line[256];
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "model name", 10) != 0) continue;
        char *value = strchr(line, ':');
        if (!value) break;
        value += 1 + strspn(value + 1, " \t");
        value[strcspn(value, "\n")] = 0;
        snprintf(buf, size, "%s", value);
        break;
    }
    fclose(f);
}

fk_status fkp_cpu_describe(fk_backend *backend, fk_device_info *info)
{
    (void)backend;
    fkp_cpu_level level;
    FK_TRY(fkp_cpu_level_get(&level));
    *info = (fk_device_info){.processors = fkp_threads_available(),
                             .last_level_cache_bytes = last_level_cache_bytes(),
                             .total_bytes = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE)};
    read_model_name(info->name, sizeof info->name);
    snprintf(info->description, sizeof info->description, "level %s of %s; %d threads", fkp_cpu_level_name(level),
             fkp_cpu_level_name(fkp_cpu_level_detected()), info->processors);
    return FK_OK;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC_RAW, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void flush_part(void *user, int64_t begin, int64_t end)
{
    memset((char *)user + begin, (int)(begin & 0x7f) + 1, (size_t)(end - begin));
}

fk_status fkp_cpu_flush_cache(fk_backend *backend, void *stream)
{
    (void)backend, (void)stream;
    static char *buffer; /* one thread judges; kept for the process */
    static int64_t bytes;
    if (!buffer) {
        bytes = 2 * last_level_cache_bytes();
        buffer = malloc((size_t)bytes);
        if (!buffer) return fk_fail(FK_ERROR_MEMORY, "out of memory for a flush buffer of %lld bytes", (long long)bytes);
    }
    fkp_parallel_for(fkp_threads_available(), bytes, 1 << 20, flush_part, buffer);
    return FK_OK;
}

typedef struct stream_job {
    char *from, *to;
} stream_job;

static void copy_part(void *user, int64_t begin, int64_t end)
{
    stream_job *job = user;
    memcpy(job->to + begin, job->from + begin, (size_t)(end - begin));
}

static void read_part(void *user, int64_t begin, int64_t end)
{
    typedef uint64_t lanes __attribute__((vector_size(32)));
    stream_job *job = user;
    lanes sums[4] = {{0}};
    for (int64_t i = begin; i + 128 <= end; i += 128)
        for (int k = 0; k < 4; k++) {
            lanes v;
            memcpy(&v, job->from + i + 32 * k, sizeof v);
            sums[k] += v;
        }
    lanes sum = sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
    __asm__ volatile("" : : "m"(sum)); /* the reads must happen */
}

#define FMA_CHAINS 12
#define FMA_ROUNDS 20000

#define DEFINE_FMA_PART(name, isa, width)                                                                            \
    __attribute__((target(isa))) static void name(void *user, int64_t begin, int64_t end)                            \
    {                                                                                                                \
        typedef float lanes __attribute__((vector_size(width)));                                                     \
        (void)user;                                                                                                  \
        for (int64_t part = begin; part < end; part++) {                                                             \
            lanes c[FMA_CHAINS], a, b;                                                                               \
            for (int k = 0; k < FMA_CHAINS; k++) c[k] = (lanes){(float)k};                                           \
            a = (lanes){0} + 0.999f, b = (lanes){0} + 0.001f;                                                        \
            for (int i = 0; i < FMA_ROUNDS; i++)                                                                     \
                for (int k = 0; k < FMA_CHAINS; k++) c[k] = c[k] * a + b;                                            \
            __asm__ volatile("" : : "m"(c)); /* the products must happen; each chain depends on itself */            \
        }                                                                                                            \
    }
DEFINE_FMA_PART(fma_avx512, "avx512f,fma", 64)
DEFINE_FMA_PART(fma_avx2, "avx2,fma", 32)
DEFINE_FMA_PART(fma_scalar, "sse2", 16)

static double best_seconds(fkp_range_fn fn, void *user, int64_t count)
{
    double best = 1e30;
    for (int i = 0; i < REPEATS; i++) {
        double start = now();
        fkp_parallel_for(fkp_threads_available(), count, 1, fn, user);
        double seconds = now() - start;
        if (seconds < best) best = seconds;
    }
    return best;
}

static void nothing(void *user, int64_t begin, int64_t end)
{
    (void)user, (void)begin, (void)end;
}

fk_status fkp_cpu_measure(fk_backend *backend, fk_roofline *roofline)
{
    (void)backend;
    int64_t bytes = 4 * last_level_cache_bytes();
    if (bytes > (int64_t)1 << 30) bytes = (int64_t)1 << 30;
    stream_job job = {malloc((size_t)bytes), malloc((size_t)bytes)};
    if (!job.from || !job.to) {
        free(job.from);
        free(job.to);
        return fk_fail(FK_ERROR_MEMORY, "out of memory for two buffers of %lld bytes", (long long)bytes);
    }
    memset(job.from, 1, (size_t)bytes);
    memset(job.to, 2, (size_t)bytes);
    fkp_cpu_level level = fkp_cpu_level_detected();
    int threads = fkp_threads_available();
    double fma_seconds = best_seconds(level == FKP_CPU_AVX512 ? fma_avx512 : level == FKP_CPU_AVX2 ? fma_avx2 : fma_scalar,
                                      NULL, 8 * threads);
    double lanes = level == FKP_CPU_AVX512 ? 16 : level == FKP_CPU_AVX2 ? 8 : 4;
    *roofline = (fk_roofline){
        .copy_bytes_s = 2 * (double)bytes / best_seconds(copy_part, &job, bytes),
        .read_bytes_s = (double)bytes / best_seconds(read_part, &job, bytes),
        .f32_flops = 2.0 * FMA_CHAINS * FMA_ROUNDS * lanes * 8 * threads / fma_seconds,
        .empty_call_s = best_seconds(nothing, NULL, 1),
    };
    free(job.from);
    free(job.to);
    return FK_OK;
}
