/* SPDX-License-Identifier: Apache-2.0 */
/* MaxSim on the CPU: a document is one thread's work. Its tokens are taken FKP_LANES at a time, transposed into a small
 * float32 panel [D][token], which every query vector then walks: a running maximum a lane, no similarity is stored. Query
 * vectors are widened to float32 once, in scratch. */
#include <math.h>

#include "core/cpu_op.h"
#include "core/simd.h"
#include "core/threads.h"

#define MAX_D 1024 /* features of a vector: what the panel on the stack holds */
#define MAX_Q 512
#define QUERIES 4  /* query vectors that share a load of the panel */

typedef struct job {
    const fk_colbertv2_max_sim_args *a;
    const float *queries; /* [A, Q, D] */
} job;

/* Rows [first, first + FKP_LANES) of a document to panel[feature][row]; rows past the end are zeros. */
static void pack(const fk_colbertv2_max_sim_args *a, int64_t b, int64_t first, float *panel)
{
    const fk_tensor *doc = a->doc_vecs;
    int64_t d = doc->shape[2], i = 0;
    for (; i + FKP_LANES <= d; i += FKP_LANES) {
        fkp_vf square[FKP_LANES];
        for (int r = 0; r < FKP_LANES; r++)
            square[r] = first + r < doc->shape[1] ? fkp_v_load(doc->data, doc->dtype, b * doc->strides[0] + (first + r) * doc->strides[1] + i)
                                                  : fkp_v_set(0);
        fkp_v_transpose(square);
        for (int r = 0; r < FKP_LANES; r++) fkp_v_store_f32(panel + (i + r) * FKP_LANES, square[r]);
    }
    for (; i < d; i++)
        for (int r = 0; r < FKP_LANES; r++)
            panel[i * FKP_LANES + r] = first + r < doc->shape[1] ? fkp_s_load(doc->data, doc->dtype, b * doc->strides[0] + (first + r) * doc->strides[1] + i) : 0;
}

/* The larger; NaN of either side stays. */
static fkp_vf larger(fkp_vf a, fkp_vf b)
{
    return fkp_v_select((a > b) | (a != a), a, b);
}

static float score_of(const job *j, int64_t b)
{
    const fk_colbertv2_max_sim_args *a = j->a;
    int64_t count = a->query_vecs->shape[1], d = a->doc_vecs->shape[2], tokens = a->doc_vecs->shape[1];
    const float *queries = j->queries + (a->query_vecs->shape[0] == 1 ? 0 : b) * count * d;
    const uint8_t *mask = (const uint8_t *)a->doc_mask->data + b * a->doc_mask->strides[0];
    float panel[MAX_D * FKP_LANES] __attribute__((aligned(64)));
    fkp_vf best[MAX_Q];
    for (int64_t q = 0; q < count; q++) best[q] = fkp_v_set(-INFINITY);
    for (int64_t first = 0; first < tokens; first += FKP_LANES) {
        fkp_vi counts, exists;
        bool any = false;
        for (int r = 0; r < FKP_LANES; r++) {
            exists[r] = first + r < tokens ? -1 : 0;
            counts[r] = first + r < tokens && mask[first + r] ? -1 : 0;
            any = any || counts[r];
        }
        fkp_vf instead = fkp_v_select(exists, fkp_v_set(-9999), fkp_v_set(-INFINITY));
        if (any) pack(a, b, first, panel);
        for (int64_t q = 0; q < count; q += QUERIES) {
            int n = count - q < QUERIES ? (int)(count - q) : QUERIES;
            fkp_vf sums[QUERIES] = {{0}};
            const float *rows[QUERIES];
            for (int k = 0; k < QUERIES; k++) rows[k] = queries + (q + (k < n ? k : 0)) * d;
            for (int64_t i = 0; any && i < d; i++) {
                fkp_vf x = fkp_v_load_f32(panel + i * FKP_LANES);
                for (int k = 0; k < QUERIES; k++) sums[k] += x * rows[k][i];
            }
            for (int k = 0; k < n; k++) best[q + k] = larger(fkp_v_select(counts, sums[k], instead), best[q + k]);
        }
    }
    double score = 0;
    for (int64_t q = 0; q < count; q++) {
        float top = best[q][0];
        for (int r = 1; r < FKP_LANES; r++)
            if (best[q][r] > top || isnan(best[q][r])) top = best[q][r];
        for (int r = 0; r < FKP_LANES; r++)
            if (isnan(best[q][r])) top = NAN;
        score += (double)top;
    }
    return (float)score;
}

static void documents_part(void *user, int64_t begin, int64_t end)
{
    const job *j = user;
    for (int64_t b = begin; b < end; b++)
        fkp_s_store(j->a->scores->data, j->a->scores->dtype, b * j->a->scores->strides[0], score_of(j, b));
}

static fk_status run(fk_ctx *ctx, const fk_colbertv2_max_sim_args *a)
{
    const fk_tensor *query = a->query_vecs;
    int64_t documents = a->doc_vecs->shape[0], count = query->shape[1], d = query->shape[2];
    if (documents == 0) return FK_OK;
    float *queries = fk_ctx_scratch(ctx, sizeof *queries * (size_t)(query->shape[0] * count * d + 1));
    if (!queries) return fk_ctx_status(ctx);
    for (int64_t n = 0; n < query->shape[0]; n++)
        for (int64_t q = 0; q < count; q++)
            for (int64_t i = 0; i < d; i++)
                queries[(n * count + q) * d + i] = fkp_s_load(query->data, query->dtype, n * query->strides[0] + q * query->strides[1] + i);
    job j = {a, queries};
    fkp_parallel_for(fk_ctx_threads(ctx), documents, 1, documents_part, &j);
    return FK_OK;
}

static bool supports(const fk_colbertv2_max_sim_args *a)
{
    return a->doc_vecs->shape[2] <= MAX_D && a->query_vecs->shape[1] <= MAX_Q && (a->doc_vecs->shape[2] < 2 || (a->doc_vecs->strides[2] == 1 && a->query_vecs->strides[2] == 1)) &&
           (a->doc_mask->shape[1] < 2 || a->doc_mask->strides[1] == 1);
}

FK_CPU_OP_IF(colbertv2_max_sim, run, supports);
