/* SPDX-License-Identifier: Apache-2.0 */
/* Built against a declaration in which the input has another name. */
#include <fk/candidate.h>

#define fk_silu_and_mul_signature                                                                                    \
    "silu_and_mul L1; FK_FIELD_OUT 0 result [..., D] FK_AS(input); FK_FIELD_IN 0 values [..., 2*D] FK_FLOATS"

FK_CANDIDATE(silu_and_mul)
{
    (void)a;
    return 0;
}
