/* SPDX-License-Identifier: Apache-2.0 */
FK_CANDIDATE(parallel_lm_head)
{
    fk_linear_args product;
    memset(&product, 0, sizeof product);
    product.output = a->logits;
    product.input = a->input_;
    product.weight = a->weight;
    product.bias = a->bias_weight;
    return fk_lower_linear(&product);
}
