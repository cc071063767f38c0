/* SPDX-License-Identifier: Apache-2.0 */
/* Vocabularies of SentencePiece write a space as U+2581, mostly at the front of pieces. Where no piece goes
 * on across a mark, BPE of a whole text is BPE of its words one by one, and a cache can remember them. */
#ifndef FK_TEXT_MARKED_WORDS_H
#define FK_TEXT_MARKED_WORDS_H

#include "text/word_splitter.h"

#define FKP_MARK "\xE2\x96\x81"
enum { FKP_MARK_BYTES = 3 };

/* No piece has a mark behind another character, and the mark itself is a piece, so that unknown characters of
 * two words are not neighbours. Empty pieces stand for none. */
bool fkp_words_stand_alone(const fk_piece *pieces, int64_t count);

/* A last step that cuts after which every word is marks and what follows up to the next mark. */
fk_status fkp_split_add_marked_words(fkp_word_splitter *w);

#endif
