/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over the bytes. */
#include "core/clean_text.h"

#include <stddef.h>

/* Length of the UTF-8 sequence at s, 0 when it is none: no overlong forms, no surrogates, nothing above U+10FFFF, and no
 * control characters of the second block (U+0080 to U+009F), which terminals obey too. */
static size_t sequence(const unsigned char *s)
{
    if (s[0] < 0x80) return s[0] >= 32 ? s[0] != 127 : s[0] == '\n' || s[0] == '\t';
    size_t n = s[0] >= 0xf0 && s[0] < 0xf5 ? 4 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) return 0; /* the NUL at the end, too */
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f) || (s[0] == 0xc2 && s[1] < 0xa0))
        return 0;
    return n;
}

char *fkp_clean_text(char *text)
{
    for (char *at = text; *at;) {
        size_t n = sequence((const unsigned char *)at);
        if (n == 0) *at = '?';
        at += n ? n : 1;
    }
    return text;
}
