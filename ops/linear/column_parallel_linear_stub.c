/* SPDX-License-Identifier: Apache-2.0 */
FK_CANDIDATE(column_parallel_linear)
{
    fk_linear_args product;
    memset(&product, 0, sizeof product);
    product.output = a->output;
    product.input = a->input_;
    product.weight = a->weight;
    product.bias = a->bias_weight;
    return fk_lower_linear(&product);
}
