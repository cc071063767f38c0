/* SPDX-License-Identifier: Apache-2.0 */
FK_CANDIDATE(llama_mlp)
{
    int64_t rows, d, width = a->down_proj->shape[1], element = fk_dtype_bits(a->x->dtype) / 8;
    fk_rows_cols(a->x, &rows, &d);
    if (rows == 0 || d == 0) return 0;
    fk_scratch memory = {NULL, NULL};
    if (fk_scratch_alloc(a->x, (3 * rows * width + 1) * element, &memory) != 0) return -1;
    fk_tensor gate_up = *a->x, gated = *a->x; /* [rows, 2 width] and [rows, width], in scratch memory */
    gate_up.data = memory.data;
    gated.data = (char *)memory.data + 2 * rows * width * element;
    for (int i = 0; i + 1 < a->x->ndim; i++) {
        gate_up.strides[i] = a->x->strides[i] / d * 2 * width;
        gated.strides[i] = a->x->strides[i] / d * width;
    }
    gate_up.shape[a->x->ndim - 1] = 2 * width;
    gated.shape[a->x->ndim - 1] = width;
    fk_linear_args up = {&gate_up, a->x, a->gate_up_proj, NULL}, down = {a->output, &gated, a->down_proj, NULL};
    fk_silu_and_mul_args gate = {&gated, &gate_up};
    int status = width > 0 ? fk_lower_linear(&up) : 0;
    if (status == 0 && width > 0) status = fk_lower_silu_and_mul(&gate);
    if (status == 0) status = fk_lower_linear(&down);
    fk_scratch_free(&memory);
    return status;
}
