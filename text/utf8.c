/* SPDX-License-Identifier: Apache-2.0 */
/* Strict UTF-8 reading. */
#include "text/utf8.h"

#include <string.h>

fkp_utf8_char fkp_utf8_read(const uint8_t *text, size_t bytes)
{
    uint8_t lead = text[0];
    if (lead < 0x80) return (fkp_utf8_char){FKP_UTF8_VALID, lead, 1};
    int length = lead >= 0xC2 && lead <= 0xDF   ? 2
                 : lead >= 0xE0 && lead <= 0xEF ? 3
                 : lead >= 0xF0 && lead <= 0xF4 ? 4
                                                : 0;
    if (length == 0) return (fkp_utf8_char){FKP_UTF8_INVALID, 0, 1};

    /* The second byte carries the limits against overlong forms, surrogates and the end of the code space. */
    uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    uint32_t code_point = lead & (0x7Fu >> length);
    for (int i = 1; i < length; i++) {
        if ((size_t)i == bytes) return (fkp_utf8_char){FKP_UTF8_INCOMPLETE, 0, i};
        if (text[i] < low || text[i] > high) return (fkp_utf8_char){FKP_UTF8_INVALID, 0, i};
        code_point = code_point << 6 | (text[i] & 0x3Fu);
        low = 0x80;
        high = 0xBF;
    }
    return (fkp_utf8_char){FKP_UTF8_VALID, code_point, length};
}

size_t fk_utf8_invalid_offset(const char *text, size_t bytes)
{
    const uint64_t high_bits = 0x8080808080808080u;
    size_t pos = 0;
    while (pos < bytes) {
        uint64_t eight;
        if (bytes - pos >= sizeof eight) {
            memcpy(&eight, text + pos, sizeof eight);
            if ((eight & high_bits) == 0) {
                pos += sizeof eight;
                continue;
            }
        }
        fkp_utf8_char c = fkp_utf8_read((const uint8_t *)text + pos, bytes - pos);
        if (c.state != FKP_UTF8_VALID) break;
        pos += (size_t)c.bytes;
    }
    return pos;
}

/* Length of the form at the front that has the shape of UTF-8 (a lead byte and its continuation bytes)
 * whatever it spells, and its code point; 0 when there is none. */
static size_t read_shape(const uint8_t *text, size_t bytes, uint32_t *code_point)
{
    size_t length = text[0] < 0xC0 ? 0 : text[0] < 0xE0 ? 2 : text[0] < 0xF0 ? 3 : text[0] < 0xF8 ? 4 : 0;
    if (length == 0 || length > bytes) return 0;
    *code_point = text[0] & (0x7Fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xC0) != 0x80) return 0;
        *code_point = *code_point << 6 | (text[i] & 0x3Fu);
    }
    return length;
}

fk_status fkp_utf8_append_lenient(fk_bytes *out, const char *text, size_t bytes)
{
    for (size_t pos = 0; pos < bytes;) {
        size_t good = fk_utf8_invalid_offset(text + pos, bytes - pos);
        FK_TRY(fk_bytes_append(out, text + pos, good));
        pos += good;
        if (pos == bytes) break;
        uint32_t code_point = 0;
        size_t length = read_shape((const uint8_t *)text + pos, bytes - pos, &code_point);
        if (length == 0 || code_point > 0x10FFFF) {
            FK_TRY(fk_bytes_append(out, FK_REPLACEMENT, 3));
            pos++;
        } else {
            uint8_t shortest[4];
            FK_TRY(fk_bytes_append(out, shortest, (size_t)fkp_utf8_write(code_point, shortest)));
            pos += length;
        }
    }
    return FK_OK;
}

int fkp_utf8_write(uint32_t code_point, uint8_t buf[4])
{
    int length = code_point < 0x80 ? 1 : code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
    for (int i = length - 1; i > 0; i--) {
        buf[i] = (uint8_t)(0x80 | (code_point & 0x3F));
        code_point >>= 6;
    }
    static const uint8_t marks[5] = {0, 0, 0xC0, 0xE0, 0xF0};
    buf[0] = (uint8_t)(marks[length] | code_point);
    return length;
}
