/* SPDX-License-Identifier: Apache-2.0 */
FK_CANDIDATE(l2_norm)
{
    int64_t rows, d;
    fk_rows_cols(a->input, &rows, &d);
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t i = 0; i < d; i++) sum += (double)load(a->input, r * d + i) * (double)load(a->input, r * d + i);
        double length = fmax(sqrt(sum), (double)a->eps);
        for (int64_t i = 0; i < d; i++) store(a->output, r * d + i, (float)((double)load(a->input, r * d + i) / length));
    }
    return 0;
}
