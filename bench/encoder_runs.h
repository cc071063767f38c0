/* SPDX-License-Identifier: Apache-2.0 */
/* A scenario's requests on an encoder: all are encoded, then the first is taken as a query and the others are scored against it, so
 * that a run has every operator of the model in it. */
#ifndef FK_BENCH_ENCODER_RUNS_H
#define FK_BENCH_ENCODER_RUNS_H

#include "bench/scenario.h"
#include "runtime/embedder.h"

typedef struct fkp_encoded {
    fk_vectors vectors;
    float *scores;  /* [requests] */
    int64_t tokens; /* of all requests */
    double seconds;
} fkp_encoded;

/* An embedder with passes of the scenario's size. */
fk_embedder_options fkp_encoder_options(const fkp_requests *requests);
/* `interrupted` may be NULL. */
fk_status fkp_encoder_run(const fkp_requests *requests, fk_embedder *embedder, bool (*interrupted)(void), fkp_encoded *out);
void fkp_encoded_deinit(fkp_encoded *encoded);

#endif
