/* SPDX-License-Identifier: Apache-2.0 */
/* How kernels count the tokens of a row: one integer a token of the vocabulary, 0 between rows. C and CUDA. */
#ifndef FK_OPS_PENALTY_H
#define FK_OPS_PENALTY_H

#include "core/seeded.h"

#define PENALTY_PROMPT 1 /* the prompt has it */
#define PENALTY_ANSWER 2 /* for each time that the answer has it */

static inline FKP_HOST_DEVICE float penalized(float x, int count, float presence, float frequency, float repetition)
{
    int said = count / PENALTY_ANSWER;
    x = x > 0 ? x / repetition : x * repetition;
    return x - frequency * (float)said - (said ? presence : 0);
}

#endif
