/* SPDX-License-Identifier: Apache-2.0 */
FK_CANDIDATE(parallel_lm_head)
{
    fk_linear_args product = {a->logits, a->input_, a->weight, a->bias_weight};
    return fk_lower_linear(&product);
}
