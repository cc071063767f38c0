/* SPDX-License-Identifier: Apache-2.0 */
/* Uses scratch memory, then calls its own operator, which is refused. */
#include <fk/candidate.h>

FK_CANDIDATE(silu_and_mul)
{
    fk_scratch scratch;
    if (fk_scratch_alloc(a->input, 1 << 16, &scratch) != 0) return -1;
    memset(scratch.data, 1, 1 << 16);
    fk_scratch_free(&scratch);
    return fk_lower_silu_and_mul(a);
}
