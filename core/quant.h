/* SPDX-License-Identifier: Apache-2.0 */
/* Element and block types of GGUF tensors, and how blocks become float32. Rows are independent, so threads
 * split a matrix by rows. Values are bit-equal to the `gguf` Python package (0.19.0), NaNs of infinite or NaN
 * scales up to sign and payload: the products of half-precision scales, sub-scales of up to 8 bits and
 * integers of up to 6 have at most 24 significant bits and are exact in float32, so only the one sum of the
 * types with a minimum rounds, once, in any evaluation order. */
#ifndef FK_CORE_QUANT_H
#define FK_CORE_QUANT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The numbers stand in files. */
typedef enum fk_qtype {
    FK_Q_F32 = 0,
    FK_Q_F16 = 1,
    FK_Q_Q4_0 = 2, /* 32 elements: half d, nibbles; value = d * (q - 8) */
    FK_Q_Q4_1 = 3, /* 32 elements: half d, half m, nibbles; value = d * q + m */
    FK_Q_Q5_0 = 6, /* 32 elements: half d, 32 high bits, nibbles; value = d * (q - 16) */
    FK_Q_Q5_1 = 7, /* 32 elements: half d, half m, 32 high bits, nibbles; value = d * q + m */
    FK_Q_Q8_0 = 8, /* 32 elements: half d, signed bytes; value = d * q */
    FK_Q_Q4_K = 12, /* 8 sub-blocks of 32 with 6-bit scale and min: value = d * scale * q - dmin * min */
    FK_Q_Q5_K = 13, /* the same with 5-bit q */
    FK_Q_Q6_K = 14, /* 16 sub-blocks of 16 with signed 8-bit scale: value = d * scale * (q - 32) */
    FK_Q_BF16 = 30,
} fk_qtype;

typedef struct fk_qtype_info {
    const char *name;    /* "Q4_1" */
    int64_t block_size;  /* elements that share one block; 1 for plain types */
    int64_t block_bytes; /* bytes of a block */
    /* n elements to float32: one block, or any number of elements of a plain type. NULL where not implemented. */
    void (*dequantize)(const uint8_t *in, int64_t n, float *out);
} fk_qtype_info;

/* NULL for a number that names no type known here. */
const fk_qtype_info *fk_qtype_describe(uint32_t type);

/* Rows [begin, end) of a matrix with `cols` columns to out [end - begin, cols], contiguous. `data` is the
 * start of the matrix. Preconditions (asserted): dequantize is there, cols a multiple of block_size, 0 <= begin <=
 * end. */
void fk_dequantize_rows(uint32_t type, const void *data, int64_t cols, int64_t begin, int64_t end,
                        float *out);

#endif
