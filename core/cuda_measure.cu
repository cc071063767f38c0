/* SPDX-License-Identifier: Apache-2.0 */
/* What the GPU is and what it can do at best: device memory by a copy and by a reading kernel, matrix
 * products by cuBLASLt on random numbers (zeros would draw less power and run faster). Also what prepares
 * measurements: flushing the L2 cache and filling memory with seeded values. */
#include "core/cuda_backend.h"

#include <cublasLt.h>
#include <stdio.h>

#include "core/cuda_blas.h"
#include "core/cuda_op.h"
#include "core/cuda_vec.h"
#include "core/seeded.h"

#define THREADS 256
#define REPEATS 5
#define COPY_BYTES ((size_t)2 << 30) /* far more than any L2 */
#define BF16_SIZE 8192
#define F32_SIZE 4096
#define EMPTY_CALLS 200
#define READERS_PER_SM 8

namespace
{

__global__ void empty_kernel()
{
}

template <typename T>
__global__ void seeded_kernel(T *dst, uint64_t key, fkp_seeded_scale scale, uint64_t first, uint64_t count)
{
    uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step)
        dst[i] = fkd_round<T>(fkp_seeded_value(key, first + i, scale));
}

/* Each block copies (or sums) consecutive pieces of THREADS * 4 vectors: 64 bytes in flight a thread. */
__global__ void __launch_bounds__(THREADS) copy_kernel(uint4 *dst, const uint4 *src, int64_t count)
{
    int64_t at = (int64_t)blockIdx.x * THREADS * 4 + threadIdx.x;
    uint4 v[4];
#pragma unroll
    for (int k = 0; k < 4; k++)
        if (at + k * THREADS < count) v[k] = __ldcs(src + at + k * THREADS);
#pragma unroll
    for (int k = 0; k < 4; k++)
        if (at + k * THREADS < count) __stcs(dst + at + k * THREADS, v[k]);
}

__device__ __forceinline__ uint4 load(const uint4 *p, bool stay)
{
    return stay ? __ldcg(p) : __ldcs(p);
}

/* STAY: what was read stays in the L2 cache rather than leaving it first. */
template <bool STAY>
__global__ void __launch_bounds__(THREADS) read_kernel(uint32_t *sink, const uint4 *src, int64_t count)
{
    uint32_t sum = 0;
    int64_t step = (int64_t)gridDim.x * THREADS * 4;
    for (int64_t at = (int64_t)blockIdx.x * THREADS * 4 + threadIdx.x; at < count; at += step) {
        uint4 v[4];
#pragma unroll
        for (int k = 0; k < 4; k++)
            v[k] = at + k * THREADS < count ? load(src + at + k * THREADS, STAY) : make_uint4(0, 0, 0, 0);
#pragma unroll
        for (int k = 0; k < 4; k++) sum += v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
    }
    if (sum == 0x9e3779b9u) *sink = sum; /* keeps the reads */
}

} // namespace

fk_status fkp_cuda_describe(fk_backend *backend, fk_device_info *info)
{
    const cudaDeviceProp *p = &fkp_cuda_state_of(backend)->properties;
    int driver = 0, runtime = 0;
    FK_TRY(fkp_cuda_check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion"));
    FK_TRY(fkp_cuda_check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion"));
    size_t blas = cublasLtGetVersion();
    *info = fk_device_info{};
    info->total_bytes = (int64_t)p->totalGlobalMem;
    info->last_level_cache_bytes = p->l2CacheSize;
    info->processors = p->multiProcessorCount;
    info->capability = 10 * p->major + p->minor;
    snprintf(info->name, sizeof info->name, "%.*s", (int)sizeof info->name - 1, p->name);
    snprintf(info->description, sizeof info->description,
             "compute capability %d.%d, %d SMs, %d MiB L2, %lld MiB; driver for CUDA %d.%d, runtime %d.%d, "
             "cuBLASLt %zu.%zu.%zu",
             p->major, p->minor, p->multiProcessorCount, p->l2CacheSize >> 20,
             (long long)(p->totalGlobalMem >> 20), driver / 1000, driver % 1000 / 10, runtime / 1000,
             runtime % 1000 / 10, blas / 10000, blas / 100 % 100, blas % 100);
    return FK_OK;
}

fk_status fkp_cuda_flush_cache(fk_backend *backend, void *stream)
{
    FK_TRY(fkp_cuda_use(backend));
    fkp_cuda_state *state = fkp_cuda_state_of(backend);
    if (!state->flush_buffer) {
        size_t bytes = 2 * (size_t)state->properties.l2CacheSize;
        FK_TRY(backend->alloc(backend, bytes, &state->flush_buffer));
        state->flush_bytes = bytes;
    }
    /* Lines that someone marked as persisting would survive the writes below. */
    FK_TRY(fkp_cuda_check_driver(&state->driver, state->driver.reset_persisting_l2(),
                                 "cuCtxResetPersistingL2Cache"));
    return fkp_cuda_wipe_cache(state->flush_buffer, state->flush_bytes, (cudaStream_t)stream);
}

fk_status fkp_cuda_wipe_cache(void *buffer, size_t bytes, cudaStream_t stream)
{
    unsigned blocks = (unsigned)fkp_cuda_sm_count() * READERS_PER_SM;
    FK_TRY(fkp_cuda_check(cudaMemsetAsync(buffer, 0x5a, bytes, stream), "flush"));
    /* The buffer's own bytes never sum up to what makes the kernel write. */
    read_kernel<true><<<blocks, THREADS, 0, stream>>>((uint32_t *)buffer, (const uint4 *)buffer, (int64_t)(bytes / sizeof(uint4)));
    return fkp_cuda_check(cudaGetLastError(), "flush");
}

fk_status fkp_cuda_fill_seeded(fk_backend *backend, void *stream, void *dst, fk_dtype dtype, uint64_t key,
                               int offset, int exponent, uint64_t first, uint64_t count)
{
    if (count == 0) return FK_OK;
    FK_TRY(fkp_cuda_use(backend));
    fkp_seeded_scale scale = {offset, exponent};
    uint64_t wanted = (count + THREADS - 1) / THREADS;
    uint64_t most = (uint64_t)fkp_cuda_state_of(backend)->properties.multiProcessorCount * 64;
    unsigned blocks = (unsigned)(wanted < most ? wanted : most);
    cudaStream_t s = (cudaStream_t)stream;
    if (dtype == FK_F32)
        seeded_kernel<float><<<blocks, THREADS, 0, s>>>((float *)dst, key, scale, first, count);
    else if (dtype == FK_BF16)
        seeded_kernel<__nv_bfloat16>
            <<<blocks, THREADS, 0, s>>>((__nv_bfloat16 *)dst, key, scale, first, count);
    else if (dtype == FK_F16)
        seeded_kernel<__half><<<blocks, THREADS, 0, s>>>((__half *)dst, key, scale, first, count);
    else
        return fk_fail(FK_ERROR_UNSUPPORTED, "seeded values as %s on cuda", fk_dtype_name(dtype));
    FK_TRY(fkp_cuda_check(cudaGetLastError(), "seeded fill"));
    return stream ? FK_OK : fkp_cuda_check(cudaStreamSynchronize(nullptr), "seeded fill");
}

/* ---- Roofline ---- */

namespace
{

/* Best time of REPEATS runs of `run`, after one to warm up. */
template <typename Run> fk_status best_seconds(fk_backend *backend, Run run, double *best)
{
    void *start = nullptr, *stop = nullptr;
    fk_status status = backend->event_create(backend, &start);
    if (status == FK_OK) status = backend->event_create(backend, &stop);
    if (status == FK_OK) status = run();
    *best = 1e30;
    for (int i = 0; i < REPEATS && status == FK_OK; i++) {
        double seconds = 0;
        status = backend->event_record(backend, nullptr, start);
        if (status == FK_OK) status = run();
        if (status == FK_OK) status = backend->event_record(backend, nullptr, stop);
        if (status == FK_OK) status = backend->event_elapsed(backend, start, stop, &seconds);
        if (status == FK_OK && seconds < *best) *best = seconds;
    }
    backend->event_destroy(backend, start);
    backend->event_destroy(backend, stop);
    return status;
}

fk_status measure_memory(fk_backend *backend, char *buffer, size_t bytes, fk_roofline *roofline)
{
    uint4 *from = (uint4 *)buffer, *to = (uint4 *)(buffer + bytes);
    int64_t count = (int64_t)(bytes / 16);
    unsigned blocks = (unsigned)((count + 4 * THREADS - 1) / (4 * THREADS));
    double kernel = 0, engine = 0, read = 0;
    FK_TRY(best_seconds(
        backend,
        [&] {
            copy_kernel<<<blocks, THREADS>>>(to, from, count);
            return fkp_cuda_check(cudaGetLastError(), "copy kernel");
        },
        &kernel));
    FK_TRY(best_seconds(
        backend,
        [&] {
            return fkp_cuda_check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, nullptr),
                                  "device copy");
        },
        &engine));
    unsigned readers = (unsigned)fkp_cuda_state_of(backend)->properties.multiProcessorCount * READERS_PER_SM;
    FK_TRY(best_seconds(
        backend,
        [&] {
            read_kernel<false><<<readers, THREADS>>>((uint32_t *)to, from, count);
            return fkp_cuda_check(cudaGetLastError(), "read kernel");
        },
        &read));
    roofline->copy_bytes_s = 2 * (double)bytes / (kernel < engine ? kernel : engine);
    roofline->read_bytes_s = (double)bytes / read;
    return FK_OK;
}

/* A square product of random matrices; the three lie one after another in `buffer`. */
fk_status measure_product(fk_backend *backend, char *buffer, fk_dtype dtype, int size, double *flops)
{
    size_t bytes = (size_t)size * (size_t)size * (size_t)fk_dtype_bits(dtype) / 8;
    for (int i = 0; i < 2; i++)
        FK_TRY(backend->fill_seeded(backend, nullptr, buffer + (size_t)i * bytes, dtype, fkp_mix64(i + 1), 0,
                                    -16, 0, (uint64_t)size * (uint64_t)size));
    fkp_blas_problem problem = {};
    problem.m = problem.n = problem.k = size;
    problem.dtype = dtype;
    problem.x = buffer, problem.x_stride = size;
    problem.weight = buffer + bytes, problem.weight_stride = size;
    problem.out = buffer + 2 * bytes, problem.out_stride = size;
    problem.workspace = buffer + 3 * bytes, problem.workspace_bytes = FKP_BLAS_WORKSPACE_BYTES;
    double seconds = 0;
    bool done = true;
    FK_TRY(best_seconds(
        backend, [&] { return fkp_blas_linear(&problem, nullptr, &done); }, &seconds));
    if (!done)
        return fk_fail(FK_ERROR_UNSUPPORTED, "cuBLASLt has no %s product of size %d", fk_dtype_name(dtype),
                       size);
    *flops = 2.0 * size * size * (double)size / seconds;
    return FK_OK;
}

/* Kernels that do nothing, launched one by one and replayed as one graph. */
fk_status measure_empty_calls(fk_backend *backend, fk_roofline *roofline)
{
    void *stream = nullptr, *graph = nullptr;
    double launched = 0, replayed = 0;
    auto launch = [&](cudaStream_t s) {
        for (int i = 0; i < EMPTY_CALLS; i++) empty_kernel<<<1, 32, 0, s>>>();
        return fkp_cuda_check(cudaGetLastError(), "empty kernel");
    };
    FK_TRY(best_seconds(backend, [&] { return launch(nullptr); }, &launched));
    FK_TRY(backend->stream_create(backend, &stream));
    fk_status status = backend->graph_begin(backend, stream);
    if (status == FK_OK) {
        fk_status sent = launch((cudaStream_t)stream);
        status = backend->graph_end(backend, stream, &graph);
        if (status == FK_OK) status = sent;
    }
    if (status == FK_OK)
        status = best_seconds(backend, [&] { return backend->graph_replay(backend, nullptr, graph); }, &replayed);
    backend->graph_destroy(backend, graph);
    backend->stream_destroy(backend, stream);
    roofline->empty_call_s = launched / EMPTY_CALLS;
    roofline->empty_replay_s = replayed / EMPTY_CALLS;
    return status;
}

fk_status measure_all(fk_backend *backend, char *buffer, fk_roofline *roofline)
{
    /* Random bits: constant ones move several percent faster than any real data. */
    FK_TRY(backend->fill_seeded(backend, nullptr, buffer, FK_F32, fkp_mix64(7), 0, -16, 0, 2 * COPY_BYTES / sizeof(float)));
    FK_TRY(measure_memory(backend, buffer, COPY_BYTES, roofline));
    FK_TRY(measure_product(backend, buffer, FK_BF16, BF16_SIZE, &roofline->bf16_flops));
    FK_TRY(measure_product(backend, buffer, FK_F32, F32_SIZE, &roofline->f32_flops));
    return measure_empty_calls(backend, roofline);
}

} // namespace

fk_status fkp_cuda_measure(fk_backend *backend, fk_roofline *roofline)
{
    FK_TRY(fkp_cuda_use(backend));
    *roofline = fk_roofline{};
    void *buffer = nullptr;
    FK_TRY(backend->alloc(backend, 2 * COPY_BYTES, &buffer));
    fk_status status = measure_all(backend, (char *)buffer, roofline);
    backend->free(backend, buffer);
    return status;
}

cudaError_t fkp_cuda_probe(cudaFuncAttributes *attributes)
{
    return cudaFuncGetAttributes(attributes, empty_kernel);
}
