/* SPDX-License-Identifier: Apache-2.0 */
FK_CANDIDATE(rms_norm)
{
    int64_t rows, d;
    fk_rows_cols(a->input, &rows, &d);
    for (int64_t r = 0; r < rows; r++) {
        float sum = 0;
        for (int64_t i = 0; i < d; i++) sum += load(a->input, r * d + i) * load(a->input, r * d + i);
        float scale = 1 / sqrtf(sum / (float)d + a->epsilon);
        for (int64_t i = 0; i < d; i++)
            store(a->result, r * d + i, load(a->input, r * d + i) * scale * (a->weight ? load(a->weight, i) : 1));
    }
    return 0;
}
