/* SPDX-License-Identifier: Apache-2.0 */
/* Golden files of families of tokenizers, as tools/reference/bpe_families.py states them: hashes of what the
 * reference makes of 20,000 lines and of the code points, of the text that ids become, and ids of some cases.
 */
#ifndef FK_TESTS_TOKENIZER_FAMILIES_H
#define FK_TESTS_TOKENIZER_FAMILIES_H

#include <jansson.h>

#include "text/tokenizer.h"

/* The tokenizer.json of a family, to be freed. */
char *family_json(const json_t *golden, const json_t *family);
/* How many groups and cases of the family differ; they are named. */
int check_family(const json_t *golden, const json_t *family, const fk_tokenizer *t, unsigned flags);

#endif
