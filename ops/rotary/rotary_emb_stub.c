/* SPDX-License-Identifier: Apache-2.0 */
static void turn(const fk_rotary_emb_args *a, const fk_tensor *heads, int64_t t, int64_t position)
{
    int64_t half = a->cos_sin_cache->shape[1] / 2;
    for (int64_t h = 0; h < heads->shape[1] / a->head_size; h++)
        for (int64_t i = 0; i < half; i++) {
            float c = load(a->cos_sin_cache, position * 2 * half + i), s = load(a->cos_sin_cache, position * 2 * half + half + i);
            int64_t head = t * heads->shape[1] + h * a->head_size;
            int64_t first = head + (a->is_neox ? i : 2 * i), second = a->is_neox ? first + half : first + 1;
            float x = load(heads, first), y = load(heads, second);
            store(heads, first, x * c - y * s);
            store(heads, second, y * c + x * s);
        }
}

FK_CANDIDATE(rotary_emb)
{
    for (int64_t t = 0; t < a->positions->shape[0]; t++) {
        int64_t position = load_int(a->positions, t);
        if (position < 0 || position >= a->cos_sin_cache->shape[0]) return fk_candidate_error("a position lies outside cos_sin_cache");
        turn(a, a->query, t, position);
        if (a->key) turn(a, a->key, t, position);
    }
    return 0;
}
