/* SPDX-License-Identifier: Apache-2.0 */
FK_CANDIDATE(add)
{
    for (int64_t i = 0; i < fk_tensor_numel(a->self); i++) store(a->output, i, load(a->self, i) + load(a->other, i));
    return 0;
}
