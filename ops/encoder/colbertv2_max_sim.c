/* SPDX-License-Identifier: Apache-2.0 */
/* MaxSim, the specification (arXiv:2004.12832 equation 3). As in production a masked token has the similarity -9999, so a
 * document without any token scores -9999 a query vector. Products and sums in double, one rounding, at the end: production
 * code rounds the similarities to the storage dtype on the way. A document of no rows at all (T = 0) is refused. */
#include <fk/ops.h>

#include "core/composition.h"
#include "core/element.h"
#include "core/random.h"

#define MASKED (-9999.0)

static fk_status reference(fk_ctx *ctx, const fk_colbertv2_max_sim_args *a)
{
    (void)ctx;
    const fk_tensor *query = a->query_vecs, *doc = a->doc_vecs;
    int64_t shared = query->shape[0] == 1;
    for (int64_t b = 0; b < doc->shape[0]; b++) {
        double score = 0;
        for (int64_t q = 0; q < query->shape[1]; q++) {
            double best = MASKED;
            bool any = false;
            for (int64_t t = 0; t < doc->shape[1]; t++) {
                double similarity = MASKED;
                if (fk_load_element(fkp_at2(a->doc_mask, b, t), FK_BOOL) != 0)
                    similarity = fkp_dot(query, fkp_at3(query, shared ? 0 : b, q, 0), doc, fkp_at3(doc, b, t, 0), doc->shape[2]);
                if (!any || similarity > best || similarity != similarity) best = similarity; /* NaN stays */
                any = true;
                if (best != best) break;
            }
            score += best;
        }
        fk_store_element(fkp_at1(a->scores, b), a->scores->dtype, score);
    }
    return FK_OK;
}

static fk_status check(fk_ctx *ctx, const fk_colbertv2_max_sim_args *a)
{
    int64_t queries = a->query_vecs->shape[0], documents = a->doc_vecs->shape[0];
    if (queries != 1 && queries != documents)
        return fk_ctx_fail(ctx, FK_ERROR_INVALID, "%lld queries for %lld documents: one for each, or one for all", (long long)queries,
                           (long long)documents);
    if (documents > 0 && a->doc_vecs->shape[1] == 0) return fk_ctx_fail(ctx, FK_ERROR_INVALID, "documents of no tokens have no best one");
    return FK_OK;
}

static fk_cost cost(const fk_colbertv2_max_sim_args *a)
{
    double products = (double)fk_tensor_numel(a->doc_vecs) * (double)a->query_vecs->shape[1];
    return (fk_cost){.read_bytes = fkp_bytes(a->query_vecs) + fkp_bytes(a->doc_vecs) + fkp_bytes(a->doc_mask),
                     .write_bytes = fkp_bytes(a->scores),
                     .flops = 2 * products};
}

/* Documents of random length, the first whole; the second, when there are three, has no token that counts. */
static void fill(fk_random *random, const fk_colbertv2_max_sim_args *a)
{
    int64_t documents = a->doc_mask->shape[0], tokens = a->doc_mask->shape[1];
    for (int64_t b = 0; b < documents; b++) {
        int64_t length = b == 0 ? tokens : b == 1 && documents >= 3 ? 0 : 1 + fkp_random_below(random, tokens);
        for (int64_t t = 0; t < tokens; t++)
            *(uint8_t *)fkp_at2(a->doc_mask, b, t) = t < length && (t == 0 || fkp_random_below(random, 8) != 0);
    }
}

static const char *const cases[] = {"A=1 B=0 Q=2 T=3 D=8",    "A=1 B=2 Q=1 T=1 D=1",    "A=3 B=3 Q=3 T=5 D=63",  "A=1 B=4 Q=32 T=17 D=128",
                                    "A=2 B=2 Q=33 T=40 D=65", "A=1 B=5 Q=32 T=180 D=128", "A=1 B=2 Q=7 T=9 D=384", NULL};

#define FK_OP_DEF "encoder/colbertv2_max_sim.def"
#define FK_OP_REFERENCE reference
#define FK_OP_CHECK check
#define FK_OP_COST cost
#define FK_OP_FILL fill
#define FK_OP_CASES cases
#include "fk/define_op.h"
