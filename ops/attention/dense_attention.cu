/* SPDX-License-Identifier: Apache-2.0 */
/* Attention without a cache on CUDA: one block for 64 rows of a KV head (ops/attention/attention_rows_cuda.h). A mask is read
 * from memory element by element. */
#include "ops/attention/attention_rows_cuda.h"
#include "ops/attention/dense_mask.h"

namespace
{

/* Grid (block of rows, KV head, sequence). Strides in elements: batch, head, token. */
template <typename T> struct dense_source : attention_rows {
    const T *q, *k, *v;
    T *out;
    int64_t q_stride[3], k_stride[3], v_stride[3], out_stride[3];
    const void *mask; /* NULL: none */
    int64_t mask_stride[4];
    int mask_dtype, all_rows;

    __device__ __forceinline__ bool begin(int most)
    {
        const int64_t batch = blockIdx.z, head = blockIdx.y;
        first_row = (int)blockIdx.x * most;
        rows = min(most, all_rows - first_row);
        q += batch * q_stride[0] + head * group * q_stride[1];
        k += batch * k_stride[0] + head * k_stride[1];
        v += batch * v_stride[0] + head * v_stride[1];
        out += batch * out_stride[0] + head * group * out_stride[1];
        mask_at = batch * mask_stride[0] + head * group * mask_stride[1];
        first_key = 0, end_key = length;
        narrow();
        return rows > 0;
    }
    __device__ __forceinline__ int64_t at(const int64_t (&stride)[3], int row) const
    {
        return (first_row + row) / group * stride[2] + (first_row + row) % group * stride[1];
    }
    __device__ __forceinline__ const T *query(int row) const { return q + at(q_stride, row); }
    __device__ __forceinline__ T *result(int row) const { return out + at(out_stride, row); }
    __device__ __forceinline__ float *partial(int) const { return nullptr; }
    __device__ __forceinline__ const T *key(int j) const { return k + j * k_stride[2]; }
    __device__ __forceinline__ const T *value(int j) const { return v + j * v_stride[2]; }
    __device__ __forceinline__ bool biased(int, int) const { return mask != nullptr; }
    __device__ __forceinline__ float bias(int row, int j) const
    {
        const int64_t i = mask_at + (first_row + row) % group * mask_stride[1] + (first_row + row) / group * mask_stride[2] +
                          j * mask_stride[3];
        if (mask_dtype == FK_BOOL) return ((const uint8_t *)mask)[i] ? 0.0f : -INFINITY;
        return fkd_load_any(mask, mask_dtype, i);
    }

  private:
    int64_t mask_at;
};

void copy_strides(int64_t (&to)[3], const fk_tensor *t)
{
    for (int i = 0; i < 3; i++) to[i] = t->strides[i];
}

template <typename T> fk_status launch(fk_ctx *ctx, cudaStream_t stream, const fk_dense_attention_args *a)
{
    dense_source<T> s = {};
    s.q = FK_PTR(const T, a->query), s.k = FK_PTR(const T, a->key), s.v = FK_PTR(const T, a->value), s.out = FK_PTR(T, a->output);
    copy_strides(s.q_stride, a->query), copy_strides(s.k_stride, a->key);
    copy_strides(s.v_stride, a->value), copy_strides(s.out_stride, a->output);
    if (a->attn_mask) {
        fk_tensor mask = dense_mask(a);
        s.mask = mask.data, s.mask_dtype = mask.dtype;
        for (int i = 0; i < 4; i++) s.mask_stride[i] = mask.strides[i];
    }
    s.head_size = (int)a->query->shape[3];
    s.group = (int)(a->query->shape[1] / a->key->shape[1]);
    s.length = (int)a->key->shape[2];
    s.all_rows = (int)a->query->shape[2] * s.group;
    s.scale = a->scale != 0 ? a->scale : 1.0f / sqrtf((float)s.head_size);
    s.window = -1, s.causal = a->is_causal;
    const bool tensor_cores = rows_aligned(a->query) && rows_aligned(a->key) && rows_aligned(a->value) && rows_aligned(a->output);
    const int most = tensor_cores ? ROWS_BLOCK : ROWS_PLAIN;
    const dim3 grid((unsigned)((s.all_rows + most - 1) / most), (unsigned)a->key->shape[1], (unsigned)a->query->shape[0]);
    if constexpr (sizeof(T) == 2)
        if (tensor_cores) return rows_launch_tiles<T>(ctx, stream, s, grid, "dense_attention");
    return rows_launch_plain<T>(ctx, stream, s, grid, "dense_attention");
}

} // namespace

extern "C" fk_status fk_dense_attention_cuda(fk_ctx *ctx, cudaStream_t stream, const fk_dense_attention_args *a)
{
    if (fk_tensor_numel(a->output) == 0) return FK_OK;
    FK_DISPATCH_FLOAT(a->query->dtype, T, return launch<T>(ctx, stream, a));
    return FK_OK;
}

static bool supports(const fk_dense_attention_args *a)
{
    return rows_dense(a->query) && rows_dense(a->key) && rows_dense(a->value) && rows_dense(a->output) &&
           a->query->shape[3] <= ROWS_MAX_HEAD_SIZE && a->key->shape[1] <= 65535 && a->query->shape[0] <= 65535 &&
           a->key->shape[2] <= INT32_MAX / 2 && a->query->shape[1] * a->query->shape[2] <= INT32_MAX / 2;
}

FK_CUDA_OP_IF(dense_attention, supports)
