/* SPDX-License-Identifier: Apache-2.0 */
/* Quoting and indexing of names that come out of files. */
#include "core/names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *fkp_quote(char buf[FKP_QUOTED_SIZE], const char *text, size_t size)
{
    const size_t limit = FKP_QUOTED_SIZE - 10; /* room for one escape, "...", the quote and NUL */
    size_t n = 0, i = 0;
    buf[n++] = '\'';
    for (; i < size && n < limit; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c < 0x20 || c == 0x7f || c == '\\' || c == '\'' || c >= 0xf8 || c == 0xc0 || c == 0xc1)
            n += (size_t)snprintf(buf + n, FKP_QUOTED_SIZE - n, "\\x%02x", c);
        else
            buf[n++] = (char)c;
    }
    if (i < size) {
        memcpy(buf + n, "...", 3);
        n += 3;
    }
    buf[n++] = '\'';
    buf[n] = '\0';
    return buf;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const fkp_name_ref *)a)->name, ((const fkp_name_ref *)b)->name);
}

const char *fkp_names_sort(fkp_name_ref *refs, size_t count)
{
    if (count > 1) qsort(refs, count, sizeof *refs, compare_names);
    for (size_t i = 1; i < count; i++)
        if (strcmp(refs[i - 1].name, refs[i].name) == 0) return refs[i].name;
    return NULL;
}

bool fkp_names_find(const fkp_name_ref *refs, size_t count, const char *name, size_t *index)
{
    if (count == 0) return false;
    const fkp_name_ref key = {name, 0};
    const fkp_name_ref *found = bsearch(&key, refs, count, sizeof *refs, compare_names);
    if (found) *index = found->index;
    return found != NULL;
}
