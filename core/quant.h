/* SPDX-License-Identifier: Apache-2.0 */
/* Element and block types of GGUF tensors, and how blocks become float32. Rows are independent, so threads
 * split a matrix by rows. Values are bit-equal to the `gguf` Python package (0.19.0): the product of a
 * half-precision scale and an integer of up to 8 bits is exact in float32, so only the sum of Q4_1 rounds,
 * once, in any evaluation order. */
#ifndef FK_CORE_QUANT_H
#define FK_CORE_QUANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers stand in files. */
typedef enum fk_qtype {
    FK_Q_F32 = 0,
    FK_Q_F16 = 1,
    FK_Q_Q4_1 = 3, /* 32 elements in 20 bytes: half d, half m, 16 bytes of nibbles; value = d*q + m */
    FK_Q_Q8_0 = 8, /* 32 elements in 34 bytes: half d, 32 signed bytes; value = d*q */
} fk_qtype;

typedef struct fk_qtype_info {
    const char *name;    /* "Q4_1" */
    int64_t block_size;  /* elements that share one block; 1 for plain types */
    int64_t block_bytes; /* bytes of a block */
    bool can_dequantize; /* fk_dequantize_rows takes it */
} fk_qtype_info;

/* NULL for a number that names no type known here. */
const fk_qtype_info *fk_qtype_describe(uint32_t type);

/* Rows [begin, end) of a matrix with `cols` columns to out [end - begin, cols], contiguous. `data` is the
 * start of the matrix. Preconditions (asserted): can_dequantize, cols a multiple of block_size, 0 <= begin <=
 * end. */
void fk_dequantize_rows(uint32_t type, const void *data, int64_t cols, int64_t begin, int64_t end,
                        float *out);

#endif
