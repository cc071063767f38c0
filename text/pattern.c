/* SPDX-License-Identifier: Apache-2.0 */
/* Finding a pattern: by scanner, by search for a string, or by PCRE2. */
#define _GNU_SOURCE /* memmem */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/pattern.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PATTERN_BYTES = 1 << 16, MATCH_LIMIT = 50 * 1000 * 1000, HEAP_LIMIT_KIB = 256 << 10 };

/* \s and \S are the White_Space property there; PCRE2's count U+180E too. Both spellings may stand in a class. */
static fk_status translate(fk_piece expression, fk_bytes *out)
{
    for (size_t i = 0; i < expression.bytes; i++) {
        bool escape = expression.data[i] == '\\' && i + 1 < expression.bytes;
        const char *property = !escape ? NULL : expression.data[i + 1] == 's' ? "\\p{White_Space}" : expression.data[i + 1] == 'S' ? "\\P{White_Space}" : NULL;
        FK_TRY(property ? fk_bytes_append(out, property, strlen(property)) : fk_bytes_append(out, expression.data + i, escape ? 2 : 1));
        i += escape;
    }
    return FK_OK;
}

fk_status fkp_pattern_init_regex(fkp_pattern *p, fk_piece expression)
{
    *p = (fkp_pattern){0};
    p->scan = fkp_scanner_find(expression, &p->scans_all);
    if (p->scan) return FK_OK;
    if (expression.bytes > MOST_PATTERN_BYTES)
        return fk_fail(FK_ERROR_INVALID, "a regular expression of %zu bytes is longer than the limit of %d", expression.bytes,
                       MOST_PATTERN_BYTES);
    int code;
    PCRE2_SIZE offset;
    fk_bytes translated = {0};
    fk_status status = translate(expression, &translated);
    const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
    if (status == FK_OK)
        p->expression = pcre2_compile((PCRE2_SPTR)(translated.data ? translated.data : ""), translated.bytes, options, &code, &offset, NULL);
    fk_bytes_deinit(&translated);
    FK_TRY(status);
    if (!p->expression) {
        PCRE2_UCHAR reason[120];
        pcre2_get_error_message(code, reason, sizeof reason);
        return fk_fail(FK_ERROR_UNSUPPORTED, "regular expression '%.*s': %s at offset %zu",
                       (int)(expression.bytes < 200 ? expression.bytes : 200), expression.data, (const char *)reason, (size_t)offset);
    }
    pcre2_jit_compile(p->expression, PCRE2_JIT_COMPLETE); /* where there is no JIT the interpreter runs */
    return FK_OK;
}

fk_status fkp_pattern_init_string(fkp_pattern *p, fk_piece string)
{
    *p = (fkp_pattern){0};
    if (string.bytes == 0) return fk_fail(FK_ERROR_INVALID, "a pattern is the empty string");
    return fk_bytes_append(&p->string, string.data, string.bytes);
}

fkp_pattern fkp_pattern_of_scanner(fkp_scanner scan)
{
    return (fkp_pattern){.scan = scan};
}

void fkp_pattern_deinit(fkp_pattern *p)
{
    fk_bytes_deinit(&p->string);
    pcre2_code_free(p->expression);
    *p = (fkp_pattern){0};
}

/* What PCRE2 writes to while it matches. */
typedef struct matcher {
    pcre2_match_data *data;
    pcre2_match_context *context;
} matcher;

static bool matcher_init(matcher *m)
{
    m->data = pcre2_match_data_create(1, NULL); /* the whole match only; groups are not asked for */
    m->context = pcre2_match_context_create(NULL);
    if (!m->data || !m->context) return false;
    pcre2_set_match_limit(m->context, MATCH_LIMIT);
    pcre2_set_heap_limit(m->context, HEAP_LIMIT_KIB);
    return true;
}

static void matcher_deinit(matcher *m)
{
    pcre2_match_data_free(m->data);
    pcre2_match_context_free(m->context);
}

static fk_status next_expression(const fkp_pattern *p, const uint8_t *text, fkp_range stretch, size_t from, fkp_range *match, bool *found)
{
    matcher m = {0};
    fk_status status = FK_OK;
    if (!matcher_init(&m)) status = fk_fail(FK_ERROR_MEMORY, "no memory for a match");
    if (status == FK_OK) {
        int count = pcre2_match(p->expression, text + stretch.begin, stretch.end - stretch.begin, from - stretch.begin,
                                PCRE2_NO_UTF_CHECK, m.data, m.context);
        if (count >= 0) {
            const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(m.data);
            *match = (fkp_range){stretch.begin + bounds[0], stretch.begin + bounds[1]};
            /* \K can move the beginning behind the end or before `from`. */
            *found = match->begin >= from && match->begin <= match->end;
        } else if (count != PCRE2_ERROR_NOMATCH) {
            PCRE2_UCHAR reason[120];
            pcre2_get_error_message(count, reason, sizeof reason);
            status = fk_fail(FK_ERROR_INVALID, "the tokenizer's regular expression on a text of %zu bytes: %s",
                             stretch.end - stretch.begin, (const char *)reason);
        }
    }
    matcher_deinit(&m);
    return status;
}

fk_status fkp_pattern_next(const fkp_pattern *p, const uint8_t *text, fkp_range stretch, size_t from, fkp_range *match, bool *found)
{
    *found = false;
    if (p->expression) return next_expression(p, text, stretch, from, match, found);
    if (p->scan) {
        for (size_t pos = from; pos < stretch.end; pos++) {
            if ((text[pos] & 0xC0) == 0x80 && pos > from) continue; /* inside a character */
            size_t end = p->scan(text, pos, stretch.end);
            if (end == pos) continue;
            *match = (fkp_range){pos, end};
            *found = true;
            return FK_OK;
        }
        return FK_OK;
    }
    const uint8_t *hit = from < stretch.end ? memmem(text + from, stretch.end - from, p->string.data, p->string.bytes) : NULL;
    if (!hit) return FK_OK;
    *found = true;
    match->begin = (size_t)(hit - text);
    match->end = match->begin + p->string.bytes;
    return FK_OK;
}
