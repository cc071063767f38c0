/* SPDX-License-Identifier: Apache-2.0 */
/* Stop strings on an Aho-Corasick automaton. The depth of its state is the length of the longest end of the
 * text that begins a stop string: exactly what must be held back. Those bytes are the way from the root to
 * the state, so they are kept in a buffer only to be let out later. */
#include "text/stop_matcher.h"

#include "text/string_matcher.h"
#include "text/utf8.h"

#include <stdlib.h>
#include <string.h>

struct fk_stop_matcher {
    fkp_string_matcher strings;
    int32_t state;
    bool stopped;
    fk_bytes held; /* the last depth(state) bytes of the text */
};

fk_status fk_stop_matcher_create(const fk_piece *stops, size_t count, fk_stop_matcher **out)
{
    *out = NULL;
    if (count > FK_MAX_STOP_STRINGS)
        return fk_fail(FK_ERROR_INVALID, "%zu stop strings are more than the limit of %d", count,
                       FK_MAX_STOP_STRINGS);
    for (size_t i = 0; i < count; i++) {
        if (stops[i].bytes == 0) return fk_fail(FK_ERROR_INVALID, "stop string %zu is empty", i);
        if (stops[i].bytes > FK_MAX_STOP_BYTES)
            return fk_fail(FK_ERROR_INVALID, "stop string %zu has %zu bytes, more than the limit of %d", i,
                           stops[i].bytes, FK_MAX_STOP_BYTES);
        size_t bad = fk_utf8_invalid_offset(stops[i].data, stops[i].bytes);
        if (bad < stops[i].bytes)
            return fk_fail(FK_ERROR_INVALID, "stop string %zu is not UTF-8: byte 0x%02X at offset %zu", i,
                           (uint8_t)stops[i].data[bad], bad);
    }
    fk_stop_matcher *m = calloc(1, sizeof *m);
    if (!m) return fk_fail(FK_ERROR_MEMORY, "no memory for stop strings");
    fk_status status = fkp_string_matcher_init(&m->strings, stops, count);
    if (status == FK_OK)
        *out = m;
    else
        fk_stop_matcher_destroy(m);
    return status;
}

void fk_stop_matcher_destroy(fk_stop_matcher *m)
{
    if (!m) return;
    fkp_string_matcher_deinit(&m->strings);
    fk_bytes_deinit(&m->held);
    free(m);
}

/* Length of the longest stop string that ends in this state, 0 when none does. */
static size_t stop_bytes(const fk_stop_matcher *m)
{
    const fkp_matcher_node *node = &m->strings.nodes[m->state];
    if (node->pattern < 0) node = &m->strings.nodes[node->shorter];
    return (size_t)node->depth;
}

/* Lets all but the last `keep` bytes of the held text out. */
static fk_status release(fk_stop_matcher *m, size_t keep, fk_bytes *out)
{
    size_t ready = m->held.bytes - keep;
    FK_TRY(fk_bytes_append(out, m->held.data, ready));
    if (ready > 0 && keep > 0) memmove(m->held.data, m->held.data + ready, keep);
    m->held.bytes = keep;
    return FK_OK;
}

fk_status fk_stop_matcher_push(fk_stop_matcher *m, const char *text, size_t bytes, fk_bytes *out,
                               bool *stopped)
{
    size_t taken = 0;
    bool found = false;
    while (taken < bytes && !m->stopped && !found) {
        m->state = fkp_string_matcher_step(&m->strings, m->state, (uint8_t)text[taken++]);
        found = stop_bytes(m) > 0;
    }
    if (!m->stopped) {
        FK_TRY(fk_bytes_append(&m->held, text, taken));
        FK_TRY(release(m, found ? stop_bytes(m) : (size_t)m->strings.nodes[m->state].depth, out));
        if (found) fk_bytes_clear(&m->held);
        m->stopped = found;
    }
    *stopped = m->stopped;
    return FK_OK;
}

fk_status fk_stop_matcher_finish(fk_stop_matcher *m, fk_bytes *out)
{
    fk_status status = release(m, 0, out);
    m->state = FKP_MATCHER_ROOT;
    m->stopped = false;
    return status;
}
