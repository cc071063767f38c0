/* SPDX-License-Identifier: Apache-2.0 */
FK_CANDIDATE(colbertv2_token_mask)
{
    uint8_t *mask = FK_PTR(uint8_t, a->mask);
    int64_t n = fk_tensor_numel(a->input_ids), skips = a->skiplist ? fk_tensor_numel(a->skiplist) : 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t id = load_int(a->input_ids, i);
        bool counts = id != a->pad_token_id;
        for (int64_t s = 0; s < skips; s++) counts = counts && id != load_int(a->skiplist, s);
        mask[i] = counts;
    }
    return 0;
}
