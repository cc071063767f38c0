/* SPDX-License-Identifier: Apache-2.0 */
/* Names that come out of files: made harmless for messages, and indexed for look-up. Both must stand hostile
 * input, so the index is a sorted array (no hash that a file could be made to collide with). */
#ifndef FK_CORE_NAMES_H
#define FK_CORE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FKP_QUOTED_SIZE 100

/* Writes `size` bytes of `text` in single quotes into buf: bytes outside printable ASCII that are no UTF-8
 * lead or continuation as \xNN, long text cut with "...". Returns buf. */
const char *fkp_quote(char buf[FKP_QUOTED_SIZE], const char *text, size_t size);

typedef struct fkp_name_ref {
    const char *name; /* borrowed, NUL-terminated */
    size_t index;     /* position in the caller's array */
} fkp_name_ref;

/* Sorts refs by name. Returns NULL, or a name that occurs twice. */
const char *fkp_names_sort(fkp_name_ref *refs, size_t count);
/* Finds `name` in sorted refs and stores its index; false when it is not there. */
bool fkp_names_find(const fkp_name_ref *refs, size_t count, const char *name, size_t *index);

#endif
