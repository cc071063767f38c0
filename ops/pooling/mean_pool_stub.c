/* SPDX-License-Identifier: Apache-2.0 */
FK_CANDIDATE(mean_pool)
{
    int64_t sequences = a->output->shape[0], d = a->output->shape[1];
    for (int64_t b = 0; b < sequences; b++) {
        int64_t start = load_int(a->cu_seqlens, b), stop = load_int(a->cu_seqlens, b + 1);
        if (start < 0 || stop < start || stop > a->hidden_states->shape[0]) return fk_candidate_error("cu_seqlens leads out of hidden_states");
        for (int64_t i = 0; i < d; i++) {
            double sum = 0;
            for (int64_t t = start; t < stop; t++) sum += (double)load(a->hidden_states, t * d + i);
            store(a->output, b * d + i, stop > start ? (float)(sum / (double)(stop - start)) : 0);
        }
    }
    return 0;
}
