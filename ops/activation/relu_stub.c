/* SPDX-License-Identifier: Apache-2.0 */
FK_CANDIDATE(relu)
{
    for (int64_t i = 0; i < fk_tensor_numel(a->self); i++) {
        float x = load(a->self, i);
        store(a->output, i, x <= 0 ? 0 : x); /* NaN stays */
    }
    return 0;
}
