/* SPDX-License-Identifier: Apache-2.0 */
/* SentencePiece's own normalizer: rules, white space, and the mark that spaces are written as. */
#include "text/normalizer.h"

#include "text/utf8.h"

#include <string.h>

/* What the front of the text becomes, and how much of it that is. */
static fk_piece normalize_front(const fkp_charsmap *map, const fkp_sentencepiece_rules *rules, fk_piece text,
                                size_t *used)
{
    const uint8_t *data = (const uint8_t *)text.data;
    fk_piece normal = {text.data, 0};
    if (rules->user_defined && fkp_trie_longest(rules->user_defined, data, text.bytes, used) >= 0) {
        normal.bytes = *used;
        return normal;
    }
    if (fkp_charsmap_find(map, data, text.bytes, true, used, &normal)) return normal;
    fkp_utf8_char c = fkp_utf8_read(data, text.bytes);
    *used = c.state == FKP_UTF8_VALID ? (size_t)c.bytes : 1;
    normal.bytes = *used;
    return c.state == FKP_UTF8_VALID ? normal : fk_piece_of(FK_REPLACEMENT);
}

/* Bytes at the front that stay as they are one by one: ASCII that is no space and begins neither rule nor
 * symbol. */
static size_t plain_front(const fkp_charsmap *map, const fkp_sentencepiece_rules *rules, fk_piece text)
{
    const bool symbols = rules->user_defined && rules->user_defined->nodes;
    size_t count = 0;
    for (; count < text.bytes; count++) {
        const uint8_t byte = (uint8_t)text.data[count];
        if (byte >= 0x80 || byte == ' ' || !map->before_ascii[byte]) break;
        if (symbols && rules->user_defined->root_child[byte] >= 0) break;
        if (map->begins[byte] && count + 1 < text.bytes && (uint8_t)text.data[count + 1] >= 0x80) break;
    }
    return count;
}

static fk_piece drop(fk_piece text, size_t bytes)
{
    return (fk_piece){text.data + bytes, text.bytes - bytes};
}

static bool is_space(fk_piece text)
{
    return text.bytes == 1 && text.data[0] == ' ';
}

fk_status fkp_sentencepiece_normalize(const fkp_charsmap *map, const fkp_sentencepiece_rules *rules,
                                      fk_piece text, fk_bytes *out)
{
    const fk_bytes *space = &rules->space;
    const bool trim = rules->remove_extra_whitespaces;
    const size_t start = out->bytes;
    size_t used;
    while (trim && text.bytes > 0 && is_space(normalize_front(map, rules, text, &used)))
        text = drop(text, used);
    if (text.bytes == 0) return FK_OK;
    if (rules->add_dummy_prefix && !rules->whitespace_suffix)
        FK_TRY(fk_bytes_append(out, space->data, space->bytes));
    for (bool after_space = trim; text.bytes > 0; text = drop(text, used)) {
        used = plain_front(map, rules, text);
        if (used > 0) {
            FK_TRY(fk_bytes_append(out, text.data, used));
            after_space = false;
            continue;
        }
        fk_piece normal = normalize_front(map, rules, text, &used);
        while (after_space && normal.bytes > 0 && normal.data[0] == ' ') normal = drop(normal, 1);
        for (size_t i = 0; i < normal.bytes; i++)
            FK_TRY(normal.data[i] == ' ' ? fk_bytes_append(out, space->data, space->bytes)
                                         : fk_bytes_append(out, normal.data + i, 1));
        if (normal.bytes > 0) after_space = normal.data[normal.bytes - 1] == ' ';
        after_space &= trim;
    }
    while (trim && out->bytes - start >= space->bytes &&
           memcmp(out->data + out->bytes - space->bytes, space->data, space->bytes) == 0)
        out->bytes -= space->bytes;
    if (rules->add_dummy_prefix && rules->whitespace_suffix)
        FK_TRY(fk_bytes_append(out, space->data, space->bytes));
    return FK_OK;
}
