/* SPDX-License-Identifier: Apache-2.0 */
/* Edit distance (optimal string alignment) and the answer to an unknown word. */
#include "core/nearest.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LENGTH 64 /* longer words are compared by their beginning */

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static size_t clipped_length(const char *s)
{
    size_t n = strlen(s);
    return n < MAX_LENGTH ? n : MAX_LENGTH;
}

static int lower(const char *s, size_t i)
{
    return tolower((unsigned char)s[i]);
}

int fkp_edit_distance(const char *a, const char *b)
{
    size_t n = clipped_length(a), m = clipped_length(b);
    int d[MAX_LENGTH + 1][MAX_LENGTH + 1];
    for (size_t i = 0; i <= n; i++) d[i][0] = (int)i;
    for (size_t j = 0; j <= m; j++) d[0][j] = (int)j;
    for (size_t i = 1; i <= n; i++)
        for (size_t j = 1; j <= m; j++) {
            int differs = lower(a, i - 1) != lower(b, j - 1);
            d[i][j] = smaller(smaller(d[i - 1][j] + 1, d[i][j - 1] + 1), d[i - 1][j - 1] + differs);
            if (i > 1 && j > 1 && lower(a, i - 1) == lower(b, j - 2) && lower(a, i - 2) == lower(b, j - 1))
                d[i][j] = smaller(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[n][m];
}

void fkp_nearest_offer(fkp_nearest *nearest, const char *name)
{
    int distance = fkp_edit_distance(nearest->word, name);
    size_t length = strlen(nearest->word);
    if (length >= 3 && strlen(name) > length && strncmp(nearest->word, name, length) == 0) distance = 1; /* a beginning */
    int limit = ((int)clipped_length(name) + 1) / 3; /* more than a third is another word */
    if (distance > limit || (nearest->best && distance >= nearest->distance)) return;
    nearest->best = name;
    nearest->distance = distance;
}

fk_status fkp_fail_unknown(const char *kind, const fkp_nearest *nearest, const char *hint)
{
    if (nearest->best)
        return fk_fail(FK_ERROR_INVALID, "unknown %s '%s'; did you mean '%s'?", kind, nearest->word, nearest->best);
    return fk_fail(FK_ERROR_INVALID, "unknown %s '%s'; %s", kind, nearest->word, hint);
}
