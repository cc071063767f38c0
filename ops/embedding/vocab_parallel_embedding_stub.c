/* SPDX-License-Identifier: Apache-2.0 */
FK_CANDIDATE(vocab_parallel_embedding)
{
    fk_embedding_args rows;
    memset(&rows, 0, sizeof rows);
    rows.output = a->output;
    rows.weight = a->weight;
    rows.indices = a->input_;
    return fk_lower_embedding(&rows);
}
