/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of tokenizer.json: where the next match lies in a stretch of text. The expressions of the usual vocabularies
 * are known by their exact text and have a scanner; every other expression runs in PCRE2, with limits. */
#ifndef FK_TEXT_PATTERN_H
#define FK_TEXT_PATTERN_H

#include "text/buffer.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A stretch of a text. */
typedef struct fkp_range {
    size_t begin, end;
} fkp_range;

/* End of the match that begins at pos, pos when none does. Never looks beyond `end`. */
typedef size_t (*fkp_scanner)(const uint8_t *text, size_t pos, size_t end);

typedef struct fkp_pattern {
    fkp_scanner scan;  /* NULL: the string, or the compiled expression */
    bool scans_all;    /* the scanner matches at every position, so a stretch is nothing but matches */
    fk_bytes string;   /* plain text to look for */
    void *expression;  /* pcre2_code */
} fkp_pattern;

/* The regular expression of this text (Oniguruma's syntax, as far as PCRE2 shares it). */
fk_status fkp_pattern_init_regex(fkp_pattern *p, fk_piece expression);
/* Not empty. */
fk_status fkp_pattern_init_string(fkp_pattern *p, fk_piece string);
/* A scanner as a pattern. */
fkp_pattern fkp_pattern_of_scanner(fkp_scanner scan);
void fkp_pattern_deinit(fkp_pattern *p);

/* The next match at or after `from` in the stretch [begin, end), which is all the expression sees. The text has the
 * shape of UTF-8. *found is false when there is none. An empty match is reported too. */
fk_status fkp_pattern_next(const fkp_pattern *p, const uint8_t *text, fkp_range stretch, size_t from, fkp_range *match, bool *found);

/* The scanner of a known expression, NULL when it is not known. */
fkp_scanner fkp_scanner_find(fk_piece expression, bool *scans_all);
/* The expression of GPT-2, which ByteLevel has built in; and the same after a step that cuts single digits out. */
extern const fkp_scanner fkp_gpt2_scanner, fkp_digits_gpt2_scanner;
/* Those of the encodings of that name. */
extern const fkp_scanner fkp_cl100k_scanner, fkp_o200k_scanner;

#ifdef __cplusplus
}
#endif
#endif
