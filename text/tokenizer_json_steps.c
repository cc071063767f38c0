/* SPDX-License-Identifier: Apache-2.0 */
/* Normalizers, pre-tokenizers and post-processors out of tokenizer.json. */
#include "text/tokenizer_json_internal.h"

#include "text/base64.h"

#include <string.h>

/* ---- fields */

const json_t *fkp_json_field(const json_t *object, const char *field)
{
    const json_t *value = json_object_get(object, field);
    return json_is_null(value) ? NULL : value;
}

fk_status fkp_json_bool(const json_t *object, const char *where, const char *field, bool fallback, bool *out)
{
    const json_t *value = fkp_json_field(object, field);
    *out = value ? json_is_true(value) : fallback;
    if (!value || json_is_boolean(value)) return FK_OK;
    return fk_fail(FK_ERROR_INVALID, "%s: '%s' must be true or false", where, field);
}

fk_status fkp_json_text(const json_t *object, const char *where, const char *field, bool required, fk_piece *out)
{
    const json_t *value = fkp_json_field(object, field);
    *out = (fk_piece){"", 0};
    if (!value && !required) return FK_OK;
    if (!json_is_string(value)) return fk_fail(FK_ERROR_INVALID, "%s: '%s' is %s", where, field, value ? "no string" : "absent");
    *out = (fk_piece){json_string_value(value), json_string_length(value)};
    return FK_OK;
}

fk_status fkp_json_count(const json_t *object, const char *where, const char *field, int64_t fallback, int64_t most, int64_t *out)
{
    const json_t *value = fkp_json_field(object, field);
    *out = value ? json_integer_value(value) : fallback;
    if (!value || (json_is_integer(value) && *out >= 0 && *out <= most)) return FK_OK;
    return fk_fail(FK_ERROR_INVALID, "%s: '%s' must be an integer from 0 to %lld", where, field, (long long)most);
}

fk_status fkp_json_type(const json_t *object, const char *where, const char **type)
{
    *type = json_string_value(json_object_get(object, "type"));
    return *type ? FK_OK : fk_fail(FK_ERROR_INVALID, "%s has no 'type'", where);
}

static fk_status not_built(const char *where, const char *type)
{
    return fk_fail(FK_ERROR_UNSUPPORTED, "%s '%.80s' is not built", where, type);
}

fk_status fkp_read_pattern(const json_t *object, const char *where, fkp_pattern *out)
{
    const json_t *pattern = json_object_get(object, "pattern");
    fk_piece text;
    fk_status status;
    if (json_object_get(pattern, "Regex")) {
        FK_TRY(fkp_json_text(pattern, where, "Regex", true, &text));
        status = fkp_pattern_init_regex(out, text);
    } else {
        FK_TRY(fkp_json_text(pattern, where, "String", true, &text));
        status = fkp_pattern_init_string(out, text);
    }
    return fk_fail_context(status, "%s", where);
}

/* ---- normalizers */

static fk_status add_text(fk_bytes *out, fk_piece text)
{
    return fk_bytes_append(out, text.data, text.bytes);
}

static fk_status read_bert(const json_t *part, fkp_bert_normalizer *n)
{
    FK_TRY(fkp_json_bool(part, "normalizer", "clean_text", true, &n->clean_text));
    FK_TRY(fkp_json_bool(part, "normalizer", "handle_chinese_chars", true, &n->handle_chinese_chars));
    FK_TRY(fkp_json_bool(part, "normalizer", "lowercase", true, &n->lowercase));
    return fkp_json_bool(part, "normalizer", "strip_accents", n->lowercase, &n->strip_accents);
}

static fk_status read_charsmap(const json_t *part, fkp_charsmap *map)
{
    fk_piece text;
    fk_bytes blob = {0};
    FK_TRY(fkp_json_text(part, "normalizer Precompiled", "precompiled_charsmap", false, &text));
    fk_status status = fkp_base64_append(&blob, text);
    if (status == FK_OK) status = fkp_charsmap_init(map, (fk_piece){blob.data ? blob.data : "", blob.bytes});
    fk_bytes_deinit(&blob);
    return fk_fail_context(status, "normalizer Precompiled");
}

fk_status fkp_read_normalizer(const json_t *part, fkp_normalizer_list *out)
{
    static const struct {
        const char *type;
        fkp_normalizer_kind kind;
    } kinds[] = {{"NFC", FKP_NORMALIZE_NFC},
                 {"NFD", FKP_NORMALIZE_NFD},
                 {"NFKC", FKP_NORMALIZE_NFKC},
                 {"NFKD", FKP_NORMALIZE_NFKD},
                 {"Lowercase", FKP_NORMALIZE_LOWERCASE},
                 {"Strip", FKP_NORMALIZE_STRIP},
                 {"StripAccents", FKP_NORMALIZE_STRIP_ACCENTS},
                 {"Replace", FKP_NORMALIZE_REPLACE},
                 {"Prepend", FKP_NORMALIZE_PREPEND},
                 {"BertNormalizer", FKP_NORMALIZE_BERT},
                 {"Nmt", FKP_NORMALIZE_NMT},
                 {"ByteLevel", FKP_NORMALIZE_BYTE_LEVEL},
                 {"Precompiled", FKP_NORMALIZE_CHARSMAP}};
    if (!part || json_is_null(part)) return FK_OK;
    const char *type;
    FK_TRY(fkp_json_type(part, "normalizer", &type));
    if (strcmp(type, "Sequence") == 0) {
        const json_t *list = json_object_get(part, "normalizers");
        if (!json_is_array(list)) return fk_fail(FK_ERROR_INVALID, "normalizer: 'normalizers' is no array");
        for (size_t i = 0; i < json_array_size(list); i++) FK_TRY(fkp_read_normalizer(json_array_get(list, i), out));
        return FK_OK;
    }
    size_t k = 0;
    while (k < sizeof kinds / sizeof *kinds && strcmp(kinds[k].type, type) != 0) k++;
    if (k == sizeof kinds / sizeof *kinds) return not_built("normalizer", type);
    fkp_normalizer *n;
    fk_piece text;
    FK_TRY(fkp_normalizer_add(out, kinds[k].kind, &n));
    switch (n->kind) {
    case FKP_NORMALIZE_STRIP:
        FK_TRY(fkp_json_bool(part, "normalizer Strip", "strip_left", true, &n->left));
        return fkp_json_bool(part, "normalizer Strip", "strip_right", true, &n->right);
    case FKP_NORMALIZE_REPLACE:
        FK_TRY(fkp_read_pattern(part, "normalizer Replace", &n->pattern));
        FK_TRY(fkp_json_text(part, "normalizer Replace", "content", true, &text));
        return add_text(&n->content, text);
    case FKP_NORMALIZE_PREPEND:
        FK_TRY(fkp_json_text(part, "normalizer Prepend", "prepend", true, &text));
        return add_text(&n->content, text);
    case FKP_NORMALIZE_BERT: return read_bert(part, &n->bert);
    case FKP_NORMALIZE_CHARSMAP:
        return read_charsmap(part, &n->charsmap);
    default: return FK_OK;
    }
}

/* ---- pre-tokenizers */

static fk_status add_scanner(fkp_word_splitter *out, fkp_scanner scan, fkp_split_behavior behavior, bool invert)
{
    fkp_split_step *step;
    FK_TRY(fkp_split_add(out, FKP_SPLIT_PATTERN, &step));
    step->pattern = fkp_pattern_of_scanner(scan);
    step->behavior = behavior;
    step->invert = invert;
    return FK_OK;
}

static fk_status read_behavior(const json_t *part, const char *where, fkp_split_behavior fallback, fkp_split_behavior *out)
{
    static const char *const names[] = {"Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"};
    fk_piece name;
    *out = fallback;
    FK_TRY(fkp_json_text(part, where, "behavior", false, &name));
    if (name.bytes == 0) return FK_OK;
    for (int i = 0; i < 5; i++)
        if (strcmp(names[i], name.data) == 0) {
            *out = (fkp_split_behavior)i;
            return FK_OK;
        }
    return fk_fail(FK_ERROR_UNSUPPORTED, "%s: behavior '%.80s' is unknown", where, name.data);
}

static fk_status read_split(const json_t *part, fkp_word_splitter *out)
{
    const char *where = "pre_tokenizer Split";
    const json_t *pattern = json_object_get(part, "pattern");
    fkp_split_step *step;
    FK_TRY(fkp_split_add(out, FKP_SPLIT_PATTERN, &step));
    FK_TRY(fkp_json_bool(part, where, "invert", false, &step->invert));
    FK_TRY(read_behavior(part, where, FKP_SPLIT_ISOLATED, &step->behavior));
    if (json_is_string(pattern)) /* the oldest files write plain text so */
        return fk_fail_context(fkp_pattern_init_string(&step->pattern, (fk_piece){json_string_value(pattern), json_string_length(pattern)}), "%s", where);
    return fkp_read_pattern(part, where, &step->pattern);
}

fk_status fkp_read_prepend_scheme(const json_t *part, const char *where, fkp_prepend_scheme *out)
{
    static const char *const names[] = {"always", "first", "never"};
    fk_piece name;
    bool prefix;
    FK_TRY(fkp_json_text(part, where, "prepend_scheme", false, &name));
    FK_TRY(fkp_json_bool(part, where, "add_prefix_space", true, &prefix));
    *out = prefix ? FKP_PREPEND_ALWAYS : FKP_PREPEND_NEVER;
    if (name.bytes == 0) return FK_OK;
    for (int i = 0; i < 3; i++)
        if (strcmp(names[i], name.data) == 0) {
            *out = (fkp_prepend_scheme)i;
            return FK_OK;
        }
    return fk_fail(FK_ERROR_UNSUPPORTED, "%s: prepend_scheme '%.80s' is unknown", where, name.data);
}

static fk_status read_metaspace(const json_t *part, fkp_word_splitter *out)
{
    const char *where = "pre_tokenizer Metaspace";
    fk_piece replacement;
    bool split;
    fkp_split_step *step;
    FK_TRY(fkp_json_text(part, where, "replacement", true, &replacement));
    FK_TRY(fkp_json_bool(part, where, "split", true, &split));
    FK_TRY(fkp_split_add(out, FKP_SPLIT_METASPACE, &step));
    FK_TRY(add_text(&step->content, replacement));
    FK_TRY(fkp_read_prepend_scheme(part, where, &step->scheme));
    if (!split) return FK_OK;
    FK_TRY(fkp_split_add(out, FKP_SPLIT_PATTERN, &step));
    step->behavior = FKP_SPLIT_MERGED_WITH_NEXT;
    return fk_fail_context(fkp_pattern_init_string(&step->pattern, replacement), "%s", where);
}

static fk_status read_byte_level(const json_t *part, fkp_word_splitter *out)
{
    const char *where = "pre_tokenizer ByteLevel";
    bool prefix, regex;
    fkp_split_step *step;
    FK_TRY(fkp_json_bool(part, where, "add_prefix_space", true, &prefix));
    FK_TRY(fkp_json_bool(part, where, "use_regex", true, &regex));
    if (prefix) {
        FK_TRY(fkp_split_add(out, FKP_SPLIT_PREFIX, &step));
        FK_TRY(add_text(&step->content, fk_piece_of(" ")));
    }
    if (regex) {
        FK_TRY(add_scanner(out, fkp_gpt2_scanner, FKP_SPLIT_ISOLATED, false));
        out->steps[out->count - 1].pattern.scans_all = true;
    }
    return fkp_split_add(out, FKP_SPLIT_BYTE_MAP, &step);
}

static fk_status read_pre_tokenizer(const json_t *part, fkp_word_splitter *out)
{
    const char *type;
    fk_piece text;
    fkp_split_step *step;
    bool flag;
    FK_TRY(fkp_json_type(part, "pre_tokenizer", &type));
    if (strcmp(type, "Sequence") == 0) {
        const json_t *list = json_object_get(part, "pretokenizers");
        if (!json_is_array(list)) return fk_fail(FK_ERROR_INVALID, "pre_tokenizer: 'pretokenizers' is no array");
        for (size_t i = 0; i < json_array_size(list); i++) FK_TRY(read_pre_tokenizer(json_array_get(list, i), out));
        return FK_OK;
    }
    if (strcmp(type, "ByteLevel") == 0) return read_byte_level(part, out);
    if (strcmp(type, "Split") == 0) return read_split(part, out);
    if (strcmp(type, "Metaspace") == 0) return read_metaspace(part, out);
    if (strcmp(type, "Whitespace") == 0) return add_scanner(out, fkp_scan_word_or_other, FKP_SPLIT_REMOVED, true);
    if (strcmp(type, "WhitespaceSplit") == 0) return add_scanner(out, fkp_scan_space, FKP_SPLIT_REMOVED, false);
    if (strcmp(type, "BertPreTokenizer") == 0) {
        FK_TRY(add_scanner(out, fkp_scan_space, FKP_SPLIT_REMOVED, false));
        return add_scanner(out, fkp_scan_punctuation, FKP_SPLIT_ISOLATED, false);
    }
    if (strcmp(type, "Digits") == 0) {
        FK_TRY(fkp_json_bool(part, "pre_tokenizer Digits", "individual_digits", false, &flag));
        return flag ? add_scanner(out, fkp_scan_digit, FKP_SPLIT_ISOLATED, false) : add_scanner(out, fkp_scan_digits, FKP_SPLIT_ISOLATED, false);
    }
    if (strcmp(type, "Punctuation") == 0) {
        fkp_split_behavior behavior;
        FK_TRY(read_behavior(part, "pre_tokenizer Punctuation", FKP_SPLIT_ISOLATED, &behavior));
        return add_scanner(out, fkp_scan_punctuation, behavior, false);
    }
    if (strcmp(type, "CharDelimiterSplit") == 0) {
        FK_TRY(fkp_json_text(part, "pre_tokenizer CharDelimiterSplit", "delimiter", true, &text));
        FK_TRY(fkp_split_add(out, FKP_SPLIT_PATTERN, &step));
        step->behavior = FKP_SPLIT_REMOVED;
        return fk_fail_context(fkp_pattern_init_string(&step->pattern, text), "pre_tokenizer CharDelimiterSplit");
    }
    if (strcmp(type, "FixedLength") == 0) {
        FK_TRY(fkp_split_add(out, FKP_SPLIT_LENGTH, &step));
        FK_TRY(fkp_json_count(part, "pre_tokenizer FixedLength", "length", 5, INT32_MAX, &step->length));
        return step->length > 0 ? FK_OK : fk_fail(FK_ERROR_INVALID, "pre_tokenizer FixedLength: 'length' is 0");
    }
    return not_built("pre_tokenizer", type);
}

fk_status fkp_read_pre_tokenizer(const json_t *part, bool map_bytes, fkp_word_splitter *out, bool *byte_level)
{
    *byte_level = false;
    if (part && !json_is_null(part)) FK_TRY(read_pre_tokenizer(part, out));
    size_t maps = 0;
    for (size_t i = 0; i < out->count; i++) maps += out->steps[i].kind == FKP_SPLIT_BYTE_MAP;
    bool last = maps == 1 && out->steps[out->count - 1].kind == FKP_SPLIT_BYTE_MAP;
    if (last && !map_bytes) {
        out->count--;
        *byte_level = true;
    }
    fkp_word_splitter_finish(out);
    return FK_OK;
}

/* ---- post-processors */

static fk_status read_id(const json_t *value, int64_t vocab_size, const char *name, int32_t *id)
{
    json_int_t number = json_is_integer(value) ? json_integer_value(value) : -1;
    if (number < 0 || number >= vocab_size)
        return fk_fail(FK_ERROR_INVALID,
                       "post_processor: the id of '%.80s' is %lld; it must be an integer from 0 to %lld",
                       name, (long long)number, (long long)vocab_size - 1);
    *id = (int32_t)number;
    return FK_OK;
}

/* ["</s>", 2] */
static fk_status push_pair(const json_t *processor, const char *field, int64_t vocab_size, fk_token_list *out)
{
    int32_t id = -1;
    FK_TRY(read_id(json_array_get(json_object_get(processor, field), 1), vocab_size, field, &id));
    return fk_token_list_push(out, id);
}

/* The tokens before and after "A" in the template of a single text. */
static fk_status read_template(const json_t *processor, int64_t vocab_size, fkp_pipeline *p)
{
    const json_t *parts = json_object_get(processor, "single"), *named = json_object_get(processor, "special_tokens");
    bool seen = false;
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i), *special = json_object_get(part, "SpecialToken");
        if (!special) {
            const char *sequence = json_string_value(json_object_get(json_object_get(part, "Sequence"), "id"));
            if (!sequence || strcmp(sequence, "A") != 0 || seen)
                return fk_fail(FK_ERROR_INVALID, "post_processor.single[%zu] is neither a special token nor the one sequence A", i);
            seen = true;
            continue;
        }
        const char *name = json_string_value(json_object_get(special, "id"));
        const json_t *ids = json_object_get(name ? json_object_get(named, name) : NULL, "ids");
        if (json_array_size(ids) == 0)
            return fk_fail(FK_ERROR_INVALID, "post_processor.special_tokens has no ids for '%.80s'", name ? name : "");
        for (size_t k = 0; k < json_array_size(ids); k++) {
            int32_t id = -1;
            FK_TRY(read_id(json_array_get(ids, k), vocab_size, name, &id));
            FK_TRY(fk_token_list_push(seen ? &p->after : &p->before, id));
        }
    }
    return seen ? FK_OK : fk_fail(FK_ERROR_INVALID, "post_processor.single has no sequence A");
}

fk_status fkp_read_post_processor(const json_t *part, int64_t vocab_size, fkp_pipeline *p)
{
    if (!part || json_is_null(part)) return FK_OK;
    const char *type;
    FK_TRY(fkp_json_type(part, "post_processor", &type));
    if (strcmp(type, "ByteLevel") == 0) return FK_OK; /* concerns offsets only */
    if (strcmp(type, "Sequence") == 0) {
        const json_t *list = json_object_get(part, "processors");
        if (!json_is_array(list)) return fk_fail(FK_ERROR_INVALID, "post_processor: 'processors' is no array");
        for (size_t i = 0; i < json_array_size(list); i++) FK_TRY(fkp_read_post_processor(json_array_get(list, i), vocab_size, p));
        return FK_OK;
    }
    if (p->before.count || p->after.count) return fk_fail(FK_ERROR_UNSUPPORTED, "post_processor: a second one that adds tokens, '%.80s', is not built", type);
    if (strcmp(type, "TemplateProcessing") == 0) return read_template(part, vocab_size, p);
    if (strcmp(type, "BertProcessing") == 0 || strcmp(type, "RobertaProcessing") == 0) {
        FK_TRY(push_pair(part, "cls", vocab_size, &p->before));
        return push_pair(part, "sep", vocab_size, &p->after);
    }
    return not_built("post_processor", type);
}
