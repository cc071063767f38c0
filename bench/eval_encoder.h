/* SPDX-License-Identifier: Apache-2.0 */
/* Evaluation of encoders: vectors instead of tokens. */
#ifndef FK_BENCH_EVAL_ENCODER_H
#define FK_BENCH_EVAL_ENCODER_H

#include "bench/eval.h"

/* As fkp_eval_run, for a model that is an encoder: the same requests on both sides in turn, vectors compared by their cosine. */
fk_status fkp_eval_encoder_run(const fk_model *model, const fkp_requests *requests, const fkp_candidate_set *candidates,
                               const fkp_eval_options *options, fkp_eval *out);

#endif
