/* SPDX-License-Identifier: Apache-2.0 */
FK_CANDIDATE(store_kvcache)
{
    int64_t row = a->key->shape[1] * a->key->shape[2]; /* K * E */
    for (int64_t t = 0; t < a->slot_mapping->shape[0]; t++) {
        int64_t slot = load_int(a->slot_mapping, t);
        if (slot < 0) continue; /* padding */
        if (slot >= a->key_cache->shape[0] * a->key_cache->shape[1]) return fk_candidate_error("a slot lies outside the cache");
        for (int64_t i = 0; i < row; i++) {
            store(a->key_cache, slot * row + i, load(a->key, t * row + i));
            store(a->value_cache, slot * row + i, load(a->value, t * row + i));
        }
    }
    return 0;
}
