/* SPDX-License-Identifier: Apache-2.0 */
/* The GPT-2 byte map: byte-level vocabularies write each byte as one printable character. A byte that is a
 * visible Latin-1 character stands for itself; the 68 others (controls, space, 0x7F to 0xA0, 0xAD) take
 * U+0100 onward in order, so that space is U+0120 ("Ġ") and newline U+010A ("Ċ"). */
#ifndef FK_TEXT_BYTE_MAP_H
#define FK_TEXT_BYTE_MAP_H

#include <stdint.h>

/* Code point that stands for the byte. */
static inline uint32_t fkp_byte_to_code_point(uint8_t byte)
{
    if (byte <= 0x20) return 0x100u + byte;
    if (byte >= 0x7F && byte <= 0xA0) return 0x100u + 0x21 + (byte - 0x7Fu);
    if (byte == 0xAD) return 0x100u + 0x43;
    return byte;
}

/* The byte that the code point stands for, -1 when it stands for none. */
static inline int fkp_code_point_to_byte(uint32_t code_point)
{
    if (code_point >= 0x100 && code_point <= 0x120) return (int)(code_point - 0x100);
    if (code_point >= 0x121 && code_point <= 0x142) return (int)(code_point - 0x121 + 0x7F);
    if (code_point == 0x143) return 0xAD;
    if (code_point >= 0x100 || fkp_byte_to_code_point((uint8_t)code_point) != code_point) return -1;
    return (int)code_point;
}

#endif
