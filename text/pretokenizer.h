/* SPDX-License-Identifier: Apache-2.0 */
/* Pre-tokenizers: the rules that cut text into words before byte-pair encoding, which never merges across a
 * cut. Each rule is a hand-written scanner over code points for one published regular expression, found by
 * the name that GGUF files carry in tokenizer.ggml.pre. A further rule is one more function and one more row
 * of the table. */
#ifndef FK_TEXT_PRETOKENIZER_H
#define FK_TEXT_PRETOKENIZER_H

#include "fk/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the rules distinguish. Letters are \p{L}, numbers \p{N}, spaces the White_Space property (\s);
 * everything else, unassigned code points and bytes that are no UTF-8 included, is OTHER. END is the place
 * after the last character. */
typedef enum fkp_char_class { FKP_OTHER, FKP_LETTER, FKP_NUMBER, FKP_SPACE, FKP_END } fkp_char_class;

/* Class of a code point as of Unicode 15.1, whichever of Unicode 15.0 or 15.1 the installed utf8proc knows.
 */
fkp_char_class fkp_classify(uint32_t code_point);
/* The same as of Unicode 16, as in the expressions of tokenizer.json. */
fkp_char_class fkp_classify_json(uint32_t code_point);

typedef struct fkp_pretokenizer {
    const char *name;
    /* End of the word that begins at `pos`; pos < end, and pos < result <= end. Never looks beyond `end`. */
    size_t (*word_end)(const uint8_t *text, size_t pos, size_t end);
    bool ignore_merges; /* a word that is a vocabulary piece as it stands is that piece, whatever the merges
                           say */
    bool add_bos;       /* what the family does when the file does not say */
} fkp_pretokenizer;

/* The rule of that name. Unknown: FK_ERROR_UNSUPPORTED with the names there are. A wrong guess would give
 * wrong ids without a sign, so there is no default rule. */
fk_status fkp_pretokenizer_find(const char *name, const fkp_pretokenizer **out);

#ifdef __cplusplus
}
#endif
#endif
