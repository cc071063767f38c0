/* SPDX-License-Identifier: Apache-2.0 */
FK_CANDIDATE(argmax)
{
    int64_t columns = a->self->shape[1];
    for (int64_t b = 0; b < a->self->shape[0]; b++) {
        int64_t best = 0;
        for (int64_t i = 1; i < columns && !isnan(load(a->self, b * columns + best)); i++) {
            float x = load(a->self, b * columns + i);
            if (x > load(a->self, b * columns + best) || isnan(x)) best = i;
        }
        ((int64_t *)a->output->data)[b] = best;
    }
    return 0;
}
