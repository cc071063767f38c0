/* SPDX-License-Identifier: Apache-2.0 */
FK_CANDIDATE(embedding)
{
    int64_t count = fk_tensor_numel(a->indices), d = a->weight->shape[1];
    for (int64_t t = 0; t < count; t++) {
        int64_t row = load_int(a->indices, t);
        if (row < 0 || row >= a->weight->shape[0]) return fk_candidate_error("an index lies outside the table");
        for (int64_t i = 0; i < d; i++) store(a->output, t * d + i, load(a->weight, row * d + i));
    }
    return 0;
}
