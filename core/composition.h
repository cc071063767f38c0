/* SPDX-License-Identifier: Apache-2.0 */
/* What compositions (references of L2 and L3 operators) share. They call the door alone; the last call writes into the
 * caller's output, the door frees the tensors in between when the composition returns. */
#ifndef FK_CORE_COMPOSITION_H
#define FK_CORE_COMPOSITION_H

#include <fk/ctx.h>
#include <fk/ops.h>

/* An optional argument, handed on. */
static inline fk_tensor fkp_optional(const fk_tensor *t)
{
    return t ? *t : FK_ABSENT;
}

static inline double fkp_bytes(const fk_tensor *t)
{
    return t ? (double)fk_tensor_nbytes(t) : 0;
}

#endif
