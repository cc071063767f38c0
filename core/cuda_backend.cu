/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA backend: device memory, copies, streams and events, and the table of baselines. Streams are
 * blocking ones, so that work on the legacy stream (a candidate's, or a call with a NULL stream) is ordered
 * with them; a call with a NULL stream has finished when it returns. */
#include "core/cuda_backend.h"

#include <stdlib.h>
#include <string.h>

#include <map>
#include <mutex>
#include <tuple>

#include "core/cuda_op.h"

extern "C" {
#define FKP_CUDA_IMPL(name) extern const fk_impl fkp_cuda_##name;
#include "cuda_impls.def"
#undef FKP_CUDA_IMPL
}

static const fk_impl *const impls[] = {
#define FKP_CUDA_IMPL(name) &fkp_cuda_##name,
#include "cuda_impls.def"
#undef FKP_CUDA_IMPL
    nullptr};
static const int num_impls = (int)(sizeof impls / sizeof impls[0]) - 1;

fk_status fkp_cuda_check(cudaError_t error, const char *what)
{
    if (error == cudaSuccess) return FK_OK;
    (void)cudaGetLastError(); /* a failed call that is reported here must not be reported again later */
    return fk_fail(error == cudaErrorMemoryAllocation ? FK_ERROR_MEMORY : FK_ERROR_DEVICE, "%s: %s (%s)",
                   what, cudaGetErrorString(error), cudaGetErrorName(error));
}

fk_status fkp_cuda_use(fk_backend *backend)
{
    return fkp_cuda_check(cudaSetDevice(backend->device.id), "cudaSetDevice");
}

/* ---- Frame of the operators (core/cuda_op.h) ---- */

fk_status fk_cuda_status(fk_ctx *ctx, cudaError_t error, const char *what)
{
    (void)ctx; /* the door adds operator and layer path */
    return fkp_cuda_check(error, what);
}

fk_status fkp_cuda_begin(fk_ctx *ctx)
{
    return fkp_cuda_check(cudaSetDevice(fk_ctx_device(ctx).id), "cudaSetDevice");
}

bool fkp_cuda_is_capturing(cudaStream_t stream)
{
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    if (cudaStreamIsCapturing(stream, &status) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    return status != cudaStreamCaptureStatusNone;
}

static bool sync_wanted(void)
{
    static const bool wanted = [] {
        const char *text = getenv("FK_SYNC");
        return text && *text && strcmp(text, "0") != 0;
    }();
    return wanted;
}

fk_status fkp_cuda_end(fk_ctx *ctx, fk_status status, const char *op)
{
    if (status != FK_OK || !sync_wanted()) return status;
    cudaStream_t stream = (cudaStream_t)fk_ctx_stream(ctx);
    if (fkp_cuda_is_capturing(stream)) return FK_OK;
    return fkp_cuda_check(cudaStreamSynchronize(stream), op);
}

int fkp_cuda_sm_count(void)
{
    int device = 0, count = 1;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) != cudaSuccess)
        (void)cudaGetLastError();
    return count;
}

/* The driver takes a microsecond to answer; a forward pass asks hundreds of times. */
int fkp_cuda_capability(void)
{
    int device = 0, major = 0, minor = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) != cudaSuccess ||
        cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) != cudaSuccess)
        (void)cudaGetLastError();
    return 10 * major + minor;
}

int fkp_cuda_blocks_per_sm(const void *kernel, int threads, size_t shared_bytes)
{
    static std::mutex lock;
    static std::map<std::tuple<int, const void *, int, size_t>, int> known;
    int device = 0, blocks = 1;
    if (cudaGetDevice(&device) != cudaSuccess) (void)cudaGetLastError();
    std::lock_guard<std::mutex> guard(lock);
    auto key = std::make_tuple(device, kernel, threads, shared_bytes);
    auto found = known.find(key);
    if (found != known.end()) return found->second;
    if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared_bytes) != cudaSuccess)
        (void)cudaGetLastError();
    if (blocks < 1) blocks = 1;
    known[key] = blocks;
    return blocks;
}

/* ---- Memory ---- */

static fk_status cuda_alloc(fk_backend *backend, size_t bytes, void **out)
{
    *out = nullptr;
    FK_TRY(fkp_cuda_use(backend));
    cudaError_t error = cudaMalloc(out, bytes ? bytes : 1);
    if (error == cudaErrorMemoryAllocation) {
        (void)cudaGetLastError();
        size_t free_bytes = 0, total_bytes = 0;
        (void)cudaMemGetInfo(&free_bytes, &total_bytes);
        return fk_fail(FK_ERROR_MEMORY, "out of device memory: %zu bytes wanted, %zu of %zu free", bytes,
                       free_bytes, total_bytes);
    }
    return fkp_cuda_check(error, "cudaMalloc");
}

static void cuda_free(fk_backend *backend, void *data)
{
    if (!data || fkp_cuda_use(backend) != FK_OK) return;
    (void)cudaFree(data);
}

/* Without a stream of its own a call waits for its end. */
static fk_status finish(void *stream, const char *what)
{
    return stream ? FK_OK : fkp_cuda_check(cudaStreamSynchronize(nullptr), what);
}

static fk_status cuda_copy(fk_backend *backend, void *stream, void *dst, const void *src, size_t bytes,
                           fk_copy_kind kind)
{
    if (!bytes) return FK_OK;
    FK_TRY(fkp_cuda_use(backend));
    const cudaMemcpyKind kinds[] = {cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice};
    FK_TRY(fkp_cuda_check(cudaMemcpyAsync(dst, src, bytes, kinds[kind], (cudaStream_t)stream), "copy"));
    return finish(stream, "copy");
}

static fk_status cuda_fill_bytes(fk_backend *backend, void *stream, void *dst, int value, size_t bytes)
{
    if (!bytes) return FK_OK;
    FK_TRY(fkp_cuda_use(backend));
    FK_TRY(fkp_cuda_check(cudaMemsetAsync(dst, value, bytes, (cudaStream_t)stream), "fill"));
    return finish(stream, "fill");
}

/* ---- Streams and events ---- */

static fk_status cuda_stream_create(fk_backend *backend, void **out)
{
    FK_TRY(fkp_cuda_use(backend));
    cudaStream_t stream = nullptr;
    fk_status status =
        fkp_cuda_check(cudaStreamCreateWithFlags(&stream, cudaStreamDefault), "cudaStreamCreate");
    *out = stream;
    return status;
}

static void cuda_stream_destroy(fk_backend *backend, void *stream)
{
    if (!stream || fkp_cuda_use(backend) != FK_OK) return;
    (void)cudaStreamDestroy((cudaStream_t)stream);
}

static fk_status cuda_stream_synchronize(fk_backend *backend, void *stream)
{
    FK_TRY(fkp_cuda_use(backend));
    return fkp_cuda_check(cudaStreamSynchronize((cudaStream_t)stream), "cudaStreamSynchronize");
}

static fk_status cuda_event_create(fk_backend *backend, void **out)
{
    FK_TRY(fkp_cuda_use(backend));
    cudaEvent_t event = nullptr;
    fk_status status = fkp_cuda_check(cudaEventCreate(&event), "cudaEventCreate");
    *out = event;
    return status;
}

static void cuda_event_destroy(fk_backend *backend, void *event)
{
    if (!event || fkp_cuda_use(backend) != FK_OK) return;
    (void)cudaEventDestroy((cudaEvent_t)event);
}

static fk_status cuda_event_record(fk_backend *backend, void *stream, void *event)
{
    FK_TRY(fkp_cuda_use(backend));
    return fkp_cuda_check(cudaEventRecord((cudaEvent_t)event, (cudaStream_t)stream), "cudaEventRecord");
}

static fk_status cuda_event_elapsed(fk_backend *backend, void *start, void *stop, double *seconds)
{
    FK_TRY(fkp_cuda_use(backend));
    float milliseconds = 0;
    FK_TRY(fkp_cuda_check(cudaEventSynchronize((cudaEvent_t)stop), "cudaEventSynchronize"));
    FK_TRY(fkp_cuda_check(cudaEventElapsedTime(&milliseconds, (cudaEvent_t)start, (cudaEvent_t)stop),
                          "cudaEventElapsedTime"));
    *seconds = (double)milliseconds * 1e-3;
    return FK_OK;
}

/* ---- Graphs ---- */

static fk_status cuda_graph_begin(fk_backend *backend, void *stream)
{
    FK_TRY(fkp_cuda_use(backend));
    return fkp_cuda_check(cudaStreamBeginCapture((cudaStream_t)stream, cudaStreamCaptureModeThreadLocal),
                          "cudaStreamBeginCapture");
}

static fk_status cuda_graph_end(fk_backend *backend, void *stream, void **out)
{
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t executable = nullptr;
    *out = nullptr;
    FK_TRY(fkp_cuda_use(backend));
    cudaError_t error = cudaStreamEndCapture((cudaStream_t)stream, &graph);
    if (error == cudaSuccess) error = cudaGraphInstantiate(&executable, graph, 0);
    if (graph) (void)cudaGraphDestroy(graph);
    if (error == cudaSuccess) error = cudaGraphUpload(executable, (cudaStream_t)stream);
    if (error != cudaSuccess) {
        (void)cudaGetLastError();
        if (executable) (void)cudaGraphExecDestroy(executable);
        return fk_fail(FK_ERROR_UNSUPPORTED, "no graph: %s", cudaGetErrorString(error));
    }
    *out = executable;
    return FK_OK;
}

static fk_status cuda_graph_replay(fk_backend *backend, void *stream, void *graph)
{
    FK_TRY(fkp_cuda_use(backend));
    return fkp_cuda_check(cudaGraphLaunch((cudaGraphExec_t)graph, (cudaStream_t)stream), "cudaGraphLaunch");
}

static void cuda_graph_destroy(fk_backend *backend, void *graph)
{
    if (!graph || fkp_cuda_use(backend) != FK_OK) return;
    (void)cudaGraphExecDestroy((cudaGraphExec_t)graph);
}

/* ---- Life ---- */

static void cuda_destroy(fk_backend *backend)
{
    fkp_cuda_state *state = fkp_cuda_state_of(backend);
    cuda_free(backend, state->flush_buffer);
    free(state);
    free(backend);
}

/* The machine-code architecture of this build runs on devices of its major version only. */
static fk_status check_device(int device_id, const cudaDeviceProp *properties)
{
    cudaFuncAttributes attributes;
    cudaError_t error = fkp_cuda_probe(&attributes);
    if (error == cudaSuccess) return FK_OK;
    (void)cudaGetLastError();
    return fk_fail(
        FK_ERROR_MISSING, "cuda:%d is %s with compute capability %d.%d, which this build has no code for: %s",
        device_id, properties->name, properties->major, properties->minor, cudaGetErrorString(error));
}

extern "C" __attribute__((visibility("default"))) fk_status fk_backend_create(int device_id, fk_backend **out)
{
    *out = nullptr;
    int count = 0, driver = 0;
    if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0) {
        (void)cudaGetLastError();
        return fk_fail(FK_ERROR_MISSING, "no CUDA device: no NVIDIA driver (libcuda.so.1) here");
    }
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess) {
        (void)cudaGetLastError();
        return fk_fail(FK_ERROR_MISSING, "no CUDA device: %s", cudaGetErrorString(error));
    }
    if (device_id < 0 || device_id >= count)
        return fk_fail(FK_ERROR_MISSING, "no device cuda:%d: this machine has %d", device_id, count);
    fkp_cuda_state *state = (fkp_cuda_state *)calloc(1, sizeof *state);
    fk_backend *backend = (fk_backend *)calloc(1, sizeof *backend);
    fk_status status =
        state && backend ? FK_OK : fk_fail(FK_ERROR_MEMORY, "out of memory for the CUDA backend");
    if (status == FK_OK) status = fkp_cuda_check(cudaSetDevice(device_id), "cudaSetDevice");
    if (status == FK_OK)
        status =
            fkp_cuda_check(cudaGetDeviceProperties(&state->properties, device_id), "cudaGetDeviceProperties");
    if (status == FK_OK) status = check_device(device_id, &state->properties);
    if (status == FK_OK) status = fkp_cuda_driver_load(&state->driver);
    if (status != FK_OK) {
        free(state);
        free(backend);
        return status;
    }
    *backend = fk_backend{
        .abi = FK_BACKEND_ABI,
        .name = "cuda",
        .device = {FK_CUDA, device_id},
        .state = state,
        .impls = impls,
        .num_impls = num_impls,
        .destroy = cuda_destroy,
        .describe = fkp_cuda_describe,
        .measure = fkp_cuda_measure,
        .alloc = cuda_alloc,
        .free = cuda_free,
        .copy = cuda_copy,
        .fill_bytes = cuda_fill_bytes,
        .fill_seeded = fkp_cuda_fill_seeded,
        .stream_create = cuda_stream_create,
        .stream_destroy = cuda_stream_destroy,
        .stream_synchronize = cuda_stream_synchronize,
        .event_create = cuda_event_create,
        .event_destroy = cuda_event_destroy,
        .event_record = cuda_event_record,
        .event_elapsed = cuda_event_elapsed,
        .graph_begin = cuda_graph_begin,
        .graph_end = cuda_graph_end,
        .graph_replay = cuda_graph_replay,
        .graph_destroy = cuda_graph_destroy,
        .flush_cache = fkp_cuda_flush_cache,
        .shared_create = fkp_cuda_shared_create,
        .shared_open = fkp_cuda_shared_open,
        .shared_close = fkp_cuda_shared_close,
    };
    *out = backend;
    return FK_OK;
}
