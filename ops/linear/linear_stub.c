/* SPDX-License-Identifier: Apache-2.0 */
FK_CANDIDATE(linear)
{
    int64_t rows, columns, inputs = a->weight->shape[1];
    fk_rows_cols(a->output, &rows, &columns);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t o = 0; o < columns; o++) {
            double sum = a->bias ? load(a->bias, o) : 0;
            for (int64_t i = 0; i < inputs; i++) sum += (double)load(a->input, r * inputs + i) * load(a->weight, o * inputs + i);
            store(a->output, r * columns + o, (float)sum);
        }
    return 0;
}
