/* SPDX-License-Identifier: Apache-2.0 */
FK_CANDIDATE(vocab_parallel_embedding)
{
    fk_embedding_args rows = {a->output, a->weight, a->input_};
    return fk_lower_embedding(&rows);
}
