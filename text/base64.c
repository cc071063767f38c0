/* SPDX-License-Identifier: Apache-2.0 */
/* Reading base64. */
#include "text/base64.h"

static int digit(char c)
{
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

static fk_status append_groups(fk_bytes *out, fk_piece text)
{
    if (text.bytes % 4)
        return fk_fail(FK_ERROR_INVALID, "base64 of %zu characters, no multiple of 4", text.bytes);
    size_t padding =
        text.bytes > 0 && text.data[text.bytes - 1] == '=' ? 1 + (text.data[text.bytes - 2] == '=') : 0;
    for (size_t at = 0; at < text.bytes; at += 4) {
        uint32_t group = 0;
        for (size_t i = at; i < at + 4; i++) {
            int value = i >= text.bytes - padding ? 0 : digit(text.data[i]);
            if (value < 0)
                return fk_fail(FK_ERROR_INVALID, "base64: byte 0x%02X at offset %zu is no digit",
                               (uint8_t)text.data[i], i);
            group = group << 6 | (uint32_t)value;
        }
        const uint8_t bytes[3] = {(uint8_t)(group >> 16), (uint8_t)(group >> 8), (uint8_t)group};
        FK_TRY(fk_bytes_append(out, bytes, at + 4 == text.bytes ? 3 - padding : 3));
    }
    return FK_OK;
}

fk_status fkp_base64_append(fk_bytes *out, fk_piece text)
{
    size_t before = out->bytes;
    fk_status status = append_groups(out, text);
    if (status != FK_OK) out->bytes = before;
    return status;
}
