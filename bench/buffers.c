/* SPDX-License-Identifier: Apache-2.0 */
/* Layout of slots, canaries, poison. */
#include "bench/buffers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/seeded.h"

#define PAGE 4096u
#define ALIGNMENT 256u /* what allocators of devices and frameworks give */
#define SHARED_BYTES ((uint64_t)16 << 20) /* read-only tensors from this size on stand once */

static uint64_t round_up(uint64_t n, uint64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Even slots start their tensors near the region's begin, odd ones end them at its end, so that an access past either side
 * meets the guard page in one of them; the start moves with slot and field by multiples of the alignment. */
static fkp_region place(uint64_t at, uint64_t span, bool guard_pages, int slot, int field)
{
    uint64_t unit = guard_pages ? PAGE : ALIGNMENT, shift = ALIGNMENT * (1 + (unsigned)(slot / 2 + field) % 4);
    fkp_region r = {.begin = at, .end = at + round_up(span + 5 * ALIGNMENT, unit), .bytes = span};
    if (slot % 2 == 0) r.data = r.begin + shift;
    else r.data = (r.end - span) / ALIGNMENT * ALIGNMENT;
    return r;
}

typedef struct cursor {
    fkp_layout *layout;
    uint64_t at;
    bool guard_pages;
} cursor;

static void add_guard(cursor *c)
{
    if (!c->guard_pages) return;
    if (c->layout->guards) c->layout->guards[c->layout->num_guards] = (fkp_range){c->at, c->at + PAGE};
    c->layout->num_guards++;
    c->at += PAGE;
}

static fkp_region add_region(cursor *c, uint64_t span, int slot, int field)
{
    fkp_region r = place(c->at, span, c->guard_pages, slot, field);
    c->at = r.end;
    add_guard(c);
    return r;
}

/* One pass: sizes when guards and regions are not there yet, positions when they are. */
static void lay_out(fkp_layout *layout, const uint64_t *spans, bool guard_pages)
{
    int n = layout->op->num_fields;
    cursor c = {.layout = layout, .guard_pages = guard_pages};
    layout->num_guards = 0;
    add_guard(&c);
    for (int f = 0; f < n; f++) {
        if (!layout->shared[f]) continue;
        fkp_region r = add_region(&c, spans[f], 0, f);
        for (int s = 0; s < layout->num_slots && layout->regions; s++) layout->regions[s * n + f] = r;
    }
    layout->shared_bytes = c.at;
    for (int s = 0; s < layout->num_slots; s++) {
        for (int f = 0; f < n; f++) {
            if (layout->shared[f] || !spans[f]) continue;
            fkp_region r = add_region(&c, spans[f], s, f);
            if (layout->regions) layout->regions[s * n + f] = r;
        }
        if (s == 0) layout->slot_bytes = c.at - layout->shared_bytes;
    }
    layout->bytes = c.at;
}

fk_status fkp_layout_init(fkp_layout *layout, const fk_op *op, const void *args, bool guard_pages, int max_slots,
                          uint64_t budget_bytes)
{
    *layout = (fkp_layout){.op = op, .num_slots = 1};
    size_t n = (size_t)op->num_fields;
    uint64_t *spans = calloc(n, sizeof *spans);
    layout->shared = calloc(n, sizeof *layout->shared);
    if (!spans || !layout->shared) goto out_of_memory;
    for (int f = 0; f < op->num_fields; f++) {
        if (!fk_field_is_tensor(&op->fields[f])) continue;
        const fk_tensor *t = fk_op_tensor(op, args, f);
        if (!fk_tensor_present(t)) continue;
        spans[f] = fk_tensor_span_bytes(t);
        if (!spans[f]) spans[f] = 1; /* an empty tensor has an address too */
        layout->shared[f] = !fk_field_is_written(&op->fields[f]) && spans[f] >= SHARED_BYTES;
    }
    lay_out(layout, spans, guard_pages);
    uint64_t slots = layout->slot_bytes ? budget_bytes / layout->slot_bytes : 1;
    layout->num_slots = slots < 1 ? 1 : slots > (uint64_t)max_slots ? max_slots : (int)slots;
    lay_out(layout, spans, guard_pages);
    layout->regions = calloc((size_t)layout->num_slots * n, sizeof *layout->regions);
    layout->guards = calloc((size_t)layout->num_guards + 1, sizeof *layout->guards);
    if (!layout->regions || !layout->guards) goto out_of_memory;
    lay_out(layout, spans, guard_pages);
    free(spans);
    return FK_OK;
out_of_memory:
    free(spans);
    fkp_layout_deinit(layout);
    return fk_fail(FK_ERROR_MEMORY, "out of memory for the layout of %s", op->name);
}

void fkp_layout_deinit(fkp_layout *layout)
{
    free(layout->regions);
    free(layout->shared);
    free(layout->guards);
    *layout = (fkp_layout){0};
}

void fkp_fill_canaries(char *image, uint64_t begin, uint64_t end, uint64_t key)
{
    uint64_t word = 0;
    for (uint64_t i = begin; i < end; i++) {
        if (i % 8 == 0 || i == begin) word = fkp_mix64(key + i / 8);
        image[i] = (char)(word >> 8 * (i % 8));
    }
}

void fkp_fill_poison(void *data, fk_dtype dtype, size_t bytes, uint64_t key)
{
    uint64_t random = fkp_mix64(key), word;
    size_t size = (size_t)fk_dtype_bits(dtype) / 8;
    switch (dtype) {
    case FK_F64: word = 0x7ff8000000000000u | (random & 0x0003ffffffffffffu) | 1; break;
    case FK_F32: word = 0x7fc00000u | (random & 0x001fffffu) | 1; break;
    case FK_F16: word = 0x7e00u | (random & 0x00ffu) | 1; break;
    case FK_BF16: word = 0x7fc0u | (random & 0x001fu) | 1; break;
    case FK_I64: word = 0xa5a5a5a500000000u | (random & 0x7fffffffu); break;
    case FK_I32: word = 0xa5000000u | (random & 0x00ffffffu); break;
    default: word = 0xa0u | (random & 0x0fu); size = 1; break;
    }
    if (!size) return;
    for (size_t i = 0; i + size <= bytes; i += size) memcpy((char *)data + i, &word, size);
}

static bool contains(const fkp_region *r, uint64_t at)
{
    return r->bytes && at >= r->begin && at < r->end;
}

bool fkp_describe_difference(const fkp_layout *layout, fkp_range range, const char *expected, const char *found, char *buf,
                             size_t size)
{
    uint64_t length = range.end - range.begin, at = range.begin;
    if (memcmp(expected + range.begin, found + range.begin, length) == 0) return false;
    while (expected[at] == found[at]) at++;
    for (int s = 0; s < layout->num_slots; s++)
        for (int f = 0; f < layout->op->num_fields; f++) {
            const fkp_region *r = fkp_layout_region(layout, s, f);
            const fk_field *field = &layout->op->fields[f];
            if (!contains(r, at)) continue;
            if (at < r->data)
                snprintf(buf, size, "writes out of bounds: byte %llu before %s", (unsigned long long)(r->data - at), field->name);
            else if (at >= r->data + r->bytes)
                snprintf(buf, size, "writes out of bounds: byte %llu after the end of %s",
                         (unsigned long long)(at - r->data - r->bytes) + 1, field->name);
            else
                snprintf(buf, size, "%s %s at byte %llu",
                         fk_field_is_written(field) ? "writes between the elements of" : "modifies the input", field->name,
                         (unsigned long long)(at - r->data));
            return true;
        }
    snprintf(buf, size, "writes out of bounds, between tensors");
    return true;
}
