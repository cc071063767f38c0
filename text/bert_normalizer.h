/* SPDX-License-Identifier: Apache-2.0 */
/* BERT's normalizer and word splitter, one code point at a time: control characters go, white space becomes a
 * border, ideographs and punctuation stand alone, accents and capitals are taken off when the model is uncased. */
#ifndef FK_TEXT_BERT_NORMALIZER_H
#define FK_TEXT_BERT_NORMALIZER_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The fields of "BertNormalizer" in tokenizer.json. */
typedef struct fkp_bert_normalizer {
    bool clean_text;           /* drop control characters, make white space a space */
    bool handle_chinese_chars; /* put spaces around ideographs */
    bool strip_accents;        /* NFD without nonspacing marks; null in the file means: as lowercase */
    bool lowercase;
} fkp_bert_normalizer;

typedef enum fkp_bert_class {
    FKP_BERT_WORD,  /* goes on with the word */
    FKP_BERT_ALONE, /* a word by itself */
    FKP_BERT_SPACE  /* a border between words, part of none */
} fkp_bert_class;

enum { FKP_BERT_MOST = 8 }; /* one code point normalizes to no more (the longest canonical decomposition has 4) */

typedef struct fkp_bert_output {
    int count; /* 0: the code point vanishes, and the word goes on across it */
    uint32_t code_points[FKP_BERT_MOST];
    uint8_t classes[FKP_BERT_MOST]; /* fkp_bert_class */
    bool ideograph;                 /* as text there are spaces around it */
} fkp_bert_output;

/* Punctuation as that tokenizer has it: all of ASCII's symbols, and category P of Unicode 8. */
bool fkp_bert_is_punctuation(uint32_t code_point);

/* What one code point becomes. Canonical ordering is not done: the marks that it would exchange are the ones that
 * strip_accents takes away. */
void fkp_bert_normalize(const fkp_bert_normalizer *n, uint32_t code_point, fkp_bert_output *out);

#ifdef __cplusplus
}
#endif
#endif
