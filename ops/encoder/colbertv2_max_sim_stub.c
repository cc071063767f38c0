/* SPDX-License-Identifier: Apache-2.0 */
FK_CANDIDATE(colbertv2_max_sim)
{
    const uint8_t *mask = FK_PTR(const uint8_t, a->doc_mask);
    int64_t documents = a->doc_vecs->shape[0], tokens = a->doc_vecs->shape[1], d = a->doc_vecs->shape[2], queries = a->query_vecs->shape[1];
    for (int64_t b = 0; b < documents; b++) {
        int64_t query = (a->query_vecs->shape[0] == 1 ? 0 : b) * queries;
        double score = 0;
        for (int64_t q = 0; q < queries; q++) {
            double best = -INFINITY;
            for (int64_t t = 0; t < tokens; t++) {
                double similarity = mask[b * tokens + t] ? 0 : -9999;
                for (int64_t i = 0; i < d && mask[b * tokens + t]; i++)
                    similarity += (double)load(a->query_vecs, (query + q) * d + i) * (double)load(a->doc_vecs, (b * tokens + t) * d + i);
                if (similarity > best) best = similarity;
            }
            score += best;
        }
        store(a->scores, b, (float)score);
    }
    return 0;
}
