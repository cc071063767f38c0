/* SPDX-License-Identifier: Apache-2.0 */
/* Ids for the checks of embeddings, shared by their references. */
#ifndef FK_OPS_ENCODER_EMBEDDINGS_H
#define FK_OPS_ENCODER_EMBEDDINGS_H

#include "core/element.h"
#include "core/random.h"

/* Ids of [0, rows), the last and the first for certain. */
static inline void fill_ids(fk_random *random, const fk_tensor *ids, int64_t rows)
{
    for (int64_t t = 0; t < fk_tensor_numel(ids); t++)
        fkp_set_int(ids, fk_tensor_at(ids, t), t == 0 ? rows - 1 : t == 1 ? 0 : fkp_random_below(random, rows));
}

#endif
