/* SPDX-License-Identifier: Apache-2.0 */
/* Reading and walking the table of rules. */
#include "text/charsmap.h"

#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

static uint32_t read_u32(const char *data)
{
    const uint8_t *b = (const uint8_t *)data;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static uint32_t offset_of(uint32_t unit)
{
    return (unit >> 10) << ((unit & 1u << 9) >> 6);
}

static bool ends_text(uint32_t unit)
{
    return unit >> 8 & 1;
}

/* Goes from *node by one byte; *node is then where its children are counted from. */
static bool step(const fkp_charsmap *map, uint32_t *node, uint8_t byte, bool *ends)
{
    uint32_t at = *node ^ byte;
    if (at >= map->num_units) return false;
    uint32_t unit = map->units[at];
    if ((unit & (1u << 31 | 0xFF)) != byte) return false;
    *ends = ends_text(unit);
    *node = at ^ offset_of(unit);
    return true;
}

static bool goes_on_in_ascii(const fkp_charsmap *map, uint32_t node)
{
    bool found = false, ends;
    for (int byte = 1; byte < 0x80 && !found; byte++) {
        uint32_t next = node;
        found = step(map, &next, (uint8_t)byte, &ends);
    }
    return found;
}

fk_status fkp_charsmap_init(fkp_charsmap *map, fk_piece blob)
{
    *map = (fkp_charsmap){0};
    memset(map->before_ascii, true, sizeof map->before_ascii);
    if (blob.bytes == 0) return FK_OK;
    uint32_t trie_bytes = blob.bytes >= 4 ? read_u32(blob.data) : 0;
    if (trie_bytes == 0 || trie_bytes % 4 || trie_bytes > blob.bytes - 4)
        return fk_fail(FK_ERROR_INVALID, "precompiled_charsmap of %zu bytes has a trie of %u", blob.bytes,
                       trie_bytes);
    fk_piece texts = {blob.data + 4 + trie_bytes, blob.bytes - 4 - trie_bytes};
    if (fk_utf8_invalid_offset(texts.data, texts.bytes) < texts.bytes)
        return fk_fail(FK_ERROR_INVALID, "precompiled_charsmap: the replacements are no UTF-8 at offset %zu",
                       fk_utf8_invalid_offset(texts.data, texts.bytes));
    map->num_units = trie_bytes / 4;
    map->units = calloc(map->num_units, sizeof *map->units);
    if (!map->units) return fk_fail(FK_ERROR_MEMORY, "no memory for %zu units of a trie", map->num_units);
    for (size_t i = 0; i < map->num_units; i++) map->units[i] = read_u32(blob.data + 4 + 4 * i);
    fk_status status = fk_bytes_append(&map->replacements, texts.data, texts.bytes);
    if (status == FK_OK) status = fk_bytes_append(&map->replacements, "", 1); /* the last one ends too */
    for (int byte = 1; byte < 256; byte++) {
        uint32_t node = offset_of(map->units[0]);
        bool ends;
        map->begins[byte] = step(map, &node, (uint8_t)byte, &ends);
        if (byte < 0x80)
            map->before_ascii[byte] = !map->begins[byte] || (!ends && !goes_on_in_ascii(map, node));
    }
    if (status != FK_OK) fkp_charsmap_deinit(map);
    return status;
}

void fkp_charsmap_deinit(fkp_charsmap *map)
{
    free(map->units);
    fk_bytes_deinit(&map->replacements);
    *map = (fkp_charsmap){0};
}

bool fkp_charsmap_find(const fkp_charsmap *map, const uint8_t *text, size_t bytes, bool longest,
                       size_t *length, fk_piece *replacement)
{
    if (bytes == 0 || !map->begins[text[0]]) return false;
    uint32_t node = offset_of(map->units[0]);
    size_t found = SIZE_MAX;
    for (size_t i = 0; i < bytes && text[i] != 0; i++) {
        bool ends;
        if (!step(map, &node, text[i], &ends)) break;
        if (!ends || node >= map->num_units) continue;
        size_t value = map->units[node] & 0x7FFFFFFF;
        if (value >= map->replacements.bytes) continue;
        found = value;
        *length = i + 1;
        if (!longest) break;
    }
    if (found == SIZE_MAX) return false;
    const char *data = map->replacements.data + found;
    *replacement = (fk_piece){data, strlen(data)};
    return true;
}

/* End of the grapheme that begins at `at` (Unicode's annex 29, extended). */
static size_t grapheme_end(const uint8_t *text, size_t at, size_t bytes)
{
    fkp_utf8_char c = fkp_utf8_read(text + at, bytes - at);
    utf8proc_int32_t state = 0;
    for (at += (size_t)c.bytes; at < bytes; at += (size_t)c.bytes) {
        fkp_utf8_char next = fkp_utf8_read(text + at, bytes - at);
        bool known = c.state == FKP_UTF8_VALID && next.state == FKP_UTF8_VALID;
        if (!known || utf8proc_grapheme_break_stateful((utf8proc_int32_t)c.code_point,
                                                       (utf8proc_int32_t)next.code_point, &state))
            break;
        c = next;
    }
    return at;
}

fk_status fkp_charsmap_normalize(const fkp_charsmap *map, fk_piece text, fk_bytes *out)
{
    enum { SHORT_GRAPHEME = 6 };
    const uint8_t *data = (const uint8_t *)text.data;
    for (size_t at = 0; at < text.bytes;) {
        size_t begin = at, end = grapheme_end(data, at, text.bytes), length;
        fk_piece replacement;
        if (end - begin < SHORT_GRAPHEME &&
            fkp_charsmap_find(map, data + begin, end - begin, false, &length, &replacement)) {
            FK_TRY(fk_bytes_append(out, replacement.data, replacement.bytes));
            at = end;
            continue;
        }
        for (size_t next; at < end; at = next) {
            next = at + (size_t)fkp_utf8_read(data + at, end - at).bytes;
            if (fkp_charsmap_find(map, data + at, next - at, false, &length, &replacement))
                FK_TRY(fk_bytes_append(out, replacement.data, replacement.bytes));
            else
                FK_TRY(fk_bytes_append(out, data + at, next - at));
        }
    }
    return FK_OK;
}
