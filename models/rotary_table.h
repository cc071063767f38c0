/* SPDX-License-Identifier: Apache-2.0 */
/* The table of cosines and sines that a config's rope fields ask for: what decoders with rotary positions share. */
#ifndef FK_MODELS_ROTARY_TABLE_H
#define FK_MODELS_ROTARY_TABLE_H

#include <fk/model.h>

/* cos_sin_cache [positions, head_dim]: cosines of all pairs, then sines; always float32, as in production. From rope_theta
 * and from rope_scaling or rope_parameters with rope_type (or type) default, linear, dynamic, llama3 or yarn; others are
 * refused by name. *positions comes in as max_position_embeddings and goes out as the context: linear and yarn stretch it
 * by their factor, as vLLM derives it. */
fk_status fk_rotary_table(fk_weights *weights, const fk_config *config, int64_t head_dim, int64_t *positions, fk_tensor *cos_sin_cache);

#endif
