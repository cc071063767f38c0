/* SPDX-License-Identifier: Apache-2.0 */
FK_CANDIDATE(row_parallel_linear)
{
    fk_linear_args product = {a->output, a->input_, a->weight, a->bias_weight};
    return fk_lower_linear(&product);
}
