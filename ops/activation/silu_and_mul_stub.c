/* SPDX-License-Identifier: Apache-2.0 */
FK_CANDIDATE(silu_and_mul)
{
    int64_t rows, d;
    fk_rows_cols(a->result, &rows, &d);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < d; i++) {
            float gate = load(a->input, 2 * r * d + i), value = load(a->input, 2 * r * d + d + i);
            store(a->result, r * d + i, gate / (1 + expf(-gate)) * value);
        }
    return 0;
}
