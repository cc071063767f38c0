/* SPDX-License-Identifier: Apache-2.0 */
/* Running a scenario's requests on an encoder. */
#include "bench/encoder_runs.h"

#include <stdlib.h>

#include "bench/protocol.h"

fk_embedder_options fkp_encoder_options(const fkp_requests *requests)
{
    return (fk_embedder_options){.max_num_seqs = requests->max_num_seqs};
}

static fk_status run(const fkp_requests *requests, fk_embedder *embedder, bool (*interrupted)(void), fk_id_span *spans, fkp_encoded *out)
{
    for (int64_t i = 0; i < requests->count; i++) {
        spans[i] = (fk_id_span){requests->items[i].ids, requests->items[i].length};
        out->tokens += spans[i].length;
    }
    double start = fkp_now();
    FK_TRY(fk_embedder_encode(embedder, spans, requests->count, interrupted, &out->vectors));
    FK_TRY(fk_embedder_score(embedder, &out->vectors, 0, &out->vectors, spans, out->scores));
    out->seconds = fkp_now() - start;
    return FK_OK;
}

fk_status fkp_encoder_run(const fkp_requests *requests, fk_embedder *embedder, bool (*interrupted)(void), fkp_encoded *out)
{
    fk_id_span *spans = malloc((size_t)requests->count * sizeof *spans);
    *out = (fkp_encoded){.scores = malloc((size_t)requests->count * sizeof *out->scores)};
    fk_status status = spans && out->scores ? run(requests, embedder, interrupted, spans, out)
                                            : fk_fail(FK_ERROR_MEMORY, "out of memory for %lld requests", (long long)requests->count);
    free(spans);
    if (status != FK_OK) fkp_encoded_deinit(out);
    return status;
}

void fkp_encoded_deinit(fkp_encoded *e)
{
    fk_vectors_deinit(&e->vectors);
    free(e->scores);
    *e = (fkp_encoded){0};
}
