/* SPDX-License-Identifier: Apache-2.0 */
/* Cutting at marks. */
#define _GNU_SOURCE /* memmem */
#include "text/marked_words.h"

#include <string.h>

static size_t marks_end(const uint8_t *text, size_t pos, size_t end)
{
    while (end - pos >= FKP_MARK_BYTES && memcmp(text + pos, FKP_MARK, FKP_MARK_BYTES) == 0)
        pos += FKP_MARK_BYTES;
    return pos;
}

static size_t scan_marked_word(const uint8_t *text, size_t pos, size_t end)
{
    pos = marks_end(text, pos, end);
    const uint8_t *next = memmem(text + pos, end - pos, FKP_MARK, FKP_MARK_BYTES);
    return next ? (size_t)(next - text) : end;
}

bool fkp_words_stand_alone(const fk_piece *pieces, int64_t count)
{
    bool mark_is_piece = false;
    for (int64_t id = 0; id < count; id++) {
        const uint8_t *text = (const uint8_t *)pieces[id].data;
        const size_t bytes = pieces[id].bytes, marks = bytes ? marks_end(text, 0, bytes) : 0;
        mark_is_piece |= marks == FKP_MARK_BYTES && bytes == FKP_MARK_BYTES;
        if (bytes > marks && memmem(text + marks, bytes - marks, FKP_MARK, FKP_MARK_BYTES)) return false;
    }
    return mark_is_piece;
}

fk_status fkp_split_add_marked_words(fkp_word_splitter *w)
{
    fkp_split_step *step;
    FK_TRY(fkp_split_add(w, FKP_SPLIT_PATTERN, &step));
    step->pattern = fkp_pattern_of_scanner(scan_marked_word);
    step->pattern.scans_all = true;
    w->only = NULL;
    fkp_word_splitter_finish(w);
    return FK_OK;
}
