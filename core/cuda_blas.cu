/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLASLt's heuristic ranks algorithms by a model of the chip; the first one is often several percent off.
 * So the first call of a shape times the top candidates on the operands at hand, with a cold L2 as a forward
 * pass has it, and the winner is kept for the process. Sums are float32; partial sums of split products are
 * added in float32 too, so that the result rounds once. float32 products are true float32, never TF32. */
#include "core/cuda_blas.h"

#include <cublasLt.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>

#include "core/cuda_backend.h"
#include "core/cuda_op.h"

#define CANDIDATES 8
#define FIRST_RUNS 2
#define NEAR 1.1f    /* of the best time: who is timed again */
#define EQUAL 1.008f /* of the best median: no difference */
#define FINAL_MS 10  /* spent on those near the best, within so many runs of each */
#define LEAST_FINAL_RUNS 5
#define MOST_FINAL_RUNS 25
#define MEAN_CALLS 4 /* in a row, about */
#define WIPE_MS 0.1f /* about what emptying the cache takes */
#define BUSY_M 256   /* rows from which on the arithmetic counts */
#define BUSY_CALLS 4
#define MOST_COPIES 8
#define FLUSH_BYTES ((size_t)96 << 20) /* above the L2 of any current GPU with its write-back */
#define EXACT_M                                                                                              \
    512 /* up to here every number of rows is a shape of its own; above, M counts in steps of M_STEP */
#define M_STEP 256

namespace
{

/* Lengths (M by bucket), dtype, bias, strides, alignment, workspace, device: all that a choice depends on. */
typedef std::tuple<int64_t, int64_t, int64_t, int, bool, int64_t, int64_t, int64_t, int, size_t, int, bool>
    shape_key;

struct choice {
    bool rival;
    cublasLtMatmulAlgo_t algo;
    size_t workspace_bytes;
};

/* Descriptors of one call, in column-major terms: out^T [n, m] = weight (transposed) times x^T. */
struct call {
    cublasLtMatmulDescOpaque_t op;
    cublasLtMatrixLayoutOpaque_t weight, x, out;
};

std::mutex lock;
std::map<shape_key, choice> choices;
std::map<int, cublasLtHandle_t> handles; /* by device */

fk_status check(cublasStatus_t status, const char *what)
{
    if (status == CUBLAS_STATUS_SUCCESS) return FK_OK;
    return fk_fail(status == CUBLAS_STATUS_ALLOC_FAILED ? FK_ERROR_MEMORY : FK_ERROR_DEVICE, "%s: %s", what,
                   cublasLtGetStatusString(status));
}

cudaDataType_t data_type(fk_dtype dtype)
{
    return dtype == FK_F32 ? CUDA_R_32F : dtype == FK_F16 ? CUDA_R_16F : CUDA_R_16BF;
}

/* Largest power of two up to 256 that divides the address. */
int alignment(const void *p)
{
    uintptr_t bit = (uintptr_t)p & (~(uintptr_t)p + 1);
    return p && bit < 256 ? (int)bit : 256;
}

bool tuning_wanted()
{
    static const bool wanted = [] {
        const char *text = getenv("FK_TUNE");
        return !(text && strcmp(text, "0") == 0);
    }();
    return wanted;
}

fk_status get_handle(int device, cublasLtHandle_t *out)
{
    auto found = handles.find(device);
    if (found == handles.end()) {
        cublasLtHandle_t handle;
        FK_TRY(check(cublasLtCreate(&handle), "cublasLtCreate"));
        found = handles.emplace(device, handle).first;
    }
    *out = found->second;
    return FK_OK;
}

fk_status describe(const fkp_blas_problem *p, call *c)
{
    cudaDataType_t type = data_type(p->dtype);
    cublasOperation_t transposed = CUBLAS_OP_T;
    FK_TRY(check(cublasLtMatmulDescInit(&c->op, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cublasLtMatmulDescInit"));
    FK_TRY(check(
        cublasLtMatmulDescSetAttribute(&c->op, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed),
        "transposition"));
    if (p->bias) {
        cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
        FK_TRY(check(
            cublasLtMatmulDescSetAttribute(&c->op, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue),
            "epilogue"));
        FK_TRY(check(cublasLtMatmulDescSetAttribute(&c->op, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &p->bias,
                                                    sizeof p->bias),
                     "bias"));
        FK_TRY(check(
            cublasLtMatmulDescSetAttribute(&c->op, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof type),
            "type of bias"));
    }
    FK_TRY(check(cublasLtMatrixLayoutInit(&c->weight, type, (uint64_t)p->k, (uint64_t)p->n, p->weight_stride),
                 "weight"));
    FK_TRY(
        check(cublasLtMatrixLayoutInit(&c->x, type, (uint64_t)p->k, (uint64_t)p->m, p->x_stride), "input"));
    return check(cublasLtMatrixLayoutInit(&c->out, type, (uint64_t)p->n, (uint64_t)p->m, p->out_stride),
                 "output");
}

/* The heuristic's candidates, best first by its model; *count 0 when there are none. */
fk_status ask(cublasLtHandle_t handle, call *c, const fkp_blas_problem *p, int wanted,
              cublasLtMatmulHeuristicResult_t *results, int *count)
{
    cublasLtMatmulPreferenceOpaque_t preference;
    FK_TRY(check(cublasLtMatmulPreferenceInit(&preference), "cublasLtMatmulPreferenceInit"));
    uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    uint32_t align_weight = (uint32_t)alignment(p->weight), align_x = (uint32_t)alignment(p->x);
    uint32_t align_out = (uint32_t)alignment(p->out);
    const struct {
        cublasLtMatmulPreferenceAttributes_t name;
        const void *value;
        size_t size;
    } wishes[] = {
        {CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &p->workspace_bytes, sizeof p->workspace_bytes},
        {CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof reductions},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &align_weight, sizeof align_weight},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &align_x, sizeof align_x},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &align_out, sizeof align_out},
        {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &align_out, sizeof align_out},
    };
    for (const auto &wish : wishes)
        FK_TRY(check(cublasLtMatmulPreferenceSetAttribute(&preference, wish.name, wish.value, wish.size),
                     "preference"));
    *count = 0;
    cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle, &c->op, &c->weight, &c->x, &c->out,
                                                           &c->out, &preference, wanted, results, count);
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE) {
        *count = 0;
        return FK_OK;
    }
    return check(status, "cublasLtMatmulAlgoGetHeuristic");
}

fk_status launch(cublasLtHandle_t handle, call *c, const fkp_blas_problem *p, const choice *chosen,
                 fkp_blas_rival rival, cudaStream_t stream)
{
    if (chosen->rival) return fkp_cuda_check(rival(p, stream), "matrix-vector kernel");
    const float one = 1, zero = 0;
    return check(cublasLtMatmul(handle, &c->op, &one, p->weight, &c->weight, p->x, &c->x, &zero, p->out,
                                &c->out, p->out, &c->out, &chosen->algo, p->workspace, p->workspace_bytes,
                                stream),
                 "cublasLtMatmul");
}

struct stopwatch {
    cudaEvent_t start, stop;
    void *flush;
    char *weights; /* copies of the weight, so that calls in a row find it cold, as layers of a model do */
    size_t weight_bytes;
    int copies; /* 0: the weight itself is larger than the cache */
};

/* Mean of calls in a row that begin with a cold L2. Where the arithmetic counts, not the memory, there are several in any
 * case: the load of a prefill lowers the clock. */
fk_status time_once(const stopwatch *watch, cublasLtHandle_t handle, call *c, const fkp_blas_problem *p,
                    const choice *candidate, fkp_blas_rival rival, cudaStream_t stream, float *ms)
{
    int calls = std::max(std::max(watch->copies, 1), p->m >= BUSY_M ? BUSY_CALLS : 1);
    fkp_blas_problem cold = *p;
    FK_TRY(fkp_cuda_wipe_cache(watch->flush, FLUSH_BYTES, stream));
    FK_TRY(fkp_cuda_check(cudaEventRecord(watch->start, stream), "cudaEventRecord"));
    for (int i = 0; i < calls; i++) {
        if (watch->copies > 0) cold.weight = watch->weights + (size_t)(i % watch->copies) * watch->weight_bytes;
        FK_TRY(launch(handle, c, &cold, candidate, rival, stream));
    }
    FK_TRY(fkp_cuda_check(cudaEventRecord(watch->stop, stream), "cudaEventRecord"));
    FK_TRY(fkp_cuda_check(cudaEventSynchronize(watch->stop), "cudaEventSynchronize"));
    FK_TRY(fkp_cuda_check(cudaEventElapsedTime(ms, watch->start, watch->stop), "cudaEventElapsedTime"));
    *ms /= (float)calls;
    return FK_OK;
}

/* Every candidate a few times, then in turns those that are near the best, since a difference of a few percent is
 * within what one run differs from the next. Among equals the first in the given order, so that processes agree. */
fk_status time_all(const stopwatch *watch, cublasLtHandle_t handle, call *c, const fkp_blas_problem *p,
                   const choice *candidates, int count, fkp_blas_rival rival, cudaStream_t stream,
                   choice *out)
{
    float best[CANDIDATES + 1], runs[CANDIDATES + 1][MOST_FINAL_RUNS], least = 1e30f, ms = 0;
    for (int i = 0; i < count; i++) {
        best[i] = 1e30f;
        FK_TRY(time_once(watch, handle, c, p, &candidates[i], rival, stream, &ms)); /* may load code */
        for (int r = 0; r < FIRST_RUNS; r++) {
            FK_TRY(time_once(watch, handle, c, p, &candidates[i], rival, stream, &ms));
            best[i] = std::min(best[i], ms);
        }
        least = std::min(least, best[i]);
    }
    const float near = NEAR * least;
    const int near_count = (int)std::count_if(best, best + count, [&](float t) { return t <= near; });
    if (near_count > 1) {
        int rounds = (int)(FINAL_MS / (near_count * (least * MEAN_CALLS + WIPE_MS)));
        rounds = std::min(std::max(rounds, LEAST_FINAL_RUNS), MOST_FINAL_RUNS);
        for (int r = 0; r < rounds; r++)
            for (int i = 0; i < count; i++)
                if (best[i] <= near)
                    FK_TRY(time_once(watch, handle, c, p, &candidates[i], rival, stream, &runs[i][r]));
        least = 1e30f;
        for (int i = 0; i < count; i++) {
            if (best[i] > near) {
                best[i] = 1e30f;
                continue;
            }
            std::nth_element(runs[i], runs[i] + rounds / 2, runs[i] + rounds);
            best[i] = runs[i][rounds / 2];
            least = std::min(least, best[i]);
        }
    }
    for (int i = 0; i < count; i++)
        if (best[i] <= EQUAL * least) {
            *out = candidates[i];
            break;
        }
    return FK_OK;
}

/* Memory for the timing, from the device's; what can't be had is done without: false when that is the flush buffer. */
bool prepare(stopwatch *watch, const fkp_blas_problem *p, cudaStream_t stream)
{
    size_t element = (size_t)fk_dtype_bits(p->dtype) / 8;
    size_t bytes = ((size_t)(p->n - 1) * (size_t)p->weight_stride + (size_t)p->k) * element;
    bool good = cudaMalloc(&watch->flush, FLUSH_BYTES) == cudaSuccess && cudaEventCreate(&watch->start) == cudaSuccess &&
                cudaEventCreate(&watch->stop) == cudaSuccess;
    watch->weight_bytes = (bytes + 255) / 256 * 256;
    watch->copies = good ? (int)std::min<size_t>(FLUSH_BYTES / watch->weight_bytes, MOST_COPIES) : 0;
    if (watch->copies < 2 || cudaMalloc(&watch->weights, (size_t)watch->copies * watch->weight_bytes) != cudaSuccess)
        watch->copies = 0;
    for (int i = 0; i < watch->copies; i++)
        if (cudaMemcpyAsync(watch->weights + (size_t)i * watch->weight_bytes, p->weight, bytes, cudaMemcpyDeviceToDevice,
                            stream) != cudaSuccess)
            watch->copies = 0;
    (void)cudaGetLastError();
    return good;
}

/* Times the candidates; every run writes the same product to the output. Without memory for it the first one stays. */
fk_status tune(cublasLtHandle_t handle, call *c, const fkp_blas_problem *p, const choice *candidates,
               int count, fkp_blas_rival rival, cudaStream_t stream, choice *out)
{
    stopwatch watch = {};
    fk_status status = FK_OK;
    if (prepare(&watch, p, stream)) status = time_all(&watch, handle, c, p, candidates, count, rival, stream, out);
    if (watch.start) (void)cudaEventDestroy(watch.start);
    if (watch.stop) (void)cudaEventDestroy(watch.stop);
    (void)cudaFree(watch.weights);
    (void)cudaFree(watch.flush);
    return status;
}

/* Picks an algorithm for a shape seen for the first time; *done false when there is none. */
fk_status choose(cublasLtHandle_t handle, call *c, const fkp_blas_problem *p, fkp_blas_rival rival,
                 cudaStream_t stream, bool may_time, choice *out, bool *done)
{
    cublasLtMatmulHeuristicResult_t results[CANDIDATES];
    choice candidates[CANDIDATES + 1];
    int found = 0, count = 0;
    if (rival) candidates[count++].rival = true;
    FK_TRY(ask(handle, c, p, may_time ? CANDIDATES : 1, results, &found));
    for (int i = 0; i < found; i++)
        if (results[i].state == CUBLAS_STATUS_SUCCESS && results[i].workspaceSize <= p->workspace_bytes) {
            candidates[count].rival = false;
            candidates[count].algo = results[i].algo;
            candidates[count++].workspace_bytes = results[i].workspaceSize;
        }
    *done = count > 0;
    if (count == 0) return FK_OK;
    *out = candidates[0];
    return may_time && count > 1 ? tune(handle, c, p, candidates, count, rival, stream, out) : FK_OK;
}

int64_t bucket(int64_t m)
{
    return m <= EXACT_M ? m : (m + M_STEP - 1) / M_STEP * M_STEP;
}

/* A choice made for a neighbour in the bucket must hold for this M as well. */
bool still_valid(cublasLtHandle_t handle, call *c, const fkp_blas_problem *p, const choice *chosen)
{
    if (chosen->rival || p->m <= EXACT_M) return true;
    cublasLtMatmulHeuristicResult_t result;
    return cublasLtMatmulAlgoCheck(handle, &c->op, &c->weight, &c->x, &c->out, &c->out, &chosen->algo,
                                   &result) == CUBLAS_STATUS_SUCCESS &&
           result.workspaceSize <= p->workspace_bytes;
}

} // namespace

fk_status fkp_blas_linear_or(const fkp_blas_problem *p, fkp_blas_rival rival, cudaStream_t stream, bool *done)
{
    int device = 0;
    FK_TRY(fkp_cuda_check(cudaGetDevice(&device), "cudaGetDevice"));
    int aligned = alignment(p->weight) | alignment(p->x) << 10 | alignment(p->out) << 20;
    shape_key key(bucket(p->m), p->n, p->k, p->dtype, p->bias != nullptr, p->x_stride, p->weight_stride,
                  p->out_stride, aligned, p->workspace_bytes, device, rival != nullptr);
    call c;
    FK_TRY(describe(p, &c));
    std::lock_guard<std::mutex> guard(lock);
    cublasLtHandle_t handle;
    FK_TRY(get_handle(device, &handle));
    choice chosen = {};
    *done = true;
    auto known = choices.find(key);
    if (known != choices.end() && still_valid(handle, &c, p, &known->second)) {
        chosen = known->second;
    } else {
        /* A bucket's choice that does not fit this M is not replaced: the heuristic serves this call. */
        bool may_time = known == choices.end() && tuning_wanted() && !fkp_cuda_is_capturing(stream);
        FK_TRY(choose(handle, &c, p, rival, stream, may_time, &chosen, done));
        if (!*done) return FK_OK;
        if (may_time) choices[key] = chosen;
    }
    return launch(handle, &c, p, &chosen, rival, stream);
}

fk_status fkp_blas_linear(const fkp_blas_problem *p, cudaStream_t stream, bool *done)
{
    return fkp_blas_linear_or(p, nullptr, stream, done);
}
