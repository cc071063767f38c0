/* SPDX-License-Identifier: Apache-2.0 */
/* The table of normalization rules in SentencePiece models ("precompiled_charsmap"): a double-array trie of
 * texts, each with the text that replaces it. Layout, little endian: u32 size of the trie in bytes; its units
 * of 32 bits; the replacements, each ended by a NUL. A unit holds (as in the Darts-clone library) a label in
 * the low 8 bits, bit 8 for "a text ends here", bits 10 to 30 an offset, bit 9 for "the offset counts 256s";
 * a unit with bit 31 is the value of a text, an offset into the replacements. */
#ifndef FK_TEXT_CHARSMAP_H
#define FK_TEXT_CHARSMAP_H

#include "text/buffer.h"

#include <stdbool.h>

typedef struct fkp_charsmap {
    uint32_t *units; /* NULL: no rules */
    size_t num_units;
    fk_bytes replacements;
    bool begins[256];       /* some text begins with the byte */
    bool before_ascii[128]; /* no text is the byte or begins with it and another ASCII byte */
} fkp_charsmap;

/* Copies the blob; an empty one has no rules. Refuses sizes that do not fit and replacements that are no
 * UTF-8. */
fk_status fkp_charsmap_init(fkp_charsmap *map, fk_piece blob);
void fkp_charsmap_deinit(fkp_charsmap *map);

/* The rule for the shortest or the longest beginning of the text: its length and what replaces it. False when
 * there is none. Hostile tables are safe: no look outside, at most one step a byte. */
bool fkp_charsmap_find(const fkp_charsmap *map, const uint8_t *text, size_t bytes, bool longest,
                       size_t *length, fk_piece *replacement);

/* The normalizer Precompiled of tokenizer.json: the shortest rule replaces a whole grapheme of less than 6
 * bytes, even when it is only for the first of its characters; other characters go one by one. */
fk_status fkp_charsmap_normalize(const fkp_charsmap *map, fk_piece text, fk_bytes *out);

#endif
