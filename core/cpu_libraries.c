/* SPDX-License-Identifier: Apache-2.0 */
/* OpenBLAS as one more implementation of linear, for float32. The library is looked for when somebody first asks whether it
 * supports a call, so that nobody else waits for its start. Our pool's threads call it single-threaded, each for its own
 * output columns. Its sums depend on where it splits, so results may differ with the number of threads.
 *
 * It stands behind our kernels, which are faster up to 64 rows and even with it above. One thread of an EPYC (Zen 4, AVX2
 * only), GFLOP/s ours : OpenBLAS 0.3.21, FMA peak 90: M=1 N=3072 K=576 32 : 5.5, M=8 N=K=576 49 : 39, M=64 N=3072 K=576
 * 68 : 60, M=64 N=K=4096 69 : 52, M=512 N=960 K=576 76 : 77, M=512 N=576 K=1536 73 : 76, M=256 N=K=2048 71 : 70. */
#define _GNU_SOURCE
#include "core/cpu_libraries.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>

#include <fk/ctx.h>
#include <fk/ops.h>

#include "core/threads.h"

/* The part of the CBLAS interface in use: row-major, transpose as its headers number them. */
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 };
typedef void (*sgemm_fn)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float *a, int lda,
                         const float *b, int ldb, float beta, float *c, int ldc);

static struct {
    pthread_once_t once;
    sgemm_fn sgemm;
    const char *version;
} openblas = {.once = PTHREAD_ONCE_INIT};

static void load_openblas(void)
{
    void *library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    void (*set_num_threads)(int);
    char *(*get_config)(void);
    sgemm_fn sgemm;
    *(void **)&set_num_threads = dlsym(library, "openblas_set_num_threads");
    *(void **)&get_config = dlsym(library, "openblas_get_config");
    *(void **)&sgemm = dlsym(library, "cblas_sgemm");
    if (!set_num_threads || !get_config || !sgemm) {
        dlclose(library);
        return;
    }
    set_num_threads(1);
    openblas.version = get_config();
    openblas.sgemm = sgemm;
}

const char *fkp_openblas_version(void)
{
    pthread_once(&openblas.once, load_openblas);
    return openblas.version;
}

/* Output columns [begin, end): the bias first, the product on top of it. */
static void columns_part(void *user, int64_t begin, int64_t end)
{
    const fk_linear_args *a = user;
    int64_t m, k, stride = fk_row_stride(a->output);
    fk_rows_cols(a->input, &m, &k);
    float *out = (float *)a->output->data + begin;
    for (int64_t row = 0; a->bias && row < m; row++)
        for (int64_t n = begin; n < end; n++) out[row * stride + n - begin] = ((const float *)a->bias->data)[n];
    openblas.sgemm(ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE, (int)m, (int)(end - begin), (int)k, 1, a->input->data,
                   (int)fk_row_stride(a->input), (const float *)a->weight->data + begin * fk_row_stride(a->weight),
                   (int)fk_row_stride(a->weight), a->bias ? 1 : 0, out, (int)stride);
}

static fk_status run_linear(fk_ctx *ctx, const void *args, void *user)
{
    (void)user;
    const fk_linear_args *a = args;
    if (fk_tensor_numel(a->output) == 0) return FK_OK;
    fkp_parallel_for(fk_ctx_threads(ctx), a->weight->shape[0], 64, columns_part, (void *)(uintptr_t)a);
    return FK_OK;
}

/* Rows that a call with `int` sizes can walk. */
static bool float_rows(const fk_tensor *t)
{
    return t->dtype == FK_F32 && fk_tensor_has_rows(t) && fk_row_stride(t) > 0 && fk_row_stride(t) <= INT_MAX;
}

static bool supports_linear(const void *args)
{
    const fk_linear_args *a = args;
    int64_t m, k;
    fk_rows_cols(a->input, &m, &k);
    if (!float_rows(a->input) || !float_rows(a->weight) || !float_rows(a->output) || k == 0 || m > INT_MAX ||
        a->weight->shape[0] > INT_MAX || (a->bias && (a->bias->dtype != FK_F32 || !fk_tensor_is_contiguous(a->bias))))
        return false;
    return fkp_openblas_version() != NULL;
}

static const fk_impl linear = {.op = "linear", .name = "openblas", .device = FK_CPU, .priority = -1, .run = run_linear,
                               .supports = supports_linear};

static const fk_impl *const impls[] = {&linear};

const fk_impl *const *fkp_cpu_library_impls(int *count)
{
    *count = sizeof impls / sizeof impls[0];
    return impls;
}
