/* SPDX-License-Identifier: Apache-2.0 */
/* A float32 equal_rows of tests/ops that hands text and an optional tensor on to the lower operator. */
#include <fk/candidate.h>

FK_CANDIDATE(equal_rows)
{
    fk_scratch scratch;
    int64_t wanted = a->rows->shape[0], d = a->table->shape[1];
    if (fk_scratch_alloc(a->labels, wanted * (int64_t)sizeof(int64_t) + 1, &scratch) != 0) return -1; /* never empty */
    const int64_t *at = (const int64_t *)scratch.data;
    fk_tensor indices = {scratch.data, FK_I64, 1, a->labels->device, {wanted}, {1}};
    fk_select_equal_args lower = {.indices = &indices, .count = a->count, .input = a->labels, .value = a->value,
                                  .order = a->order, .copies = a->copies, .mask = a->use_mask ? a->mask : NULL};
    int status = fk_lower_select_equal(&lower);
    for (int64_t i = 0; status == 0 && i < wanted; i++)
        memcpy(FK_PTR(float, a->rows) + i * d, FK_PTR(const float, a->table) + at[i] * d, (size_t)d * sizeof(float));
    fk_scratch_free(&scratch);
    return status;
}
