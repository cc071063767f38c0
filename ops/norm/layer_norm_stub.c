/* SPDX-License-Identifier: Apache-2.0 */
FK_CANDIDATE(layer_norm)
{
    int64_t rows, d;
    fk_rows_cols(a->input, &rows, &d);
    for (int64_t r = 0; r < rows; r++) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < d; i++) mean += (double)load(a->input, r * d + i) / (double)d;
        for (int64_t i = 0; i < d; i++) variance += pow((double)load(a->input, r * d + i) - mean, 2) / (double)d;
        double scale = 1 / sqrt(variance + (double)a->eps);
        for (int64_t i = 0; i < d; i++) {
            double x = ((double)load(a->input, r * d + i) - mean) * scale;
            if (a->weight) x *= (double)load(a->weight, i);
            if (a->bias) x += (double)load(a->bias, i);
            store(a->output, r * d + i, (float)x);
        }
    }
    return 0;
}
