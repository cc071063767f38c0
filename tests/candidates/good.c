/* SPDX-License-Identifier: Apache-2.0 */
/* A correct float32 silu_and_mul that raises for other dtypes. */
#include <fk/candidate.h>

FK_CANDIDATE(silu_and_mul)
{
    if (a->input->dtype != FK_F32) return fk_candidate_error("only float32 here");
    int64_t rows, d;
    fk_rows_cols(a->result, &rows, &d);
    const float *x = FK_PTR(const float, a->input);
    float *y = FK_PTR(float, a->result);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < d; i++) y[r * d + i] = x[r * 2 * d + i] / (1 + expf(-x[r * 2 * d + i])) * x[r * 2 * d + d + i];
    return 0;
}
