/* SPDX-License-Identifier: Apache-2.0 */
/* Attention on the CPU, for all its operators: units of work are blocks of rows of one KV head with a range of keys, dealt to the
 * threads in turn, because causal rows grow longer towards the end. Compiled once an instruction-set level. */
#ifndef FK_OPS_ATTENTION_UNITS_CPU_H
#define FK_OPS_ATTENTION_UNITS_CPU_H

#include "core/cpu_op.h"
#include "ops/attention/paged_attention.h"

#define ATTN_ROWS 48 /* rows of a unit at most */
#define ATTN_KEYS 64 /* keys are looked at in blocks that start at multiples of this */

/* Rows [first_row, first_row + rows) of one KV head of one sequence: row r is query r / group, head kv_head * group + r % group. */
typedef struct attn_task {
    int64_t sequence, kv_head; /* sequence: row of the block table */
    int64_t first_token;       /* of the sequence, in q */
    int64_t queries, length;   /* new and cached tokens */
    int64_t first_query;       /* row of the mask that the sequence's first query has */
    int64_t first_row;
    int rows;
    int64_t key_begin, key_end; /* keys to look at; begin is a multiple of ATTN_KEYS */
    bool causal;
    bool in_place; /* few rows may read keys without copies: faster, and rounded otherwise than beside more rows */
} attn_task;

typedef struct attn_unit {
    const paged_attention *attention;
    const fk_tensor *out; /* [T, H, E] */
    attn_task task;
    int64_t splits; /* units from this one on that share its rows, each with other keys; 0 in all but the first */
    float *partial; /* set by attn_units_run where rows are shared: [row][padded E + 2]: sums, largest, total */
} attn_unit;

/* Computes the rows of all units, which have the same head size, and joins those that are shared. Errors: FK_ERROR_MEMORY. */
#define attn_units_run FKP_LEVEL_NAME(attn_units_run)
fk_status attn_units_run(fk_ctx *ctx, attn_unit *units, int64_t count);

static inline bool attn_supports(const fk_tensor *q, const fk_tensor *k, const fk_tensor *v, const fk_tensor *out)
{
    return (q->strides[2] == 1 || q->shape[2] == 1) && (k->strides[3] == 1 || k->shape[3] == 1) &&
           (v->strides[3] == 1 || v->shape[3] == 1) && (out->strides[2] == 1 || out->shape[2] == 1);
}

#endif
