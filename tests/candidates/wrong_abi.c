/* SPDX-License-Identifier: Apache-2.0 */
/* Carries the note of another ABI version. */
#include <fk/candidate.h>
#undef FK_CANDIDATE_ABI
#define FK_CANDIDATE_ABI 999u

FK_CANDIDATE(silu_and_mul)
{
    (void)a;
    return 0;
}
