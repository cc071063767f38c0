/* SPDX-License-Identifier: Apache-2.0 */
/* Where the fields of an args struct stand. The struct is a row of pointers and scalars with natural alignment, so that
 * offsets follow from the field table alone; candidates use the same function as the library. */
#ifndef FK_OP_LAYOUT_H
#define FK_OP_LAYOUT_H

#include <fk/op.h>

/* Size (and alignment) of one field inside an args struct. */
static inline size_t fk_field_size(const fk_field *f)
{
    if (fk_field_is_tensor(f) || f->attr_type == FK_ATTR_string) return sizeof(void *);
    return f->attr_type == FK_ATTR_int ? sizeof(int64_t) : f->attr_type == FK_ATTR_float ? sizeof(float) : sizeof(bool);
}

/* Where the next field stands after `*end` bytes are taken; moves *end past it. */
static inline size_t fk_field_place(const fk_field *f, size_t *end)
{
    size_t size = fk_field_size(f), offset = (*end + size - 1) & ~(size - 1); /* sizes are powers of two */
    *end = offset + size;
    return offset;
}

/* Offset of fields[index]. */
static inline size_t fk_fields_offset(const fk_field *fields, int index)
{
    size_t end = 0, offset = 0;
    for (int i = 0; i <= index; i++) offset = fk_field_place(&fields[i], &end);
    return offset;
}

#endif
