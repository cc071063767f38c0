/* SPDX-License-Identifier: Apache-2.0 */
/* An unknown word is answered with the nearest known one. */
#ifndef FK_CORE_NEAREST_H
#define FK_CORE_NEAREST_H

#include <fk/status.h>

/* Insertions, deletions, replacements and swaps of neighbours that turn one word into the other; case does not count. */
int fkp_edit_distance(const char *a, const char *b);

/* Collects the nearest of several names. Start with {.word = word}. */
typedef struct fkp_nearest {
    const char *word;
    const char *best; /* NULL: nothing near enough */
    int distance;
} fkp_nearest;
void fkp_nearest_offer(fkp_nearest *nearest, const char *name);

/* Fails with "unknown <kind> '<word>'; did you mean '<best>'?", or, with nothing near, "...; <hint>". */
fk_status fkp_fail_unknown(const char *kind, const fkp_nearest *nearest, const char *hint);

#endif
