/* SPDX-License-Identifier: Apache-2.0 */
/* Where the tensors of a case stand in memory that the judge owns: slots, each with all tensors of one call; large
 * read-only tensors stand once, before the slots. A tensor lies in a region between bytes of a known pattern (canaries);
 * in host memory regions lie between guard pages as well. The same layout describes both sides' memory and the judge's own
 * image of it. */
#ifndef FK_BENCH_BUFFERS_H
#define FK_BENCH_BUFFERS_H

#include <fk/backend.h>

#include "bench/protocol.h"

typedef struct fkp_region {
    uint64_t begin, end; /* writable bytes, canaries included */
    uint64_t data, bytes; /* the tensor: offset and span */
} fkp_region;

typedef struct fkp_layout {
    const fk_op *op;
    int num_slots;
    uint64_t bytes;        /* all */
    uint64_t shared_bytes; /* before the first slot */
    uint64_t slot_bytes;
    fkp_region *regions;   /* [num_slots][num_fields]; shared ones the same in every slot; bytes 0 for absent tensors */
    bool *shared;          /* [num_fields] */
    fkp_range *guards;
    int num_guards;
} fkp_layout;

/* Slots as many as fit `budget_bytes`, 1 to max_slots. `args`: the case (tensors without memory will do). */
fk_status fkp_layout_init(fkp_layout *layout, const fk_op *op, const void *args, bool guard_pages, int max_slots,
                          uint64_t budget_bytes);
void fkp_layout_deinit(fkp_layout *layout);
static inline const fkp_region *fkp_layout_region(const fkp_layout *layout, int slot, int field)
{
    return &layout->regions[(size_t)slot * (size_t)layout->op->num_fields + (size_t)field];
}
/* Bytes of slot `slot`, without the shared ones. */
static inline fkp_range fkp_layout_slot(const fkp_layout *layout, int slot)
{
    uint64_t begin = layout->shared_bytes + (uint64_t)slot * layout->slot_bytes;
    return (fkp_range){begin, begin + layout->slot_bytes};
}

/* Canary pattern over [begin, end) of an image that starts at `image`. */
void fkp_fill_canaries(char *image, uint64_t begin, uint64_t end, uint64_t key);
/* Poison: NaN with a payload for floats, a bit pattern for integers; another one for every `key`. */
void fkp_fill_poison(void *data, fk_dtype dtype, size_t bytes, uint64_t key);

/* Compares two images over a range and says what was touched: "writes 8 bytes past the end of result", "modifies input
 * weight at byte 12". False when they are equal. */
bool fkp_describe_difference(const fkp_layout *layout, fkp_range range, const char *expected, const char *found, char *buf,
                             size_t size);

#endif
