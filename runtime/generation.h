/* SPDX-License-Identifier: Apache-2.0 */
/* How a model's authors would have it sampled: generation_config.json, as transformers reads it. */
#ifndef FK_RUNTIME_GENERATION_H
#define FK_RUNTIME_GENERATION_H

#include "runtime/engine.h"

/* Temperature, top_k, top_p, min_p and repetition_penalty where a request names none; the rest of *sampling is zeroed. Greedy unless the config's
 * generation_config (fk_hf_config puts it there) sets do_sample; then temperature 1, top_k 50 and top_p 1 where it is silent.
 * Without do_sample its top_k, top_p and min_p are still taken, for requests that bring a temperature. A value out of range is
 * named. */
fk_status fk_generation_sampling(const fk_config *config, fk_sampling *sampling);

#endif
