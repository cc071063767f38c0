/* SPDX-License-Identifier: Apache-2.0 */
/* A float32 select_equal of tests/ops: what a candidate sees of text, flags, an absent tensor and a size that depends on
 * data. */
#include <fk/candidate.h>

FK_CANDIDATE(select_equal)
{
    if (a->input->dtype != FK_F32) return fk_candidate_error("only float32 here");
    const float *input = FK_PTR(const float, a->input);
    const bool *mask = FK_PTR(const bool, a->mask);
    int64_t *indices = FK_PTR(int64_t, a->indices), n = a->input->shape[0], found = 0;
    int64_t step = strcmp(a->order, "ascending") == 0 ? 1 : -1;
    for (int64_t i = step > 0 ? 0 : n - 1; i >= 0 && i < n; i += step)
        if ((input[i] == a->value) != a->negate && (!mask || mask[i]))
            for (int64_t k = 0; k < a->copies; k++) indices[found++] = i;
    *FK_PTR(int64_t, a->count) = found;
    while (found < n * a->copies) indices[found++] = 0;
    return 0;
}
