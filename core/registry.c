/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operators, in the order of ops/ops.def, and questions about one entry. */
#include <fk/op_layout.h>
#include <fk/ops.h>

#include <string.h>

#include "core/seeded.h"

#define FKH_BEGIN(name, level, formula) extern const fk_op fk_##name##_op;
#include "fk/op_grammar.h"

static const fk_op *const ops[] = {
#define FKH_BEGIN(name, level, formula) &fk_##name##_op,
#include "fk/op_grammar.h"
};

int fk_op_count(void)
{
    return (int)(sizeof ops / sizeof ops[0]);
}

const fk_op *fk_op_at(int index)
{
    return ops[index];
}

const fk_op *fk_op_find(const char *name)
{
    for (int i = 0; i < fk_op_count(); i++)
        if (strcmp(ops[i]->name, name) == 0) return ops[i];
    return NULL;
}

int fk_op_field(const fk_op *op, const char *field_name)
{
    for (int i = 0; i < op->num_fields; i++)
        if (strcmp(op->fields[i].name, field_name) == 0) return i;
    return -1;
}

fk_cost fk_op_cost(const fk_op *op, const void *args)
{
    if (op->cost) return op->cost(args);
    fk_cost cost = {0};
    for (int i = 0; i < op->num_fields; i++) {
        const fk_field *f = &op->fields[i];
        const fk_tensor *t = fk_field_is_tensor(f) ? fk_op_tensor(op, args, i) : NULL;
        if (!t) continue;
        double bytes = (double)fk_tensor_nbytes(t);
        if (f->kind != FK_FIELD_OUT && f->kind != FK_FIELD_OUT_MAX) cost.read_bytes += bytes;
        if (fk_field_is_written(f)) cost.write_bytes += bytes;
    }
    return cost;
}

bool fk_op_composed_of(const fk_op *op, const char *name)
{
    for (const char *const *use = op->uses; *use; use++) {
        if (strcmp(*use, name) == 0) return true;
        const fk_op *lower = fk_op_find(*use);
        if (lower && lower != op && fk_op_composed_of(lower, name)) return true;
    }
    return false;
}

uint64_t fk_op_signature_hash(const fk_op *op)
{
    return fkp_fnv1a64(op->signature, strlen(op->signature));
}

size_t fk_op_field_offset(const fk_op *op, int index)
{
    return fk_fields_offset(op->fields, index);
}
