/* SPDX-License-Identifier: Apache-2.0 */
FK_CANDIDATE(gelu)
{
    bool by_tanh = strcmp(a->approximate, "tanh") == 0;
    for (int64_t i = 0; i < fk_tensor_numel(a->self); i++) {
        double x = (double)load(a->self, i);
        double below = by_tanh ? 0.5 * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)))
                               : 0.5 * erfc(-x / sqrt(2.0));
        store(a->output, i, (float)(x * below));
    }
    return 0;
}
